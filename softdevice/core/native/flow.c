/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Basic blocks and live registers. Registers are slots here, as in the interpreter. */
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/native/unit.h"

/* larger functions stay with the interpreter: blocks * slots */
#define MAX_CELLS ((uint64_t)8 << 20)

/* Does the operation read or write registers of 128 bits as a whole? Others do so by halves. */
static bool whole_128(uint32_t op)
{
	const struct obn_op *o = obn_op_info(op);

	return o->special == OBN_PLAIN && !o->bytes[0];
}

struct visit {
	void (*fn)(void *user, uint32_t slot, bool def, bool partial);
	void *user;
	bool whole, partial;
};

static void visit_one(const struct visit *v, uint32_t slot, uint32_t cls, bool def)
{
	if (cls == OBD_CLASS_PRED || slot == OBD_NO_SLOT)
		return;
	v->fn(v->user, slot, def, def && v->partial);
	if (cls == OBD_CLASS_128 && v->whole)
		v->fn(v->user, slot + 2, def, def && v->partial);
}

void obn_visit(const struct obd_func *f, uint32_t i,
	void (*fn)(void *user, uint32_t slot, bool def, bool partial), void *user)
{
	const struct obd_insn *in = &f->code[i];
	uint32_t s = f->shapes[i], flags = OBD_SHAPE_FLAGS(s);
	const struct visit v = { fn, user, whole_128(in->op), flags & OBD_PARTIAL };

	if (flags & OBD_USE_A)
		visit_one(&v, in->a, OBD_SHAPE_CLASS(s, OBD_SHAPE_A), false);
	if (flags & OBD_USE_B)
		visit_one(&v, in->b, OBD_SHAPE_CLASS(s, OBD_SHAPE_B), false);
	if (flags & OBD_USE_C)
		visit_one(&v, in->c, OBD_SHAPE_CLASS(s, OBD_SHAPE_C), false);
	if (flags & OBD_USE_D)
		visit_one(&v, in->d, OBD_SHAPE_CLASS(s, OBD_SHAPE_D), false);
	if (flags & OBD_USE_E)
		visit_one(&v, in->e, OBD_SHAPE_CLASS(s, OBD_SHAPE_E), false);
	if (flags & OBD_USE_F)
		visit_one(&v, in->u.x.f, OBD_SHAPE_CLASS(s, OBD_SHAPE_F), false);
	if (flags & OBD_CALL) {
		const uint16_t *list = f->call_ops + in->u.imm;
		uint32_t n = list[0], all = n + list[1];

		/*
		 * a list has no registers of 128 bits, and one of 64 bits is named by its first
		 * slot
		 */
		for (uint32_t k = 0; k < all; k++)
			fn(user, list[2 + k], k >= n, k >= n);
	}
	if (flags & OBD_DEF_D)
		visit_one(&v, in->d, OBD_SHAPE_CLASS(s, OBD_SHAPE_D), true);
	if (flags & OBD_DEF_G)
		visit_one(&v, in->u.x.g, OBD_SHAPE_CLASS(s, OBD_SHAPE_G), true);
}

/* ---- blocks ---- */

static bool make_blocks(struct obn_unit *u)
{
	const struct obd_func *f = u->f;
	uint32_t n = f->n_code, count = 0;
	uint8_t *lead = calloc(n + 1, 1);

	u->block_at = malloc(n * sizeof(*u->block_at));
	if (!lead || !u->block_at) {
		free(lead);
		return false;
	}
	lead[0] = 1;
	for (uint32_t i = 0; i < n; i++) {
		const struct obd_insn *in = &f->code[i];
		uint32_t flags = OBD_SHAPE_FLAGS(f->shapes[i]);

		if (flags & OBD_BRANCH && i + in->u.imm < n)
			lead[(uint32_t)(i + in->u.imm)] = 1;
		if (flags & (OBD_BRANCH | OBD_STOP | OBD_TABLE) || obn_leaves(in->op))
			lead[i + 1] = 1;
	}
	for (uint32_t i = 0; i < f->n_tables;)
		for (uint32_t k = f->tables[i++]; k; k--, i++)
			if (f->tables[i] < n)
				lead[f->tables[i]] = 1;
	for (uint32_t i = 0; i < n; i++)
		count += lead[i];
	u->blocks = calloc(count, sizeof(*u->blocks));
	for (uint32_t i = 0; u->blocks && i < n; i++) {
		u->block_at[i] = lead[i] ? u->n_blocks : OBN_NONE;
		if (lead[i])
			u->blocks[u->n_blocks++].first = i;
		u->blocks[u->n_blocks - 1].last = i + 1;
	}
	free(lead);
	if (!u->blocks)
		return false;
	for (uint32_t k = 0; k < u->n_blocks; k++) {
		struct obn_block *b = &u->blocks[k];
		uint32_t i = b->last - 1, flags = OBD_SHAPE_FLAGS(f->shapes[i]),
			 to = i + f->code[i].u.imm;

		b->next[0] = flags & OBD_STOP || b->last >= n ? OBN_NONE : k + 1;
		b->next[1] = flags & OBD_BRANCH && to < n ? u->block_at[to] : OBN_NONE;
		b->table = flags & OBD_TABLE ? f->code[i].u.imm : OBN_NONE;
	}
	return true;
}

/* Calls fn for the blocks that may follow. */
void obn_each_next(const struct obn_unit *u, const struct obn_block *b,
	void (*fn)(void *user, uint32_t block), void *user)
{
	for (int k = 0; k < 2; k++)
		if (b->next[k] != OBN_NONE)
			fn(user, b->next[k]);
	if (b->table == OBN_NONE)
		return;
	const uint32_t *t = u->f->tables + b->table;

	for (uint32_t k = 0; k < t[0]; k++)
		if (t[1 + k] < u->f->n_code)
			fn(user, u->block_at[t[1 + k]]);
}

