/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Matrix products and matrix loads of a warp, and barriers in shared memory. */
#include <string.h>

#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/lower.h"

#define N OBD_NONE

static bool has_word(const struct obd_stmt *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_words; i++)
		if (s->words[i].size == strlen(name) &&
			memcmp(s->words[i].text, name, s->words[i].size) == 0)
			return true;
	return false;
}

/* All lanes of the warp must take part: paths that arrive separately wait for the others. */
static void gather_warp(struct obd_builder *b)
{
	struct obd_lin *l = obd_emit(b, OBD_OP_sync, N, N, N, N);

	l->e_raw = OBD_SYNC_WARP;
	l->f = obd_const_new(b, OBD_CLASS_32, OBD_FULL_MASK, NULL);
	l->flags |= OBD_USE_F;
}

/* ---- mma ---- */

static const struct {
	const char *name;
	uint8_t shape, m, k;
} shapes[] = {
	{ "m16n8k4", OBD_MMA_M16N8K4, 16, 4 },
	{ "m16n8k8", OBD_MMA_M16N8K8, 16, 8 },
	{ "m16n8k16", OBD_MMA_M16N8K16, 16, 16 },
	{ "m16n8k32", OBD_MMA_M16N8K32, 16, 32 },
	{ "m8n8k4", OBD_MMA_M8N8K4, 8, 4 },
	{ "m8n8k16", OBD_MMA_M8N8K16, 8, 16 },
};

static uint32_t mma_type(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t)
{
	switch (t) {
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
	case OBD_T_F64:
		return OBD_MMA_F64;
	case OBD_T_F32:
		return OBD_MMA_F32;
	case OBD_T_S32:
		return OBD_MMA_S32;
	default:
		obd_unsupported(b, s, "this element type");
	}
}

static void push_fragment(struct obd_builder *b, const struct obd_stmt *s, uint32_t i,
	enum obd_type reg, uint32_t want, bool is_result)
{
	const struct obd_operand *o = &s->opd[i];

	if (o->kind == OBD_OPD_LIST ? o->n_items != want : want != 1)
		obd_invalid(b, s, "a fragment has the wrong number of registers for this shape");
	for (uint32_t k = 0; k < want; k++) {
		const struct obd_operand *r = o->kind == OBD_OPD_LIST ? &o->items[k] : o;

		obd_build_list(b, is_result ? obd_dst_of(b, r, reg) : obd_src_of(b, r, reg));
	}
}

static void lower_mma(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b), shape = OBD_MMA_SHAPES, m = 0, k = 0, list;
	enum obd_type dt, at, bt, ct;

	(void)arg;
	obd_operand_count(b, s, 4, 4);
	for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (has_word(s, shapes[i].name)) {
			shape = shapes[i].shape;
			m = shapes[i].m;
			k = shapes[i].k;
		}
	/* the layouts of A and B: the only ones that these shapes have */
	if (shape == OBD_MMA_SHAPES || !has_word(s, "row") || !has_word(s, "col") ||
		s->n_words != (has_word(s, "kind::f8f6f4") ? 4u : 3u))
		obd_unsupported(b, s, "this shape");
	dt = obd_type_at(b, s, 0);
	at = obd_type_at(b, s, 1);
	bt = obd_type_at(b, s, 2);
	ct = obd_type_at(b, s, 3);
	uint32_t bytes = at == OBD_T_TF32 ? 4u : obd_type_bytes(at),
		 per = bytes == 8 ? 1 : 4 / bytes;
	bool f64 = at == OBD_T_F64, f16_sum = ct == OBD_T_F16,
	     integer = at == OBD_T_S8 || at == OBD_T_U8;
	bool sum_ok = f64 ? ct == OBD_T_F64
		: integer ? ct == OBD_T_S32
			  : ct == OBD_T_F32 || f16_sum;

	if (dt != ct || !sum_ok || bytes != (bt == OBD_T_TF32 ? 4 : obd_type_bytes(bt)) ||
		(m * k) % (32 * per) || (8 * k) % (32 * per) || (m == 8 && !f64 && !integer))
		obd_invalid(b, s, "invalid combination of types and shape");
	enum obd_type in_reg = f64 ? OBD_T_F64 : OBD_T_B32, out_reg = f64 ? OBD_T_F64 : OBD_T_B32;
	uint32_t na = m * k / 32 / per, nb = 8 * k / 32 / per, nc = m * 8 / 32 / (f16_sum ? 2 : 1);

	gather_warp(b);
	list = b->n_calls;
	obd_build_list(b, na + nb + nc);
	obd_build_list(b, nc);
	/*
	 * Reading a source may emit moves before the list is complete. This is harmless, because
	 * the list holds only register numbers.
	 */
	push_fragment(b, s, 1, in_reg, na, false);
	push_fragment(b, s, 2, in_reg, nb, false);
	push_fragment(b, s, 3, out_reg, nc, false);
	push_fragment(b, s, 0, out_reg, nc, true);
	struct obd_lin *l = obd_emit(b, OBD_OP_mma, N, N, N, N);

	l->imm = list;
	l->e_raw = OBD_MMA_CODE(mma_type(b, s, at), mma_type(b, s, bt), mma_type(b, s, ct), shape,
		obd_q(s, OBD_Q_satfinite));
	l->flags |= OBD_CALL;
	obd_build_skip_end(b, label);
}

