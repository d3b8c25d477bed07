/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* wgmma: products of four warps, of sm_90a. */
#include <stdio.h>

#include "softdevice/core/compile/lower.h"
#include "softdevice/core/compile/value.h"
#include "softdevice/core/layout.h"

#define N OBD_NONE

#define SET(type) (1u << OBD_MMA_##type)
#define HALVES    (SET(F16) | SET(BF16))
#define BYTES     (SET(S8) | SET(U8))
#define FP8       (SET(E4M3) | SET(E5M2))

static uint32_t element_type(struct obd_builder *b, const struct obd_stmt *s, uint32_t i)
{
	switch (obd_type_at(b, s, i)) {
	case OBD_T_F16:
		return OBD_MMA_F16;
	case OBD_T_BF16:
		return OBD_MMA_BF16;
	case OBD_T_TF32:
		return OBD_MMA_TF32;
	case OBD_T_E4M3:
		return OBD_MMA_E4M3;
	case OBD_T_E5M2:
		return OBD_MMA_E5M2;
	case OBD_T_S8:
		return OBD_MMA_S8;
	case OBD_T_U8:
		return OBD_MMA_U8;
	case OBD_T_F32:
		return OBD_MMA_F32;
	case OBD_T_S32:
		return OBD_MMA_S32;
	default:
		obd_unsupported(b, s, "this element type");
	}
}

struct types {
	uint32_t d, a, b;
};

static struct types product_types(struct obd_builder *b, const struct obd_stmt *s)
{
	struct types t = { .d = element_type(b, s, 0), .a = OBD_MMA_B1, .b = OBD_MMA_B1 };
	uint32_t both;
	bool fits;

	if (!obd_word(s, "b1")) {
		t.a = element_type(b, s, 1);
		t.b = element_type(b, s, 2);
	}
	both = 1u << t.a | 1u << t.b;
	if (both == SET(F16) || !(both & ~FP8))
		fits = t.d == OBD_MMA_F16 || t.d == OBD_MMA_F32;
	else if (both == SET(BF16) || both == SET(TF32))
		fits = t.d == OBD_MMA_F32;
	else
		fits = (!(both & ~BYTES) || both == SET(B1)) && t.d == OBD_MMA_S32;
	if (!fits)
		obd_invalid(b, s, "invalid combination of types");
	return t;
}

/* The columns of the shape m64nNkK. */
static uint32_t columns(struct obd_builder *b, const struct obd_stmt *s, const struct types *t)
{
	uint32_t step = t->d == OBD_MMA_S32 ? 16 : 8;
	uint32_t bits = obd_word(s, "sp") ? 512 : 256; /* of a row along k */
	char name[24];

	for (uint32_t n = 8; n <= 256; n += 8) {
		snprintf(name, sizeof(name), "m64n%uk%u", n, bits / obd_element_bits(t->a));
		if (obd_word(s, name) && (n % step == 0 || n <= 24))
			return n;
	}
	obd_invalid(b, s, "invalid combination of shape and type");
}

/* A factor of 1 or -1. */
static bool is_negative(struct obd_builder *b, const struct obd_stmt *s, uint32_t i)
{
	if (s->opd[i].kind != OBD_OPD_IMM ||
		(s->opd[i].value != 1 && s->opd[i].value != UINT64_MAX))
		obd_invalid(b, s, "the scale of a matrix must be 1 or -1");
	return s->opd[i].value != 1;
}

static bool is_transposed(struct obd_builder *b, const struct obd_stmt *s, uint32_t i)
{
	if (s->opd[i].kind != OBD_OPD_IMM || s->opd[i].value > 1)
		obd_invalid(b, s, "the transposition of a matrix must be 0 or 1");
	return s->opd[i].value;
}

/* Which pair of each four lanes has the metadata; with elements of bytes, all four. */
static uint32_t selector(struct obd_builder *b, const struct obd_stmt *s, const struct types *t)
{
	uint32_t choices = obd_element_bits(t->a) == 8 ? 1 : 2;

	if (s->opd[4].kind != OBD_OPD_IMM || s->opd[4].value >= choices || t->a == OBD_MMA_B1)
		obd_invalid(b, s, "the sparsity selector is not a constant of this type's range");
	return (uint32_t)s->opd[4].value;
}

