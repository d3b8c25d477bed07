/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Which values are linear in the lane. A register is linear at the start of a block if it is so,
 * with one form, at the end of each block before it.
 */
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/native/unit.h"

uint64_t obn_const(const struct obn_unit *u, uint32_t slot)
{
	return u->f->consts[u->const_at[slot] - 1].value;
}

bool obn_has_prefix(const struct obn_unit *u, uint32_t i)
{
	return i && obn_op_info(u->f->code[i - 1].op)->special == OBN_PREFIX;
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
	u->forms[u->n_forms] = (struct obn_form){ (int32_t)lane, (int32_t)half, { -1, -1 } };
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
	if (!o->scalar && !obn_has_vector(u, in->op))
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
	if (obn_has_prefix(u, i) || u->varies[in->d])
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

	if (obn_has_prefix(u, i))
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

bool obn_find_linear(struct obn_unit *u)
{
	const struct obd_func *f = u->f;
	struct join j = { u, true };

	u->entry = malloc((size_t)u->n_blocks * f->n_slots * sizeof(*u->entry));
	if (!u->entry)
		return false;
	for (uint32_t s = 0; s < f->n_slots; s++)
		u->entry[s] = u->fixed[s] ? 0 : OBN_VARIES;
	u->blocks[0].seen = true;
	for (uint32_t pass = 0; j.changed; pass++) {
		if (pass == OBN_MAX_PASSES)
			return false;
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
			obn_each_next(u, b, join_state, &j);
		}
	}
	return true;
}
