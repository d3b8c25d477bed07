/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/native/x86.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CODE_BYTES (32u << 20)

static void byte(struct x_buf *b, unsigned v)
{
	if (b->n == b->cap) {
		uint32_t cap = b->cap ? b->cap * 2 : 16384;
		uint8_t *p = cap <= MAX_CODE_BYTES ? realloc(b->p, cap) : NULL;

		if (!p) {
			b->failed = true;
			b->n = 0;
			if (!b->cap)
				return;
		} else {
			b->p = p;
			b->cap = cap;
		}
	}
	b->p[b->n++] = (uint8_t)v;
}

static void dword(struct x_buf *b, uint32_t v)
{
	for (int i = 0; i < 32; i += 8)
		byte(b, v >> i & 255);
}

void x_free(struct x_buf *b)
{
	free(b->p);
	free(b->pool);
	free(b->fixes);
}

int32_t x_pool(struct x_buf *b, const void *data, uint32_t size)
{
	uint32_t room = (size + 63) & ~63u;

	for (uint32_t i = 0; i + size <= b->n_pool; i += 64)
		if (memcmp(b->pool + i, data, size) == 0)
			return (int32_t)i;
	if (b->n_pool + room > b->cap_pool) {
		uint32_t cap = b->cap_pool ? b->cap_pool * 2 : 4096;
		uint8_t *p = realloc(b->pool, cap);

		if (!p) {
			b->failed = true;
			return 0;
		}
		b->pool = p;
		b->cap_pool = cap;
	}
	memset(b->pool + b->n_pool, 0, room);
	memcpy(b->pool + b->n_pool, data, size);
	b->n_pool += room;
	return (int32_t)(b->n_pool - room);
}

void x_finish(struct x_buf *b)
{
	while (b->n & 63 && !b->failed)
		byte(b, 0xcc);
	uint32_t base = b->n;

	for (uint32_t i = 0; i < b->n_pool && !b->failed; i++)
		byte(b, b->pool[i]);
	for (uint32_t i = 0; i < b->n_fixes && !b->failed; i++) {
		const struct x_fix *f = &b->fixes[i];
		uint32_t v = base + f->pool - (f->at + 4 + f->tail);

		memcpy(b->p + f->at, &v, 4);
	}
}

/* ModRM and displacement; tail: the number of bytes that follow */
static void modrm_mem(struct x_buf *b, int reg, struct x_mem m, uint32_t tail)
{
	unsigned r = (unsigned)reg & 7;

	if (m.base == X_POOL) {
		byte(b, r << 3 | 5);
		if (b->n_fixes == b->cap_fixes) {
			uint32_t cap = b->cap_fixes ? b->cap_fixes * 2 : 64;
			struct x_fix *p = realloc(b->fixes, cap * sizeof(*p));

			if (!p) {
				b->failed = true;
				return;
			}
			b->fixes = p;
			b->cap_fixes = cap;
		}
		b->fixes[b->n_fixes++] = (struct x_fix){ b->n, (uint32_t)m.disp, tail };
		dword(b, 0);
		return;
	}
	byte(b, 0x80 | r << 3 | ((unsigned)m.base & 7));
	if ((m.base & 7) == RSP)
		byte(b, 0x24);
	dword(b, (uint32_t)m.disp);
}

static void rex(struct x_buf *b, bool w, int reg, int rm, bool always)
{
	unsigned v = 0x40u | (w ? 8 : 0) | (reg & 8 ? 4 : 0) | (rm > 0 && rm & 8 ? 1 : 0);

	if (v != 0x40 || always)
		byte(b, v);
}

static void modrm(struct x_buf *b, int reg, int rm)
{
	byte(b, 0xc0 | ((unsigned)reg & 7) << 3 | ((unsigned)rm & 7));
}

static void op_rr(struct x_buf *b, bool w, unsigned op, int reg, int rm)
{
	rex(b, w, reg, rm, false);
	byte(b, op);
	modrm(b, reg, rm);
}

static void op_rm(struct x_buf *b, bool w, unsigned op, int reg, struct x_mem m, uint32_t tail)
{
	rex(b, w, reg, m.base, false);
	byte(b, op);
	modrm_mem(b, reg, m, tail);
}

