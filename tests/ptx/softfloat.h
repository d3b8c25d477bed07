/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * pt_num: an exact binary floating-point number of any PTX format, and the operations on it.
 *
 * An operation returns a value on the correct side of every rounding boundary of the formats below:
 * exact, or with a sticky lowest bit. pt_num_pack rounds it once. So all rounding modes of all
 * formats use the same code, and none of it is code of the device under test. Plain values, no
 * ownership, any thread.
 *
 * Sticky results must not be used as operands. Operands have at most 64 bits of significand (fma's
 * product: 106).
 */
#ifndef OB_TESTS_PTX_SOFTFLOAT_H
#define OB_TESTS_PTX_SOFTFLOAT_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 pt_u128;
__extension__ typedef __int128 pt_i128;

enum pt_kind { PT_ZERO, PT_FINITE, PT_INF, PT_NAN };

struct pt_num {
	enum pt_kind kind;
	bool neg;
	int exp;      /* value = mant * 2^exp when kind is PT_FINITE */
	pt_u128 mant; /* not 0 if PT_FINITE */
};

/* Nearest even, towards zero, down, up, nearest with ties away from zero (cvt.rna). */
enum pt_rounding { PT_RN, PT_RZ, PT_RM, PT_RP, PT_RNA };

struct pt_float_format {
	int width;     /* bits */
	int precision; /* bits of the significand, including the hidden bit */
	int emin;      /* exponent of the smallest normal number */
	uint64_t inf;  /* magnitude bits of infinity; of NaN if has_inf is false */
	bool has_inf;
};

extern const struct pt_float_format pt_f64, pt_f32, pt_f16, pt_bf16, pt_tf32, pt_e4m3, pt_e5m2;

struct pt_num pt_num_unpack(const struct pt_float_format *f, uint64_t bits);
struct pt_num pt_num_from_int(bool neg, uint64_t magnitude);

/*
 * Rounds to a format. NaN becomes the quiet NaN with all fraction bits set. Overflow follows the
 * rounding mode; with satfinite it gives the largest finite number. *ret_tiny (may be NULL):
 * whether the number before rounding was not zero and smaller than the smallest normal number.
 */
uint64_t pt_num_pack(const struct pt_float_format *f, struct pt_num x, enum pt_rounding rm,
	bool satfinite, bool *ret_tiny);

/* rm only determines the sign of an exact zero sum. */
struct pt_num pt_num_add(struct pt_num a, struct pt_num b, enum pt_rounding rm);
struct pt_num pt_num_mul(struct pt_num a, struct pt_num b);
struct pt_num pt_num_div(struct pt_num a, struct pt_num b);
struct pt_num pt_num_sqrt(struct pt_num a);
struct pt_num pt_num_neg(struct pt_num a);

/* Rounds to an integral value; keeps the sign of a zero result. */
struct pt_num pt_num_round(struct pt_num a, enum pt_rounding rm);

/* Returns -1, 0 or 1; 2 if unordered. */
int pt_num_compare(struct pt_num a, struct pt_num b);

/* Nearest double: exact for every format up to f64. */
double pt_num_double(struct pt_num a);

/*
 * Compares the operations with the host's binary32 and binary64 arithmetic. Returns the number of
 * differences.
 */
unsigned pt_num_selftest(uint64_t seed, unsigned rounds);

#endif
