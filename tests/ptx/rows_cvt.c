/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Conversions. arg: destination type, source type, rounding, modifiers. Narrow integers are in
 * 16-bit registers: the upper bits of a source are ignored, a destination is extended by its own
 * signedness.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/floats.h"
#include "tests/ptx/groups.h"

#define NO_ROUNDING (-1)

static enum pt_type to(const struct pt_row *row)
{
	return (enum pt_type)row->arg[0];
}

static enum pt_type from(const struct pt_row *row)
{
	return (enum pt_type)row->arg[1];
}

/* A value of the destination type, extended to its register. */
static uint64_t extended(const struct pt_row *row, uint64_t v)
{
	unsigned bits = pt_type_bits(to(row));
	v = pt_type_signed(to(row)) ? (uint64_t)pt_sext(v, bits) : v & pt_mask(bits);
	return v & pt_mask(bits < 16 ? 16 : bits);
}

static pt_i128 min_of(enum pt_type t)
{
	return pt_type_signed(t) ? -((pt_i128)1 << (pt_type_bits(t) - 1)) : 0;
}

static pt_i128 max_of(enum pt_type t)
{
	return ((pt_i128)1 << (pt_type_bits(t) - pt_type_signed(t))) - 1;
}

static pt_i128 integer(enum pt_type t, uint64_t v)
{
	unsigned bits = pt_type_bits(t);
	return pt_type_signed(t) ? (pt_i128)pt_sext(v, bits) : (pt_i128)(v & pt_mask(bits));
}

static pt_i128 clamp(enum pt_type t, pt_i128 v)
{
	return v < min_of(t) ? min_of(t) : v > max_of(t) ? max_of(t) : v;
}

static void ref_int_int(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	pt_i128 v = integer(from(row), in[0]);
	want->out[0] = extended(row, (uint64_t)(row->arg[3] & PT_SAT ? clamp(to(row), v) : v));
}

static void ref_int_float(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	pt_i128 v = integer(from(row), in[0]);
	struct pt_num x = pt_num_from_int(v < 0, (uint64_t)(v < 0 ? -v : v));
	want->out[0] = pt_float_write(
		to(row), x, (enum pt_rounding)row->arg[2], row->arg[3], &want->alt[0]);
	want->has_alt = want->alt[0] != want->out[0];
}

/*
 * Clamps to the range of the destination. NaN gives 0 if neither type has 64 bits, else only the
 * top bit. (From f64 to destinations narrower than 32 bits that is 1 << (width - 1). 0 is also
 * accepted, because a conversion through 32 bits gives 0.)
 */
static void ref_float_int(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	struct pt_num x = pt_num_round(
		pt_float_read(from(row), in[0], row->arg[3]), (enum pt_rounding)row->arg[2]);
	unsigned bits = pt_type_bits(to(row));
	if (x.kind == PT_NAN) {
		bool top = from(row) == PT_F64 || bits == 64;
		want->out[0] = top ? extended(row, UINT64_C(1) << (bits - 1)) : 0;
		want->has_alt = top && bits < 32;
		want->alt[0] = 0;
		return;
	}
	pt_i128 v = 0;
	if (x.kind == PT_INF || (x.kind == PT_FINITE && x.exp > 66))
		v = (pt_i128)1 << 100;
	else if (x.kind == PT_FINITE)
		v = x.exp > 0 && x.mant >> (120 - x.exp) ? (pt_i128)1 << 100
							 : (pt_i128)(x.mant << x.exp);
	want->out[0] = extended(row, (uint64_t)clamp(to(row), x.neg ? -v : v));
}

/* .ftz applies to f32 only: subnormals of the other type remain. */
static int modifiers(const struct pt_row *row, enum pt_type side)
{
	return side == PT_F32 ? row->arg[3] : row->arg[3] & ~PT_FTZ;
}

static uint64_t float_float(const struct pt_row *row, uint64_t bits, uint64_t *ret_alt)
{
	struct pt_num x = pt_float_read(from(row), bits, modifiers(row, from(row)));
	return pt_float_write(
		to(row), x, (enum pt_rounding)row->arg[2], modifiers(row, to(row)), ret_alt);
}

static void ref_float_float(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = float_float(row, in[0], &want->alt[0]);
	want->has_alt = want->alt[0] != want->out[0];
}

/* .rni, .rzi, .rmi, .rpi within one type: an integral value of the same type. */
static void ref_integral(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	struct pt_num x = pt_num_round(
		pt_float_read(from(row), in[0], row->arg[3]), (enum pt_rounding)row->arg[2]);
	want->out[0] = pt_float_write(to(row), x, PT_RN, row->arg[3], &want->alt[0]);
	want->has_alt = want->alt[0] != want->out[0];
}

/* Packs two scalars, a into the upper half; or converts the elements of a packed operand. */
static void ref_packed(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned bits = pt_type_bits(row->out[0]) / 2;
	for (unsigned l = 0; l < 2; l++) {
		unsigned width = pt_type_bits(row->in[0]) / 2;
		uint64_t x = row->n_in == 2 ? in[1 - l] : (in[0] >> (l * width)) & pt_mask(width),
			 alt;
		want->out[0] |= float_float(row, x, &alt) << (l * bits);
		want->alt[0] |= alt << (l * bits);
	}
	want->has_alt = want->alt[0] != want->out[0];
}

