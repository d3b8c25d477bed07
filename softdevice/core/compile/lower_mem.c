/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Moves, loads, stores and addresses. */
#include <string.h>

#include "softdevice/core/ptx/ptx.h"

#define N OBD_NONE

enum { KIND_G = OBD_KIND_GLOBAL, KIND_S = OBD_KIND_SHARED, KIND_L = OBD_KIND_LOCAL };

static uint32_t const32(struct obd_builder *b, uint64_t v)
{
	return obd_const_new(b, OBD_CLASS_32, v, NULL);
}

static uint32_t move_op(enum obd_type t)
{
	enum obd_reg_class c = obd_type_class(t);

	return c == OBD_CLASS_64      ? OBD_OP_mov_64
		: c == OBD_CLASS_PRED ? OBD_OP_pmov
				      : OBD_OP_mov_32;
}

static void move(struct obd_builder *b, enum obd_type t, uint32_t d, uint32_t v)
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

/* mov.b64 {a, b}, c */
static void unpack(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t)
{
	const struct obd_operand *list = &s->opd[0];
	uint32_t n = list->n_items, v = obd_src(b, s, 1, t), bits;

	if (n != 2 && n != 4)
		obd_bad(b, s, "a vector has 2 or 4 elements here");
	bits = obd_type_bytes(t) * 8 / n;
	for (uint32_t i = 0; i < n; i++) {
		const struct obd_operand *o = &list->items[i];
		struct obd_lin *l;

		if (o->kind == OBD_OPD_SINK)
			continue;
		if (t == OBD_T_B128) {
			if (n != 2)
				obd_bad(b, s, "a 128-bit value has two halves");
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
		obd_bad(b, s, "a vector has 2 or 4 elements here");
	if (t == OBD_T_B128) {
		if (n != 2)
			obd_bad(b, s, "a 128-bit value has two halves");
		for (uint32_t i = 0; i < 2; i++)
			obd_emit(b, OBD_OP_mov_64, d, obd_src_of(b, &list->items[i], OBD_T_B64), N,
				N)
				->d_half = (uint8_t)i;
		return;
	}
	enum obd_type et = bytes / n == 4 ? OBD_T_B32 : bytes / n == 2 ? OBD_T_B16 : OBD_T_B8;

	for (uint32_t i = 0; i < n; i++)
		part[i] = obd_src_of(b, &list->items[i], et);
	obd_lower_combine(b, d, bytes, part, n);
}

void obd_lower_combine(
	struct obd_builder *b, uint32_t d, uint32_t bytes, const uint32_t *part, uint32_t n)
{
	if (bytes == 8 && n == 2) {
		obd_emit(b, OBD_OP_pack_64, d, part[0], part[1], N);
		return;
	}
	if (bytes == 8) {
		uint32_t lo = obd_temp(b, OBD_T_B32), hi = obd_temp(b, OBD_T_B32);

		obd_lower_combine(b, lo, 4, part, n / 2);
		obd_lower_combine(b, hi, 4, part + n / 2, n / 2);
		obd_emit(b, OBD_OP_pack_64, d, lo, hi, N);
		return;
	}
	if (n == 2 && bytes == 4) {
		obd_emit(b, OBD_OP_pack_32, d, part[0], part[1], N);
		return;
	}
	uint32_t width = bytes * 8 / n, at = obd_temp(b, OBD_T_B32);

	obd_emit(b, OBD_OP_mov_32, at, const32(b, 0), N, N);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t fresh = i == n - 1 ? d : obd_temp(b, OBD_T_B32);
		struct obd_lin *l = obd_emit(b, OBD_OP_ins_32, fresh, at, part[i], N);

		l->e_raw = (uint16_t)(width * i);
		l->imm = (1u << width) - 1;
		at = fresh;
	}
}

static void lower_mov(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_want(b, s, 2, 2);
	if (s->opd[0].kind == OBD_OPD_LIST) {
		unpack(b, s, t);
		return;
	}
	if (s->opd[1].kind == OBD_OPD_LIST) {
		pack(b, s, t);
		return;
	}
	if (t == OBD_T_PRED) {
		move(b, t, obd_dst(b, s, 0, t), obd_pred_value(b, s, 1));
		return;
	}
	if (s->opd[0].kind == OBD_OPD_SINK)
		return;
	move(b, t, obd_dst(b, s, 0, t), obd_src(b, s, 1, t));
}

/* ---- addresses ---- */

static uint32_t as_wide(struct obd_builder *b, uint32_t v, enum obd_type t)
{
	uint32_t w;

	if (obd_type_class(t) == OBD_CLASS_64)
		return v;
	if (obd_type_class(t) != OBD_CLASS_32)
		obd_ptx_fail(b->ld, "an address register has 32 or 64 bits");
	w = obd_vreg_new(b, OBD_CLASS_64);
	obd_emit(b, OBD_OP_zext32_64, w, v, N, N);
	return w;
}

static uint32_t as_narrow(struct obd_builder *b, uint32_t v, enum obd_type t)
{
	uint32_t w;

	if (obd_type_class(t) == OBD_CLASS_32)
		return v;
	if (obd_type_class(t) != OBD_CLASS_64)
		obd_ptx_fail(b->ld, "an address register has 32 or 64 bits");
	w = obd_vreg_new(b, OBD_CLASS_32);
	obd_emit(b, OBD_OP_lo_64, w, v, N, N);
	return w;
}

uint32_t obd_lower_space(const struct obd_stmt *s)
{
	return obd_q(s, OBD_Q_shared) ? KIND_S : obd_q(s, OBD_Q_local) ? KIND_L : KIND_G;
}

/*
 * The base register; *ret_offset is the rest (32 bits, signed). *kind is the space that the
 * instruction states; the space of the symbol may change it.
 */
static uint32_t address(
	struct obd_builder *b, const struct obd_operand *o, uint32_t *kind, uint32_t *ret_offset)
{
	int64_t offset = o->offset;
	uint32_t base;

	if (o->kind != OBD_OPD_ADDRESS)
		obd_ptx_fail(b->ld, "an address in [ ] expected");
	if (o->sym) {
		struct obd_operand sym = {
			.kind = OBD_OPD_SYMBOL, .sym = o->sym, .vreg = N, .pair = N
		};

		*kind = o->sym->kind == OBD_SYM_SHARED  ? KIND_S
			: o->sym->kind == OBD_SYM_LOCAL ? KIND_L
							: KIND_G;
		if (*kind == KIND_G && o->sym->kind != OBD_SYM_GLOBAL &&
			o->sym->kind != OBD_SYM_KERNEL_PARAM)
			obd_ptx_fail(b->ld, "%.*s has no address",
				(int)(o->sym->size < 60 ? o->sym->size : 60), o->sym->name);
		if (*kind == KIND_G && o->sym->kind == OBD_SYM_GLOBAL) {
			sym.offset = offset;
			offset = 0;
		}
		base = obd_src_of(b, &sym, *kind == KIND_S ? OBD_T_U32 : OBD_T_U64);
	} else if (o->vreg == N) {
		base = *kind == KIND_S ? const32(b, (uint64_t)offset)
				       : obd_const_new(b, OBD_CLASS_64, (uint64_t)offset, NULL);
		offset = 0;
	} else {
		base = *kind == KIND_S ? as_narrow(b, o->vreg, o->type)
				       : as_wide(b, o->vreg, o->type);
	}
	if (*kind != KIND_S && (offset > INT32_MAX / 2 || offset < INT32_MIN / 2)) {
		uint32_t w = obd_vreg_new(b, OBD_CLASS_64);

		obd_emit(b, OBD_OP_add_u64, w, base,
			obd_const_new(b, OBD_CLASS_64, (uint64_t)offset, NULL), N);
		base = w;
		offset = 0;
	}
	*ret_offset = (uint32_t)offset;
	return base;
}

uint32_t obd_lower_address(
	struct obd_builder *b, const struct obd_operand *o, uint32_t *kind, uint32_t *ret_offset)
{
	return address(b, o, kind, ret_offset);
}

/* ---- loads and stores ---- */

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

/* Extends a value of memory type t, zero-extended in `raw`, into a register declared as dt. */
static void extend(
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
		move(b, OBD_T_B32, d, raw);
	}
}

