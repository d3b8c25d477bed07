/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The ways into a block and out of it. */
#include <stdlib.h>

#include "softdevice/core/engine/exec.h"
#include "softdevice/core/native/unit.h"

/* What an exit stores. The list has the predicates first, then vectors, then linear values. */
struct obn_kept {
	uint32_t key; /* a predicate; the key of a vector; the slot of a linear value */
	int32_t form; /* of a linear value */
	int reg;      /* of a linear value: -1 if its base is in memory only */
};

struct obn_exit {
	uint32_t jump, at;
	int32_t count; /* instructions to count */
	bool returned; /* the interpreter's next instruction is in RAX */
	uint32_t first, n_preds, n_vectors, n_linear; /* in the unit's list */
};

void obn_count(struct obn_unit *u, uint32_t upto)
{
	uint32_t n = u->number[upto] - u->number[u->counted];

	if (n)
		x_mem_imm(&u->x, X_ADD, true, OBN_WARP(count), (int32_t)n);
	u->counted = upto;
}

/*
 * Removes from the list the linear values that no exit at i or later must store. Without this, the
 * time for a block would grow with the square of its length.
 */
static void shorten_list(struct obn_unit *u, uint32_t i)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < u->n_linear; k++) {
		uint32_t s = u->linear[k];

		if (u->state[s] != OBN_VARIES && !u->in_memory[s] && obn_is_live(u, s, i))
			u->linear[n++] = s;
		else
			u->listed[s] = 0; /* a new value is listed again */
	}
	u->n_linear = n;
}

static void keep(struct obn_unit *u, uint32_t *count, uint32_t key, int32_t form, int reg)
{
	if (u->n_kept == u->cap_kept) {
		uint32_t cap = u->cap_kept ? u->cap_kept * 2 : 256;
		struct obn_kept *p = realloc(u->kept, cap * sizeof(*p));

		if (!p) {
			u->failed = true;
			return;
		}
		u->kept = p;
		u->cap_kept = cap;
	}
	u->kept[u->n_kept++] = (struct obn_kept){ key, form, reg };
	++*count;
}

static void keep_all(struct obn_unit *u, struct obn_exit *e)
{
	e->first = u->n_kept;
	for (int r = 0; r < 16; r++)
		if (u->gpr[r].key != OBN_NONE && u->gpr[r].dirty && u->gpr[r].key & OBN_PRED_KEY)
			keep(u, &e->n_preds, u->gpr[r].key & ~OBN_PRED_KEY, 0, r);
	for (int r = 0; r < 32; r++)
		if (u->vec[r].key != OBN_NONE && u->vec[r].dirty &&
			obn_is_live(u, u->vec[r].slot, e->at))
			keep(u, &e->n_vectors, u->vec[r].key, 0, r);
	shorten_list(u, e->at);
	for (uint32_t k = 0; k < u->n_linear; k++) {
		uint32_t slot = u->linear[k];
		int reg = -1;

		for (int r = 0; r < 16; r++)
			if (u->gpr[r].key == slot)
				reg = r;
		keep(u, &e->n_linear, slot, u->state[slot], reg);
	}
}

static void add_exit(struct obn_unit *u, int cc, uint32_t i, bool returned)
{
	if (u->n_exits == u->cap_exits) {
		uint32_t cap = u->cap_exits ? u->cap_exits * 2 : 64;
		struct obn_exit *p = realloc(u->exits, cap * sizeof(*p));

		if (!p) {
			u->failed = true;
			return;
		}
		u->exits = p;
		u->cap_exits = cap;
	}
	struct obn_exit *e = &u->exits[u->n_exits++];

	*e = (struct obn_exit){ .jump = x_jump(&u->x, cc),
		.at = i,
		.count = (int32_t)(u->number[i] - u->number[u->counted]),
		.returned = returned };
	keep_all(u, e);
}

void obn_exit(struct obn_unit *u, int cc, uint32_t i)
{
	add_exit(u, cc, i, false);
}

void obn_exit_returned(struct obn_unit *u, int cc, uint32_t i)
{
	add_exit(u, cc, i, true);
}