/* The result is in the upper 19 bits. The bits below are undefined. */
static void ref_tf32(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	struct pt_num x = pt_num_unpack(&pt_f32, in[0]);
	if (x.kind == PT_NAN)
		want->out[0] = 0x7fffffff;
	else
		want->out[0] = pt_num_pack(&pt_tf32, x, (enum pt_rounding)row->arg[2], false, NULL)
			<< 13;
}

static const char *register_type(enum pt_type t)
{
	return t == PT_U8 ? "u16" : t == PT_S8 ? "s16" : pt_type_name(t);
}

static struct pt_row *add(struct pt_suite *s, pt_ref_fn *ref, enum pt_type d, enum pt_type a,
	const char *rounding, int rm, int m)
{
	char spec[64];
	snprintf(spec, sizeof spec, "%s:%s", register_type(d), pt_type_name(a));
	struct pt_row *r = pt_row_add(s, ref, spec, "cvt%s%s%s%s.%s.%s", rounding,
		m & PT_SATFINITE      ? ".satfinite"
			: m & PT_RELU ? ".relu"
				      : "",
		m & PT_FTZ ? ".ftz" : "", m & PT_SAT ? ".sat" : "", pt_type_name(d),
		pt_type_name(a));
	r->arg[0] = (int)d;
	r->arg[1] = (int)a;
	r->arg[2] = rm;
	r->arg[3] = m;
	return r;
}

static const enum pt_type ints[] = { PT_U8, PT_S8, PT_U16, PT_S16, PT_U32, PT_S32, PT_U64, PT_S64 };
#define N_INTS (sizeof ints / sizeof ints[0])
static const enum pt_type floats[] = { PT_F16, PT_BF16, PT_F32, PT_F64 };
#define N_FLOATS (sizeof floats / sizeof floats[0])

static void add_int_int(struct pt_suite *s)
{
	for (size_t d = 0; d < N_INTS; d++) {
		for (size_t a = 0; a < N_INTS; a++) {
			add(s, ref_int_int, ints[d], ints[a], "", PT_RN, 0);
			if (min_of(ints[a]) < min_of(ints[d]) || max_of(ints[a]) > max_of(ints[d]))
				add(s, ref_int_int, ints[d], ints[a], "", PT_RN, PT_SAT);
		}
	}
}

static void add_int_float(struct pt_suite *s)
{
	static const char *const integral[] = { ".rni", ".rzi", ".rmi", ".rpi" };
	for (size_t f = 0; f < N_FLOATS; f++) {
		/* there is no conversion between bf16 and 8-bit integers */
		for (size_t i = floats[f] == PT_BF16 ? 2 : 0; i < N_INTS; i++) {
			for (int rm = PT_RN; rm <= PT_RP; rm++) {
				const char *name = pt_rounding_name((enum pt_rounding)rm);
				add(s, ref_int_float, floats[f], ints[i], name, rm, 0);
				add(s, ref_float_int, ints[i], floats[f], integral[rm], rm, 0);
				if (floats[f] == PT_F32) {
					add(s, ref_float_int, ints[i], floats[f], integral[rm], rm,
						PT_FTZ);
					add(s, ref_int_float, floats[f], ints[i], name, rm, PT_SAT);
				}
			}
		}
	}
}

/* A conversion to a wider format has no rounding modifier. */
static void add_float_float(struct pt_suite *s)
{
	static const char *const integral[] = { ".rni", ".rzi", ".rmi", ".rpi" };
	for (size_t d = 0; d < N_FLOATS; d++) {
		for (size_t a = 0; a < N_FLOATS; a++) {
			const struct pt_float_format *fd = pt_type_format(floats[d]),
						     *fa = pt_type_format(floats[a]);
			bool exact = fd->precision >= fa->precision && fd->emin <= fa->emin;
			bool f32 = floats[d] == PT_F32 || floats[a] == PT_F32;
			bool bf16 = floats[d] == PT_BF16 || floats[a] == PT_BF16;
			for (int rm = PT_RN; rm <= PT_RP && !(exact && rm); rm++) {
				const char *name =
					exact ? "" : pt_rounding_name((enum pt_rounding)rm);
				if (d == a)
					break;
				add(s, ref_float_float, floats[d], floats[a], name, rm, 0);
				if (bf16)
					continue;
				add(s, ref_float_float, floats[d], floats[a], name, rm, PT_SAT);
				if (!f32)
					continue;
				add(s, ref_float_float, floats[d], floats[a], name, rm, PT_FTZ);
				add(s, ref_float_float, floats[d], floats[a], name, rm,
					PT_FTZ | PT_SAT);
			}
		}
		for (int rm = PT_RN; rm <= PT_RP; rm++) {
			add(s, ref_integral, floats[d], floats[d], integral[rm], rm, 0);
			if (floats[d] == PT_F32) {
				add(s, ref_integral, floats[d], floats[d], integral[rm], rm,
					PT_FTZ);
				add(s, ref_integral, floats[d], floats[d], integral[rm], rm,
					PT_SAT);
			}
		}
	}
	add(s, ref_float_float, PT_F32, PT_F32, "", PT_RN, PT_SAT);
	add(s, ref_float_float, PT_F32, PT_F32, "", PT_RN, PT_FTZ | PT_SAT);
	add(s, ref_float_float, PT_F64, PT_F64, "", PT_RN, PT_SAT);
}