static void op2_rr(struct x_buf *b, bool w, unsigned op, int reg, int rm)
{
	rex(b, w, reg, rm, false);
	byte(b, 0x0f);
	byte(b, op);
	modrm(b, reg, rm);
}

void x_mov(struct x_buf *b, bool w, int d, int s)
{
	op_rr(b, w, 0x8b, d, s);
}

void x_mov_imm(struct x_buf *b, int d, uint64_t v)
{
	bool w = v >> 32;

	if (!v) {
		op_rr(b, false, 0x33, d, d);
		return;
	}
	rex(b, w, 0, d, false);
	byte(b, 0xb8 | ((unsigned)d & 7));
	dword(b, (uint32_t)v);
	if (w)
		dword(b, (uint32_t)(v >> 32));
}

void x_load(struct x_buf *b, bool w, int d, struct x_mem m)
{
	op_rm(b, w, 0x8b, d, m, 0);
}

void x_load_small(struct x_buf *b, uint32_t bytes, int d, struct x_mem m)
{
	rex(b, false, d, m.base, false);
	byte(b, 0x0f);
	byte(b, bytes == 1 ? 0xb6 : 0xb7);
	modrm_mem(b, d, m, 0);
}

void x_store(struct x_buf *b, bool w, struct x_mem m, int s)
{
	op_rm(b, w, 0x89, s, m, 0);
}

void x_store_imm(struct x_buf *b, bool w, struct x_mem m, int32_t v)
{
	op_rm(b, w, 0xc7, 0, m, 4);
	dword(b, (uint32_t)v);
}

void x_lea(struct x_buf *b, bool w, int d, struct x_mem m)
{
	op_rm(b, w, 0x8d, d, m, 0);
}

void x_prefetch(struct x_buf *b, bool write, struct x_mem m)
{
	rex(b, false, 0, m.base, false);
	byte(b, 0x0f);
	byte(b, write ? 0x0d : 0x18);
	modrm_mem(b, 1, m, 0);
}

void x_alu(struct x_buf *b, int op, bool w, int d, int s)
{
	op_rr(b, w, (unsigned)op * 8 + 3, d, s);
}

void x_alu_mem(struct x_buf *b, int op, bool w, int d, struct x_mem m)
{
	op_rm(b, w, (unsigned)op * 8 + 3, d, m, 0);
}

void x_alu_imm(struct x_buf *b, int op, bool w, int d, int32_t v)
{
	op_rr(b, w, 0x81, op, d);
	dword(b, (uint32_t)v);
}

void x_mem_imm(struct x_buf *b, int op, bool w, struct x_mem m, int32_t v)
{
	op_rm(b, w, 0x81, op, m, 4);
	dword(b, (uint32_t)v);
}

void x_imul(struct x_buf *b, bool w, int d, int s)
{
	op2_rr(b, w, 0xaf, d, s);
}

void x_imul_imm(struct x_buf *b, bool w, int d, int s, int32_t v)
{
	op_rr(b, w, 0x69, d, s);
	dword(b, (uint32_t)v);
}

void x_movsxd(struct x_buf *b, int d, int s)
{
	op_rr(b, true, 0x63, d, s);
}

void x_test(struct x_buf *b, bool w, int d, int s)
{
	op_rr(b, w, 0x85, d, s);
}

void x_test_imm(struct x_buf *b, int d, int32_t v)
{
	op_rr(b, false, 0xf7, 0, d);
	dword(b, (uint32_t)v);
}

void x_neg(struct x_buf *b, bool w, int d)
{
	op_rr(b, w, 0xf7, 3, d);
}

void x_not(struct x_buf *b, bool w, int d)
{
	op_rr(b, w, 0xf7, 2, d);
}

void x_shift(struct x_buf *b, int kind, bool w, int d, uint32_t by)
{
	op_rr(b, w, 0xc1, kind, d);
	byte(b, by);
}

void x_cmov(struct x_buf *b, int cc, bool w, int d, int s)
{
	op2_rr(b, w, 0x40u + (unsigned)cc, d, s);
}

