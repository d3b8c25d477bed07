/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * mma and mma.sp in all shapes and types. The places of the elements are written from the figures of
 * the PTX manual, one element at a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/matrix.h"

#define ROUNDS      4u
#define LANE_WORDS  32u /* per lane and round: A from 0, B from 8, C from 16, metadata at 31 */
#define MAX_RESULTS 8u

struct form {
	unsigned m, k;
	enum pt_element a, b, c, d;
	const char *sparse; /* "", "sp" or "sp::ordered_metadata" */
	unsigned selectors;
};

/* clang-format off */
static const struct form forms[] = {
	{ 16, 8, PT_M_F16, PT_M_F16, PT_M_F16, PT_M_F16, "", 0 }, { 16, 8, PT_M_F16, PT_M_F16, PT_M_F32, PT_M_F32, "", 0 },
	{ 16, 16, PT_M_F16, PT_M_F16, PT_M_F16, PT_M_F16, "", 0 }, { 16, 16, PT_M_F16, PT_M_F16, PT_M_F32, PT_M_F32, "", 0 },
	{ 16, 8, PT_M_BF16, PT_M_BF16, PT_M_F32, PT_M_F32, "", 0 }, { 16, 16, PT_M_BF16, PT_M_BF16, PT_M_F32, PT_M_F32, "", 0 },
	{ 16, 4, PT_M_TF32, PT_M_TF32, PT_M_F32, PT_M_F32, "", 0 }, { 16, 8, PT_M_TF32, PT_M_TF32, PT_M_F32, PT_M_F32, "", 0 },
	{ 8, 4, PT_M_F64, PT_M_F64, PT_M_F64, PT_M_F64, "", 0 }, { 16, 4, PT_M_F64, PT_M_F64, PT_M_F64, PT_M_F64, "", 0 },
	{ 16, 8, PT_M_F64, PT_M_F64, PT_M_F64, PT_M_F64, "", 0 }, { 16, 16, PT_M_F64, PT_M_F64, PT_M_F64, PT_M_F64, "", 0 },
	{ 16, 16, PT_M_E4M3, PT_M_E4M3, PT_M_F16, PT_M_F16, "", 0 }, { 16, 16, PT_M_E4M3, PT_M_E5M2, PT_M_F32, PT_M_F32, "", 0 },
	{ 16, 32, PT_M_E5M2, PT_M_E4M3, PT_M_F16, PT_M_F16, "", 0 }, { 16, 32, PT_M_E5M2, PT_M_E5M2, PT_M_F32, PT_M_F32, "", 0 },
	{ 8, 16, PT_M_S8, PT_M_U8, PT_M_S32, PT_M_S32, "", 0 }, { 8, 16, PT_M_U8, PT_M_U8, PT_M_S32, PT_M_S32, "", 0 },
	{ 16, 16, PT_M_S8, PT_M_S8, PT_M_S32, PT_M_S32, "", 0 }, { 16, 16, PT_M_U8, PT_M_S8, PT_M_S32, PT_M_S32, "", 0 },
	{ 16, 32, PT_M_S8, PT_M_S8, PT_M_S32, PT_M_S32, "", 0 }, { 16, 32, PT_M_U8, PT_M_U8, PT_M_S32, PT_M_S32, "", 0 },
	{ 8, 32, PT_M_S4, PT_M_U4, PT_M_S32, PT_M_S32, "", 0 }, { 8, 32, PT_M_U4, PT_M_U4, PT_M_S32, PT_M_S32, "", 0 },
	{ 16, 32, PT_M_S4, PT_M_S4, PT_M_S32, PT_M_S32, "", 0 }, { 16, 64, PT_M_U4, PT_M_S4, PT_M_S32, PT_M_S32, "", 0 },
	{ 16, 64, PT_M_U4, PT_M_U4, PT_M_S32, PT_M_S32, "", 0 }, { 8, 128, PT_M_B1, PT_M_B1, PT_M_S32, PT_M_S32, "", 0 },
	{ 16, 128, PT_M_B1, PT_M_B1, PT_M_S32, PT_M_S32, "", 0 }, { 16, 256, PT_M_B1, PT_M_B1, PT_M_S32, PT_M_S32, "", 0 },
	{ 16, 16, PT_M_F16, PT_M_F16, PT_M_F16, PT_M_F16, "sp", 4 }, { 16, 32, PT_M_F16, PT_M_F16, PT_M_F32, PT_M_F32, "sp", 2 },
	{ 16, 16, PT_M_BF16, PT_M_BF16, PT_M_F32, PT_M_F32, "sp", 4 }, { 16, 32, PT_M_BF16, PT_M_BF16, PT_M_F32, PT_M_F32, "sp::ordered_metadata", 2 },
	{ 16, 8, PT_M_TF32, PT_M_TF32, PT_M_F32, PT_M_F32, "sp", 4 }, { 16, 16, PT_M_TF32, PT_M_TF32, PT_M_F32, PT_M_F32, "sp", 2 },
	{ 16, 32, PT_M_S8, PT_M_U8, PT_M_S32, PT_M_S32, "sp", 2 }, { 16, 64, PT_M_S8, PT_M_S8, PT_M_S32, PT_M_S32, "sp", 1 },
	{ 16, 64, PT_M_U4, PT_M_S4, PT_M_S32, PT_M_S32, "sp", 2 }, { 16, 128, PT_M_S4, PT_M_S4, PT_M_S32, PT_M_S32, "sp", 1 },
	{ 16, 64, PT_M_E4M3, PT_M_E5M2, PT_M_F32, PT_M_F32, "sp", 1 },
	{ 16, 32, PT_M_E2M1, PT_M_E2M1, PT_M_F32, PT_M_F32, "", 0 }, { 16, 32, PT_M_E2M1, PT_M_E4M3, PT_M_F16, PT_M_F16, "", 0 },
	{ 16, 32, PT_M_E2M3, PT_M_E3M2, PT_M_F32, PT_M_F32, "", 0 }, { 16, 32, PT_M_E5M2, PT_M_E2M3, PT_M_F16, PT_M_F16, "", 0 },
	{ 16, 32, PT_M_E3M2, PT_M_E3M2, PT_M_F32, PT_M_F32, "", 0 },
	{ 16, 64, PT_M_E2M1, PT_M_E2M3, PT_M_F32, PT_M_F32, "sp::ordered_metadata", 1 },
};
/* clang-format on */
#define N_FORMS (sizeof forms / sizeof forms[0])