/* which: 0 ldmatrix, 1 stmatrix */
static void lower_ldmatrix(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	uint32_t n = has_word(s, "x4") ? 4
		: has_word(s, "x2")    ? 2
		: has_word(s, "x1")    ? 1
				       : 0,
		 kind = obd_q(s, OBD_Q_shared), offset, base, list;
	uint32_t label = obd_build_skip_begin(b);

	obd_operand_count(b, s, 2, 2);
	if (!n || !has_word(s, "m8n8") || obd_type_at(b, s, 0) != OBD_T_B16)
		obd_unsupported(b, s, "a form other than .m8n8.b16");
	gather_warp(b);
	base = obd_address(b, &s->opd[which ? 0 : 1], &kind, &offset);
	if ((int32_t)offset > INT16_MAX || (int32_t)offset < INT16_MIN || kind > 1) {
		uint32_t v = obd_vreg_new(b, kind == 1 ? OBD_CLASS_32 : OBD_CLASS_64);

		if (kind > 1)
			obd_invalid(b, s, "the rows must be in shared memory");
		obd_emit(b, kind ? OBD_OP_add_u32 : OBD_OP_add_u64, v, base,
			obd_const_new(b, kind ? OBD_CLASS_32 : OBD_CLASS_64,
				(uint64_t)(int64_t)(int32_t)offset, NULL),
			N);
		base = v;
		offset = 0;
	}
	list = b->n_calls;
	obd_build_list(b, which ? n : 0);
	obd_build_list(b, which ? 0 : n);
	push_fragment(b, s, which ? 1 : 0, OBD_T_B32, n, !which);
	struct obd_lin *l = obd_emit(b, OBD_OP_ldmatrix, N, base, N, N);

	l->imm = list;
	l->g = (offset & 0xffff) | kind << 16;
	l->e_raw = (uint16_t)(n | (has_word(s, "trans") ? 8u : 0u) | (which ? 16u : 0u));
	l->flags |= OBD_CALL;
	obd_build_skip_end(b, label);
}

/* ---- mbarrier ---- */

static void lower_mbarrier(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t op, kind = obd_q(s, OBD_Q_shared), offset = 0, base = N, d = N, x = N, c = N,
		     at = 1;
	bool parity = has_word(s, "parity");

	(void)arg;
	if (has_word(s, "init"))
		op = OBD_MBAR_INIT;
	else if (has_word(s, "inval"))
		op = OBD_MBAR_INVAL;
	else if (has_word(s, "arrive_drop"))
		op = OBD_MBAR_ARRIVE_DROP;
	else if (obd_q(s, OBD_Q_arrive))
		op = OBD_MBAR_ARRIVE;
	else if (has_word(s, "test_wait") || has_word(s, "try_wait"))
		op = parity ? OBD_MBAR_TEST_PARITY : OBD_MBAR_TEST;
	else if (has_word(s, "pending_count"))
		op = OBD_MBAR_PENDING;
	else
		obd_unsupported(b, s, "this form");
	if (has_word(s, "expect_tx"))
		obd_unsupported(b, s, "a transaction count");
	switch (op) {
	case OBD_MBAR_PENDING:
		obd_operand_count(b, s, 2, 2);
		d = obd_dst(b, s, 0, OBD_T_U32);
		c = obd_src(b, s, 1, OBD_T_B64);
		break;
	case OBD_MBAR_INIT:
	case OBD_MBAR_INVAL:
		at = 0;
		obd_operand_count(b, s, op == OBD_MBAR_INIT ? 2 : 1, op == OBD_MBAR_INIT ? 2 : 1);
		if (op == OBD_MBAR_INIT)
			x = obd_src(b, s, 1, OBD_T_U32);
		break;
	case OBD_MBAR_ARRIVE:
	case OBD_MBAR_ARRIVE_DROP:
		/* the state operand is optional when the result is a sink */
		at = s->n_opd && s->opd[0].kind == OBD_OPD_ADDRESS ? 0 : 1;
		obd_operand_count(b, s, at + 1, at + 2);
		x = s->n_opd > at + 1 ? obd_src(b, s, at + 1, OBD_T_U32)
				      : obd_const_new(b, OBD_CLASS_32, 1, NULL);
		if (at && s->opd[0].kind != OBD_OPD_SINK)
			d = obd_dst(b, s, 0, OBD_T_B64);
		break;
	default: /* a time-out operand may follow; it is ignored */
		obd_operand_count(b, s, 3, 4);
		d = obd_dst(b, s, 0, OBD_T_PRED);
		c = obd_src(b, s, 2, parity ? OBD_T_U32 : OBD_T_B64);
		break;
	}
	if (op != OBD_MBAR_PENDING)
		base = obd_address(b, &s->opd[at], &kind, &offset);
	if (kind > 1)
		obd_invalid(b, s, "the barrier object must be in shared memory");
	struct obd_lin *l = obd_emit(b, OBD_OP_mbarrier, d, base, x, c);

	l->imm = offset;
	l->e_raw = (uint16_t)(op | kind << 4);
}

const struct obd_opcode obd_opcodes_matrix[] = {
	{ "mma", lower_mma, 0 },
	{ "ldmatrix", lower_ldmatrix, 0 },
	{ "stmatrix", lower_ldmatrix, 1 },
	{ "mbarrier", lower_mbarrier, 0 },
	{ 0 },
};
