/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/operand.h"

#include <string.h>

static const struct {
	const char *name;
	unsigned bits, lanes;
	bool is_signed;
	const struct pt_float_format *format;
} types[PT_TYPE_COUNT] = {
	[PT_NONE] = { "?", 0, 0, false, NULL },
	[PT_U8] = { "u8", 8, 1, false, NULL },
	[PT_S8] = { "s8", 8, 1, true, NULL },
	[PT_B8] = { "b8", 8, 1, false, NULL },
	[PT_U16] = { "u16", 16, 1, false, NULL },
	[PT_S16] = { "s16", 16, 1, true, NULL },
	[PT_B16] = { "b16", 16, 1, false, NULL },
	[PT_U32] = { "u32", 32, 1, false, NULL },
	[PT_S32] = { "s32", 32, 1, true, NULL },
	[PT_B32] = { "b32", 32, 1, false, NULL },
	[PT_U64] = { "u64", 64, 1, false, NULL },
	[PT_S64] = { "s64", 64, 1, true, NULL },
	[PT_B64] = { "b64", 64, 1, false, NULL },
	[PT_F16] = { "f16", 16, 1, true, &pt_f16 },
	[PT_BF16] = { "bf16", 16, 1, true, &pt_bf16 },
	[PT_F16X2] = { "f16x2", 32, 2, true, &pt_f16 },
	[PT_BF16X2] = { "bf16x2", 32, 2, true, &pt_bf16 },
	[PT_F32] = { "f32", 32, 1, true, &pt_f32 },
	[PT_F64] = { "f64", 64, 1, true, &pt_f64 },
	[PT_E4M3X2] = { "e4m3x2", 16, 2, true, &pt_e4m3 },
	[PT_E5M2X2] = { "e5m2x2", 16, 2, true, &pt_e5m2 },
	[PT_PRED] = { "pred", 32, 1, false, NULL },
};

static const char *const domains[PT_DOMAIN_COUNT] = { "any", "shift", "byte", "lane", "nonzero",
	"near", "trig", "trig_big", "middle" };

/* splitmix64 */
uint64_t pt_rng_next(struct pt_rng *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint32_t pt_rng_below(struct pt_rng *r, uint32_t n)
{
	return (uint32_t)(((pt_rng_next(r) >> 32) * n) >> 32);
}

const char *pt_type_name(enum pt_type t)
{
	return types[t].name;
}

enum pt_type pt_type_parse(const char *s, size_t n)
{
	for (int t = 1; t < PT_TYPE_COUNT; t++) {
		if (strlen(types[t].name) == n && !memcmp(types[t].name, s, n))
			return (enum pt_type)t;
	}
	return PT_NONE;
}

bool pt_domain_parse(const char *s, size_t n, enum pt_domain *ret)
{
	for (int d = 0; d < PT_DOMAIN_COUNT; d++) {
		if (strlen(domains[d]) == n && !memcmp(domains[d], s, n)) {
			*ret = (enum pt_domain)d;
			return true;
		}
	}
	return false;
}

unsigned pt_type_bits(enum pt_type t)
{
	return types[t].bits;
}

bool pt_type_signed(enum pt_type t)
{
	return types[t].is_signed;
}

const struct pt_float_format *pt_type_format(enum pt_type t)
{
	return types[t].format;
}

unsigned pt_type_lanes(enum pt_type t)
{
	return types[t].lanes;
}

uint64_t pt_mask(unsigned bits)
{
	return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

int64_t pt_sext(uint64_t v, unsigned bits)
{
	if (bits < 64) {
		uint64_t sign = UINT64_C(1) << (bits - 1);
		v = ((v & pt_mask(bits)) ^ sign) - sign;
	}
	return (int64_t)v;
}

struct list {
	size_t n;
	uint64_t v[64];
};

static void put(struct list *l, uint64_t v, unsigned bits)
{
	v &= pt_mask(bits);
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i] == v)
			return;
	}
	if (l->n < sizeof l->v / sizeof l->v[0])
		l->v[l->n++] = v;
}

static void int_edges(struct list *l, unsigned bits, bool few)
{
	static const uint64_t small[] = { 0, 1, 2, UINT64_MAX, UINT64_MAX - 1 };
	static const uint64_t more[] = { 3, 7, 8, 10, 15, 16, 31, 32, 63, 0x7f, 0x80, 0xff, 0x100,
		0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffff, 0x800000, 0xffffff, 0x7fffffff,
		0x80000000, 0xffffffff, 0x100000000, 0xfffffffe00000001 };
	for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
		put(l, small[i], bits);
	put(l, UINT64_C(1) << (bits - 1), bits);
	put(l, (UINT64_C(1) << (bits - 1)) - 1, bits);
	put(l, (UINT64_C(1) << (bits - 1)) + 1, bits);
	put(l, UINT64_C(1) << (bits / 2), bits);
	put(l, (UINT64_C(1) << (bits / 2)) - 1, bits);
	put(l, UINT64_C(0x5555555555555555), bits);
	put(l, UINT64_C(0xaaaaaaaaaaaaaaaa), bits);
	if (few)
		return;
	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
		put(l, more[i], bits);
}

