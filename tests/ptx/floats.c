/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/floats.h"

static uint64_t sign_bit(const struct pt_float_format *f)
{
	return UINT64_C(1) << (f->width - 1);
}

struct pt_num pt_float_read(enum pt_type t, uint64_t bits, int modifiers)
{
	const struct pt_float_format *f = pt_type_format(t);
	struct pt_num v = pt_num_unpack(f, bits);
	if ((modifiers & PT_FTZ) && v.kind == PT_FINITE && v.mant >> (f->precision - 1) == 0)
		v.kind = PT_ZERO;
	return v;
}

uint64_t pt_float_write(
	enum pt_type t, struct pt_num v, enum pt_rounding rm, int modifiers, uint64_t *ret_alt)
{
	const struct pt_float_format *f = pt_type_format(t);
	uint64_t sign = sign_bit(f), min_normal = UINT64_C(1) << (f->precision - 1);
	if (v.kind == PT_NAN && (modifiers & PT_SAT))
		return *ret_alt = 0;
	bool tiny;
	uint64_t bits = pt_num_pack(f, v, rm, modifiers & PT_SATFINITE, &tiny);
	uint64_t alt = bits;
	if ((modifiers & PT_FTZ) && v.kind == PT_FINITE) {
		if ((bits & (sign - 1)) < min_normal)
			bits = alt = bits & sign;
		else if (tiny)
			alt = bits & sign;
		/* measured on an H200, driver 580: f16 is flushed before the rounding */
		if (tiny && t == PT_F16)
			bits = alt;
	}
	if (v.kind != PT_NAN && (modifiers & (PT_SAT | PT_RELU)) && (bits & sign)) {
		/* the ISA does not say whether -0 is below 0 */
		alt = bits == sign ? sign : 0;
		bits = 0;
	}
	uint64_t one = (uint64_t)(1 - f->emin) << (f->precision - 1);
	if ((modifiers & PT_SAT) && bits > one)
		bits = alt = one;
	*ret_alt = alt;
	return bits;
}

const char *pt_rounding_name(enum pt_rounding rm)
{
	static const char *const names[] = { ".rn", ".rz", ".rm", ".rp", ".rna" };
	return names[rm];
}