static void write_exit(struct obn_unit *u, const struct obn_exit *e)
{
	const struct obn_kept *k = u->kept + e->first;
	struct x_buf *x = &u->x;

	x_here(x, e->jump);
	for (uint32_t n = 0; n < e->n_preds; n++, k++)
		x_store(x, false, obn_pred_at(k->key), k->reg);
	for (uint32_t n = 0; n < e->n_vectors; n++, k++)
		obn_vec_store(u, obn_slot_at(u, 0, k->key), k->reg);
	for (uint32_t n = 0; n < e->n_linear; n++, k++)
		for (uint32_t c = 0; c < obn_chunks(u, k->key); c++) {
			if (c == 0 || k->form)
				obn_spread(u, u->t0, k->key, c, k->form, k->reg);
			obn_vec_store(u, obn_slot_at(u, k->key, c), u->t0);
		}
	if (e->count)
		x_mem_imm(x, X_ADD, true, OBN_WARP(count), e->count);
	if (!e->returned)
		x_mov_imm(x, RAX, (uint64_t)(uintptr_t)(u->f->code + e->at));
	x_store(x, true, OBN_WARP(from), RAX);
	uint32_t jump = x_jump(x, -1);

	x_to(x, jump, u->leave);
}

void obn_write_exits(struct obn_unit *u)
{
	for (uint32_t k = 0; k < u->n_exits && !obn_failed(u); k++)
		write_exit(u, &u->exits[k]);
}

void obn_exits_free(struct obn_unit *u)
{
	free(u->exits);
	free(u->kept);
}

static const uint8_t saved[] = { RBX, RBP, R12, R13, R14, R15 };

void obn_write_leave(struct obn_unit *u)
{
	u->refuse = u->x.n;
	x_mov_imm(&u->x, RAX, 0);
	u->leave = u->x.n;
	x_alu_imm(&u->x, X_ADD, true, RSP, 8);
	for (size_t k = sizeof(saved); k-- > 0;)
		x_pop(&u->x, saved[k]);
	x_ret(&u->x);
}

/* Refuses if the elements in memory are not linear, and keeps the base. Uses RAX. */
static void check_linear(struct obn_unit *u, uint32_t slot, int32_t form)
{
	struct x_buf *x = &u->x;
	struct x_how how = obn_how(u);
	uint32_t n = obn_chunks(u, slot);

	x_load(x, u->wide[slot], RAX, obn_slot_at(u, slot, 0));
	x_store(x, true, obn_home_at(u, slot), RAX);
	for (uint32_t c = 0; c < n; c++) {
		obn_spread(u, u->t0, slot, c, form, RAX);
		x_vm(x, VPXOR, how, u->t0, u->t0, obn_slot_at(u, slot, c)); /* vpxord */
		if (c)
			x_v(x, VPOR, how, u->t1, u->t1, u->t0); /* vpord */
		else
			obn_vec_move(u, u->t1, u->t0);
	}
	if (x->wide) {
		x_v(x, V(2, P66, 0, 0x27u), how, 1, u->t1, u->t1); /* vptestmd k1 */
		x_v(x, V(1, 0, 0, 0x98u), (struct x_how){ .len = 0, .imm = -1, .vex = true }, 1, 0,
			1); /* kortestw */
	} else {
		x_v(x, V(2, P66, 0, 0x17u), how, u->t1, 0, u->t1); /* vptest */
	}
	uint32_t jump = x_jump(x, CC_NE);

	x_to(x, jump, u->refuse);
}

void obn_write_entry(struct obn_unit *u, const struct obn_block *b)
{
	struct x_buf *x = &u->x;
	const int32_t *entry = u->entry + (size_t)(b - u->blocks) * u->f->n_slots;

	for (size_t k = 0; k < sizeof(saved); k++)
		x_push(x, saved[k]);
	x_alu_imm(x, X_SUB, true, RSP, 8);
	x_mov(x, true, RBX, RDI);
	x_mov(x, true, RBP, RSI);
	for (uint32_t s = 0; s < u->f->n_slots; s++)
		if (entry[s] != OBN_VARIES && !u->fixed[s])
			check_linear(u, s, entry[s]);
	uint32_t jump = x_jump(x, -1);

	x_to(x, jump, b->code);
}
