/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Decoding and encoding of float operands with PTX's modifiers, for the references. Pure functions,
 * any thread.
 */
#ifndef OB_TESTS_PTX_FLOATS_H
#define OB_TESTS_PTX_FLOATS_H

#include "tests/ptx/suite.h"

/* Modifiers of an instruction, stored in a row's arg. */
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
 * Rounds and applies the modifiers. *ret_alt: a second correct result, or the same one. Two exist
 * for the sign of a zero under .sat, and under .ftz for an f32 result that is subnormal before
 * rounding but not after.
 */
uint64_t pt_float_write(
	enum pt_type t, struct pt_num v, enum pt_rounding rm, int modifiers, uint64_t *ret_alt);

/* ".rn", ".rz", ".rm", ".rp" */
const char *pt_rounding_name(enum pt_rounding rm);

#endif
