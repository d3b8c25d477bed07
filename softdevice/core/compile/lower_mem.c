/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Loads and stores. */
#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/param.h"
#include "softdevice/core/compile/strong.h"
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

static const uint16_t load_ops[3][4] = {
	{ OBD_OP_ld8_g, OBD_OP_ld16_g, OBD_OP_ld32_g, OBD_OP_ld64_g },
	{ OBD_OP_ld8_s, OBD_OP_ld16_s, OBD_OP_ld32_s, OBD_OP_ld64_s },
	{ OBD_OP_ld8_l, OBD_OP_ld16_l, OBD_OP_ld32_l, OBD_OP_ld64_l },
};
static const uint16_t store_ops[3][4] = {
	{ OBD_OP_st8_g, OBD_OP_st16_g, OBD_OP_st32_g, OBD_OP_st64_g },
	{ OBD_OP_st8_s, OBD_OP_st16_s, OBD_OP_st32_s, OBD_OP_st64_s },
	{ OBD_OP_st8_l, OBD_OP_st16_l, OBD_OP_st32_l, OBD_OP_st64_l },
};

static uint32_t log2_size(uint32_t bytes)
{
	return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

struct access {
	uint32_t kind, base, offset, align;
};

static void emit_load(
	struct obd_builder *b, const struct access *a, uint32_t bytes, uint32_t d, uint8_t half)
{
	uint32_t size = log2_size(bytes);
	struct obd_lin *l = obd_emit(b, load_ops[a->kind][size], d, a->base, N, N);

	l->imm = a->offset;
	l->e_raw = (uint16_t)a->align;
	l->d_half = half;
}

static void load_element(struct obd_builder *b, const struct obd_stmt *s, struct access a,
	enum obd_type t, const struct obd_operand *o)
{
	uint32_t bytes = obd_type_bytes(t), d, raw;

	if (bytes == 16) {
		d = obd_dst_of(b, o, OBD_T_B128);
		if (d == a.base)
			obd_invalid(b, s, "the destination register is also the address register");
		emit_load(b, &a, 8, d, 0);
		a.offset += 8;
		emit_load(b, &a, 8, d, 1);
		return;
	}
	if (o->kind == OBD_OPD_SINK) {
		emit_load(b, &a, bytes, obd_temp(b, t), 0);
		return;
	}
	if (o->kind != OBD_OPD_REG || o->type == OBD_T_PRED || o->type == OBD_T_B128)
		obd_invalid(b, s, "the destination must be a register");
	if (bytes == 8 && obd_type_class(o->type) != OBD_CLASS_64)
		obd_invalid(b, s, "the destination register is too small");
	d = o->vreg;
	if (!obd_value_needs_extension(t, o->type)) {
		emit_load(b, &a, bytes, d, 0);
		return;
	}
	raw = obd_vreg_new(b, OBD_CLASS_32);
	emit_load(b, &a, bytes, raw, 0);
	obd_value_extend(b, t, o->type, d, raw);
}

static void lower_ld(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t n, bytes = obd_type_bytes(t);
	const struct obd_operand *list;

	(void)arg;
	obd_operand_count(b, s, 2, 4);
	list = obd_value_elements(b, s, 0, &n);
	const struct obd_operand *o = &s->opd[1];

	if (o->kind == OBD_OPD_ADDRESS && o->sym &&
		(o->sym->kind == OBD_SYM_PARAM || o->sym->kind == OBD_SYM_KERNEL_PARAM)) {
		obd_param_load(b, s, t, list, n);
		return;
	}
	struct access a = { .kind = obd_address_space(s) };

	if (obd_q(s, OBD_Q_param) && !b->is_entry)
		/* a by-value parameter whose address was taken is in local memory */
		a.kind = OBD_KIND_LOCAL;
	a.base = obd_address(b, o, n * bytes, &a.kind, &a.offset);
	if (a.kind != OBD_KIND_LOCAL && obd_strong_is(s, n)) {
		obd_strong_load(b, s, &(struct obd_strong){ a.base, a.offset, a.kind, n, t }, list);
		return;
	}
	bool clash = false;

	for (uint32_t i = 0; i + 1 < n; i++)
		clash |= list[i].kind == OBD_OPD_REG && list[i].vreg == a.base;
	if (clash) {
		uint32_t w =
			obd_vreg_new(b, a.kind == OBD_KIND_SHARED ? OBD_CLASS_32 : OBD_CLASS_64);

		obd_emit(b, a.kind == OBD_KIND_SHARED ? OBD_OP_mov_32 : OBD_OP_mov_64, w, a.base, N,
			N);
		a.base = w;
	}
	for (uint32_t i = 0; i < n; i++) {
		a.align = (i == 0 ? n * bytes : bytes) - 1;
		load_element(b, s, a, t, &list[i]);
		a.offset += bytes;
	}
}

static void emit_store(struct obd_builder *b, const struct access *a, uint32_t bytes, uint32_t v)
{
	uint32_t size = log2_size(bytes);
	struct obd_lin *l = obd_emit(b, store_ops[a->kind][size], N, a->base, v, N);

	l->imm = a->offset;
	l->e_raw = (uint16_t)a->align;
}

static void lower_st(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t n, bytes = obd_type_bytes(t);
	const struct obd_operand *list;

	(void)arg;
	obd_operand_count(b, s, 2, 4);
	if (obd_q(s, OBD_Q_bulk) || (obd_q(s, OBD_Q_async) && !obd_q(s, OBD_Q_unsupported)))
		obd_unsupported(b, s, "an asynchronous store without an mbarrier");
	list = obd_value_elements(b, s, 1, &n);
	const struct obd_operand *o = &s->opd[0];

	if (o->kind == OBD_OPD_ADDRESS && o->sym && o->sym->kind == OBD_SYM_PARAM) {
		obd_param_store(b, s, t, list, n);
		return;
	}
	struct access a = { .kind = obd_address_space(s) };

	a.base = obd_address(b, o, n * bytes, &a.kind, &a.offset);
	/* with .relaxed too, st.async ends with the mbarrier below */
	if (a.kind != OBD_KIND_LOCAL && !obd_q(s, OBD_Q_async) && obd_strong_is(s, n)) {
		obd_strong_store(
			b, s, &(struct obd_strong){ a.base, a.offset, a.kind, n, t }, list);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		a.align = (i == 0 ? n * bytes : bytes) - 1;
		uint32_t v = obd_src_of(b, &list[i], t);

		if (bytes == 16) {
			for (uint8_t h = 0; h < 2; h++) {
				uint32_t w = obd_vreg_new(b, OBD_CLASS_64);

				obd_emit(b, OBD_OP_mov_64, w, v, N, N)->a_half = h;
				emit_store(b, &a, 8, w);
				a.offset += 8;
			}
			continue;
		}
		emit_store(b, &a, bytes, v);
		a.offset += bytes;
	}
	if (obd_q(s, OBD_Q_async))
		obd_mbarrier_complete_tx(b, s, 2, n * bytes);
}

const struct obd_opcode obd_opcodes_mem[] = {
	{ "ld", lower_ld, 0 },
	{ "ldu", lower_ld, 0 },
	{ "st", lower_st, 0 },
	{ 0 },
};
