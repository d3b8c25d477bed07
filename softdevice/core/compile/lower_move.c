/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* mov, packing and unpacking of vectors, and conversions of addresses. */
#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

/* mov.b64 {a, b}, c */
static void unpack(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t)
{
	const struct obd_operand *list = &s->opd[0];
	uint32_t n = list->n_items, v = obd_src(b, s, 1, t), bits;

	if (n != 2 && n != 4)
		obd_invalid(b, s, "a vector operand must have 2 or 4 elements");
	bits = obd_type_bytes(t) * 8 / n;
	for (uint32_t i = 0; i < n; i++) {
		const struct obd_operand *o = &list->items[i];
		struct obd_lin *l;

		if (o->kind == OBD_OPD_SINK)
			continue;
		if (t == OBD_T_B128) {
			if (n != 2)
				obd_invalid(
					b, s, "a vector for a 128-bit value must have 2 elements");
			l = obd_emit(b, OBD_OP_mov_64, obd_dst_of(b, o, OBD_T_B64), v, N, N);
			l->a_half = (uint8_t)i;
			continue;
		}
		l = obd_emit(b, obd_type_class(t) == OBD_CLASS_64 ? OBD_OP_bits_64 : OBD_OP_bits_32,
			obd_dst_of(b, o, OBD_T_B32), v, N, N);
		l->e_raw = (uint16_t)(bits * i);
		l->imm = bits == 32 ? ~0u : (1u << bits) - 1;
	}
}

/* mov.b64 d, {a, b} */
static void pack(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t)
{
	const struct obd_operand *list = &s->opd[1];
	uint32_t n = list->n_items, d = obd_dst(b, s, 0, t), bytes = obd_type_bytes(t), part[4];

	if ((n != 2 && n != 4) || bytes < n)
		obd_invalid(b, s, "a vector operand must have 2 or 4 elements");
	if (t == OBD_T_B128) {
		if (n != 2)
			obd_invalid(b, s, "a vector for a 128-bit value must have 2 elements");
		for (uint32_t i = 0; i < 2; i++)
			obd_emit(b, OBD_OP_mov_64, d, obd_src_of(b, &list->items[i], OBD_T_B64), N,
				N)
				->d_half = (uint8_t)i;
		return;
	}
	enum obd_type et = bytes / n == 4 ? OBD_T_B32 : bytes / n == 2 ? OBD_T_B16 : OBD_T_B8;

	for (uint32_t i = 0; i < n; i++)
		part[i] = obd_src_of(b, &list->items[i], et);
	obd_value_combine(b, d, bytes, part, n);
}

static void lower_mov(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	if (s->opd[0].kind == OBD_OPD_LIST) {
		unpack(b, s, t);
		return;
	}
	if (s->opd[1].kind == OBD_OPD_LIST) {
		pack(b, s, t);
		return;
	}
	if (t == OBD_T_PRED) {
		obd_value_move(b, t, obd_dst(b, s, 0, t), obd_pred_value(b, s, 1));
		return;
	}
	if (s->opd[0].kind == OBD_OPD_SINK)
		return;
	obd_value_move(b, t, obd_dst(b, s, 0, t), obd_src(b, s, 1, t));
}

/* ---- address conversions ---- */

static void lower_cvta(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool to = obd_q(s, OBD_Q_to);
	uint32_t op = OBD_OP_mov_64;

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	if (obd_type_class(t) != OBD_CLASS_64)
		obd_invalid(b, s, "an address must have a 64-bit type");
	if (obd_q(s, OBD_Q_remote)) {
		obd_value_move(b, t, obd_dst(b, s, 0, t),
			obd_address_cluster(b, to ? OBD_CLUSTER_NARROW : OBD_CLUSTER_FLAT,
				obd_src(b, s, 1, t), N));
		return;
	}
	if (obd_q(s, OBD_Q_shared))
		op = to ? OBD_OP_to_shared : OBD_OP_cvta_shared;
	else if (obd_q(s, OBD_Q_local) || (obd_q(s, OBD_Q_param) && !b->is_entry))
		op = to ? OBD_OP_to_local : OBD_OP_cvta_local;
	uint32_t v = obd_src(b, s, 1, t), d = obd_dst(b, s, 0, t);

	if (op == OBD_OP_mov_64)
		obd_value_move(b, t, d, v);
	else
		obd_emit(b, op, d, v, N, N);
}

static void lower_isspacep(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t space = obd_q(s, OBD_Q_global) ? 0
		: obd_q(s, OBD_Q_remote)        ? 5
		: obd_q(s, OBD_Q_shared)        ? 1
		: obd_q(s, OBD_Q_local)         ? 2
		: obd_q(s, OBD_Q_const)         ? 3
						: 4;

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	obd_emit(
		b, OBD_OP_isspacep, obd_dst(b, s, 0, OBD_T_PRED), obd_src(b, s, 1, OBD_T_U64), N, N)
		->e_raw = (uint16_t)space;
}

/* An address operand of 32 or 64 bits, in 64. */
static uint32_t wide_address(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t)
{
	uint32_t v = obd_src(b, s, 1, t), w;

	if (obd_type_class(t) == OBD_CLASS_64)
		return v;
	w = obd_vreg_new(b, OBD_CLASS_64);
	obd_emit(b, OBD_OP_zext32_64, w, v, N, N);
	return w;
}

static void put_address(
	struct obd_builder *b, const struct obd_stmt *s, enum obd_type t, uint32_t wide)
{
	if (obd_type_class(t) == OBD_CLASS_64)
		obd_value_move(b, t, obd_dst(b, s, 0, t), wide);
	else
		obd_emit(b, OBD_OP_lo_64, obd_dst(b, s, 0, t), wide, N, N);
}

static void lower_mapa(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t a, rank;

	(void)arg;
	obd_operand_count(b, s, 3, 3);
	a = wide_address(b, s, t);
	rank = obd_src(b, s, 2, OBD_T_U32);
	put_address(b, s, t,
		obd_address_cluster(b,
			obd_q(s, OBD_Q_shared) ? OBD_CLUSTER_MAP : OBD_CLUSTER_MAP_FLAT, a, rank));
}

static void lower_getctarank(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	put_address(b, s, OBD_T_U32,
		obd_address_cluster(b,
			obd_q(s, OBD_Q_shared) ? OBD_CLUSTER_RANK : OBD_CLUSTER_RANK_FLAT,
			wide_address(b, s, t), N));
}

const struct obd_opcode obd_opcodes_move[] = {
	{ "mov", lower_mov, 0 },
	{ "cvta", lower_cvta, 0 },
	{ "isspacep", lower_isspacep, 0 },
	{ "mapa", lower_mapa, 0 },
	{ "getctarank", lower_getctarank, 0 },
	{ 0 },
};
