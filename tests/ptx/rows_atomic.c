/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Atomics as rows: each thread has a separate memory location. The values before and after the
 * operation are compared, with edge values as operands. arg: operation, whether the location is in
 * global memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/floats.h"
#include "tests/ptx/groups.h"

enum op { ADD, MIN, MAX, INC, DEC, AND, OR, XOR, EXCH, CAS };

static const char *const op_names[] = { "add", "min", "max", "inc", "dec", "and", "or", "xor",
	"exch", "cas" };

/* How to address the location: 16 bytes for each thread, as in rows_memory.c. */
static const struct {
	const char *name, *qualifier, *base, *decl, *set_up;
} places[] = {
	{ "global", ".global", "%pi", ".reg .b64 %at, %v<4>;", "" },
	{ "shared", ".shared", "%as",
		".reg .b64 %v<4>;\n\t.reg .b32 %as;\n\t.shared .align 16 .b8 own[2048];",
		"mov.u32 %as, %tid.x;\nshl.b32 %as, %as, 4;\nmov.u32 %s, own;\nadd.u32 %as, %as, "
		"%s;\n" },
	{ "generic", "", "%at", ".reg .b64 %at, %v<4>;", "cvta.global.u64 %at, %pi;\n" },
	{ "generic shared", "", "%at",
		".reg .b64 %at, %v<4>;\n\t.reg .b32 %as;\n\t.shared .align 16 .b8 own[2048];",
		"mov.u32 %as, %tid.x;\nshl.b32 %as, %as, 4;\ncvt.u64.u32 %v0, %as;\nmov.u64 %at, "
		"own;\nadd.u64 %at, %at, %v0;\n"
		"cvta.shared.u64 %at, %at;\n" },
};
#define N_PLACES (sizeof places / sizeof places[0])

static bool less(enum pt_type t, uint64_t a, uint64_t b)
{
	unsigned bits = pt_type_bits(t);
	return pt_type_signed(t) ? pt_sext(a, bits) < pt_sext(b, bits) : a < b;
}

/*
 * By the manual, f32 additions flush subnormals in global memory and not elsewhere. Both results
 * are accepted.
 */
static uint64_t float_sum(enum pt_type t, uint64_t a, uint64_t b, uint64_t *ret_flushed)
{
	unsigned lanes = pt_type_lanes(t), bits = pt_type_bits(t) / lanes;
	enum pt_type e = t == PT_F16X2 ? PT_F16 : t == PT_BF16X2 ? PT_BF16 : t;
	uint64_t sum = 0, alt;
	*ret_flushed = 0;
	for (unsigned l = 0; l < lanes; l++) {
		uint64_t x = (a >> (l * bits)) & pt_mask(bits),
			 y = (b >> (l * bits)) & pt_mask(bits);
		for (int ftz = 0; ftz <= (t == PT_F32); ftz++) {
			int m = ftz ? PT_FTZ : 0;
			struct pt_num n =
				pt_num_add(pt_float_read(e, x, m), pt_float_read(e, y, m), PT_RN);
			uint64_t r = pt_float_write(e, n, PT_RN, m, &alt) << (l * bits);
			if (!ftz)
				sum |= r;
			if (ftz == (t == PT_F32))
				*ret_flushed |= r;
		}
	}
	return sum;
}

static uint64_t after(
	const struct pt_row *row, uint64_t old, uint64_t b, uint64_t c, uint64_t *ret_alt)
{
	enum pt_type t = row->in[0];
	uint64_t r = 0;
	if (pt_type_format(t) && row->arg[0] == ADD)
		return float_sum(t, old, b, ret_alt);
	switch ((enum op)row->arg[0]) {
	case ADD:
		r = old + b;
		break;
	case MIN:
		r = less(t, b, old) ? b : old;
		break;
	case MAX:
		r = less(t, old, b) ? b : old;
		break;
	case INC:
		r = old >= b ? 0 : old + 1;
		break;
	case DEC:
		r = old == 0 || old > b ? b : old - 1;
		break;
	case AND:
		r = old & b;
		break;
	case OR:
		r = old | b;
		break;
	case XOR:
		r = old ^ b;
		break;
	case EXCH:
		r = b;
		break;
	case CAS:
		r = old == b ? c : old;
		break;
	}
	return *ret_alt = r & pt_mask(pt_type_bits(t));
}

static void ref_atom(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = want->alt[0] = in[0];
	want->out[1] = after(row, in[0], in[1], row->n_in > 2 ? in[2] : 0, &want->alt[1]);
	want->has_alt = want->out[1] != want->alt[1];
}

static void ref_red(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = after(row, in[0], in[1], 0, &want->alt[0]);
	want->has_alt = want->out[0] != want->alt[0];
}

/*
 * cas: the stored value and the compare operand are from the same list of edge values, so that
 * equal pairs occur.
 */
