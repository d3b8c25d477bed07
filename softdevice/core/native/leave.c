/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The ways into a block and out of it. */
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/engine/exec.h"
#include "softdevice/core/native/unit.h"

#define W(field) ((struct x_mem){ RBP, (int32_t)offsetof(struct obd_warp, field) })

struct obn_exit {
	uint32_t jump, at;
	int32_t count; /* instructions to count */
	bool returned; /* the interpreter's next instruction is in RAX */
	struct obn_reg vec[32], gpr[16];
	uint32_t n_linear;
	struct linear {
		uint32_t slot;
		int32_t form;
	} * linear;
};

void obn_count(struct obn_unit *u, uint32_t upto)
{
	uint32_t n = u->number[upto] - u->number[u->counted];

	if (n)
		x_mem_imm(&u->x, X_ADD, true, W(count), (int32_t)n);
	u->counted = upto;
}

/*
 * Removes from the list of linear values those that no exit at i or later must store. Without this, the time
 * for long blocks grows with its square.
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

	e->jump = x_jump(&u->x, cc);
	e->at = i;
	e->returned = returned;
	e->count = (int32_t)(u->number[i] - u->number[u->counted]);
	shorten_list(u, i);
	e->n_linear = 0;
	e->linear = malloc((u->n_linear + 1) * sizeof(*e->linear));
	if (!e->linear) {
		u->failed = true;
		return;
	}
	memcpy(e->vec, u->vec, sizeof(e->vec));
	memcpy(e->gpr, u->gpr, sizeof(e->gpr));
	for (int k = 0; k < 32; k++)
		if (e->vec[k].dirty && !obn_is_live(u, e->vec[k].slot, i))
			e->vec[k].dirty = false;
	for (uint32_t k = 0; k < u->n_linear; k++) {
		uint32_t s = u->linear[k];

		e->linear[e->n_linear++] = (struct linear){ s, u->state[s] };
	}
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
	struct x_buf *x = &u->x;

	x_here(x, e->jump);
	for (int r = 0; r < 16; r++)
		if (e->gpr[r].key != OBN_NONE && e->gpr[r].dirty && e->gpr[r].key & OBN_PRED_KEY)
			x_store(x, false, obn_pred_at(e->gpr[r].key & ~OBN_PRED_KEY), r);
	for (int r = 0; r < 32; r++)
		if (e->vec[r].key != OBN_NONE && e->vec[r].dirty)
			obn_vec_store(u, obn_slot_at(u, 0, e->vec[r].key), r);
	for (uint32_t k = 0; k < e->n_linear; k++) {
		uint32_t slot = e->linear[k].slot, n = u->wide[slot] ? 2 * u->chunks : u->chunks;
		int gpr = -1;

		for (int r = 0; r < 16; r++)
			if (e->gpr[r].key == slot)
				gpr = r;
		for (uint32_t c = 0; c < n; c++) {
			if (c == 0 || e->linear[k].form)
				obn_spread(u, u->t0, slot, c, e->linear[k].form, gpr);
			obn_vec_store(u, obn_slot_at(u, slot, c), u->t0);
		}
	}
	if (e->count)
		x_mem_imm(x, X_ADD, true, W(count), e->count);
	if (!e->returned)
		x_mov_imm(x, RAX, (uint64_t)(uintptr_t)(u->f->code + e->at));
	x_store(x, true, W(from), RAX);
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
	for (uint32_t k = 0; k < u->n_exits; k++)
		free(u->exits[k].linear);
	free(u->exits);
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
	uint32_t n = u->wide[slot] ? 2 * u->chunks : u->chunks;

	x_load(x, u->wide[slot], RAX, obn_slot_at(u, slot, 0));
	x_store(x, true, obn_home_at(u, slot), RAX);
	for (uint32_t c = 0; c < n; c++) {
		obn_spread(u, u->t0, slot, c, form, RAX);
		x_vm(x, V(1, 1, 0, 0xefu), how, u->t0, u->t0, obn_slot_at(u, slot, c)); /* vpxord */
		if (c)
			x_v(x, V(1, 1, 0, 0xebu), how, u->t1, u->t1, u->t0); /* vpord */
		else
			obn_vec_move(u, u->t1, u->t0);
	}
	if (x->wide) {
		x_v(x, V(2, 1, 0, 0x27u), how, 1, u->t1, u->t1); /* vptestmd k1 */
		x_v(x, V(1, 0, 0, 0x98u), (struct x_how){ .len = 0, .imm = -1, .vex = true }, 1, 0,
			1); /* kortestw */
	} else {
		x_v(x, V(2, 1, 0, 0x17u), how, u->t1, 0, u->t1); /* vptest */
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
