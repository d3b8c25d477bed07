/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Basic blocks, live registers, and which values are linear in the lane. Registers are slots here, as in
 * the interpreter. A register is linear at the start of a block if it is so, with one form, at the end of
 * each block before it.
 */
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/native/unit.h"

/* larger functions stay with the interpreter: blocks * slots */
#define MAX_CELLS  ((uint64_t)8 << 20)
#define MAX_PASSES 32u

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

		/* the classes of a list's registers are not known; a fourth of 128 bits does no harm */
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
static void each_next(const struct obn_unit *u, const struct obn_block *b,
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
		ok = pass < MAX_PASSES;
		for (uint32_t k = u->n_blocks; k-- > 0;) {
			const struct obn_block *b = &u->blocks[k];
			uint64_t *in = u->live_in + (size_t)k * u->words;
			struct live l = { u->live_out + (size_t)k * u->words, u };

			/* parameters and results of the function, which its caller and return use */
			for (uint32_t s = 0; s < u->f->ret_slot + u->f->n_ret_words; s++)
				l.set[s / 64] |= 1ull << (s % 64);
			each_next(u, b, join_live, &l);
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

/* ---- linear values ---- */

uint64_t obn_const(const struct obn_unit *u, uint32_t slot)
{
	return u->f->consts[u->const_at[slot] - 1].value;
}

bool obn_guarded(const struct obn_unit *u, uint32_t i)
{
	return i &&
		(u->f->code[i - 1].op == OBD_OP_guard || (u->f->code[i - 1].op == OBD_OP_round));
}

/* The number of a form; OBN_VARIES: its strides are too large, or there are too many. */
static int32_t form_of(struct obn_unit *u, int64_t lane, int64_t half)
{
	if (lane > OBN_MAX_STRIDE || lane < -OBN_MAX_STRIDE || half > OBN_MAX_STRIDE ||
		half < -OBN_MAX_STRIDE)
		return OBN_VARIES;
	for (uint32_t k = 0; k < u->n_forms; k++)
		if (u->forms[k].lane == lane && u->forms[k].half == half)
			return (int32_t)k;
	if (u->n_forms == OBN_MAX_FORMS)
		return OBN_VARIES;
	u->forms[u->n_forms] = (struct obn_form){ (int32_t)lane, (int32_t)half };
	return (int32_t)u->n_forms++;
}

static int32_t scaled(struct obn_unit *u, int32_t form, int64_t by)
{
	if (form == OBN_VARIES || form == 0 || by > OBN_MAX_STRIDE || by < -OBN_MAX_STRIDE)
		return form == 0 ? 0 : OBN_VARIES;
	return form_of(u, u->forms[form].lane * by, u->forms[form].half * by);
}

static int32_t sum(struct obn_unit *u, int32_t a, int32_t b)
{
	if (a == OBN_VARIES || b == OBN_VARIES)
		return OBN_VARIES;
	return form_of(u, (int64_t)u->forms[a].lane + u->forms[b].lane,
		(int64_t)u->forms[a].half + u->forms[b].half);
}

/* a * b: one of them must be constant, or both the same in all lanes */
static int32_t product(struct obn_unit *u, uint32_t a, uint32_t b, bool sign32)
{
	int32_t fa = u->state[a], fb = u->state[b];
	bool a_const = u->const_at[a];
	uint32_t factor = a_const ? a : b;

	if (fa == OBN_VARIES || fb == OBN_VARIES)
		return OBN_VARIES;
	if (fa == 0 && fb == 0)
		return 0;
	if (!u->const_at[factor])
		return OBN_VARIES;
	uint64_t v = obn_const(u, factor);

	return scaled(u, a_const ? fb : fa, sign32 ? (int32_t)v : (int64_t)v);
}

static int32_t elementwise(struct obn_unit *u, uint32_t i, bool *ret_check)
{
	const struct obd_insn *in = &u->f->code[i];
	const struct obn_op *o = obn_op_info(in->op);
	const uint16_t slots[4] = { in->a, in->b, in->c, in->e };
	int32_t a = u->state[in->a], t;
	bool same = true;

	switch (in->op) {
	case OBD_OP_mov_32:
	case OBD_OP_mov_64:
	case OBD_OP_lo_64:
		return a;
	case OBD_OP_add_u32:
	case OBD_OP_add_u64:
		return sum(u, a, u->state[in->b]);
	case OBD_OP_sub_u32:
	case OBD_OP_sub_u64:
		return sum(u, a, scaled(u, u->state[in->b], -1));
	case OBD_OP_neg_u32:
	case OBD_OP_neg_u64:
		return scaled(u, a, -1);
	case OBD_OP_mul_u32:
		return product(u, in->a, in->b, true);
	case OBD_OP_mul_u64:
		return product(u, in->a, in->b, false);
	case OBD_OP_mad_u32:
		return sum(u, product(u, in->a, in->b, true), u->state[in->c]);
	case OBD_OP_mad_u64:
		return sum(u, product(u, in->a, in->b, false), u->state[in->c]);
	case OBD_OP_mulw_u32:
	case OBD_OP_mulw_s32:
	case OBD_OP_madw_u32:
	case OBD_OP_madw_s32:
		t = product(
			u, in->a, in->b, in->op == OBD_OP_mulw_s32 || in->op == OBD_OP_madw_s32);
		*ret_check = t != OBN_VARIES && t != 0;
		if (in->op == OBD_OP_madw_u32 || in->op == OBD_OP_madw_s32)
			t = sum(u, t, u->state[in->c]);
		return t;
	case OBD_OP_shl_32:
	case OBD_OP_shl_64:
		if (a != OBN_VARIES && a != 0) {
			uint64_t by = u->const_at[in->b] ? obn_const(u, in->b) : 64;

			return by < 24 ? scaled(u, a, 1 << by) : OBN_VARIES;
		}
		break;
	case OBD_OP_zext32_64:
	case OBD_OP_sext32_64:
		*ret_check = a != OBN_VARIES && a != 0;
		return a;
	default:
		break;
	}
	if (!o->scalar && !(o->vector && (u->x.wide || !o->vector_wide_only)))
		return OBN_VARIES;
	for (int k = 0; k < 4; k++)
		same = same &&
			(o->bytes[k + 1] == 0                  ? true
					: o->bytes[k + 1] == 1 ? obn_pred_same(u, slots[k])
							       : u->state[slots[k]] == 0);
	return same ? 0 : OBN_VARIES;
}

static int32_t special_register(struct obn_unit *u, uint32_t which)
{
	bool rows = u->kind == OBD_NATIVE_ROWS, halves = u->kind == OBD_NATIVE_HALVES;

	switch (which) {
	case OBD_SREG_TID_X:
		return rows ? form_of(u, 1, OBN_HALF) : halves ? form_of(u, 1, 0) : OBN_VARIES;
	case OBD_SREG_TID_Y:
		return rows ? 0 : halves ? form_of(u, 0, 1) : OBN_VARIES;
	case OBD_SREG_TID_Z:
		return rows || halves ? 0 : OBN_VARIES;
	case OBD_SREG_LANEID:
		return form_of(u, 1, OBN_HALF);
	case OBD_SREG_ZERO:
	case OBD_SREG_ONE:
	case OBD_SREG_WARPID:
		return 0;
	default:
		return which <= OBD_SREG_NCTAID_Z ? 0 : OBN_VARIES;
	}
}

int32_t obn_result(struct obn_unit *u, uint32_t i, bool *ret_check)
{
	const struct obd_insn *in = &u->f->code[i];
	const struct obn_op *o = obn_op_info(in->op);
	int32_t ret = OBN_VARIES;

	*ret_check = false;
	if (obn_guarded(u, i) || u->varies[in->d])
		return OBN_VARIES;
	switch (o->special) {
	case OBN_PLAIN:
		if (o->bytes[0])
			ret = elementwise(u, i, ret_check);
		break;
	case OBN_LOAD:
		ret = u->state[in->a] == 0 && !(obn_indexed(in->op) && u->state[in->c] != 0)
			? 0
			: OBN_VARIES;
		break;
	case OBN_VALUE:
		if (in->op == OBD_OP_sreg32 || in->op == OBD_OP_sreg64)
			ret = special_register(u, in->e);
		else if (in->op == OBD_OP_thread_index)
			ret = special_register(u, OBD_SREG_TID_X + in->e);
		else if (in->op == OBD_OP_cvta_shared || in->op == OBD_OP_to_shared)
			ret = u->state[in->a] == 0 ? 0 : OBN_VARIES;
		else if (in->op != OBD_OP_local_addr) /* a parameter, or an address */
			ret = 0;
		break;
	default:
		break;
	}
	if (ret == OBN_VARIES)
		*ret_check = false;
	return ret;
}

bool obn_result_same(const struct obn_unit *u, uint32_t i)
{
	const struct obd_insn *in = &u->f->code[i];

	if (obn_guarded(u, i))
		return false;
	switch (in->op) {
	case OBD_OP_pset:
		return in->u.imm == 0 || in->u.imm == ~0u;
	case OBD_OP_pmov:
	case OBD_OP_pnot:
		return obn_pred_same(u, in->a);
	case OBD_OP_pand:
	case OBD_OP_por:
	case OBD_OP_pxor:
		return obn_pred_same(u, in->a) && obn_pred_same(u, in->b);
	default:
		return obn_op_info(in->op)->special == OBN_COMPARE &&
			!(in->op >= OBD_OP_eq_f32 && in->op <= OBD_OP_equ_f64) &&
			u->state[in->a] == 0 && u->state[in->b] == 0 &&
			!(in->op >= OBD_OP_eq_32_or && !obn_pred_same(u, in->c));
	}
}

static void forget(void *user, uint32_t slot, bool def, bool partial)
{
	(void)partial;
	if (def)
		((struct obn_unit *)user)->state[slot] = OBN_VARIES;
}

static void step(struct obn_unit *u, uint32_t i)
{
	const struct obd_insn *in = &u->f->code[i];
	uint32_t shape = u->f->shapes[i];
	bool check;

	if (OBD_SHAPE_FLAGS(shape) & OBD_DEF_D &&
		OBD_SHAPE_CLASS(shape, OBD_SHAPE_D) == OBD_CLASS_PRED) {
		if (in->d < OBN_PREDS)
			u->same = (u->same & ~(1ull << in->d)) |
				(uint64_t)obn_result_same(u, i) << in->d;
		return;
	}
	int32_t r = OBD_SHAPE_FLAGS(shape) & OBD_DEF_D ? obn_result(u, i, &check) : OBN_VARIES;

	obn_visit(u->f, i, forget, u);
	if (r != OBN_VARIES)
		u->state[in->d] = r;
	if (OBD_SHAPE_FLAGS(shape) & (OBD_DEF_G | OBD_CALL)) /* predicates among the results */
		u->same = 0;
}

struct join {
	struct obn_unit *u;
	bool changed;
};

static void join_state(void *user, uint32_t block)
{
	struct join *j = user;
	struct obn_unit *u = j->u;
	struct obn_block *b = &u->blocks[block];
	int32_t *to = u->entry + (size_t)block * u->f->n_slots;
	const uint64_t *live = u->live_in + (size_t)block * u->words;

	if (!b->seen) {
		b->seen = j->changed = true;
		for (uint32_t s = 0; s < u->f->n_slots; s++)
			to[s] = live[s / 64] >> (s % 64) & 1 || u->fixed[s] ? u->state[s]
									    : OBN_VARIES;
		return;
	}
	for (uint32_t s = 0; s < u->f->n_slots; s++)
		if (to[s] != OBN_VARIES && to[s] != u->state[s]) {
			to[s] = OBN_VARIES;
			j->changed = true;
		}
}

static bool find_linear(struct obn_unit *u)
{
	const struct obd_func *f = u->f;
	struct join j = { u, true };

	u->entry = malloc((size_t)u->n_blocks * f->n_slots * sizeof(*u->entry));
	if (!u->entry)
		return false;
	for (uint32_t s = 0; s < f->n_slots; s++)
		u->entry[s] = u->fixed[s] ? 0 : OBN_VARIES;
	u->blocks[0].seen = true;
	while (j.changed) {
		j.changed = false;
		for (uint32_t k = 0; k < u->n_blocks; k++) {
			const struct obn_block *b = &u->blocks[k];

			if (!b->seen)
				continue;
			memcpy(u->state, u->entry + (size_t)k * f->n_slots,
				f->n_slots * sizeof(*u->state));
			u->same = 0;
			for (uint32_t i = b->first; i < b->last; i++)
				step(u, i);
			each_next(u, b, join_state, &j);
		}
	}
	return true;
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
	return find_live(u) && find_linear(u);
}