static void add_packed(struct pt_suite *s, const char *types, const char *name, enum pt_type d,
	enum pt_type a, enum pt_rounding rm, int m)
{
	struct pt_row *r = pt_row_add(s, ref_packed, types, "%s", name);
	r->arg[0] = (int)d;
	r->arg[1] = (int)a;
	r->arg[2] = (int)rm;
	r->arg[3] = m;
}

static void add_small(struct pt_suite *s)
{
	add(s, ref_float_float, PT_F16, PT_F32, ".rn", PT_RN, PT_RELU);
	add(s, ref_float_float, PT_F16, PT_F32, ".rz", PT_RZ, PT_RELU);
	add(s, ref_float_float, PT_BF16, PT_F32, ".rn", PT_RN, PT_RELU);
	add(s, ref_float_float, PT_BF16, PT_F32, ".rz", PT_RZ, PT_RELU);
	add_packed(s, "f16x2:f32,f32", "cvt.rn.f16x2.f32", PT_F16, PT_F32, PT_RN, 0);
	add_packed(s, "f16x2:f32,f32", "cvt.rz.f16x2.f32", PT_F16, PT_F32, PT_RZ, 0);
	add_packed(s, "f16x2:f32,f32", "cvt.rn.relu.f16x2.f32", PT_F16, PT_F32, PT_RN, PT_RELU);
	add_packed(s, "bf16x2:f32,f32", "cvt.rn.bf16x2.f32", PT_BF16, PT_F32, PT_RN, 0);
	add_packed(s, "bf16x2:f32,f32", "cvt.rz.bf16x2.f32", PT_BF16, PT_F32, PT_RZ, 0);
	add_packed(s, "bf16x2:f32,f32", "cvt.rn.relu.bf16x2.f32", PT_BF16, PT_F32, PT_RN, PT_RELU);
	add(s, ref_float_float, PT_F16, PT_F32, ".rn", PT_RN, PT_SATFINITE);
	add(s, ref_float_float, PT_F16, PT_F32, ".rz", PT_RZ, PT_SATFINITE);
	add(s, ref_float_float, PT_BF16, PT_F32, ".rn", PT_RN, PT_SATFINITE);
	add_packed(s, "f16x2:f32,f32", "cvt.rn.satfinite.f16x2.f32", PT_F16, PT_F32, PT_RN,
		PT_SATFINITE);
	add_packed(s, "bf16x2:f32,f32", "cvt.rn.satfinite.relu.bf16x2.f32", PT_BF16, PT_F32, PT_RN,
		PT_SATFINITE | PT_RELU);
	static const struct {
		const char *tf;
		enum pt_rounding rm;
	} tf32[] = { { "rna", PT_RNA }, { "rn", PT_RN }, { "rz", PT_RZ } };
	for (size_t i = 0; i < 3; i++) {
		struct pt_row *r =
			pt_row_add(s, ref_tf32, "f32:f32", "cvt.%s.tf32.f32", tf32[i].tf);
		r->arg[2] = (int)tf32[i].rm;
		r->care = 0xffffe000u;
	}
	static const enum pt_type eights[] = { PT_E4M3X2, PT_E5M2X2 };
	for (size_t i = 0; i < 2; i++) {
		const char *n = pt_type_name(eights[i]);
		for (int relu = 0; relu < 2; relu++) {
			int m = PT_SATFINITE | (relu ? PT_RELU : 0);
			char spec[64], name[64];
			snprintf(spec, sizeof spec, "%s:f32,f32", n);
			snprintf(name, sizeof name, "cvt.rn.satfinite%s.%s.f32",
				relu ? ".relu" : "", n);
			add_packed(s, spec, name, eights[i], PT_F32, PT_RN, m);
			snprintf(spec, sizeof spec, "%s:f16x2", n);
			snprintf(name, sizeof name, "cvt.rn.satfinite%s.%s.f16x2",
				relu ? ".relu" : "", n);
			add_packed(s, spec, name, eights[i], PT_F16, PT_RN, m);
			snprintf(spec, sizeof spec, "f16x2:%s", n);
			snprintf(name, sizeof name, "cvt.rn%s.f16x2.%s", relu ? ".relu" : "", n);
			add_packed(s, spec, name, PT_F16, eights[i], PT_RN, m & PT_RELU);
		}
	}
}

void pt_group_cvt(struct pt_suite *s)
{
	add_int_int(s);
	add_int_float(s);
	add_float_float(s);
	add_small(s);
	pt_narrow_cases(s);
}