/* Elements of one register. */
static unsigned per(const struct form *f)
{
	unsigned bits = pt_element_bits(f->a);
	return bits == 64 ? 1 : 32 / bits;
}

static unsigned stored_k(const struct form *f)
{
	return f->sparse[0] ? f->k / 2 : f->k;
}

static unsigned a_count(const struct form *f)
{
	return f->m * stored_k(f) / 32 / per(f);
}

static unsigned b_count(const struct form *f)
{
	return 8 * f->k / 32 / per(f);
}

static unsigned sum_count(const struct form *f, enum pt_element t)
{
	return f->m * 8 / 32 / (t == PT_M_F16 ? 2 : 1);
}

static bool is_small(const struct form *f)
{
	return f->a >= PT_M_E2M1 || f->b >= PT_M_E2M1;
}

static char *opcode(const struct form *f, int is_and, int saturate)
{
	struct pt_text t = { 0 };
	pt_text_add(&t, "mma%s%s.sync.aligned.m%un8k%u.row.col%s%s.%s.%s.%s.%s%s",
		f->sparse[0] ? "." : "", f->sparse, f->m, f->k, is_small(f) ? ".kind::f8f6f4" : "",
		saturate ? ".satfinite" : "", pt_element_name(f->d), pt_element_name(f->a),
		pt_element_name(f->b), pt_element_name(f->c),
		f->a != PT_M_B1  ? ""
			: is_and ? ".and.popc"
				 : ".xor.popc");
	return t.p;
}

