/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obn_unit: a function while its code is made. flow.c finds basic blocks and live registers,
 * linear.c linear values; cache.c keeps values in processor registers inside a block; the other
 * files write the code. One thread.
 */
#ifndef OBD_CORE_UNIT_H
#define OBD_CORE_UNIT_H

#include "softdevice/core/engine/native.h"
#include "softdevice/core/native/x86.h"
#include "softdevice/core/ops.h"
#include "softdevice/core/ptx/type.h"
#include "softdevice/core/shape.h"

/*
 * What is known of a slot: the number of a form, or that it varies. With a form, the value of lane
 * i is base + (i % 16) * lane + (i / 16) * half, modulo 2^32 or 2^64. Form 0 is the same in all
 * lanes.
 */
#define OBN_VARIES     INT32_MAX
#define OBN_MAX_STRIDE (1 << 24)
#define OBN_MAX_FORMS  256u
#define OBN_HALF       16 /* lanes */

struct obn_form {
	int32_t lane, half;
	int32_t pool_at[2]; /* by width: where the constants hold its steps; -1: nowhere yet */
};

#define OBN_NONE       0xffffffffu
#define OBN_PREDS      64u /* further predicates are never known to be the same in all lanes */
#define OBN_MAX_PASSES 32u /* over all blocks; functions that need more are interpreted */

struct obn_block {
	uint32_t first, last; /* instructions; `last` is exclusive */
	uint32_t next[2];     /* blocks: the following one, the branch's target; or OBN_NONE */
	uint32_t table;       /* brx: index of the table, or OBN_NONE */
	uint32_t code;        /* offset of its code */
	bool seen;
};

/* A processor register of the caches. */
struct obn_reg {
	uint32_t key, slot; /* what it holds; OBN_NONE: nothing */
	uint32_t used;      /* the last step that needed it */
	bool dirty;         /* newer than the memory */
};

#define OBN_PRED_KEY 0x40000000u /* + number: a predicate in a general register */

/* A field of the warp; the user includes engine/exec.h. */
#define OBN_WARP(field) ((struct x_mem){ RBP, (int32_t)offsetof(struct obd_warp, field) })

struct obn_exit;
struct obn_kept;

/* The jump whose distance is at offset `at`, to a block. */
struct obn_jump {
	uint32_t at, block;
};

struct obn_unit {
	const struct obd_func *f;
	const struct obd_isa *isa;
	enum obd_native_kind kind;
	const uint8_t *varies;
	struct obn_form forms[OBN_MAX_FORMS];
	uint32_t n_forms;
	struct x_buf x;
	struct obn_block *blocks;
	uint32_t n_blocks;
	uint32_t *block_at; /* by instruction: the block that begins there, or OBN_NONE */
	/* by block and slot */
	uint64_t *live_in, *live_out;
	int32_t *entry;
	uint32_t words;
	uint32_t *const_at; /* by slot: index of the constant + 1, or 0 */
	/* by slot: a constant, or of the prologue: always in memory, in all lanes */
	uint8_t *fixed;
	uint8_t *wide; /* by slot: it holds 64-bit elements */
	/* while a block's code is written */
	const struct obn_block *block;
	uint32_t at; /* the instruction */
	int32_t *state;
	/* predicates that the block has computed and that are the same in all lanes */
	uint64_t same;
	/* by slot: number of the last instruction of the block that reads it + 1 */
	uint32_t *last_use;
	uint8_t *in_memory; /* by slot: of a linear value, the slot has all elements, too */
	uint32_t *linear;   /* slots that may be linear now, in any order, each once */
	uint32_t n_linear;
	uint8_t *listed;
	/* bytes of a vector register, and how many of them are a slot */
	uint32_t chunk_bytes, chunks;
	uint32_t n_vectors; /* vector registers of the cache; the others are temporaries */
	int nan, t0, t1;    /* vector registers: the canonical NaN; temporaries */
	bool nan_loaded;
	struct obn_reg vec[32], gpr[16];
	int16_t *where; /* by key of a vector: its register, or -1 */
	uint32_t clock;
	uint32_t *number;       /* by instruction: how many before it are not prefixes */
	uint32_t counted;       /* first instruction of the block that is not counted yet */
	uint32_t refuse, leave; /* offsets of the code that leaves */
	struct obn_exit *exits;
	uint32_t n_exits, cap_exits;
	struct obn_kept *kept; /* what the exits store */
	uint32_t n_kept, cap_kept;
	struct obn_jump *jumps;
	uint32_t n_jumps, cap_jumps;
	bool failed;
};

