/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/strong.h"

#include "softdevice/core/compile/value.h"

#define N                OBD_NONE
#define ATOMIC_MAX_BYTES 16u
#define ELEMENTS_MAX     8u

bool obd_strong_is(const struct obd_stmt *s, uint32_t n)
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
static uint32_t elements_per_access(const struct obd_strong *a, uint32_t bytes)
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

void obd_strong_load(struct obd_builder *b, const struct obd_stmt *s, const struct obd_strong *a,
	const struct obd_operand *list)
{
	uint32_t bytes = obd_type_bytes(a->type), step = elements_per_access(a, bytes),
		 whole = step * bytes, raw[ELEMENTS_MAX];

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
			obd_value_put(b, s, a->type, &list[i],
				part_of(b, raw[i - i % step], whole, i % step * bytes, bytes));
}

void obd_strong_store(struct obd_builder *b, const struct obd_stmt *s, const struct obd_strong *a,
	const struct obd_operand *list)
{
	uint32_t bytes = obd_type_bytes(a->type), step = elements_per_access(a, bytes),
		 whole = step * bytes, part[ELEMENTS_MAX];

	(void)s;
	for (uint32_t i = 0; i < a->n; i++)
		part[i] = obd_src_of(b, &list[i], a->type);
	for (uint32_t i = 0; i < a->n; i += step) {
		uint32_t v = part[i];

		if (step > 1) {
			v = obd_temp(b, container(whole));
			if (whole < 16)
				obd_value_combine(b, v, whole, part + i, step);
			for (uint32_t half = 0; whole == 16 && half < 2; half++) {
				uint32_t w = part[i + half];

				if (step > 2) {
					w = obd_temp(b, OBD_T_B64);
					obd_value_combine(
						b, w, 8, part + i + half * step / 2, step / 2);
				}
				obd_emit(b, OBD_OP_mov_64, v, w, N, N)->d_half = (uint8_t)half;
			}
		}
		emit_strong(b, OBD_OP_st_strong, a, i * bytes, whole, N, v);
	}
}