static bool needs_extension(enum obd_type t, enum obd_type dt)
{
	uint32_t bytes = obd_type_bytes(t), have = obd_type_bytes(dt);

	if (bytes >= 8)
		return false;
	return obd_type_class(dt) == OBD_CLASS_64 ||
		(obd_type_signed(t) && bytes < have && bytes < 4);
}

void obd_lower_put(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *o, uint32_t raw)
{
	if (o->kind == OBD_OPD_SINK)
		return;
	if (o->kind != OBD_OPD_REG || o->type == OBD_T_PRED || o->type == OBD_T_B128)
		obd_bad(b, s, "the result must be a register");
	if (obd_type_bytes(t) == 8 && obd_type_class(o->type) != OBD_CLASS_64)
		obd_bad(b, s, "the result's register is too small");
	if (needs_extension(t, o->type))
		extend(b, t, o->type, o->vreg, raw);
	else
		move(b, o->type, o->vreg, raw);
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
			obd_bad(b, s, "the result is its own address");
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
		obd_bad(b, s, "the result must be a register");
	if (bytes == 8 && obd_type_class(o->type) != OBD_CLASS_64)
		obd_bad(b, s, "the result's register is too small");
	d = o->vreg;
	if (!needs_extension(t, o->type)) {
		emit_load(b, &a, bytes, d, 0);
		return;
	}
	raw = obd_vreg_new(b, OBD_CLASS_32);
	emit_load(b, &a, bytes, raw, 0);
	extend(b, t, o->type, d, raw);
}