static void add(struct pt_suite *s, size_t place, enum op op, enum pt_type t, const char *order,
	const char *suffix)
{
	const char *n = pt_type_name(t), *q = places[place].qualifier, *base = places[place].base;
	unsigned bits = pt_type_bits(t);
	const char *bit_type =
		op == CAS || op == EXCH || op == AND || op == OR || op == XOR ? "b" : NULL;
	char type[16], spec[64];
	if (bit_type)
		snprintf(type, sizeof type, "b%u", bits);
	else
		snprintf(type, sizeof type, "%s", n);
	char *common = pt_format("%sst%s.b%u [%s], %%a;\n", places[place].set_up, q, bits, base);
	char *name = pt_format("atom%s%s.%s%s.%s", order, q, op_names[op], suffix, type);
	snprintf(spec, sizeof spec, op == CAS ? "%s,%s:%s,%s,%s" : "%s,%s:%s,%s", n, n, n, n, n);
	struct pt_row *r = pt_row_add(s, ref_atom, spec, "%s in %s", name, places[place].name);
	free(r->body);
	r->body = pt_format("%s%s %%d0, [%s], %%b%s;\nld%s.b%u %%d1, [%s];", common, name, base,
		op == CAS ? ", %c" : "", q, bits, base);
	r->decl = places[place].decl;
	r->arg[0] = (int)op;
	free(name);
	if (op != CAS && op != EXCH) {
		name = pt_format("red%s%s.%s%s.%s", order, q, op_names[op], suffix, type);
		snprintf(spec, sizeof spec, "%s:%s,%s", n, n, n);
		r = pt_row_add(s, ref_red, spec, "%s in %s", name, places[place].name);
		free(r->body);
		r->body = pt_format(
			"%s%s [%s], %%b;\nld%s.b%u %%d0, [%s];", common, name, base, q, bits, base);
		r->decl = places[place].decl;
		r->arg[0] = (int)op;
		free(name);
	}
	free(common);
}

static void add_place(struct pt_suite *s, size_t place)
{
	static const struct {
		enum op op;
		enum pt_type types[6];
	} ops[] = {
		{ ADD, { PT_U32, PT_S32, PT_U64, PT_F32, PT_F64 } },
		{ MIN, { PT_U32, PT_S32, PT_U64, PT_S64 } },
		{ MAX, { PT_U32, PT_S32, PT_U64, PT_S64 } },
		{ INC, { PT_U32 } },
		{ DEC, { PT_U32 } },
		{ AND, { PT_B32, PT_B64 } },
		{ OR, { PT_B32, PT_B64 } },
		{ XOR, { PT_B32, PT_B64 } },
		{ EXCH, { PT_B32, PT_B64 } },
		{ CAS, { PT_B16, PT_B32, PT_B64 } },
	};
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
		for (size_t k = 0; ops[i].types[k]; k++)
			add(s, place, ops[i].op, ops[i].types[k], "", "");
	}
	static const enum pt_type halves[] = { PT_F16, PT_BF16, PT_F16X2, PT_BF16X2 };
	for (size_t i = 0; i < 4; i++)
		add(s, place, ADD, halves[i], "", ".noftz");
}

/* 128 bits: memory {a, b}; cas compares with {a, e ? b : c} and writes {c, a}. */
static void ref_wide(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	bool equal = in[3] || in[1] == in[2];
	want->out[0] = in[0];
	want->out[1] = in[1];
	bool write = row->arg[0] == EXCH || equal;
	want->out[2] = write ? in[2] : in[0];
	want->out[3] = write ? in[0] : in[1];
}

static void add_wide(struct pt_suite *s, size_t place)
{
	const char *q = places[place].qualifier, *base = places[place].base;
	for (int op = EXCH; op <= CAS; op++) {
		struct pt_row *r = pt_row_add(s, ref_wide, "b64,b64,b64,b64:b64,b64,b64,pred",
			"atom%s.%s.b128 in %s", q, op_names[op], places[place].name);
		free(r->body);
		r->body =
			pt_format("%sst%s.v2.b64 [%s], {%%a, %%b};\nselp.b64 %%v2, %%b, %%c, "
				  "%%e;\nmov.b128 %%y1, {%%a, %%v2};\n"
				  "mov.b128 %%y2, {%%c, %%a};\natom%s.%s.b128 %%y0, [%s], %s%%y2;\n"
				  "mov.b128 {%%d0, %%d1}, %%y0;\n"
				  "ld%s.v2.b64 {%%d2, %%d3}, [%s];",
				places[place].set_up, q, base, q, op_names[op], base,
				op == CAS ? "%y1, " : "", q, base);
		r->decl = place == 1 ? ".reg .b128 %y<3>;\n\t.reg .b64 %v<4>;\n\t.reg .b32 "
				       "%as;\n\t.shared .align 16 .b8 own[2048];"
				     : ".reg .b128 %y<3>;\n\t.reg .b64 %at, %v<4>;";
		r->arg[0] = op;
	}
}

void pt_atomic_rows(struct pt_suite *s)
{
	static const char *const orders[] = { ".relaxed.gpu", ".acquire.sys", ".release.cta",
		".acq_rel.gpu", ".relaxed.sys" };
	for (size_t p = 0; p < N_PLACES; p++)
		add_place(s, p);
	for (size_t p = 0; p < 3; p++)
		add_wide(s, p);
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		add(s, 0, CAS, PT_B32, orders[i], "");
		add(s, 1, EXCH, PT_B64, orders[i], "");
		add(s, 2, CAS, PT_B64, orders[i], "");
	}
	add(s, 0, ADD, PT_U32, ".relaxed.gpu", "");
	add(s, 0, ADD, PT_U64, ".release.sys", "");
}
