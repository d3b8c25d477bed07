/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

static uint32_t move_op(enum obd_type t)
{
	enum obd_reg_class c = obd_type_class(t);

	return c == OBD_CLASS_64      ? OBD_OP_mov_64
		: c == OBD_CLASS_PRED ? OBD_OP_pmov
				      : OBD_OP_mov_32;
}

void obd_value_move(struct obd_builder *b, enum obd_type t, uint32_t d, uint32_t v)
{
	if (d == v)
		return;
	if (obd_type_class(t) == OBD_CLASS_128) {
		for (uint8_t h = 0; h < 2; h++) {
			struct obd_lin *l = obd_emit(b, OBD_OP_mov_64, d, v, N, N);

			l->d_half = l->a_half = h;
		}
		return;
	}
	obd_emit(b, move_op(t), d, v, N, N);
}

void obd_value_combine(
	struct obd_builder *b, uint32_t d, uint32_t bytes, const uint32_t *part, uint32_t n)
{
	if (bytes == 8 && n == 2) {
		obd_emit(b, OBD_OP_pack_64, d, part[0], part[1], N);
		return;
	}
	if (bytes == 8) {
		uint32_t lo = obd_temp(b, OBD_T_B32), hi = obd_temp(b, OBD_T_B32);

		obd_value_combine(b, lo, 4, part, n / 2);
		obd_value_combine(b, hi, 4, part + n / 2, n / 2);
		obd_emit(b, OBD_OP_pack_64, d, lo, hi, N);
		return;
	}
	if (n == 2 && bytes == 4) {
		obd_emit(b, OBD_OP_pack_32, d, part[0], part[1], N);
		return;
	}
	uint32_t width = bytes * 8 / n, at = obd_temp(b, OBD_T_B32);

	obd_emit(b, OBD_OP_mov_32, at, obd_const32(b, 0), N, N);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t fresh = i == n - 1 ? d : obd_temp(b, OBD_T_B32);
		struct obd_lin *l = obd_emit(b, OBD_OP_ins_32, fresh, at, part[i], N);

		l->e_raw = (uint16_t)(width * i);
		l->imm = (1u << width) - 1;
		at = fresh;
	}
}

/* Extends a value of memory type t, zero-extended in `raw`, into a register declared as dt. */
void obd_value_extend(
	struct obd_builder *b, enum obd_type t, enum obd_type dt, uint32_t d, uint32_t raw)
{
	uint32_t bytes = obd_type_bytes(t), have = obd_type_bytes(dt);
	bool sign = obd_type_signed(t);

	if (obd_type_class(dt) == OBD_CLASS_64) {
		uint32_t v = raw;

		if (sign && bytes < 4) {
			v = obd_vreg_new(b, OBD_CLASS_32);
			obd_emit(b, bytes == 1 ? OBD_OP_sext8_32 : OBD_OP_sext16_32, v, raw, N, N);
		}
		obd_emit(b, sign ? OBD_OP_sext32_64 : OBD_OP_zext32_64, d, v, N, N);
	} else if (sign && bytes == 1) {
		obd_emit(b, have == 2 ? OBD_OP_sext8_16 : OBD_OP_sext8_32, d, raw, N, N);
	} else if (sign && bytes == 2 && have == 4) {
		obd_emit(b, OBD_OP_sext16_32, d, raw, N, N);
	} else {
		obd_value_move(b, OBD_T_B32, d, raw);
	}
}

bool obd_value_needs_extension(enum obd_type t, enum obd_type dt)
{
	uint32_t bytes = obd_type_bytes(t), have = obd_type_bytes(dt);

	if (bytes >= 8)
		return false;
	return obd_type_class(dt) == OBD_CLASS_64 ||
		(obd_type_signed(t) && bytes < have && bytes < 4);
}

void obd_value_put(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *o, uint32_t raw)
{
	if (o->kind == OBD_OPD_SINK)
		return;
	if (o->kind != OBD_OPD_REG || o->type == OBD_T_PRED || o->type == OBD_T_B128)
		obd_invalid(b, s, "the destination must be a register");
	if (obd_type_bytes(t) == 8 && obd_type_class(o->type) != OBD_CLASS_64)
		obd_invalid(b, s, "the destination register is too small");
	if (obd_value_needs_extension(t, o->type))
		obd_value_extend(b, t, o->type, o->vreg, raw);
	else
		obd_value_move(b, o->type, o->vreg, raw);
}

const struct obd_operand *obd_value_elements(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t *ret_n)
{
	uint32_t want = obd_q(s, OBD_Q_v2) ? 2
		: obd_q(s, OBD_Q_v4)       ? 4
		: obd_q(s, OBD_Q_v8)       ? 8
					   : 1;
	const struct obd_operand *o;

	if (i >= s->n_opd)
		obd_invalid(b, s, "missing operand");
	o = &s->opd[i];
	*ret_n = want;
	if (o->kind != OBD_OPD_LIST) {
		if (want != 1)
			obd_invalid(b, s, ".v2, .v4 and .v8 require a vector operand in { }");
		return o;
	}
	if (o->n_items != want)
		obd_invalid(b, s, "the number of elements in { } does not match .v2, .v4 or .v8");
	return o->items;
}