static void add_list(struct pt_text *t, const char *name, unsigned n)
{
	pt_text_add(t, "{");
	for (unsigned i = 0; i < n; i++)
		pt_text_add(t, "%s%%%s%u", i ? ", " : "", name, i);
	pt_text_add(t, "}");
}

/* The operands are words in memory; 64-bit elements take two. */
static char *form_text(const struct form *f, const char *op, unsigned selector)
{
	struct pt_text t = { 0 };
	bool wide = f->a == PT_M_F64;
	const char *sums = wide                                ? "f64"
		: pt_element_integer(f->a) || f->c == PT_M_F16 ? "b32"
							       : "f32";
	unsigned words = wide ? 2 : 1;
	const unsigned counts[] = { a_count(f), b_count(f), sum_count(f, f->c) },
		       starts[] = { 0, wide ? 16 : 8, wide ? 24 : 16 };
	static const char *const names[] = { "a", "b", "c" };
	pt_text_add(&t, "%s", PT_ENTRY("mma") "{\n" PT_PROLOGUE);
	pt_text_add(&t,
		"	.reg .%s %%a<8>, %%b<8>;\n	.reg .%s "
		"%%c<8>, %%d<8>;\n	.reg .b32 %%e;\n"
		"	mad.wide.u32 %%p0, %%i, %u, %%p0;\n	mad.wide.u32 %%p1, "
		"%%i, %u, %%p1;\n",
		wide ? "f64" : "b32", sums, LANE_WORDS * 4, MAX_RESULTS * 4);
	for (unsigned o = 0; o < 3; o++) {
		for (unsigned i = 0; i < counts[o]; i++)
			pt_text_add(&t, "	ld.global.%s %%%s%u, [%%p0+%u];\n",
				o == 2         ? sums
					: wide ? "f64"
					       : "b32",
				names[o], i, (starts[o] + i * words) * 4);
	}
	pt_text_add(&t, "	ld.global.b32 %%e, [%%p0+124];\n	%s ", op);
	add_list(&t, "d", sum_count(f, f->d));
	for (unsigned o = 0; o < 3; o++) {
		pt_text_add(&t, ", ");
		add_list(&t, names[o], counts[o]);
	}
	if (f->sparse[0])
		pt_text_add(&t, ", %%e, %u", selector);
	pt_text_add(&t, ";\n");
	for (unsigned i = 0; i < sum_count(f, f->d); i++)
		pt_text_add(&t, "	st.global.%s [%%p1+%u], %%d%u;\n", sums, i * words * 4, i);
	pt_text_add(&t, "	ret;\n}\n");
	return t.p;
}

/* Sets element e of a fragment. */
static void put(uint32_t *words, enum pt_element t, unsigned e, int64_t v)
{
	unsigned bits = pt_element_bits(t);
	uint64_t x = pt_element_encode(t, v);
	if (bits == 64)
		memcpy(words + e * 2, &x, 8);
	else
		words[e * bits / 32] |= (uint32_t)x << (e * bits % 32);
}

/*
 * A group of a row has `kept` of `group` columns that are not 0; places: which. In tf32 one of two;
 * with 4-bit types two of four pairs; else two of four.
 */
struct groups {
	unsigned group, kept, unit;
};

static struct groups groups_of(const struct form *f)
{
	unsigned bits = pt_element_bits(f->a);
	return bits == 32   ? (struct groups){ 2, 1, 1 }
		: bits == 4 ? (struct groups){ 8, 4, 2 }
			    : (struct groups){ 4, 2, 1 };
}

