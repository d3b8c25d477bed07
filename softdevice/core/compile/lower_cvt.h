/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Parts of the lowering of cvt: chains of operations, and conversions with packed operands. */
#ifndef OBD_CORE_LOWER_CVT_H
#define OBD_CORE_LOWER_CVT_H

#include "softdevice/core/compile/lower.h"

/*
 * Operations of which each takes the result of the one before. The last is kept back until
 * obd_chain_end, which gives it the destination.
 */
struct obd_chain {
	struct obd_builder *b;
	uint32_t v; /* the value so far */
	enum obd_type type;
	bool pending;
	uint32_t op, second, round;
	uint16_t e;
};

/* One cvt: the types and the modifiers. */
struct obd_conversion {
	enum obd_type dt, st;
	uint32_t mode;
	bool sat, satfinite, ftz, relu;
};

/*
 * Appends an operation with a result of the type. Returns the chain; the caller may set the fields
 * second, round and e of the new operation.
 */
struct obd_chain *obd_chain_add(struct obd_chain *c, uint32_t op, enum obd_type type);
/* Emits the last operation with destination d; without any operation, a move. */
void obd_chain_end(struct obd_chain *c, uint32_t d);
/* Appends the conversion of f32 to dt, which is f16 or bf16; mode: OBD_CVT_RN to OBD_CVT_RP. */
void obd_chain_to_half(struct obd_chain *c, enum obd_type dt, uint32_t mode);
/* Whether the mode is OBD_CVT_RZ, OBD_CVT_RM or OBD_CVT_RP. */
bool obd_cvt_directed(uint32_t mode);
bool obd_cvt_is_pair(enum obd_type t);
/* Lowers a cvt of which one type is packed. */
void obd_lower_cvt_pair(struct obd_builder *b, struct obd_stmt *s, const struct obd_conversion *k);
/* Lowers a cvt of which one type is a pair of 4 or 6 bits, or of ue8m0. */
void obd_lower_cvt_narrow(
	struct obd_builder *b, struct obd_stmt *s, const struct obd_conversion *k);

#endif