/*
 * One element of a float format: zeros, ends of the subnormal and normal ranges, around one,
 * halves, infinities, NaNs.
 */
static void float_edges(struct list *l, const struct pt_float_format *f, bool few)
{
	unsigned bits = (unsigned)f->width, frac = (unsigned)f->precision - 1;
	uint64_t sign = UINT64_C(1) << (bits - 1), ulp = 1, min_normal = UINT64_C(1) << frac;
	uint64_t one = (uint64_t)(1 - f->emin) << frac;
	uint64_t inf = f->inf, quiet = f->has_inf ? inf | (UINT64_C(1) << (frac - 1)) : inf;
	const uint64_t first[] = { 0, sign, ulp, min_normal - 1, min_normal, one, sign | one,
		one + ulp, sign | (one - ulp), inf - 1, sign | (inf - 1), inf, sign | inf, quiet };
	for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
		put(l, first[i], bits);
	if (few)
		return;
	uint64_t two = one + min_normal, half = one - min_normal, frac_top = min_normal >> 1;
	const uint64_t rest[] = { sign | ulp, sign | (min_normal - 1), sign | min_normal,
		min_normal + 1, half, sign | half, half - ulp, half + ulp, two, sign | two,
		two + frac_top, one + frac_top, sign | (one + frac_top), two + (frac_top >> 1),
		one + frac_top + ulp, sign | quiet, quiet | ulp, inf + f->has_inf,
		sign | (inf + f->has_inf) };
	for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
		put(l, rest[i], bits);
	/* powers of two around the limits of the integer types, for conversions */
	for (int e = 6; e <= 64; e = e < 8 ? e + 1
			: e < 15           ? 15
			: e < 17           ? e + 1
			: e < 31           ? 31
			: e < 33           ? e + 1
			: e < 62           ? 62
					   : e + 1) {
		uint64_t p = one + ((uint64_t)e << frac);
		if (p >= inf)
			break;
		put(l, p, bits);
		put(l, p - 1, bits);
		put(l, sign | p, bits);
	}
}

static void float_domain_edges(struct list *l, enum pt_domain d)
{
	static const uint32_t trig[] = { 0, 0x80000000, 1, 0x00800000, 0x3f800000, 0xbf800000,
		0x3fc90fdb, 0xbfc90fdb, 0x40490fdb, 0xc0490fdb, 0x40c90fda, 0x3f490fdb, 0x33000000,
		0x7f800000, 0xff800000, 0x7fc00000 };
	static const uint32_t middle[] = { 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff,
		0x40000000, 0x3f000000, 0x5f000000, 0x20000000, 0xc0400000, 0x3eaaaaab,
		0x40490fdb };
	const uint32_t *v = d == PT_MIDDLE ? middle : trig;
	size_t n = d == PT_MIDDLE ? sizeof middle / sizeof middle[0] : sizeof trig / sizeof trig[0];
	for (size_t i = 0; i < n; i++)
		put(l, v[i], 32);
}

static void make_edges(struct list *l, enum pt_type t, enum pt_domain d, bool few)
{
	unsigned bits = types[t].bits;
	if (t == PT_PRED || d == PT_LANE) {
		for (uint64_t i = 0; i < (t == PT_PRED ? 2u : 32u); i++)
			put(l, i, bits);
	} else if (d == PT_SHIFT || d == PT_BYTE) {
		static const uint64_t counts[] = { 0, 1, 2, 7, 8, 15, 16, 17, 24, 31, 32, 33, 47,
			48, 63, 64, 65, 127, 128, 254, 255 };
		static const uint64_t huge[] = { 256, 257, 0xffff, 0x10000, 0x10001f, 0x7fffffff,
			0x80000000, 0xffffffe1, 0xffffffff };
		for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
			if (!few || i % 2 == 0)
				put(l, counts[i], bits);
		}
		for (size_t i = 0; d == PT_SHIFT && i < sizeof huge / sizeof huge[0]; i++)
			put(l, huge[i], bits);
	} else if (d == PT_NEAR) {
		for (int64_t i = few ? -4 : -40; i <= (few ? 4 : 40); i += few ? 1 : 2)
			put(l, (uint64_t)i, bits);
	} else if (d == PT_TRIG || d == PT_TRIG_BIG || d == PT_MIDDLE) {
		float_domain_edges(l, d);
	} else if (!types[t].format) {
		int_edges(l, bits, few);
	} else {
		float_edges(l, types[t].format, few);
	}
	if (d == PT_NONZERO && l->n && l->v[0] == 0)
		l->v[0] = 5;
	if (types[t].lanes == 2) {
		unsigned half = bits / 2;
		for (size_t i = 0; i < l->n; i++)
			l->v[i] &= pt_mask(half);
		struct list one = *l;
		for (size_t i = 0; i < one.n; i++)
			l->v[i] |= one.v[(i * 7 + 3) % one.n] << half;
	}
}