/* How many vector registers hold a slot. */
static inline uint32_t obn_chunks(const struct obn_unit *u, uint32_t slot)
{
	return u->wide[slot] ? 2 * u->chunks : u->chunks;
}

/* No code is made: it is too large, there is no memory, or its parts disagree. */
static inline bool obn_failed(const struct obn_unit *u)
{
	return u->failed || u->x.failed;
}

/* ---- flow.c ---- */

/* Calls fn for each slot that the instruction reads, or writes, predicates excluded. */
void obn_visit(const struct obd_func *f, uint32_t i,
	void (*fn)(void *user, uint32_t slot, bool def, bool partial), void *user);
/* Calls fn for the blocks that may follow. */
void obn_each_next(const struct obn_unit *u, const struct obn_block *b,
	void (*fn)(void *user, uint32_t block), void *user);
/* False: too large, or no memory. */
bool obn_flow(struct obn_unit *u);
bool obn_is_live(const struct obn_unit *u, uint32_t slot, uint32_t i);

/* ---- linear.c ---- */

uint64_t obn_const(const struct obn_unit *u, uint32_t slot);
static inline bool obn_pred_same(const struct obn_unit *u, uint32_t p)
{
	return p < OBN_PREDS && u->same >> p & 1;
}
/* Does the instruction before it belong to it? */
bool obn_has_prefix(const struct obn_unit *u, uint32_t i);
/*
 * The form of the instruction's result with the current state, or OBN_VARIES. *ret_check: one of
 * its operands must not exceed its type in any lane.
 */
int32_t obn_result(struct obn_unit *u, uint32_t i, bool *ret_check);
/* Is the predicate that the instruction writes the same in all lanes? */
bool obn_result_same(const struct obn_unit *u, uint32_t i);
/* The live registers are known. False: too many passes, or no memory. */
bool obn_find_linear(struct obn_unit *u);

/* ---- ops.c ---- */

struct obn_op {
	uint8_t bytes[5]; /* of an element of d, a, b, c, e; 0: no such operand, 1: a predicate */
	bool scalar;      /* scalar.c computes it from values that are the same in all lanes */
	bool vector, vector_wide_only; /* vector.c computes it */
	bool chain;                    /* an operation of a carry chain */
	uint8_t special;               /* enum obn_special */
};
enum obn_special {
	OBN_PLAIN,
	OBN_COMPARE,
	OBN_PREDICATE,
	OBN_LOAD,
	OBN_STORE,
	OBN_VALUE,
	OBN_CONTROL,
	OBN_PREFIX
};
const struct obn_op *obn_op_info(uint32_t op);
/* Calls, ends, barriers and branches by a table: the code is left before them. */
bool obn_leaves(uint32_t op);
/* An access at base + index * size. */
static inline bool obn_indexed(uint32_t op)
{
	return op >= OBD_OP_ld8_i && op <= OBD_OP_st64_i;
}
/* Does vector.c compute it for this processor? */
static inline bool obn_has_vector(const struct obn_unit *u, uint32_t op)
{
	const struct obn_op *o = obn_op_info(op);

	return o->special == OBN_PLAIN && o->vector && (u->x.wide || !o->vector_wide_only);
}

/* ---- cache.c ---- */

void obn_block_begin(struct obn_unit *u, const struct obn_block *b);
/* Stores what later blocks need. */
void obn_block_end(struct obn_unit *u);
int obn_vector_new(struct obn_unit *u);
/* The register with chunk c of a slot. It stays until the next call of obn_step. */
int obn_vector_get(struct obn_unit *u, uint32_t slot, uint32_t c);
void obn_vector_set(struct obn_unit *u, uint32_t slot, uint32_t c, int reg);
/*
 * The result of an instruction, all of whose chunks have been set; or that varies and is in memory.
 */
