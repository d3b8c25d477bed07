/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Comparisons and selections. arg: comparison, boolean operation, modifiers, operand c negated,
 * bits of a true result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/floats.h"
#include "tests/ptx/groups.h"

enum cmp { EQ, NE, LT, LE, GT, GE, LO, LS, HI, HS, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NANS };

static const char *const cmp_names[] = { "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
	"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };

enum bool_op { NONE, AND, OR, XOR };

static const char *const bool_names[] = { "", ".and", ".or", ".xor" };

static bool holds(enum cmp c, int order)
{
	bool unordered = order == 2;
	switch (c) {
	case EQ:
		return order == 0;
	case NE:
		return !unordered && order != 0;
	case LT:
	case LO:
		return order == -1;
	case LE:
	case LS:
		return order <= 0;
	case GT:
	case HI:
		return order == 1;
	case GE:
	case HS:
		return order == 0 || order == 1;
	case EQU:
		return unordered || order == 0;
	case NEU:
		return order != 0;
	case LTU:
		return unordered || order == -1;
	case LEU:
		return unordered || order <= 0;
	case GTU:
		return order >= 1;
	case GEU:
		return order >= 0;
	case NUM:
		return !unordered;
	case NANS:
		return unordered;
	}
	return false;
}

static enum pt_type element(enum pt_type t)
{
	return t == PT_F16X2 ? PT_F16 : t == PT_BF16X2 ? PT_BF16 : t;
}

/* The comparison of element l of operands a and b. */
static bool compare(const struct pt_row *row, const uint64_t *in, unsigned l)
{
	enum pt_type t = element(row->in[0]);
	unsigned bits = pt_type_bits(t);
	uint64_t a = (in[0] >> (l * bits)) & pt_mask(bits),
		 b = (in[1] >> (l * bits)) & pt_mask(bits);
	enum cmp c = (enum cmp)row->arg[0];
	if (pt_type_format(t))
		return holds(c,
			pt_num_compare(pt_float_read(t, a, row->arg[2]),
				pt_float_read(t, b, row->arg[2])));
	if (pt_type_signed(t)) {
		int64_t x = pt_sext(a, bits), y = pt_sext(b, bits);
		return holds(c, (x > y) - (x < y));
	}
	return holds(c, (a > b) - (a < b));
}

static bool combine(const struct pt_row *row, bool t, bool c)
{
	if (row->arg[3])
		c = !c;
	switch ((enum bool_op)row->arg[1]) {
	case AND:
		return t && c;
	case OR:
		return t || c;
	case XOR:
		return t != c;
	default:
		return t;
	}
}

/*
 * The second predicate combines the negated comparison; for packed operands it is the result of the
 * upper element.
 */
static void ref_setp(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	bool t = compare(row, in, 0), c = row->n_in > 2 && in[2];
	want->out[0] = combine(row, t, c);
	if (row->n_out > 1)
		want->out[1] =
			combine(row, pt_type_lanes(row->in[0]) == 2 ? compare(row, in, 1) : !t, c);
}

static void ref_set(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned lanes = pt_type_lanes(row->in[0]), bits = pt_type_bits(row->out[0]) / lanes;
	bool c = row->n_in > 2 && in[2];
	for (unsigned l = 0; l < lanes; l++) {
		if (combine(row, compare(row, in, l), c))
			want->out[0] |= (uint64_t)(uint32_t)row->arg[4] << (l * bits);
	}
}

static void ref_selp(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	(void)row;
	want->out[0] = in[2] ? in[0] : in[1];
}

static void ref_slct(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	bool first;
	if (row->in[2] == PT_S32) {
		first = pt_sext(in[2], 32) >= 0;
	} else {
		static const struct pt_num zero = { PT_ZERO, false, 0, 0 };
		int order = pt_num_compare(pt_float_read(PT_F32, in[2], row->arg[2]), zero);
		first = order == 0 || order == 1;
	}
	want->out[0] = in[first ? 0 : 1];
}

/* Which comparisons a type has. */
static bool has(enum pt_type t, enum cmp c)
{
	if (pt_type_format(t))
		return c < LO || c > HS;
	if (t == PT_B16 || t == PT_B32 || t == PT_B64)
		return c <= NE;
	return c <= (pt_type_signed(t) ? GE : HS);
}

static void add_setp(struct pt_suite *s, enum pt_type t, enum cmp c, int modifiers)
{
	const char *n = pt_type_name(t), *ftz = modifiers & PT_FTZ ? ".ftz" : "";
	/*
	 * scalar halves have one destination predicate, packed ones always two, other types one or
	 * two
	 */
	bool packed = pt_type_lanes(t) == 2, half = t == PT_F16 || t == PT_BF16;
	char spec[64];
	for (int b = NONE; b <= XOR; b++) {
		for (int negated = 0; negated <= (b != NONE); negated++) {
			snprintf(spec, sizeof spec, "%s:%s,%s%s",
				packed || (b && !half) ? "pred,pred" : "pred", n, n,
				b ? ",pred" : "");
			struct pt_row *r = pt_row_add(s, ref_setp, spec, "setp.%s%s%s.%s%s",
				cmp_names[c], bool_names[b], ftz, n, negated ? " !c" : "");
			r->arg[0] = (int)c;
			r->arg[1] = b;
			r->arg[2] = modifiers;
			r->arg[3] = negated;
			if (!negated)
				continue;
			free(r->body);
			r->body = pt_format("setp.%s%s%s.%s %%d0%s, %%a, %%b, !%%c;", cmp_names[c],
				bool_names[b], ftz, n, half ? "" : "|%d1");
		}
	}
}

static void add_set(struct pt_suite *s, enum pt_type t, enum cmp c, const char *result,
	uint32_t bits, enum bool_op b, int modifiers)
{
	const char *n = pt_type_name(t);
	char spec[64];
	snprintf(spec, sizeof spec, "%s:%s,%s%s", result, n, n, b ? ",pred" : "");
	struct pt_row *r = pt_row_add(s, ref_set, spec, "set.%s%s%s.%s.%s", cmp_names[c],
		bool_names[b], modifiers & PT_FTZ ? ".ftz" : "", result, n);
	r->arg[0] = (int)c;
	r->arg[1] = (int)b;
	r->arg[2] = modifiers;
	r->arg[4] = (int)bits;
}

static void add_selections(struct pt_suite *s)
{
	static const char *const types[] = { "b16", "b32", "b64", "u16", "s16", "u32", "s32", "u64",
		"s64", "f32", "f64" };
	char spec[64];
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		const char *n = types[i];
		snprintf(spec, sizeof spec, "%s:%s,%s,pred", n, n, n);
		pt_row_add(s, ref_selp, spec, "selp.%s", n)->strict_nan = true;
		snprintf(spec, sizeof spec, "%s:%s,%s,s32", n, n, n);
		pt_row_add(s, ref_slct, spec, "slct.%s.s32", n)->strict_nan = true;
		snprintf(spec, sizeof spec, "%s:%s,%s,f32", n, n, n);
		pt_row_add(s, ref_slct, spec, "slct.%s.f32", n)->strict_nan = true;
		struct pt_row *r = pt_row_add(s, ref_slct, spec, "slct.ftz.%s.f32", n);
		r->arg[2] = PT_FTZ;
		r->strict_nan = true;
	}
}