/* The elements of a vector access, or the single operand. */
const struct obd_operand *obd_lower_elements(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t *ret_n)
{
	uint32_t want = obd_q(s, OBD_Q_v2) ? 2
		: obd_q(s, OBD_Q_v4)       ? 4
		: obd_q(s, OBD_Q_v8)       ? 8
					   : 1;
	const struct obd_operand *o;

	if (i >= s->n_opd)
		obd_bad(b, s, "an operand is missing");
	o = &s->opd[i];
	*ret_n = want;
	if (o->kind != OBD_OPD_LIST) {
		if (want != 1)
			obd_bad(b, s, "a vector in { } expected");
		return o;
	}
	if (o->n_items != want)
		obd_bad(b, s, "the vector has another number of elements");
	return o->items;
}

/* Loads words of a parameter. Only constant offsets are allowed. */
static void load_word_element(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_symbol *sym, uint64_t at, enum obd_type t, const struct obd_operand *o)
{
	uint32_t bytes = obd_type_bytes(t), w, raw;

	if (at % (bytes > 4 ? 4 : bytes) || at + bytes > sym->count * 4ull)
		obd_bad(b, s, "the access leaves the parameter");
	if (o->kind == OBD_OPD_SINK)
		return;
	w = sym->vreg + (uint32_t)(at / 4);
	if (bytes == 8) {
		obd_emit(b, OBD_OP_pack_64, obd_dst_of(b, o, OBD_T_B64), w, w + 1, N);
		return;
	}
	if (bytes > 8 || o->kind != OBD_OPD_REG)
		obd_bad(b, s, "no such access to a parameter");
	raw = w;
	if (bytes < 4) {
		struct obd_lin *l;

		raw = obd_vreg_new(b, OBD_CLASS_32);
		l = obd_emit(b, OBD_OP_bits_32, raw, w, N, N);
		l->e_raw = (uint16_t)(at % 4 * 8);
		l->imm = bytes == 1 ? 0xff : 0xffff;
	}
	extend(b, t, o->type, o->vreg, raw);
}

static void load_kernel_param(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_symbol *sym, uint64_t at, enum obd_type t, const struct obd_operand *o)
{
	uint32_t bytes = obd_type_bytes(t), raw;
	struct obd_lin *l;

	if (at + bytes > sym->bytes)
		obd_bad(b, s, "the access leaves the parameter");
	if (o->kind == OBD_OPD_SINK)
		return;
	if (o->kind != OBD_OPD_REG)
		obd_bad(b, s, "the result must be a register");
	at += sym->offset;
	if (bytes == 8) {
		obd_emit(b, OBD_OP_param64, obd_dst_of(b, o, OBD_T_B64), N, N, N)->imm =
			(uint32_t)at;
		return;
	}
	if (bytes > 8)
		obd_bad(b, s, "no such access to a parameter");
	raw = needs_extension(t, o->type) ? obd_vreg_new(b, OBD_CLASS_32)
					  : obd_dst_of(b, o, OBD_T_B32);
	l = obd_emit(b, OBD_OP_param32, raw, N, N, N);
	l->imm = (uint32_t)at;
	l->e_raw = (uint16_t)bytes;
	if (needs_extension(t, o->type))
		extend(b, t, o->type, o->vreg, raw);
}

static void load_param(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *list, uint32_t n)
{
	const struct obd_operand *a = &s->opd[1];

	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = (uint64_t)a->offset + i * obd_type_bytes(t);

		if (a->offset < 0 || at > OBD_KERNEL_MAX_PARAM_BYTES)
			obd_bad(b, s, "the access leaves the parameter");
		if (a->sym->kind == OBD_SYM_PARAM)
			load_word_element(b, s, a->sym, at, t, &list[i]);
		else
			load_kernel_param(b, s, a->sym, at, t, &list[i]);
	}
}

