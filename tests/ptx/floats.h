/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reading and writing float operands with PTX's modifiers, for the references. Pure functions, any
 * thread.
 */
#ifndef OB_TESTS_PTX_FLOATS_H
#define OB_TESTS_PTX_FLOATS_H

#include "tests/ptx/suite.h"

/* Modifiers of an instruction, in a row's arg. */
enum {
	PT_FTZ = 1,      /* subnormal operands and results become zero, with their sign */
	PT_SAT = 2,      /* results clamped to [0, 1], NaN to 0 */
	PT_RELU = 4,     /* negative results to 0, NaN to the canonical NaN */
	PT_NAN_WINS = 8, /* min, max: .NaN */
	PT_XORSIGN = 16, /* min, max: .xorsign.abs */
	PT_MAX = 32,     /* max rather than min */
	PT_SATFINITE = 64
};

struct pt_num pt_float_read(enum pt_type t, uint64_t bits, int modifiers);

/*
 * Round and apply the modifiers. *ret_alt: another right result, or the same: a zero's sign under
 * .sat, and under .ftz a result that is subnormal before but not after rounding.
 */
uint64_t pt_float_write(
	enum pt_type t, struct pt_num v, enum pt_rounding rm, int modifiers, uint64_t *ret_alt);

/* ".rn", ".rz", ".rm", ".rp" */
const char *pt_rounding_name(enum pt_rounding rm);

#endif
