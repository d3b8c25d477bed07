/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The processor's registers as a cache of the warp's registers, inside one basic block. A vector
 * register holds one chunk of a slot, or a value that all lanes have; a general register holds the
 * base of a linear value, whose home is behind the slots, or a predicate.
 */
#include <string.h>

#include "softdevice/core/native/unit.h"

static const uint8_t general[] = { RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

struct x_mem obn_slot_at(const struct obn_unit *u, uint32_t slot, uint32_t c)
{
	return (struct x_mem){ RBX, (int32_t)(slot * OBD_SLOT_BYTES + c * u->chunk_bytes) };
}

struct x_mem obn_home_at(const struct obn_unit *u, uint32_t slot)
{
	return (struct x_mem){ RBX, (int32_t)(u->f->n_slots * OBD_SLOT_BYTES + slot * 8) };
}

struct x_mem obn_pred_at(uint32_t p)
{
	return (struct x_mem){ RBX, (int32_t)(p * 4) };
}

struct x_how obn_how(const struct obn_unit *u)
{
	return (struct x_how){ .len = u->x.wide ? 2 : 1, .imm = -1 };
}

void obn_vec_load(struct obn_unit *u, int reg, struct x_mem m)
{
	x_vm(&u->x, V(1, PF3, 0, 0x6fu), obn_how(u), reg, 0, m); /* vmovdqu32 */
}

void obn_vec_store(struct obn_unit *u, struct x_mem m, int reg)
{
	x_vm(&u->x, V(1, PF3, 0, 0x7fu), obn_how(u), reg, 0, m);
}

void obn_vec_move(struct obn_unit *u, int d, int s)
{
	x_v(&u->x, V(1, P66, 0, 0x6fu), obn_how(u), d, 0, s);
}

static uint32_t spread_key(const struct obn_unit *u, uint32_t slot)
{
	return u->f->n_slots * u->chunks + slot;
}

/* ---- vectors ---- */

static void drop_vector(struct obn_unit *u, int reg)
{
	if (u->vec[reg].key != OBN_NONE)
		u->where[u->vec[reg].key] = -1;
	u->vec[reg].key = OBN_NONE;
	u->vec[reg].dirty = false;
}

static void drop_key(struct obn_unit *u, uint32_t key)
{
	if (u->where[key] >= 0)
		drop_vector(u, u->where[key]);
}

static void write_back(struct obn_unit *u, int reg)
{
	struct obn_reg *r = &u->vec[reg];

	if (!r->dirty)
		return;
	r->dirty = false;
	if (obn_is_live(u, r->slot, u->at))
		obn_vec_store(u, obn_slot_at(u, 0, r->key), reg);
}

static void bind_vector(struct obn_unit *u, int reg, uint32_t key, uint32_t slot, bool dirty)
{
	u->vec[reg] = (struct obn_reg){ key, slot, u->clock, dirty };
	u->where[key] = (int16_t)reg;
}

int obn_vector_new(struct obn_unit *u)
{
	int best = -1;

	for (int i = 0; i < (int)u->n_vectors; i++) {
		if (u->vec[i].used == u->clock)
			continue;
		if (u->vec[i].key == OBN_NONE) {
			best = i;
			break;
		}
		if (best < 0 || u->vec[i].used < u->vec[best].used)
			best = i;
	}
	if (best < 0) { /* an operation has fewer operands than there are registers */
		u->failed = true;
		return 0;
	}
	write_back(u, best);
	drop_vector(u, best);
	u->vec[best].used = u->clock;
	return best;
}

/* The constants that a value of this form adds to its base, by lane. */
static int32_t steps_of(struct obn_unit *u, struct obn_form *f, bool wide)
{
	union {
		uint32_t s[OBD_LANES];
		uint64_t g[OBD_LANES];
	} steps;

	if (f->pool_at[wide] >= 0)
		return f->pool_at[wide];
	for (int k = 0; k < (int)OBD_LANES; k++) {
		int64_t v = (int64_t)f->lane * (k % OBN_HALF) + (int64_t)f->half * (k / OBN_HALF);

		if (wide)
			steps.g[k] = (uint64_t)v;
		else
			steps.s[k] = (uint32_t)v;
	}
	return f->pool_at[wide] = x_pool(&u->x, &steps, wide ? 256 : 128);
}

void obn_spread(struct obn_unit *u, int reg, uint32_t slot, uint32_t c, int32_t form, int gpr)
{
	bool wide = u->wide[slot];
	struct x_how how = obn_how(u), small = { .len = 0, .imm = -1 };
	uint32_t w = wide;

	if (gpr < 0) {
		x_vm(&u->x, V(2, P66, u->x.wide ? w : 0, 0x58u + w), how, reg, 0,
			obn_home_at(u, slot));
	} else if (u->x.wide) {
		x_v(&u->x, V(2, P66, w, 0x7cu), how, reg, 0, gpr);
	} else {
		x_v(&u->x, V(1, P66, w, 0x6eu), small, reg, 0, gpr);
		x_v(&u->x, V(2, P66, 0, 0x58u + w), how, reg, 0, reg);
	}
	if (!form)
		return;
	int32_t at = steps_of(u, &u->forms[form], wide);

	x_vm(&u->x, wide ? VPADDQ : VPADDD, how, reg, reg,
		(struct x_mem){ X_POOL, at + (int32_t)(c * u->chunk_bytes) });
}

static int cached_scalar(const struct obn_unit *u, uint32_t key)
{
	for (size_t k = 0; k < sizeof(general); k++)
		if (u->gpr[general[k]].key == key)
			return general[k];
	return -1;
}

int obn_vector_get(struct obn_unit *u, uint32_t slot, uint32_t c)
{
	int32_t form = u->state[slot];
	uint32_t key = form == 0 ? spread_key(u, slot) : slot * u->chunks + c;
	int reg = u->where[key];

	if (reg >= 0) {
		u->vec[reg].used = u->clock;
		return reg;
	}
	reg = obn_vector_new(u);
	if (form == OBN_VARIES)
		obn_vec_load(u, reg, obn_slot_at(u, slot, c));
	else if (u->fixed[slot])
		obn_vec_load(u, reg, obn_slot_at(u, slot, 0));
	else
		obn_spread(u, reg, slot, c, form, cached_scalar(u, slot));
	bind_vector(u, reg, key, slot, false);
	return reg;
}

void obn_vector_set(struct obn_unit *u, uint32_t slot, uint32_t c, int reg)
{
	uint32_t key = slot * u->chunks + c;

	if (u->where[key] >= 0)
		drop_vector(u, u->where[key]);
	bind_vector(u, reg, key, slot, true);
}

static void drop_scalar(struct obn_unit *u, uint32_t key)
{
	int reg = cached_scalar(u, key);

	if (reg >= 0) {
		u->gpr[reg].key = OBN_NONE;
		u->gpr[reg].dirty = false;
	}
}

void obn_vector_done(struct obn_unit *u, uint32_t slot)
{
	u->state[slot] = OBN_VARIES;
	drop_key(u, spread_key(u, slot));
	drop_scalar(u, slot);
}

void obn_in_memory(struct obn_unit *u, uint32_t slot)
{
	for (uint32_t c = 0; c < obn_chunks(u, slot); c++)
		drop_key(u, slot * u->chunks + c);
	obn_vector_done(u, slot);
}

int obn_nan(struct obn_unit *u)
{
	static const uint32_t bits = 0x7fffffff;

	if (!u->nan_loaded)
		x_vm(&u->x, VPBROADCASTD, obn_how(u), u->nan, 0,
			(struct x_mem){ X_POOL, x_pool(&u->x, &bits, 4) });
	u->nan_loaded = true;
	return u->nan;
}

/* ---- scalars ---- */

static void write_back_scalar(struct obn_unit *u, int reg)
{
	struct obn_reg *r = &u->gpr[reg];

	if (!r->dirty)
		return;
	r->dirty = false;
	if (r->key & OBN_PRED_KEY)
		x_store(&u->x, false, obn_pred_at(r->key & ~OBN_PRED_KEY), reg);
	else if (obn_is_live(u, r->key, u->at))
		x_store(&u->x, true, obn_home_at(u, r->key), reg);
}

int obn_scalar_new(struct obn_unit *u)
{
	int best = -1;

	for (size_t k = 0; k < sizeof(general); k++) {
		const struct obn_reg *r = &u->gpr[general[k]];

		if (r->used == u->clock)
			continue;
		if (r->key == OBN_NONE) {
			best = general[k];
			break;
		}
		if (best < 0 || r->used < u->gpr[best].used)
			best = general[k];
	}
	if (best < 0) {
		u->failed = true;
		return RSI;
	}
	write_back_scalar(u, best);
	u->gpr[best] = (struct obn_reg){ OBN_NONE, OBN_NONE, u->clock, false };
	return best;
}

int obn_scalar_get(struct obn_unit *u, uint32_t slot)
{
	int reg = cached_scalar(u, slot);

	if (reg < 0) {
		reg = obn_scalar_new(u);
		if (u->const_at[slot])
			x_mov_imm(&u->x, reg, obn_const(u, slot));
		else if (u->fixed[slot])
			x_load(&u->x, u->wide[slot], reg, obn_slot_at(u, slot, 0));
		else
			x_load(&u->x, true, reg, obn_home_at(u, slot));
		u->gpr[reg].key = slot;
	}
	u->gpr[reg].used = u->clock;
	return reg;
}

void obn_scalar_set(struct obn_unit *u, uint32_t slot, int reg, int32_t form)
{
	drop_scalar(u, slot);
	for (uint32_t c = 0; c < obn_chunks(u, slot); c++)
		drop_key(u, slot * u->chunks + c);
	drop_key(u, spread_key(u, slot));
	u->gpr[reg] = (struct obn_reg){ slot, slot, u->clock, true };
	u->state[slot] = form;
	u->in_memory[slot] = 0;
	if (!u->listed[slot]) {
		u->listed[slot] = 1;
		u->linear[u->n_linear++] = slot;
	}
}

int obn_pred_get(struct obn_unit *u, uint32_t p)
{
	int reg = cached_scalar(u, OBN_PRED_KEY | p);

	if (reg < 0) {
		reg = obn_scalar_new(u);
		x_load(&u->x, false, reg, obn_pred_at(p));
		u->gpr[reg].key = OBN_PRED_KEY | p;
	}
	u->gpr[reg].used = u->clock;
	return reg;
}

void obn_pred_set(struct obn_unit *u, uint32_t p, int reg, bool same)
{
	drop_scalar(u, OBN_PRED_KEY | p);
	u->gpr[reg] = (struct obn_reg){ OBN_PRED_KEY | p, OBN_NONE, u->clock, true };
	if (p < OBN_PREDS)
		u->same = (u->same & ~(1ull << p)) | (uint64_t)same << p;
}

/* ---- all of them ---- */

void obn_step(struct obn_unit *u)
{
	u->clock++;
}

void obn_flush_slot(struct obn_unit *u, uint32_t slot)
{
	int32_t form = u->state[slot];

	if (u->fixed[slot] || (form != OBN_VARIES && u->in_memory[slot]))
		return;
	for (uint32_t c = 0; c < obn_chunks(u, slot); c++) {
		uint32_t key = slot * u->chunks + c;

		if (form != OBN_VARIES) {
			obn_step(u);
			obn_vec_store(u, obn_slot_at(u, slot, c), obn_vector_get(u, slot, c));
		} else if (u->where[key] >= 0 && u->vec[u->where[key]].dirty) {
			obn_vec_store(u, obn_slot_at(u, slot, c), u->where[key]);
			u->vec[u->where[key]].dirty = false;
		}
	}
	if (form != OBN_VARIES)
		u->in_memory[slot] = 1;
}

void obn_flush_for_call(struct obn_unit *u)
{
	for (int i = 0; i < (int)u->n_vectors; i++) {
		write_back(u, i);
		drop_vector(u, i);
	}
	u->nan_loaded = false;
	for (size_t k = 0; k < sizeof(general); k++) {
		int reg = general[k];
		struct obn_reg *r = &u->gpr[reg];

		if (r->key != OBN_NONE && (reg < R12 || r->key & OBN_PRED_KEY))
			write_back_scalar(u, reg);
		if (reg < R12)
			r->key = OBN_NONE;
	}
}

void obn_forget_preds(struct obn_unit *u, uint32_t p)
{
	for (size_t k = 0; k < sizeof(general); k++)
		if (u->gpr[general[k]].key != OBN_NONE && u->gpr[general[k]].key & OBN_PRED_KEY)
			u->gpr[general[k]].key = OBN_NONE;
	if (p == OBN_NONE)
		u->same = 0;
	else if (p < OBN_PREDS)
		u->same &= ~(1ull << p);
}

static void note_use(void *user, uint32_t slot, bool def, bool partial)
{
	struct obn_unit *u = user;

	if (!def || partial)
		u->last_use[slot] = u->at + 1;
}

void obn_block_begin(struct obn_unit *u, const struct obn_block *b)
{
	uint32_t n = u->f->n_slots;

	u->block = b;
	memcpy(u->state, u->entry + (size_t)(b - u->blocks) * n, n * sizeof(*u->state));
	memset(u->last_use, 0, n * sizeof(*u->last_use));
	memset(u->in_memory, 0, n);
	memset(u->listed, 0, n);
	u->same = 0;
	u->n_linear = 0;
	for (uint32_t s = 0; s < n; s++)
		if (u->state[s] != OBN_VARIES && !u->fixed[s]) {
			u->listed[s] = 1;
			u->linear[u->n_linear++] = s;
		}
	for (u->at = b->first; u->at < b->last; u->at++)
		obn_visit(u->f, u->at, note_use, u);
	for (int i = 0; i < 32; i++) {
		if (u->vec[i].key != OBN_NONE)
			u->where[u->vec[i].key] = -1;
		u->vec[i] = (struct obn_reg){ OBN_NONE, OBN_NONE, 0, false };
	}
	for (int i = 0; i < 16; i++)
		u->gpr[i] = (struct obn_reg){ OBN_NONE, OBN_NONE, 0, false };
	u->nan_loaded = false;
	u->clock = 1;
	u->at = u->counted = b->first;
}

/*
 * Stores values that are linear here but not at the start of a following block. A value that is
 * linear there must be linear here, with the same form; otherwise linear.c and the code disagree,
 * and no code is made.
 */
static void flush_for(struct obn_unit *u, uint32_t block)
{
	const int32_t *entry = u->entry + (size_t)block * u->f->n_slots;
	const uint64_t *live = u->live_in + (size_t)block * u->words;

	for (uint32_t w = 0; w < u->words; w++)
		for (uint64_t rest = live[w]; rest; rest &= rest - 1) {
			uint32_t s = w * 64 + (uint32_t)__builtin_ctzll(rest);

			if (s >= u->f->n_slots || entry[s] == u->state[s])
				continue;
			if (entry[s] == OBN_VARIES)
				obn_flush_slot(u, s);
			else
				u->failed = true;
		}
}

void obn_block_end(struct obn_unit *u)
{
	for (int k = 0; k < 2; k++)
		if (u->block->next[k] != OBN_NONE)
			flush_for(u, u->block->next[k]);
	u->at = u->block->last; /* only what later blocks read is live */
	for (int i = 0; i < (int)u->n_vectors; i++) {
		write_back(u, i);
		drop_vector(u, i);
	}
	for (size_t k = 0; k < sizeof(general); k++)
		write_back_scalar(u, general[k]);
}