void x_setcc(struct x_buf *b, int cc, int d)
{
	rex(b, false, 0, d, true);
	byte(b, 0x0f);
	byte(b, 0x90u + (unsigned)cc);
	modrm(b, 0, d);
	rex(b, false, d, d, true);
	byte(b, 0x0f);
	byte(b, 0xb6);
	modrm(b, d, d);
}

void x_push(struct x_buf *b, int r)
{
	rex(b, false, 0, r, false);
	byte(b, 0x50 | ((unsigned)r & 7));
}

void x_pop(struct x_buf *b, int r)
{
	rex(b, false, 0, r, false);
	byte(b, 0x58 | ((unsigned)r & 7));
}

void x_call(struct x_buf *b, int r)
{
	op_rr(b, false, 0xff, 2, r);
}

void x_ret(struct x_buf *b)
{
	byte(b, 0xc3);
}

uint32_t x_jump(struct x_buf *b, int cc)
{
	if (cc < 0) {
		byte(b, 0xe9);
	} else {
		byte(b, 0x0f);
		byte(b, 0x80u + (unsigned)cc);
	}
	dword(b, 0);
	return b->n - 4;
}

void x_to(struct x_buf *b, uint32_t jump, uint32_t target)
{
	uint32_t v = target - (jump + 4);

	if (!b->failed)
		memcpy(b->p + jump, &v, 4);
}

void x_here(struct x_buf *b, uint32_t jump)
{
	x_to(b, jump, b->n);
}

/* ---- vectors ---- */

static void vex(struct x_buf *b, uint32_t op, int len, int reg, int vvvv, int rm)
{
	unsigned map = op & 15, pp = op >> 4 & 15, code = op >> 16;
	/*
	 * of map 1, only vmovd and vmovq look at W, and some tools know no other instruction with
	 * it
	 */
	unsigned w = map == 1 && code != 0x6e && code != 0x7e ? 0 : op >> 8 & 1;
	bool far = rm > 0 && rm & 8;

	byte(b, 0xc4);
	byte(b, (reg & 8 ? 0 : 0x80) | 0x40 | (far ? 0 : 0x20) | map);
	byte(b, w << 7 | (~(unsigned)vvvv & 15) << 3 | (len ? 4 : 0) | pp);
	byte(b, op >> 16);
}

static void evex(
	struct x_buf *b, uint32_t op, struct x_how h, int reg, int vvvv, int rm, bool is_reg)
{
	unsigned map = op & 15, pp = op >> 4 & 15, w = op >> 8 & 1;
	bool far = rm > 0 && rm & 8, farther = is_reg && rm & 16;

	byte(b, 0x62);
	byte(b,
		(reg & 8 ? 0 : 0x80) | (farther ? 0 : 0x40) | (far ? 0 : 0x20) |
			(reg & 16 ? 0 : 0x10) | map);
	byte(b, w << 7 | (~(unsigned)vvvv & 15) << 3 | 4 | pp);
	byte(b, (unsigned)h.len << 5 | (vvvv & 16 ? 0 : 8) | (unsigned)h.k);
	byte(b, op >> 16);
}

void x_v(struct x_buf *b, uint32_t op, struct x_how h, int reg, int vvvv, int rm)
{
	if (b->wide && !h.vex)
		evex(b, op, h, reg, vvvv, rm, true);
	else
		vex(b, op, h.len, reg, vvvv, rm);
	modrm(b, reg, rm);
	if (h.imm >= 0)
		byte(b, (unsigned)h.imm);
}

void x_vm(struct x_buf *b, uint32_t op, struct x_how h, int reg, int vvvv, struct x_mem m)
{
	if (b->wide && !h.vex)
		evex(b, op, h, reg, vvvv, m.base, false);
	else
		vex(b, op, h.len, reg, vvvv, m.base);
	modrm_mem(b, reg, m, h.imm >= 0 ? 1 : 0);
	if (h.imm >= 0)
		byte(b, (unsigned)h.imm);
}

void x_shiftx(struct x_buf *b, int kind, bool w, int d, int s, int by)
{
	uint32_t pp = kind == X_SHL ? P66 : kind == X_SHR ? PF2 : PF3;

	vex(b, V(2, pp, (uint32_t)w, 0xf7u), 0, d, by, s);
	modrm(b, d, s);
}
