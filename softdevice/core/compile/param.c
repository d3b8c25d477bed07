/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/param.h"

#include "softdevice/core/compile/value.h"

#define N OBD_NONE

/* Loads words of a parameter. Only constant offsets are allowed. */
static void load_words(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_symbol *sym, uint64_t at, enum obd_type t, const struct obd_operand *o)
{
	uint32_t bytes = obd_type_bytes(t), w, raw;

	if (at % (bytes > 4 ? 4 : bytes) || at + bytes > sym->count * 4ull)
		obd_invalid(b, s, "access outside the parameter");
	if (o->kind == OBD_OPD_SINK)
		return;
	w = sym->vreg + (uint32_t)(at / 4);
	if (bytes == 8) {
		obd_emit(b, OBD_OP_pack_64, obd_dst_of(b, o, OBD_T_B64), w, w + 1, N);
		return;
	}
	if (bytes > 8 || o->kind != OBD_OPD_REG)
		obd_invalid(b, s, "invalid type or operand for an access to a parameter");
	raw = w;
	if (bytes < 4) {
		struct obd_lin *l;

		raw = obd_vreg_new(b, OBD_CLASS_32);
		l = obd_emit(b, OBD_OP_bits_32, raw, w, N, N);
		l->e_raw = (uint16_t)(at % 4 * 8);
		l->imm = bytes == 1 ? 0xff : 0xffff;
	}
	obd_value_extend(b, t, o->type, o->vreg, raw);
}

static void load_kernel(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_symbol *sym, uint64_t at, enum obd_type t, const struct obd_operand *o)
{
	uint32_t bytes = obd_type_bytes(t), raw;
	struct obd_lin *l;

	if (at + bytes > sym->bytes)
		obd_invalid(b, s, "access outside the parameter");
	if (o->kind == OBD_OPD_SINK)
		return;
	if (o->kind != OBD_OPD_REG)
		obd_invalid(b, s, "the destination must be a register");
	at += sym->offset;
	if (bytes == 8) {
		obd_emit(b, OBD_OP_param64, obd_dst_of(b, o, OBD_T_B64), N, N, N)->imm =
			(uint32_t)at;
		return;
	}
	if (bytes > 8)
		obd_invalid(b, s, "invalid type or operand for an access to a parameter");
	raw = obd_value_needs_extension(t, o->type) ? obd_vreg_new(b, OBD_CLASS_32)
						    : obd_dst_of(b, o, OBD_T_B32);
	l = obd_emit(b, OBD_OP_param32, raw, N, N, N);
	l->imm = (uint32_t)at;
	l->e_raw = (uint16_t)bytes;
	if (obd_value_needs_extension(t, o->type))
		obd_value_extend(b, t, o->type, o->vreg, raw);
}

void obd_param_load(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *list, uint32_t n)
{
	const struct obd_operand *a = &s->opd[1];

	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = (uint64_t)a->offset + i * obd_type_bytes(t);

		if (a->offset < 0 || at > OBD_KERNEL_MAX_PARAM_BYTES)
			obd_invalid(b, s, "access outside the parameter");
		if (a->sym->kind == OBD_SYM_PARAM)
			load_words(b, s, a->sym, at, t, &list[i]);
		else
			load_kernel(b, s, a->sym, at, t, &list[i]);
	}
}

static void store_words(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_symbol *sym, uint64_t at, enum obd_type t, const struct obd_operand *o)
{
	uint32_t bytes = obd_type_bytes(t), v = obd_src_of(b, o, t), w;

	if (at % (bytes > 4 ? 4 : bytes) || at + bytes > sym->count * 4ull)
		obd_invalid(b, s, "access outside the parameter");
	w = sym->vreg + (uint32_t)(at / 4);
	if (bytes == 8) {
		obd_emit(b, OBD_OP_lo_64, w, v, N, N);
		obd_emit(b, OBD_OP_hi_64, w + 1, v, N, N);
	} else if (bytes == 4) {
		obd_emit(b, OBD_OP_mov_32, w, v, N, N);
	} else if (sym->bytes <= bytes) { /* the whole parameter */
		obd_emit(b, bytes == 1 ? OBD_OP_zext8 : OBD_OP_zext16, w, v, N, N);
	} else if (bytes <= 2) {
		struct obd_lin *l = obd_emit(b, OBD_OP_ins_32, w, w, v, N);

		l->e_raw = (uint16_t)(at % 4 * 8);
		l->imm = bytes == 1 ? 0xff : 0xffff;
	} else {
		obd_invalid(b, s, "invalid type or operand for an access to a parameter");
	}
}

void obd_param_store(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *list, uint32_t n)
{
	const struct obd_operand *a = &s->opd[0];

	for (uint32_t i = 0; i < n; i++) {
		if (a->offset < 0 || a->offset > (int64_t)OBD_KERNEL_MAX_PARAM_BYTES)
			obd_invalid(b, s, "access outside the parameter");
		store_words(b, s, a->sym, (uint64_t)a->offset + i * obd_type_bytes(t), t, &list[i]);
	}
}