/* ---- live registers ---- */

struct live {
	uint64_t *set;
	const struct obn_unit *u;
};

static void live_before(void *user, uint32_t slot, bool def, bool partial)
{
	struct live *l = user;
	uint64_t bit = 1ull << (slot % 64);

	if (def && !partial)
		l->set[slot / 64] &= ~bit;
	else
		l->set[slot / 64] |= bit;
}

static void kill_only(void *user, uint32_t slot, bool def, bool partial)
{
	if (def && !partial)
		live_before(user, slot, def, partial);
}

static void use_only(void *user, uint32_t slot, bool def, bool partial)
{
	if (!def || partial)
		live_before(user, slot, def, partial);
}

static void join_live(void *user, uint32_t block)
{
	struct live *l = user;
	const uint64_t *in = l->u->live_in + (size_t)block * l->u->words;

	for (uint32_t w = 0; w < l->u->words; w++)
		l->set[w] |= in[w];
}

static bool find_live(struct obn_unit *u)
{
	size_t size = (size_t)u->n_blocks * u->words;
	uint64_t *now = calloc(u->words, sizeof(*now));
	bool changed = true, ok;

	u->live_in = calloc(size, sizeof(*u->live_in));
	u->live_out = calloc(size, sizeof(*u->live_out));
	ok = now && u->live_in && u->live_out;
	for (uint32_t pass = 0; ok && changed; pass++) {
		changed = false;
		ok = pass < OBN_MAX_PASSES;
		for (uint32_t k = u->n_blocks; k-- > 0;) {
			const struct obn_block *b = &u->blocks[k];
			uint64_t *in = u->live_in + (size_t)k * u->words;
			struct live l = { u->live_out + (size_t)k * u->words, u };

			/*
			 * parameters and results of the function, which its caller and return use
			 */
			for (uint32_t s = 0; s < u->f->ret_slot + u->f->n_ret_words; s++)
				l.set[s / 64] |= 1ull << (s % 64);
			obn_each_next(u, b, join_live, &l);
			memcpy(now, l.set, u->words * sizeof(*now));
			l.set = now;
			for (uint32_t i = b->last; i-- > b->first;) {
				obn_visit(u->f, i, kill_only, &l);
				obn_visit(u->f, i, use_only, &l);
			}
			changed |= memcmp(in, now, u->words * sizeof(*now)) != 0;
			memcpy(in, now, u->words * sizeof(*now));
		}
	}
	free(now);
	return ok;
}

bool obn_is_live(const struct obn_unit *u, uint32_t slot, uint32_t i)
{
	const uint64_t *out = u->live_out + (size_t)(u->block - u->blocks) * u->words;

	return u->last_use[slot] > i || out[slot / 64] >> (slot % 64) & 1;
}

static void note_wide(struct obn_unit *u)
{
	static const uint8_t shifts[] = { OBD_SHAPE_A, OBD_SHAPE_B, OBD_SHAPE_C, OBD_SHAPE_D };

	for (uint32_t i = 0; i < u->f->n_code; i++) {
		const struct obd_insn *in = &u->f->code[i];
		const uint16_t slots[] = { in->a, in->b, in->c, in->d };
		static const uint16_t flags[] = { OBD_USE_A, OBD_USE_B, OBD_USE_C,
			OBD_USE_D | OBD_DEF_D };

		for (int k = 0; k < 4; k++)
			if (OBD_SHAPE_FLAGS(u->f->shapes[i]) & flags[k] &&
				OBD_SHAPE_CLASS(u->f->shapes[i], shifts[k]) >= OBD_CLASS_64) {
				u->wide[slots[k]] = 1;
				if (OBD_SHAPE_CLASS(u->f->shapes[i], shifts[k]) == OBD_CLASS_128 &&
					whole_128(in->op))
					u->wide[slots[k] + 2] = 1;
			}
	}
}

bool obn_flow(struct obn_unit *u)
{
	const struct obd_func *f = u->f;

	u->n_forms = 1; /* form 0 */
	u->words = (f->n_slots + 63) / 64;
	u->const_at = calloc(f->n_slots + 4, sizeof(*u->const_at));
	u->fixed = calloc(f->n_slots + 4, 1);
	u->wide = calloc(f->n_slots + 4, 1);
	u->state = calloc(f->n_slots + 4, sizeof(*u->state));
	if (!u->const_at || !u->fixed || !u->wide || !u->state || !make_blocks(u) ||
		(uint64_t)u->n_blocks * f->n_slots > MAX_CELLS)
		return false;
	note_wide(u);
	for (uint32_t k = 0; k < f->n_consts; k++)
		if (f->consts[k].slot < f->n_slots) {
			u->const_at[f->consts[k].slot] = k + 1;
			u->fixed[f->consts[k].slot] = 1;
			u->wide[f->consts[k].slot] = f->consts[k].wide;
		}
	for (uint32_t k = 0; k < f->n_prologue; k++) {
		uint32_t cls = OBD_SHAPE_CLASS(f->prologue_shapes[k], OBD_SHAPE_D);

		if (cls == OBD_CLASS_PRED)
			continue;
		u->fixed[f->prologue[k].d] = 1;
		u->wide[f->prologue[k].d] = cls == OBD_CLASS_64;
	}
	return find_live(u) && obn_find_linear(u);
}
