/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Writes x86-64 instructions, with vectors of AVX2 (VEX) or AVX-512 (EVEX). Jumps have 32-bit
 * distances. Constants lie behind the code and are addressed relative to the instruction.
 *
 * Nothing is checked but memory: where it is used up, or the code exceeds 32 MiB, `failed` is set
 * and the code is of no use. One thread.
 */
#ifndef OBD_CORE_X86_H
#define OBD_CORE_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };
/* arithmetic instructions, by the digit of their encoding */
enum { X_ADD, X_OR, X_ADC, X_SBB, X_AND, X_SUB, X_XOR, X_CMP };
enum { X_SHL = 4, X_SHR = 5, X_SAR = 7 };
enum { X_VSRL = 2, X_VSRA = 4, X_VSLL = 6 };
/* conditions of jumps and moves */
enum { CC_B = 2, CC_AE, CC_E, CC_NE, CC_BE, CC_A, CC_S, CC_NS, CC_L = 12, CC_GE, CC_LE, CC_G };
/* clang-format on */

#define X_POOL (-1) /* base of a constant; its displacement is the number that x_pool returned */

struct x_mem {
	int base;
	int32_t disp;
};

/*
 * The 4 bytes at `at` become the distance to the constant at `pool`; `tail` bytes of the
 * instruction follow them.
 */
struct x_fix {
	uint32_t at, pool, tail;
};

struct x_buf {
	uint8_t *p;
	uint32_t n, cap;
	uint8_t *pool;
	uint32_t n_pool, cap_pool;
	struct x_fix *fixes;
	uint32_t n_fixes, cap_fixes;
	bool failed;
	bool wide; /* vectors of 512 bits with EVEX, otherwise 256 bits with VEX */
};

void x_free(struct x_buf *b);
/* The constant of `size` bytes, which is aligned to 64. The same bytes are stored once. */
int32_t x_pool(struct x_buf *b, const void *data, uint32_t size);
/* Appends the constants to the code and fills in the distances to them. */
void x_finish(struct x_buf *b);

void x_mov(struct x_buf *b, bool w, int d, int s);
/* Changes the flags if v is 0. */
void x_mov_imm(struct x_buf *b, int d, uint64_t v);
void x_load(struct x_buf *b, bool w, int d, struct x_mem m);
void x_load_small(
	struct x_buf *b, uint32_t bytes, int d, struct x_mem m); /* 1 or 2, zero-extended */
void x_store(struct x_buf *b, bool w, struct x_mem m, int s);
void x_store_imm(struct x_buf *b, bool w, struct x_mem m, int32_t v);
void x_lea(struct x_buf *b, bool w, int d, struct x_mem m);
/* Fetches a cache line that will be read, or written. */
void x_prefetch(struct x_buf *b, bool write, struct x_mem m);
void x_alu(struct x_buf *b, int op, bool w, int d, int s);
void x_alu_mem(struct x_buf *b, int op, bool w, int d, struct x_mem m);
void x_alu_imm(struct x_buf *b, int op, bool w, int d, int32_t v);
void x_mem_imm(struct x_buf *b, int op, bool w, struct x_mem m, int32_t v);
void x_imul(struct x_buf *b, bool w, int d, int s);
void x_imul_imm(struct x_buf *b, bool w, int d, int s, int32_t v);
void x_movsxd(struct x_buf *b, int d, int s);
void x_test(struct x_buf *b, bool w, int d, int s);
void x_test_imm(struct x_buf *b, int d, int32_t v);
void x_neg(struct x_buf *b, bool w, int d);
void x_not(struct x_buf *b, bool w, int d);
/* kind: X_SHL, X_SHR or X_SAR */
void x_shift(struct x_buf *b, int kind, bool w, int d, uint32_t by);
/* The same with BMI2: d = s shifted by the register `by`, modulo the width. */
void x_shiftx(struct x_buf *b, int kind, bool w, int d, int s, int by);
void x_cmov(struct x_buf *b, int cc, bool w, int d, int s);
void x_setcc(struct x_buf *b, int cc, int d); /* zero-extended */
void x_push(struct x_buf *b, int r);
void x_pop(struct x_buf *b, int r);
void x_call(struct x_buf *b, int r);
void x_ret(struct x_buf *b);
/* Returns the place of the distance, for x_here or x_to. cc -1: always. */
uint32_t x_jump(struct x_buf *b, int cc);
void x_to(struct x_buf *b, uint32_t jump, uint32_t target);
void x_here(struct x_buf *b, uint32_t jump);

/* Vector instructions: map (1 0f, 2 0f38, 3 0f3a), prefix (0: none), W, opcode. */
#define V(map, pp, w, op) ((uint32_t)(map) | (pp) << 4 | (w) << 8 | (op) << 16)

#define P66 1u
#define PF3 2u
#define PF2 3u

#define VPAND        V(1, P66, 0, 0xdbu)
#define VPOR         V(1, P66, 0, 0xebu)
#define VPXOR        V(1, P66, 0, 0xefu)
#define VPADDD       V(1, P66, 0, 0xfeu)
#define VPADDQ       V(1, P66, 1, 0xd4u)
#define VPBROADCASTD V(2, P66, 0, 0x58u)

/* k: mask register, 0 none. imm: -1 none. len: 0 for 128 bits, 1 for 256, 2 for 512. */
struct x_how {
	int len, k, imm;
	bool vex; /* encoded with VEX even if `wide` is set */
};

void x_v(struct x_buf *b, uint32_t op, struct x_how how, int reg, int vvvv, int rm);
void x_vm(struct x_buf *b, uint32_t op, struct x_how how, int reg, int vvvv, struct x_mem m);

#endif