void pt_group_compare(struct pt_suite *s)
{
	static const enum pt_type types[] = { PT_B16, PT_B32, PT_B64, PT_U16, PT_S16, PT_U32,
		PT_S32, PT_U64, PT_S64, PT_F32, PT_F64, PT_F16, PT_BF16, PT_F16X2, PT_BF16X2 };
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		enum pt_type t = types[i];
		bool half = pt_type_format(t) && t != PT_F32 && t != PT_F64;
		for (int c = EQ; c <= NANS; c++) {
			if (!has(t, (enum cmp)c))
				continue;
			add_setp(s, t, (enum cmp)c, 0);
			if (t == PT_F32 || t == PT_F16)
				add_setp(s, t, (enum cmp)c, PT_FTZ);
			if (half)
				continue;
			add_set(s, t, (enum cmp)c, "u32", UINT32_MAX, NONE, 0);
			add_set(s, t, (enum cmp)c, "f32", 0x3f800000, NONE, 0);
			add_set(s, t, (enum cmp)c, "s32", UINT32_MAX, (enum bool_op)(AND + c % 3),
				0);
			if (t == PT_F32)
				add_set(s, t, (enum cmp)c, "u32", UINT32_MAX, NONE, PT_FTZ);
		}
	}
	for (int c = EQ; c <= NANS; c++) {
		if (!has(PT_F16, (enum cmp)c))
			continue;
		add_set(s, PT_F16X2, (enum cmp)c, "f16x2", 0x3c00, NONE, 0);
		add_set(s, PT_F16X2, (enum cmp)c, "u32", 0xffff, NONE, 0);
		add_set(s, PT_BF16X2, (enum cmp)c, "bf16x2", 0x3f80, NONE, 0);
		add_set(s, PT_BF16X2, (enum cmp)c, "u32", 0xffff, NONE, 0);
		add_set(s, PT_F16, (enum cmp)c, "f16", 0x3c00, NONE, 0);
		add_set(s, PT_F16, (enum cmp)c, "u16", 0xffff, NONE, 0);
		add_set(s, PT_BF16, (enum cmp)c, "bf16", 0x3f80, NONE, 0);
		add_set(s, PT_BF16, (enum cmp)c, "u16", 0xffff, NONE, 0);
	}
	add_selections(s);
}
