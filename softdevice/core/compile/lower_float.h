/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Floating-point forms of opcodes that also have an integer form. */
#ifndef OBD_CORE_LOWER_FLOAT_H
#define OBD_CORE_LOWER_FLOAT_H

#include "softdevice/core/compile/lower.h"

/* clang-format off */
enum obd_arith {
	OBD_ARITH_ADD, OBD_ARITH_SUB, OBD_ARITH_MUL, OBD_ARITH_MAD, OBD_ARITH_DIV, OBD_ARITH_REM,
	OBD_ARITH_MIN, OBD_ARITH_MAX, OBD_ARITH_ABS, OBD_ARITH_NEG, OBD_ARITH_FMA,
};
/* clang-format on */

/* Lowers the operation `arith` (enum obd_arith) for any floating-point type. */
void obd_lower_float2(struct obd_builder *b, struct obd_stmt *s, uint32_t arith);
/* Field e of an operation on halves: bit 0: bf16; bit 1: two packed values. */
uint16_t obd_half_format(enum obd_type t);

#endif