const uint64_t *pt_edges(enum pt_type t, enum pt_domain d, bool few, size_t *ret_n)
{
	static struct list cache[PT_TYPE_COUNT][PT_DOMAIN_COUNT][2];
	struct list *l = &cache[t][d][few];
	if (l->n == 0)
		make_edges(l, t, d, few);
	*ret_n = l->n;
	return l->v;
}

static uint64_t random_float(struct pt_rng *r, const struct pt_float_format *f, uint64_t near)
{
	unsigned frac = (unsigned)f->precision - 1;
	uint64_t bits = pt_rng_next(r), mask = pt_mask((unsigned)f->width),
		 sign = UINT64_C(1) << (f->width - 1);
	uint64_t fraction = bits & pt_mask(frac);
	if (pt_rng_below(r, 4) == 0)
		fraction &= ~pt_mask(frac / 2); /* short fractions: exact results and ties */
	uint64_t one = (uint64_t)(1 - f->emin) << frac;
	switch (pt_rng_below(r, 5)) {
	case 0:
		return bits & mask;
	case 1: /* close to the earlier operand: cancellation */
		return ((near & ~pt_mask(frac)) ^ (bits & sign)) | fraction;
	case 2: /* subnormal, or a small normal number */
		return (bits & sign) | ((uint64_t)pt_rng_below(r, 3) << frac) | fraction;
	default: { /* within 2^12 of one */
		int64_t e = (int64_t)pt_rng_below(r, 25) - 12;
		int64_t scaled = (int64_t)(one >> frac) + e;
		if (scaled < 0)
			scaled = 0;
		uint64_t v = ((uint64_t)scaled << frac) | fraction;
		return (bits & sign) | (v < f->inf ? v : f->inf - 1);
	}
	}
}

static uint64_t random_int(struct pt_rng *r, unsigned bits, uint64_t near)
{
	uint64_t v = pt_rng_next(r);
	switch (pt_rng_below(r, 6)) {
	case 0: /* few bits, either sign */
		v = (uint64_t)((int64_t)v >> (pt_rng_below(r, 64)));
		break;
	case 1:
		v = near + pt_rng_below(r, 5) - 2;
		break;
	case 2:
		v = (v & pt_rng_next(r)) & pt_rng_next(r);
		break;
	default:
		break;
	}
	return v & pt_mask(bits);
}

static uint64_t float_bits(double d)
{
	float f = (float)d;
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

static double unit(struct pt_rng *r)
{
	return (double)(int64_t)pt_rng_next(r) * 0x1p-63;
}

uint64_t pt_value(struct pt_rng *r, enum pt_type t, enum pt_domain d, uint64_t near)
{
	unsigned bits = types[t].bits;
	if (d != PT_MIDDLE && pt_rng_below(r, 5) == 0) {
		size_t n;
		const uint64_t *e = pt_edges(t, d, false, &n);
		return e[pt_rng_below(r, (uint32_t)n)];
	}
	switch (d) {
	case PT_SHIFT:
		return pt_rng_below(r, 16) ? pt_rng_below(r, 80) : pt_rng_next(r) & pt_mask(bits);
	case PT_BYTE:
		return pt_rng_below(r, pt_rng_below(r, 3) ? 66 : 256);
	case PT_LANE:
		return pt_rng_below(r, 32);
	case PT_NEAR:
		return ((uint64_t)pt_rng_below(r, 129) - 64) & pt_mask(bits);
	case PT_TRIG:
		return float_bits(unit(r) * 6.283185307179586);
	case PT_TRIG_BIG:
		return float_bits(unit(r) * 314.1592653589793);
	case PT_MIDDLE:
		return (pt_rng_next(r) & 0x807fffffu) |
			((uint64_t)(96 + pt_rng_below(r, 64)) << 23);
	default:
		break;
	}
	if (t == PT_PRED)
		return pt_rng_next(r) & 1;
	uint64_t v;
	const struct pt_float_format *f = types[t].format;
	if (f) {
		v = random_float(r, f, near);
		if (types[t].lanes == 2)
			v |= random_float(r, f, near >> f->width) << f->width;
		return v & pt_mask(bits);
	}
	v = random_int(r, bits, near);
	return d == PT_NONZERO && v == 0 ? 3 : v;
}
