/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Values in registers: moves, extension to wider registers, and vectors of elements. */
#ifndef OBD_CORE_VALUE_H
#define OBD_CORE_VALUE_H

#include "softdevice/core/compile/lower.h"

/* Copies a register; d and v may be the same. */
void obd_value_move(struct obd_builder *b, enum obd_type t, uint32_t d, uint32_t v);
/* Extends a value of memory type t, zero-extended in `raw`, into a register declared as dt. */
void obd_value_extend(
	struct obd_builder *b, enum obd_type t, enum obd_type dt, uint32_t d, uint32_t raw);
bool obd_value_needs_extension(enum obd_type t, enum obd_type dt);
/* Combines n (2 or 4) parts of equal size into one value of 2, 4 or 8 bytes. */
void obd_value_combine(
	struct obd_builder *b, uint32_t d, uint32_t bytes, const uint32_t *part, uint32_t n);
/* Stores a loaded value of type t, zero-extended in `raw`, in the operand. */
void obd_value_put(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *o, uint32_t raw);
/* The elements of the { } of a vector access, or the single operand. */
const struct obd_operand *obd_value_elements(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t *ret_n);

static inline uint32_t obd_const32(struct obd_builder *b, uint64_t v)
{
	return obd_const_new(b, OBD_CLASS_32, v, NULL);
}

#endif
