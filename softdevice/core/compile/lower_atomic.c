/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Accesses that other threads may observe: strong loads and stores, and atomics.
 *
 * A vector of up to 16 bytes is accessed as one unit. The memory model guarantees atomicity only
 * for its elements, but every GPU does this, and decoupled look-back (CUB's scan, sort, select)
 * depends on it: the status and the value of a tile are written as one vector.
 */
#include "softdevice/core/ptx/ptx.h"

#define N                OBD_NONE
#define ATOMIC_MAX_BYTES 16u
#define ELEMENTS_MAX     8u

/* ---- strong loads and stores ---- */

bool obd_lower_is_strong(const struct obd_stmt *s, uint32_t n)
{
	if (obd_q(s, OBD_Q_volatile) || obd_q(s, OBD_Q_relaxed) || obd_q(s, OBD_Q_acquire) ||
		obd_q(s, OBD_Q_release) || obd_q(s, OBD_Q_mmio))
		return true;
	/* code older than the memory model uses these cache operators for such messages */
	return n > 1 && (obd_q(s, OBD_Q_cg) || obd_q(s, OBD_Q_cv) || obd_q(s, OBD_Q_wt));
}

static enum obd_type container(uint32_t bytes)
{
	return bytes == 16 ? OBD_T_B128 : bytes == 8 ? OBD_T_B64 : OBD_T_B32;
}

/* bytes: 1, 2, 4, 8 or 16 */
static struct obd_lin *emit_strong(struct obd_builder *b, uint32_t op, const struct obd_strong *a,
	uint32_t at, uint32_t bytes, uint32_t d, uint32_t v)
{
	struct obd_lin *l = obd_emit(b, op, d, a->base, v, N);

	l->imm = a->offset + at;
	l->e_raw = (uint16_t)(bytes - 1);
	l->g = (uint32_t)__builtin_ctz(bytes) | (a->space == OBD_KIND_SHARED ? 8 : 0);
	return l;
}

/* Number of elements per access: all of them if they fit. */
static uint32_t together(const struct obd_strong *a, uint32_t bytes)
{
	uint32_t n = ATOMIC_MAX_BYTES / bytes;

	return n < a->n ? n : a->n;
}

/* Extracts `bytes` at position `at` from a container of `whole` bytes. */
static uint32_t part_of(
	struct obd_builder *b, uint32_t raw, uint32_t whole, uint32_t at, uint32_t bytes)
{
	if (bytes == whole)
		return raw;
	if (whole == 16) {
		uint32_t half = obd_temp(b, OBD_T_B64);

		obd_emit(b, OBD_OP_mov_64, half, raw, N, N)->a_half = (uint8_t)(at / 8);
		return part_of(b, half, 8, at % 8, bytes);
	}
	uint32_t v = obd_temp(b, OBD_T_B32);
	struct obd_lin *l = obd_emit(b, whole == 8 ? OBD_OP_bits_64 : OBD_OP_bits_32, v, raw, N, N);

	l->e_raw = (uint16_t)(at * 8);
	l->imm = bytes == 4 ? ~0u : (1u << (bytes * 8)) - 1;
	return v;
}

void obd_lower_load_strong(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_strong *a, const struct obd_operand *list)
{
	uint32_t bytes = obd_type_bytes(a->type), step = together(a, bytes), whole = step * bytes,
		 raw[ELEMENTS_MAX];

	if (bytes == 16) {
		emit_strong(b, OBD_OP_ld_strong, a, 0, 16, obd_dst_of(b, &list[0], OBD_T_B128), N);
		return;
	}
	/* all loads come first, because a result register may also hold the address */
	for (uint32_t i = 0; i < a->n; i += step) {
		raw[i] = obd_temp(b, container(whole));
		emit_strong(b, OBD_OP_ld_strong, a, i * bytes, whole, raw[i], N);
	}
	for (uint32_t i = 0; i < a->n; i++)
		if (list[i].kind != OBD_OPD_SINK)
			obd_lower_put(b, s, a->type, &list[i],
				part_of(b, raw[i - i % step], whole, i % step * bytes, bytes));
}

void obd_lower_store_strong(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_strong *a, const struct obd_operand *list)
{
	uint32_t bytes = obd_type_bytes(a->type), step = together(a, bytes), whole = step * bytes,
		 part[ELEMENTS_MAX];

	(void)s;
	for (uint32_t i = 0; i < a->n; i++)
		part[i] = obd_src_of(b, &list[i], a->type);
	for (uint32_t i = 0; i < a->n; i += step) {
		uint32_t v = part[i];

		if (step > 1) {
			v = obd_temp(b, container(whole));
			if (whole < 16)
				obd_lower_combine(b, v, whole, part + i, step);
			for (uint32_t half = 0; whole == 16 && half < 2; half++) {
				uint32_t w = part[i + half];

				if (step > 2) {
					w = obd_temp(b, OBD_T_B64);
					obd_lower_combine(
						b, w, 8, part + i + half * step / 2, step / 2);
				}
				obd_emit(b, OBD_OP_mov_64, v, w, N, N)->d_half = (uint8_t)half;
			}
		}
		emit_strong(b, OBD_OP_st_strong, a, i * bytes, whole, N, v);
	}
}

/* ---- atomics ---- */

static uint32_t atom_op(struct obd_builder *b, const struct obd_stmt *s)
{
	for (uint32_t i = 0; i < s->n_order; i++)
		switch (s->order[i]) {
		case OBD_Q_add:
			return OBD_ATOM_ADD;
		case OBD_Q_min:
			return OBD_ATOM_MIN;
		case OBD_Q_max:
			return OBD_ATOM_MAX;
		case OBD_Q_and:
			return OBD_ATOM_AND;
		case OBD_Q_or:
			return OBD_ATOM_OR;
		case OBD_Q_xor:
			return OBD_ATOM_XOR;
		case OBD_Q_inc:
			return OBD_ATOM_INC;
		case OBD_Q_dec:
			return OBD_ATOM_DEC;
		case OBD_Q_exch:
			return OBD_ATOM_EXCH;
		case OBD_Q_cas:
			return OBD_ATOM_CAS;
		default:
			break;
		}
	obd_bad(b, s, "the operation is missing");
}

static void check_atom(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t op, enum obd_type t)
{
	bool swap = op == OBD_ATOM_EXCH || op == OBD_ATOM_CAS, ok;

	switch (t) {
	case OBD_T_U32:
	case OBD_T_B32:
	case OBD_T_U64:
	case OBD_T_B64:
	case OBD_T_S32:
	case OBD_T_S64:
		ok = true;
		break;
	case OBD_T_B16:
	case OBD_T_U16:
		ok = op == OBD_ATOM_CAS;
		break;
	case OBD_T_B128:
		ok = swap;
		break;
	case OBD_T_F32:
	case OBD_T_F64:
		ok = op == OBD_ATOM_ADD;
		break;
	case OBD_T_F16:
	case OBD_T_BF16:
	case OBD_T_F16X2:
	case OBD_T_BF16X2:
		ok = op <= OBD_ATOM_MAX;
		break;
	default:
		ok = false;
		break;
	}
	if (t == OBD_T_F32 && obd_q(s, OBD_Q_v2))
		ok = op == OBD_ATOM_ADD;
	if (!ok)
		obd_bad(b, s, "no such operation for this type");
}

/* which: 0 atom, 1 red */
static void lower_atom(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t op = atom_op(b, s), kind = obd_lower_space(s), offset, at = which ? 0 : 1, base, n,
		 bytes = obd_type_bytes(t);
	const struct obd_operand *values, *results = NULL;

	if (obd_q(s, OBD_Q_async) || obd_q(s, OBD_Q_bulk))
		obd_lacks(b, s, "an asynchronous reduction");
	obd_want(b, s, at + 2, at + 4);
	check_atom(b, s, op, t);
	values = obd_lower_elements(b, s, at + 1, &n);
	if (!which)
		results = obd_lower_elements(b, s, 0, &n);
	base = obd_lower_address(b, &s->opd[at], &kind, &offset);
	if (kind == OBD_KIND_LOCAL) {
		uint32_t w = obd_vreg_new(b, OBD_CLASS_64);

		obd_emit(b, OBD_OP_cvta_local, w, base, N, N);
		base = w;
		kind = OBD_KIND_GLOBAL;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = obd_src_of(b, &values[i], t),
			 c = op == OBD_ATOM_CAS ? obd_src(b, s, at + 2, t) : N;
		uint32_t d = results && results[i].kind != OBD_OPD_SINK
			? obd_dst_of(b, &results[i], t)
			: N;

		if (n > 1 && d == base)
			obd_bad(b, s, "a result is the address of the others");
		struct obd_lin *l = obd_emit(b, OBD_OP_atom, d, base, v, c);

		l->imm = offset + i * bytes;
		l->e_raw =
			OBD_ATOM_CODE(op, t, kind == OBD_KIND_SHARED ? OBD_SP_SHARED : OBD_SP_FLAT);
	}
}

const struct obd_opcode obd_opcodes_atomic[] = { { "atom", lower_atom, 0 },
	{ "red", lower_atom, 1 }, { 0 } };
