/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/cvt_narrow.h"

#include <math.h>

#include "softdevice/core/half.h"
#include "softdevice/core/ops.h"

/*
 * man: fraction bits; bits: all but the sign; emin: exponent of the smallest normal number. There
 * is no infinity and no NaN.
 */
struct format {
	uint32_t man, bits;
	int emin;
};

static struct format format_of(uint32_t type)
{
	return type == OBD_T_E2M1X2    ? (struct format){ 1, 3, 0 }
		: type == OBD_T_E2M3X2 ? (struct format){ 3, 5, 0 }
				       : (struct format){ 2, 5, -2 };
}

/* To nearest even; what is too large, and NaN, becomes the largest number. */
static uint32_t encode(const struct format *f, float x, bool relu)
{
	uint32_t most = (1u << f->bits) - 1, sign = 0, bits = obd_f32_bits(x), code;
	double a = (double)fabsf(x), r;
	int e;

	if (x != x)
		return most;
	if (bits >> 31) {
		if (relu)
			return 0;
		sign = 1u << f->bits;
	}
	if (a >= 64)
		return sign | most;
	frexp(a, &e);
	e = a != 0 && e - 1 > f->emin ? e - 1 : f->emin;
	r = ldexp(a, (int)f->man - e);
	code = (uint32_t)r;
	r -= code;
	code += r > 0.5 || (r == 0.5 && code & 1);
	/*
	 * a subnormal number has the exponent of the smallest normal one, without its leading bit
	 */
	code += (uint32_t)(e - f->emin) << f->man;
	return sign | (code < most ? code : most);
}

static float decode(const struct format *f, uint32_t code)
{
	uint32_t e = code >> f->man & ((1u << (f->bits - f->man)) - 1),
		 m = code & ((1u << f->man) - 1);
	float x = ldexpf(
		(float)(e ? m | 1u << f->man : m), (int)(e ? e - 1 : 0) + f->emin - (int)f->man);

	return code >> f->bits & 1 ? -x : x;
}

/* The exponent of a number, whose sign is ignored: the code of 2^(code - 127). */
static uint32_t to_power(uint32_t f32, uint32_t flags)
{
	uint32_t a = f32 & 0x7fffffff, code = a >> 23;

	if (a > 0x7f800000)
		return 0xff;
	if (flags & OBD_NARROW_UP && a < 0x7f800000 && a & 0x7fffff && a > 0x00400000)
		code++;
	return code == 0xff && flags & OBD_NARROW_FINITE ? 0xfe : code;
}

static uint32_t from_power(uint32_t code)
{
	return code == 0xff ? 0x7fff : code ? code << 7 : 0x40;
}

static uint32_t narrow(uint32_t type, uint32_t flags, uint32_t hi, uint32_t lo)
{
	struct format f = format_of(type);

	if (type == OBD_T_UE8M0X2)
		return to_power(hi, flags) << 8 | to_power(lo, flags);
	return encode(&f, obd_bits_f32(hi), flags & OBD_NARROW_RELU)
		<< (type == OBD_T_E2M1X2 ? 4 : 8) |
		encode(&f, obd_bits_f32(lo), flags & OBD_NARROW_RELU);
}

static uint32_t half_of(const struct format *f, uint32_t code, bool relu)
{
	float x = decode(f, code);

	return relu && code >> f->bits & 1 ? 0 : obd_f32_f16(x);
}

static uint32_t widen(uint32_t type, uint32_t flags, uint32_t v)
{
	struct format f = format_of(type);
	uint32_t shift = type == OBD_T_E2M1X2 ? 4 : 8, mask = (2u << f.bits) - 1;

	if (type == OBD_T_UE8M0X2)
		return from_power(v >> 8 & 0xff) << 16 | from_power(v & 0xff);
	return half_of(&f, v >> shift & mask, flags & OBD_NARROW_RELU) << 16 |
		half_of(&f, v & mask, flags & OBD_NARROW_RELU);
}

void obd_cvt_narrow(const struct obd_insn *in, char *regs, uint32_t m)
{
	uint32_t type = in->u.imm & 63, wide = in->u.imm >> 6 & 63, flags = in->u.imm >> 12;
	const uint32_t *a = (const uint32_t *)(const void *)(regs + (size_t)in->a * OBD_SLOT_BYTES),
		       *b = (const uint32_t *)(const void *)(regs + (size_t)in->b * OBD_SLOT_BYTES);
	uint32_t *d = (uint32_t *)(void *)(regs + (size_t)in->d * OBD_SLOT_BYTES);

	for (uint32_t rest = m; rest; rest &= rest - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(rest), u = a[i], v = b[i];

		if (flags & OBD_NARROW_FROM)
			d[i] = widen(type, flags, u);
		else if (wide == OBD_T_BF16X2)
			d[i] = narrow(type, flags, u & 0xffff0000, u << 16);
		else
			d[i] = narrow(type, flags, u, v);
	}
}