/* Where the metadata of group g in row i are: the lane and the lowest of 4 bits. */
static void metadata_place(const struct form *f, unsigned selector, unsigned i, unsigned g,
	unsigned *lane, unsigned *bit)
{
	bool narrow = pt_element_bits(f->a) < 16;
	*lane = i % 8 * 4;
	if (!narrow) {
		*lane += f->selectors == 4 ? selector : selector * 2 + g / 4;
		*bit = g % 4 * 4 + i / 8 * 16;
	} else {
		*lane += f->selectors == 2 ? selector * 2 + i / 8 : g / 8 * 2 + i / 8;
		*bit = g % 8 * 4;
	}
}

/* Makes a sparse: packed gets its elements, words the metadata. */
static void make_sparse(struct pt_run *run, const struct form *f, unsigned selector,
	struct pt_matrix *x, int64_t packed[16][64], uint32_t *words)
{
	struct groups s = groups_of(f);
	for (unsigned i = 0; i < 16; i++) {
		for (unsigned g = 0; g < f->k / s.group; g++) {
			unsigned first = pt_rng_below(&run->rng, s.kept == 1 ? 2 : 3),
				 second = first + 1 +
				(s.kept == 1 ? 0 : pt_rng_below(&run->rng, 3 - first)),
				 lane, bit,
				 code = s.kept == 1 ? (first ? 14 : 4) : first | second << 2;
			for (unsigned c = 0; c < s.group; c++) {
				unsigned unit = c / s.unit;
				bool is_first = unit == first,
				     is_second = s.kept > 1 && unit == second;
				if (is_first || is_second)
					packed[i][g * s.kept + (is_second ? s.unit : 0) +
						c % s.unit] = x->a[i][g * s.group + c];
				else
					x->a[i][g * s.group + c] = 0;
			}
			metadata_place(f, selector, i, g, &lane, &bit);
			words[lane * LANE_WORDS + 31] |= code << bit;
		}
	}
}

/* The figures of the manual. */
static void fill_lanes(const struct form *f, const struct pt_matrix *x, int64_t packed[16][64],
	uint32_t *in, uint32_t *want)
{
	bool wide = f->a == PT_M_F64;
	unsigned w = per(f);
	for (unsigned lane = 0; lane < 32; lane++) {
		unsigned group = lane / 4, quad = lane % 4;
		uint32_t *words = in + lane * LANE_WORDS;
		for (unsigned e = 0; e < a_count(f) * w; e++) {
			unsigned r = e / w, half = f->m == 8 ? 0 : r % 2,
				 run = f->m == 8 ? r : r / 2, row = group + half * 8,
				 column = quad * w + e % w + run * 4 * w;
			put(words, f->a, e, f->sparse[0] ? packed[row][column] : x->a[row][column]);
		}
		for (unsigned e = 0; e < b_count(f) * w; e++)
			put(words + (wide ? 16 : 8), f->b, e,
				x->b[quad * w + e % w + e / w * 4 * w][group]);
		for (unsigned e = 0; e < f->m * 8 / 32; e++) {
			unsigned row = group + e / 2 * 8, column = quad * 2 + e % 2;
			put(words + (wide ? 24 : 16), f->c, e, x->c[row][column]);
			put(want + lane * MAX_RESULTS, f->d, e, x->d[row][column]);
		}
	}
}

static bool run_mma(struct pt_run *run)
{
	const struct form *f = &forms[run->c->arg[0]];
	unsigned selector = (unsigned)run->c->arg[1];
	static struct pt_matrix x;
	static uint32_t in[ROUNDS * 32 * LANE_WORDS], want[ROUNDS * 32 * MAX_RESULTS],
		got[ROUNDS * 32 * MAX_RESULTS];
	static int64_t packed[16][64];
	memset(in, 0, sizeof in);
	memset(want, 0, sizeof want);
	x.m = f->m;
	x.n = 8;
	x.k = f->k;
	for (unsigned r = 0; r < ROUNDS; r++) {
		uint32_t *words = in + r * 32 * LANE_WORDS;
		pt_matrix_fill(&run->rng, &x, f->a, f->b);
		if (f->sparse[0])
			make_sparse(run, f, selector, &x, packed, words);
		pt_matrix_multiply(&x, f->a, run->c->arg[2], run->c->arg[3]);
		fill_lanes(f, &x, packed, words, want + r * 32 * MAX_RESULTS);
	}
	unsigned written = sum_count(f, f->d) * (f->a == PT_M_F64 ? 2 : 1);
	for (unsigned i = 0; i < sizeof want / 4; i++) {
		if (i % MAX_RESULTS >= written)
			want[i] = 0xa5a5a5a5;
	}
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "mma", ROUNDS / 2, 64, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "word", got, want, sizeof got / 4);
}