/* The immediate operands after scale-d, and the qualifiers. */
static uint32_t product_flags(
	struct obd_builder *b, const struct obd_stmt *s, const struct types *t, bool registers)
{
	bool half = HALVES >> t->a & 1, integer = t->d == OBD_MMA_S32;
	uint32_t after = obd_word(s, "sp") ? 6 : 4, /* the first behind scale-d */
		n = after +
		(integer                    ? 0
				: !half     ? 2
				: registers ? 3
					    : 4),
		 flags = 0;

	obd_operand_count(b, s, n, n);
	if (obd_word(s, "sp"))
		flags |= OBD_WGMMA_SPARSE | selector(b, s, t) << OBD_WGMMA_SELECTOR;
	if (registers)
		flags |= OBD_WGMMA_REGISTERS;
	if (obd_q(s, OBD_Q_satfinite)) {
		if (!integer || t->a == OBD_MMA_B1)
			obd_invalid(b, s, ".satfinite is for 8-bit integers");
		flags |= OBD_WGMMA_SAT;
	}
	if (t->a == OBD_MMA_B1 && (!obd_q(s, OBD_Q_popc) || !obd_q(s, OBD_Q_and)))
		obd_invalid(b, s, "b1 needs .and.popc");
	if (!integer && is_negative(b, s, after) != is_negative(b, s, after + 1))
		flags |= OBD_WGMMA_NEGATE;
	if (half && !registers && is_transposed(b, s, after + 2))
		flags |= OBD_WGMMA_A_TRANS;
	if (half && is_transposed(b, s, n - 1))
		flags |= OBD_WGMMA_B_TRANS;
	return flags;
}

static void push_registers(struct obd_builder *b, const struct obd_stmt *s, uint32_t i,
	enum obd_type t, uint32_t want, bool is_result)
{
	const struct obd_operand *o = &s->opd[i];

	if (o->kind != OBD_OPD_LIST || o->n_items != want)
		obd_invalid(b, s, "a fragment has the wrong number of registers for this shape");
	for (uint32_t k = 0; k < want; k++)
		obd_build_list(b,
			is_result ? obd_dst_of(b, &o->items[k], t)
				  : obd_src_of(b, &o->items[k], t));
}

/* D is a source and the result. */
static void lower_product(struct obd_builder *b, const struct obd_stmt *s)
{
	struct types t = product_types(b, s);
	bool sparse = obd_word(s, "sp"), registers = s->n_opd > 1 && s->opd[1].kind == OBD_OPD_LIST;
	uint32_t n = columns(b, s, &t), flags = product_flags(b, s, &t, registers),
		 count = t.d == OBD_MMA_F16 ? n / 4 : n / 2, list, va = N, vb, scale;
	enum obd_type reg = t.d == OBD_MMA_F32 ? OBD_T_F32 : OBD_T_B32;
	struct obd_lin *l;

	l = obd_emit(b, OBD_OP_gather, N, N, N, N);
	l->e_raw = OBD_SYNC_WARP;
	l->f = obd_const_new(b, OBD_CLASS_32, OBD_FULL_MASK, NULL);
	l->flags |= OBD_USE_F;
	if (!registers)
		va = obd_src(b, s, 1, OBD_T_B64);
	vb = obd_src(b, s, 2, OBD_T_B64);
	scale = obd_pred_value(b, s, sparse ? 5 : 3);
	list = b->n_calls;
	obd_build_list(b, count + (registers ? 4 : 0) + (sparse ? 1 : 0));
	obd_build_list(b, count);
	if (registers)
		push_registers(b, s, 1, OBD_T_B32, 4, false);
	push_registers(b, s, 0, reg, count, false);
	if (sparse)
		obd_build_list(b, obd_src(b, s, 3, OBD_T_B32));
	push_registers(b, s, 0, reg, count, true);
	l = obd_emit(b, OBD_OP_wgmma, N, va, vb, scale);
	l->imm = list;
	l->e_raw = OBD_WGMMA_TYPES(t.a, t.b, t.d);
	l->g = n / 8 | flags;
	l->flags |= OBD_CALL;
}

static void lower_wgmma(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b);

	(void)arg;
	if (obd_word(s, "mma_async"))
		lower_product(b, s);
	else if (obd_word(s, "fence") || obd_q(s, OBD_Q_wait_group))
		obd_emit(b, OBD_OP_bar, N, N, N, N)->e_raw = OBD_BAR_GROUP;
	else if (!obd_q(s, OBD_Q_commit_group))
		obd_unsupported(b, s, "this form");
	obd_build_skip_end(b, label);
}

const struct obd_opcode obd_opcodes_wgmma[] = {
	{ "wgmma", lower_wgmma, 0 },
	{ 0 },
};