static void lower_ld(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t n, bytes = obd_type_bytes(t);
	const struct obd_operand *list;

	(void)arg;
	obd_want(b, s, 2, 4);
	list = obd_lower_elements(b, s, 0, &n);
	const struct obd_operand *o = &s->opd[1];

	if (o->kind == OBD_OPD_ADDRESS && o->sym &&
		(o->sym->kind == OBD_SYM_PARAM || o->sym->kind == OBD_SYM_KERNEL_PARAM)) {
		load_param(b, s, t, list, n);
		return;
	}
	struct access a = { .kind = obd_lower_space(s) };

	if (obd_q(s, OBD_Q_param) && !b->is_entry)
		/* a by-value parameter whose address was taken is in local memory */
		a.kind = KIND_L;
	a.base = address(b, o, &a.kind, &a.offset);
	if (a.kind != KIND_L && obd_lower_is_strong(s, n)) {
		obd_lower_load_strong(
			b, s, &(struct obd_strong){ a.base, a.offset, a.kind, n, t }, list);
		return;
	}
	bool clash = false;

	for (uint32_t i = 0; i + 1 < n; i++)
		clash |= list[i].kind == OBD_OPD_REG && list[i].vreg == a.base;
	if (clash) {
		uint32_t w = obd_vreg_new(b, a.kind == KIND_S ? OBD_CLASS_32 : OBD_CLASS_64);

		obd_emit(b, a.kind == KIND_S ? OBD_OP_mov_32 : OBD_OP_mov_64, w, a.base, N, N);
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

static void store_word_element(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_symbol *sym, uint64_t at, enum obd_type t, const struct obd_operand *o)
{
	uint32_t bytes = obd_type_bytes(t), v = obd_src_of(b, o, t), w;

	if (at % (bytes > 4 ? 4 : bytes) || at + bytes > sym->count * 4ull)
		obd_bad(b, s, "the access leaves the parameter");
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
		obd_bad(b, s, "no such access to a parameter");
	}
}

static void lower_st(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t n, bytes = obd_type_bytes(t);
	const struct obd_operand *list;

	(void)arg;
	obd_want(b, s, 2, 4);
	if (obd_q(s, OBD_Q_async) || obd_q(s, OBD_Q_bulk))
		obd_lacks(b, s, "an asynchronous store");
	list = obd_lower_elements(b, s, 1, &n);
	const struct obd_operand *o = &s->opd[0];

	if (o->kind == OBD_OPD_ADDRESS && o->sym && o->sym->kind == OBD_SYM_PARAM) {
		for (uint32_t i = 0; i < n; i++) {
			if (o->offset < 0 || o->offset > (int64_t)OBD_KERNEL_MAX_PARAM_BYTES)
				obd_bad(b, s, "the access leaves the parameter");
			store_word_element(
				b, s, o->sym, (uint64_t)o->offset + i * bytes, t, &list[i]);
		}
		return;
	}
	struct access a = { .kind = obd_lower_space(s) };

	a.base = address(b, o, &a.kind, &a.offset);
	if (a.kind != KIND_L && obd_lower_is_strong(s, n)) {
		obd_lower_store_strong(
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
}

/* ---- address conversions ---- */

static void lower_cvta(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool to = obd_q(s, OBD_Q_to);
	uint32_t op = OBD_OP_mov_64;

	(void)arg;
	obd_want(b, s, 2, 2);
	if (obd_type_class(t) != OBD_CLASS_64)
		obd_bad(b, s, "addresses have 64 bits");
	if (obd_q(s, OBD_Q_shared))
		op = to ? OBD_OP_to_shared : OBD_OP_cvta_shared;
	else if (obd_q(s, OBD_Q_local) || (obd_q(s, OBD_Q_param) && !b->is_entry))
		op = to ? OBD_OP_to_local : OBD_OP_cvta_local;
	uint32_t v = obd_src(b, s, 1, t), d = obd_dst(b, s, 0, t);

	if (op == OBD_OP_mov_64)
		move(b, t, d, v);
	else
		obd_emit(b, op, d, v, N, N);
}

static void lower_isspacep(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t space = obd_q(s, OBD_Q_global) ? 0
		: obd_q(s, OBD_Q_shared)        ? 1
		: obd_q(s, OBD_Q_local)         ? 2
		: obd_q(s, OBD_Q_const)         ? 3
						: 4;

	(void)arg;
	obd_want(b, s, 2, 2);
	obd_emit(
		b, OBD_OP_isspacep, obd_dst(b, s, 0, OBD_T_PRED), obd_src(b, s, 1, OBD_T_U64), N, N)
		->e_raw = (uint16_t)space;
}

/* mapa in a cluster of one block returns the address unchanged */
static void lower_mapa(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_want(b, s, 3, 3);
	move(b, t, obd_dst(b, s, 0, t), obd_src(b, s, 1, t));
}

static void lower_getctarank(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)arg;
	obd_want(b, s, 2, 2);
	move(b, OBD_T_U32, obd_dst(b, s, 0, OBD_T_U32), const32(b, 0));
}

/* ---- asynchronous copies: executed synchronously ---- */

static void lower_cp(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t dk = KIND_S, sk = KIND_G, doff, soff, n, take;

	(void)arg;
	if (!obd_q(s, OBD_Q_async) || obd_q(s, OBD_Q_bulk))
		obd_lacks(b, s, "a form other than cp.async of 4, 8 or 16 bytes");
	if (obd_q(s, OBD_Q_commit_group) || obd_q(s, OBD_Q_wait_group) || obd_q(s, OBD_Q_wait_all))
		return;
	/*
	 * cp.async.mbarrier.arrive: the copies are already done. Without .noinc the instruction
	 * adds a pending arrival and then arrives, which has no effect.
	 */
	if (obd_q(s, OBD_Q_arrive)) {
		obd_want(b, s, 1, 1);
		if (!obd_q(s, OBD_Q_noinc))
			return;
		dk = obd_lower_space(s);
		uint32_t bar = address(b, &s->opd[0], &dk, &doff);
		struct obd_lin *arrive = obd_emit(b, OBD_OP_mbarrier, N, bar, const32(b, 1), N);

		arrive->imm = doff;
		arrive->e_raw = (uint16_t)(OBD_MBAR_ARRIVE | (dk == KIND_S ? 16 : 0));
		return;
	}
	obd_want(b, s, 3, 5);
	uint32_t d = address(b, &s->opd[0], &dk, &doff), a = address(b, &s->opd[1], &sk, &soff);

	if (s->opd[2].kind != OBD_OPD_IMM || dk != KIND_S || sk != KIND_G)
		obd_bad(b, s, "copies go from global to shared memory and have a constant size");
	n = (uint32_t)s->opd[2].value;
	if (n != 4 && n != 8 && n != 16)
		obd_bad(b, s, "a copy has 4, 8 or 16 bytes");
	take = const32(b, n);
	if (s->n_opd > 3 && s->opd[3].kind == OBD_OPD_REG && s->opd[3].type == OBD_T_PRED) {
		/* if the predicate is true, the source is ignored */
		take = obd_vreg_new(b, OBD_CLASS_32);
		obd_emit(b, OBD_OP_selp_32, take, const32(b, 0), const32(b, n),
			obd_pred_value(b, s, 3));
	} else if (s->n_opd > 3 && obd_type_class(s->opd[3].type) != OBD_CLASS_64) {
		take = obd_src(b, s, 3, OBD_T_U32);
	}
	if (doff) {
		uint32_t w = obd_vreg_new(b, OBD_CLASS_32);

		obd_emit(b, OBD_OP_add_u32, w, d, const32(b, doff), N);
		d = w;
	}
	if (soff) {
		uint32_t w = obd_vreg_new(b, OBD_CLASS_64);

		obd_emit(b, OBD_OP_add_u64, w, a,
			obd_const_new(b, OBD_CLASS_64, (uint64_t)(int64_t)(int32_t)soff, NULL), N);
		a = w;
	}
	struct obd_lin *l = obd_emit(b, OBD_OP_copy_async, N, a, take, N);

	l->d = d;
	l->flags |= OBD_USE_D;
	l->imm = n;
}

static void lower_nothing(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)b;
	(void)s;
	(void)arg;
}

const struct obd_opcode obd_opcodes_mem[] = {
	{ "mov", lower_mov, 0 },
	{ "ld", lower_ld, 0 },
	{ "ldu", lower_ld, 0 },
	{ "st", lower_st, 0 },
	{ "cvta", lower_cvta, 0 },
	{ "isspacep", lower_isspacep, 0 },
	{ "mapa", lower_mapa, 0 },
	{ "getctarank", lower_getctarank, 0 },
	{ "cp", lower_cp, 0 },
	{ "prefetch", lower_nothing, 0 },
	{ "prefetchu", lower_nothing, 0 },
	{ "applypriority", lower_nothing, 0 },
	{ "discard", lower_nothing, 0 },
	{ "createpolicy", lower_nothing, 0 },
	{ "griddepcontrol", lower_nothing, 0 },
	{ "pmevent", lower_nothing, 0 },
	{ "setmaxnreg", lower_nothing, 0 },
	{ 0 },
};