/* ---- m8n8k4 with f16: each product belongs to 8 lanes ---- */

static const char *const layouts[] = { "row", "col" };

static char *quad_text(const char *op, bool c_half, bool d_half)
{
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s", PT_ENTRY("mma") "{\n" PT_PROLOGUE);
	pt_text_add(&t,
		"	.reg .b32 %%a<2>, %%b<2>;\n	.reg .%s "
		"%%c<8>;\n	.reg .%s %%d<8>;\n"
		"	mad.wide.u32 %%p0, %%i, 128, %%p0;\n	mad.wide.u32 %%p1, "
		"%%i, 32, %%p1;\n"
		"	ld.global.v2.b32 {%%a0, %%a1}, [%%p0];\n	"
		"ld.global.v2.b32 {%%b0, %%b1}, [%%p0+32];\n",
		c_half ? "b32" : "f32", d_half ? "b32" : "f32");
	for (unsigned i = 0; i < (c_half ? 4u : 8u); i++)
		pt_text_add(&t, "	ld.global.%s %%c%u, [%%p0+%u];\n", c_half ? "b32" : "f32",
			i, 64 + i * 4);
	pt_text_add(&t, "	%s ", op);
	add_list(&t, "d", d_half ? 4 : 8);
	pt_text_add(&t, ", {%%a0, %%a1}, {%%b0, %%b1}, ");
	add_list(&t, "c", c_half ? 4 : 8);
	pt_text_add(&t, ";\n");
	for (unsigned i = 0; i < (d_half ? 4u : 8u); i++)
		pt_text_add(&t, "	st.global.%s [%%p1+%u], %%d%u;\n", d_half ? "b32" : "f32",
			i * 4, i);
	pt_text_add(&t, "	ret;\n}\n");
	return t.p;
}

static void quad_sum_place(bool half, unsigned lane, unsigned e, unsigned *row, unsigned *column)
{
	*row = (half ? lane % 4 : (lane & 1) + (e & 2)) + (lane < 16 ? 0 : 4);
	*column = half ? e : (e & 4) + (lane & 2) + (e & 1);
}

static bool run_quads(struct pt_run *run)
{
	bool a_col = run->c->arg[0] & 1, b_col = run->c->arg[0] & 2, c_half = run->c->arg[1] & 1,
	     d_half = run->c->arg[1] & 2;
	static struct pt_matrix x;
	uint32_t in[32 * LANE_WORDS] = { 0 }, want[32 * MAX_RESULTS] = { 0 }, got[32 * MAX_RESULTS];
	x.m = x.n = 8;
	x.k = 4;
	for (unsigned p = 0; p < 4; p++) {
		pt_matrix_fill(&run->rng, &x, PT_M_F16, PT_M_F16);
		pt_matrix_multiply(&x, PT_M_F16, false, false);
		for (unsigned lane = 0; lane < 32; lane++) {
			if (lane / 4 % 4 != p)
				continue;
			unsigned four = lane < 16 ? 0 : 4, row, column;
			for (unsigned e = 0; e < 4; e++) {
				put(in + lane * LANE_WORDS, PT_M_F16, e,
					a_col ? x.a[e + four][lane % 4] : x.a[lane % 4 + four][e]);
				put(in + lane * LANE_WORDS + 8, PT_M_F16, e,
					b_col ? x.b[e][lane % 4 + four] : x.b[lane % 4][e + four]);
			}
			for (unsigned e = 0; e < 8; e++) {
				quad_sum_place(c_half, lane, e, &row, &column);
				put(in + lane * LANE_WORDS + 16, c_half ? PT_M_F16 : PT_M_F32, e,
					x.c[row][column]);
				quad_sum_place(d_half, lane, e, &row, &column);
				put(want + lane * MAX_RESULTS, d_half ? PT_M_F16 : PT_M_F32, e,
					x.d[row][column]);
			}
			for (unsigned i = 4; d_half && i < 8; i++)
				want[lane * MAX_RESULTS + i] = 0xa5a5a5a5;
		}
	}
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "mma", 1, 32, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "word", got, want, sizeof got / 4);
}