void obn_vector_done(struct obn_unit *u, uint32_t slot);
void obn_in_memory(struct obn_unit *u, uint32_t slot);
int obn_scalar_new(struct obn_unit *u);
/* The register with the base of a linear value, zero-extended. */
int obn_scalar_get(struct obn_unit *u, uint32_t slot);
void obn_scalar_set(struct obn_unit *u, uint32_t slot, int reg, int32_t form);
int obn_pred_get(struct obn_unit *u, uint32_t p);
void obn_pred_set(struct obn_unit *u, uint32_t p, int reg, bool same);
/* Registers of earlier instructions may be used for something else. */
void obn_step(struct obn_unit *u);
/*
 * All predicates are in memory: removes them from the registers. p may now differ between lanes;
 * with OBN_NONE, each may. What is known of the others is kept, because linear.c keeps it, too.
 */
void obn_forget_preds(struct obn_unit *u, uint32_t p);
/* Stores one slot, for a handler that reads it. */
void obn_flush_slot(struct obn_unit *u, uint32_t slot);
/* Stores all vectors, predicates and registers that a call destroys. */
void obn_flush_for_call(struct obn_unit *u);
/* The register with the canonical NaN of f32 in all elements. */
int obn_nan(struct obn_unit *u);
struct x_mem obn_slot_at(const struct obn_unit *u, uint32_t slot, uint32_t c);
struct x_mem obn_home_at(const struct obn_unit *u, uint32_t slot);
struct x_mem obn_pred_at(uint32_t p);
/*
 * Writes the chunk of a linear value whose base is in its home, or in the register gpr if that is
 * not -1.
 */
void obn_spread(struct obn_unit *u, int reg, uint32_t slot, uint32_t c, int32_t form, int gpr);
void obn_vec_load(struct obn_unit *u, int reg, struct x_mem m);
void obn_vec_store(struct obn_unit *u, struct x_mem m, int reg);
void obn_vec_move(struct obn_unit *u, int d, int s);
struct x_how obn_how(const struct obn_unit *u);

/* ---- exits (leave.c) ---- */

/* A jump to code that stores everything and returns instruction i. cc: the condition, -1 always. */
void obn_exit(struct obn_unit *u, int cc, uint32_t i);
/* After a call of a handler: leaves with the value in RAX. */
void obn_exit_returned(struct obn_unit *u, int cc, uint32_t i);
void obn_write_leave(struct obn_unit *u);
void obn_write_exits(struct obn_unit *u);
void obn_exits_free(struct obn_unit *u);
void obn_write_entry(struct obn_unit *u, const struct obn_block *b);
/* Adds the instructions from `counted` to `upto`, exclusive, to the warp's count. */
void obn_count(struct obn_unit *u, uint32_t upto);

/* ---- the instructions; false: not one of theirs ---- */

/* Exits before instruction i if the linear value of 32 bits exceeds its type in a lane. */
void obn_check_wrap(struct obn_unit *u, uint32_t i, uint32_t slot, bool is_signed);
bool obn_scalar(struct obn_unit *u, uint32_t i, int32_t form, bool check);
bool obn_vector(struct obn_unit *u, uint32_t i);
/* Chunk c of the result of a plain operation, in the register d. */
void obn_vector_chunk(struct obn_unit *u, uint32_t i, uint32_t c, int d);
/* A constant in all elements of a vector, in memory. */
struct x_mem obn_splat32(struct obn_unit *u, uint32_t v);
struct x_mem obn_splat64(struct obn_unit *u, uint64_t v);
/* k1, or t0 with AVX2: lanes of chunk c of a predicate, for elements of 32 or 64 bits. */
void obn_lane_mask(struct obn_unit *u, int pred, uint32_t c, bool wide);
/* d = the mask's lanes of a, and b in the other lanes */
void obn_blend(struct obn_unit *u, int d, int a, int b, bool wide);
bool obn_guarded_vector(struct obn_unit *u, uint32_t guard);
bool obn_compare(struct obn_unit *u, uint32_t i);
bool obn_predicate(struct obn_unit *u, uint32_t i);
bool obn_access(struct obn_unit *u, uint32_t i, int32_t form);
bool obn_value(struct obn_unit *u, uint32_t i, int32_t form);
/* Calls the interpreter's handler. Returns the number of instructions. */
uint32_t obn_handler(struct obn_unit *u, uint32_t i);

#endif