static void add_quads(struct pt_suite *s)
{
	/* C and D in f16 or f32; the manual has no f32 C with an f16 D */
	static const int sums[] = { 0, 1, 3 };
	for (int layout = 0; layout < 4; layout++) {
		for (unsigned i = 0; i < 3; i++) {
			char *op = pt_format("mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s",
				     layouts[layout & 1], layouts[layout >> 1],
				     sums[i] & 2 ? "f16" : "f32", sums[i] & 1 ? "f16" : "f32"),
			     *text = quad_text(op, sums[i] & 1, sums[i] & 2);
			struct pt_case *c = pt_case_add(s, run_quads, op, text);
			c->arg[0] = layout;
			c->arg[1] = sums[i];
			free(op);
			free(text);
		}
	}
}

/* ---- movmatrix ---- */

static const char movmatrix_text[] =
	PT_ENTRY("mov") "{\n" PT_PROLOGUE
			"	mad.wide.u32 %p0, %i, 4, %p0;\n	mad.wide.u32 %p1, %i, 4, %p1;\n"
			"	ld.global.b32 %r1, [%p0];\n	"
			"movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;\n"
			"	st.global.b32 [%p1], %r2;\n	ret;\n}\n";

static bool run_movmatrix(struct pt_run *run)
{
	uint16_t in[8][8], want[8][8];
	uint32_t got[32], words[32];
	for (unsigned i = 0; i < 64; i++)
		in[i / 8][i % 8] = (uint16_t)pt_rng_next(&run->rng);
	for (unsigned i = 0; i < 64; i++)
		want[i % 8][i / 8] = in[i / 8][i % 8];
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "mov", 1, 32, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	memcpy(words, want, sizeof words);
	return pt_run_same32(run, "word", got, words, 32);
}

void pt_group_matrix(struct pt_suite *s)
{
	for (size_t i = 0; i < N_FORMS; i++) {
		const struct form *f = &forms[i];
		bool integer = pt_element_integer(f->a);
		for (int variant = 0; variant < (integer ? 2 : 1); variant++) {
			bool b1 = f->a == PT_M_B1;
			char *op = opcode(f, b1 && variant, !b1 && variant);
			for (unsigned selector = 0; selector < (f->selectors ? f->selectors : 1);
				selector++) {
				char *name = f->sparse[0]
					? pt_format("%s, selector %u", op, selector)
					: pt_format("%s", op),
				     *text = form_text(f, op, selector);
				struct pt_case *c = pt_case_add(s, run_mma, name, text);
				c->target = is_small(f) ? "sm_120a" : PT_TARGET;
				c->arg[0] = (int)i;
				c->arg[1] = (int)selector;
				c->arg[2] = b1 && variant;
				c->arg[3] = !b1 && variant;
				free(name);
				free(text);
			}
			free(op);
		}
	}
	add_quads(s);
	pt_case_add(s, run_movmatrix, "movmatrix", movmatrix_text);
	pt_wmma_cases(s);
	pt_matrix8_cases(s);
}
