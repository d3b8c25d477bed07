/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * wgmma in all types, with A in registers and in memory, and B in each layout of memory. The layouts
 * are written from the figures of the PTX manual: atoms of eight rows, in which the swizzle exchanges
 * parts of 16 bytes. Two warpgroups compute the same product.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/matrix.h"

#define BLOCKS      2u
#define THREADS     256u
#define IMAGE       49152u /* bytes of shared memory: A, then B */
#define B_AT        16384u
#define LANE_WORDS  132u /* A, then D; the metadata at the end */
#define METADATA    131u
#define BLOCK_WORDS (IMAGE / 4 + 128 * LANE_WORDS)
#define MAX_SUMS    128u

struct form {
	unsigned n;
	enum pt_element a, b, d;
	/* parts of 16 bytes in a row of an atom: 1 without swizzle, 2, 4, 8; 0: A is in registers */
	unsigned a_width, b_width;
	bool a_trans, b_trans;
	int a_scale, b_scale; /* 1, -1 */
	bool adds, saturate;
	bool overwrites; /* the first warp of a single group destroys the matrices after the wait */
	unsigned sparse; /* 0, or the selector of the metadata plus 1 */
};

/* clang-format off */
static const struct form forms[] = {
	{ 8, PT_M_F16, PT_M_F16, PT_M_F16, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0 }, { 64, PT_M_F16, PT_M_F16, PT_M_F32, 8, 8, 0, 0, 1, 1, 1, 0, 0, 0 },
	{ 256, PT_M_F16, PT_M_F16, PT_M_F32, 8, 8, 0, 0, -1, 1, 1, 0, 0, 0 }, { 24, PT_M_F16, PT_M_F16, PT_M_F32, 2, 4, 0, 0, 1, 1, 0, 0, 0, 0 },
	{ 136, PT_M_F16, PT_M_F16, PT_M_F16, 4, 2, 0, 0, 1, -1, 1, 0, 0, 0 }, { 128, PT_M_F16, PT_M_F16, PT_M_F32, 8, 8, 1, 1, 1, 1, 1, 0, 0, 0 },
	{ 64, PT_M_F16, PT_M_F16, PT_M_F32, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0 }, { 96, PT_M_F16, PT_M_F16, PT_M_F16, 2, 4, 1, 1, -1, -1, 1, 0, 0, 0 },
	{ 16, PT_M_F16, PT_M_F16, PT_M_F32, 4, 2, 1, 1, 1, 1, 0, 0, 0, 0 }, { 256, PT_M_F16, PT_M_F16, PT_M_F32, 0, 8, 0, 1, 1, 1, 1, 0, 0, 0 },
	{ 40, PT_M_F16, PT_M_F16, PT_M_F16, 0, 8, 0, 0, -1, 1, 1, 0, 0, 0 }, { 128, PT_M_F16, PT_M_F16, PT_M_F32, 8, 8, 0, 0, 1, 1, 1, 0, 1, 0 },
	{ 64, PT_M_BF16, PT_M_BF16, PT_M_F32, 8, 8, 0, 1, 1, 1, 1, 0, 0, 0 }, { 192, PT_M_BF16, PT_M_BF16, PT_M_F32, 8, 4, 1, 0, 1, 1, 1, 0, 0, 0 },
	{ 32, PT_M_BF16, PT_M_BF16, PT_M_F32, 0, 1, 0, 0, 1, -1, 1, 0, 0, 0 }, { 32, PT_M_TF32, PT_M_TF32, PT_M_F32, 8, 8, 0, 0, 1, 1, 1, 0, 0, 0 },
	{ 104, PT_M_TF32, PT_M_TF32, PT_M_F32, 0, 4, 0, 0, -1, 1, 1, 0, 0, 0 }, { 256, PT_M_TF32, PT_M_TF32, PT_M_F32, 1, 2, 0, 0, 1, 1, 0, 0, 0, 0 },
	{ 128, PT_M_E4M3, PT_M_E4M3, PT_M_F32, 8, 8, 0, 0, 1, 1, 1, 0, 0, 0 }, { 48, PT_M_E4M3, PT_M_E5M2, PT_M_F16, 4, 8, 0, 0, 1, -1, 1, 0, 0, 0 },
	{ 72, PT_M_E5M2, PT_M_E4M3, PT_M_F32, 0, 8, 0, 0, 1, 1, 1, 0, 0, 0 }, { 8, PT_M_E5M2, PT_M_E5M2, PT_M_F16, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0 },
	{ 64, PT_M_S8, PT_M_S8, PT_M_S32, 8, 8, 0, 0, 1, 1, 1, 0, 0, 0 }, { 24, PT_M_U8, PT_M_S8, PT_M_S32, 4, 2, 0, 0, 1, 1, 1, 1, 0, 0 },
	{ 256, PT_M_S8, PT_M_U8, PT_M_S32, 0, 8, 0, 0, 1, 1, 1, 1, 0, 0 }, { 112, PT_M_U8, PT_M_U8, PT_M_S32, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0 },
	{ 128, PT_M_B1, PT_M_B1, PT_M_S32, 8, 8, 0, 0, 1, 1, 1, 0, 0, 0 }, { 16, PT_M_B1, PT_M_B1, PT_M_S32, 0, 2, 0, 0, 1, 1, 1, 0, 0, 0 },
	{ 64, PT_M_F16, PT_M_F16, PT_M_F32, 8, 8, 0, 0, 1, 1, 1, 0, 0, 1 }, { 32, PT_M_F16, PT_M_F16, PT_M_F16, 0, 4, 0, 0, -1, 1, 1, 0, 0, 2 },
	{ 128, PT_M_BF16, PT_M_BF16, PT_M_F32, 4, 8, 1, 1, 1, 1, 0, 0, 0, 2 }, { 8, PT_M_BF16, PT_M_BF16, PT_M_F32, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1 },
	{ 48, PT_M_TF32, PT_M_TF32, PT_M_F32, 2, 8, 0, 0, 1, 1, 1, 0, 0, 1 }, { 200, PT_M_TF32, PT_M_TF32, PT_M_F32, 0, 1, 0, 0, 1, -1, 1, 0, 0, 2 },
	{ 96, PT_M_E4M3, PT_M_E5M2, PT_M_F32, 8, 8, 0, 0, 1, 1, 1, 0, 0, 1 }, { 80, PT_M_S8, PT_M_U8, PT_M_S32, 8, 4, 0, 0, 1, 1, 1, 1, 0, 1 },
	{ 240, PT_M_U8, PT_M_S8, PT_M_S32, 0, 8, 0, 0, 1, 1, 0, 0, 0, 1 },
};
/* clang-format on */
#define N_FORMS (sizeof forms / sizeof forms[0])

static unsigned depth(const struct form *f)
{
	return (f->sparse ? 512 : 256) / pt_element_bits(f->a);
}

static unsigned sum_count(const struct form *f)
{
	return f->n / (f->d == PT_M_F16 ? 4 : 2);
}

/* How a matrix lies in memory: where atoms follow each other, in bytes. */
struct place {
	unsigned width, start, leading, stride;
	bool trans;
};

/*
 * Rows of an atom are 16 * width bytes long, and there are eight. Without trans a row is one of m or
 * n, and the operand has two parts of each; `start` selects a pair in the first form. Gaps between
 * the atoms of A.
 */
static struct place place_of(unsigned width, bool trans, unsigned rows, unsigned gap, unsigned pair)
{
	struct place p = { .width = width, .trans = trans };
	unsigned atom = 128 * width;
	if (!trans && width == 1) {
		p.leading = rows * 16;
		p.stride = 128;
	} else if (!trans) {
		p.leading = 16;
		p.stride = atom * gap;
		p.start = pair % (width / 2) * 32;
	} else if (width == 1) {
		p.leading = 128;
		p.stride = 512;
	} else {
		p.leading = atom;
		p.stride = atom * ((rows / 8 + width - 1) / width);
	}
	return p;
}

/* The byte of the 16-byte part: its row of m or n (or k), and its number along the other side. */
static unsigned part_at(const struct place *p, unsigned row, unsigned part)
{
	unsigned in_row, at;
	if (p->width == 1)
		return row % 8 * 16 +
			(p->trans ? row / 8 * p->leading + part * p->stride
				  : row / 8 * p->stride + part * p->leading);
	if (p->trans) {
		in_row = part % p->width;
		at = row / 8 * p->stride + part / p->width * p->leading;
	} else {
		in_row = part + p->start / 16;
		at = row / 8 * p->stride;
	}
	/* 128 bytes: the row is added; 64: rows in pairs; 32: in fours */
	in_row ^= row % 8 / (8 / p->width);
	return at + row % 8 * p->width * 16 + in_row * 16;
}

/* Writes element x of the row (of m or n) into the image. */
static void put_element(uint8_t *image, const struct place *p, enum pt_element t, unsigned row,
	unsigned k, int64_t value)
{
	unsigned bits = pt_element_bits(t), line = p->trans ? k : row, x = p->trans ? row : k,
		 bit = x * bits % 128;
	uint64_t v = pt_element_encode(t, value);
	uint8_t *to = image + part_at(p, line, x * bits / 128) + bit / 8;
	if (bits < 8)
		*to |= (uint8_t)(v << bit % 8);
	else
		memcpy(to, &v, bits / 8);
}

static uint64_t descriptor(const struct place *p)
{
	static const uint64_t modes[] = { 0, 0, 3, 0, 2, 0, 0, 0, 1 };
	return p->start >> 4 | (uint64_t)p->leading >> 4 << 16 | (uint64_t)p->stride >> 4 << 32 |
		modes[p->width] << 62;
}

static char *opcode(const struct form *f)
{
	return pt_format("wgmma.mma_async%s.sync.aligned.m64n%uk%u%s.%s.%s.%s%s",
		f->sparse ? ".sp" : "", f->n, depth(f), f->saturate ? ".satfinite" : "",
		pt_element_name(f->d), pt_element_name(f->a), pt_element_name(f->b),
		f->a == PT_M_B1 ? ".and.popc" : "");
}

static void add_operands(struct pt_text *t, const struct form *f)
{
	pt_text_add(t, "{");
	for (unsigned i = 0; i < sum_count(f); i++)
		pt_text_add(t, "%s%%d%u", i ? ", " : "", i);
	pt_text_add(t, "}, %s, %%l6", f->a_width ? "%l5" : "{%a0, %a1, %a2, %a3}");
	if (f->sparse)
		pt_text_add(t, ", %%e, %u", f->sparse - 1);
	pt_text_add(t, ", %%q2");
	if (!pt_element_integer(f->a))
		pt_text_add(t, ", %d, %d", f->a_scale, f->b_scale);
	if (pt_element_bits(f->a) == 16 && f->a_width)
		pt_text_add(t, ", %d", f->a_trans);
	if (pt_element_bits(f->a) == 16)
		pt_text_add(t, ", %d", f->b_trans);
	pt_text_add(t, ";\n");
}

/* clang-format off */
static char *form_text(const struct form *f, const char *op)
{
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s", PT_ENTRY("wgmma") "{\n	.shared .align 1024 .b8 image[49152];\n" PT_PROLOGUE);
	pt_text_add(&t, "	.reg .b32 %%a<4>, %%e;\n	.reg .%s %%d<128>;\n"
		"	mad.wide.u32 %%p0, %%r62, %u, %%p0;\n	mov.u32 %%r1, image;\n	shl.b32 %%r2, %%t, 4;\n	shl.b32 %%r8, %%r63, 4;\n"
		"COPY:\n	setp.ge.u32 %%q1, %%r2, %u;\n	@%%q1 bra DONE;\n	cvt.u64.u32 %%l1, %%r2;\n	add.u64 %%l1, %%l1, %%p0;\n"
		"	ld.global.v4.u32 {%%r3, %%r4, %%r5, %%r6}, [%%l1];\n	add.u32 %%r7, %%r1, %%r2;\n"
		"	st.shared.v4.u32 [%%r7], {%%r3, %%r4, %%r5, %%r6};\n	add.u32 %%r2, %%r2, %%r8;\n	bra COPY;\n"
		"DONE:\n	fence.proxy.async.shared::cta;\n	bar.sync 0;\n"
		"	and.b32 %%r2, %%t, 127;\n	mad.wide.u32 %%p0, %%r2, %u, %%p0;\n	mad.wide.u32 %%p1, %%i, %u, %%p1;\n"
		"	shr.u32 %%r9, %%r1, 4;\n	cvt.u64.u32 %%l5, %%r9;\n	add.u64 %%l6, %%l5, %u;\n"
		"	add.u64 %%l5, %%l5, %%p2;\n	add.u64 %%l6, %%l6, %%p3;\n	mov.u32 %%r10, %d;\n	setp.ne.u32 %%q2, %%r10, 0;\n",
		f->d == PT_M_F32 ? "f32" : "b32", BLOCK_WORDS * 4, IMAGE, LANE_WORDS * 4, MAX_SUMS * 4, B_AT / 16, f->adds);
	for (unsigned i = 0; i < 4; i++)
		pt_text_add(&t, "	ld.global.b32 %%a%u, [%%p0+%u];\n", i, IMAGE + i * 4);
	for (unsigned i = 0; i < sum_count(f); i++)
		pt_text_add(&t, "	ld.global.b32 %%d%u, [%%p0+%u];\n", i, IMAGE + 16 + i * 4);
	pt_text_add(&t, "	ld.global.b32 %%e, [%%p0+%u];\n", IMAGE + METADATA * 4);
	pt_text_add(&t, "	wgmma.fence.sync.aligned;\n	%s ", op);
	add_operands(&t, f);
	pt_text_add(&t, "	wgmma.commit_group.sync.aligned;\n	wgmma.wait_group.sync.aligned 0;\n");
	if (f->overwrites) /* only the first warp */
		pt_text_add(&t, "	setp.ge.u32 %%q3, %%t, 32;\n	@%%q3 bra KEEP;\n	shl.b32 %%r2, %%t, 4;\n	mov.u32 %%r3, -1;\n"
			"FILL:\n	add.u32 %%r7, %%r1, %%r2;\n	st.shared.v4.u32 [%%r7], {%%r3, %%r3, %%r3, %%r3};\n"
			"	add.u32 %%r2, %%r2, 512;\n	setp.lt.u32 %%q1, %%r2, %u;\n	@%%q1 bra FILL;\nKEEP:\n", IMAGE);
	for (unsigned i = 0; i < sum_count(f); i++)
		pt_text_add(&t, "	st.global.b32 [%%p1+%u], %%d%u;\n", i * 4, i);
	pt_text_add(&t, "	ret;\n}\n");
	return t.p;
}
/* clang-format on */

struct matrices {
	int64_t a[64][256], b[256][256], c[64][256];
	int64_t stored[64][256]; /* the columns of A that are in memory or registers */
};

static void fill(struct pt_run *run, const struct form *f, struct matrices *x)
{
	bool integer = pt_element_integer(f->a);
	for (unsigned k = 0; k < depth(f); k++) {
		for (unsigned i = 0; i < 64; i++)
			x->a[i][k] = pt_element_random(&run->rng, f->a);
		for (unsigned j = 0; j < f->n; j++)
			x->b[j][k] = pt_element_random(&run->rng, f->b);
	}
	for (unsigned i = 0; i < 64; i++)
		for (unsigned j = 0; j < f->n; j++)
			x->c[i][j] = !integer ? (int64_t)pt_rng_below(&run->rng, 201) - 100
				: pt_rng_below(&run->rng, 4)
				? (int32_t)(uint32_t)pt_rng_next(&run->rng)
				: INT32_MAX - (int64_t)pt_rng_below(&run->rng, 4);
}

/*
 * Where the metadata of group g of a row are: elements of bytes have eight groups of one row in a
 * lane, others four of each of two rows, in the lanes that the selector names.
 */
static uint32_t *metadata(
	const struct form *f, uint32_t *lanes, unsigned row, unsigned g, unsigned *ret_bit)
{
	bool bytes = pt_element_bits(f->a) == 8;
	unsigned upper = row % 16 / 8,
		 lane = row / 16 * 32 + row % 8 * 4 +
		(bytes ? upper + g / 8 * 2 : (f->sparse - 1) * 2 + g / 4);
	*ret_bit = bytes ? g % 8 * 4 : g % 4 * 4 + upper * 16;
	return lanes + lane * LANE_WORDS + METADATA;
}

/* Of each four columns two are not 0; with tf32, of two one. */
static void make_stored(
	struct pt_run *run, const struct form *f, struct matrices *x, uint32_t *lanes)
{
	unsigned group = pt_element_bits(f->a) == 32 ? 2 : 4, bit;
	if (!f->sparse) {
		memcpy(x->stored, x->a, sizeof x->a);
		return;
	}
	for (unsigned i = 0; i < 64; i++) {
		for (unsigned g = 0; g < depth(f) / group; g++) {
			unsigned first = pt_rng_below(&run->rng, group == 2 ? 2 : 3),
				 second = first + 1 + pt_rng_below(&run->rng, 3 - first),
				 code = group == 2 ? (first ? 14 : 4) : first | second << 2;
			for (unsigned c = 0; c < group; c++) {
				int64_t *cell = &x->a[i][g * group + c];
				if (c == first)
					x->stored[i][g * group / 2] = *cell;
				else if (group == 4 && c == second)
					x->stored[i][g * group / 2 + 1] = *cell;
				else
					*cell = 0;
			}
			uint32_t *word = metadata(f, lanes, i, g, &bit);
			*word |= code << bit;
		}
	}
}

static int64_t sum(const struct form *f, const struct matrices *x, unsigned i, unsigned j)
{
	int64_t v = 0;
	for (unsigned k = 0; k < depth(f); k++)
		v += x->a[i][k] * x->b[j][k];
	v = v * f->a_scale * f->b_scale + (f->adds ? x->c[i][j] : 0);
	if (f->saturate)
		v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
	return v;
}

/* Sets element e of a list of registers. */
static void put(uint32_t *words, enum pt_element t, unsigned e, int64_t v)
{
	unsigned bits = pt_element_bits(t);
	words[e * bits / 32] |= (uint32_t)pt_element_encode(t, v) << (e * bits % 32);
}

/* "Register fragments" of the manual: warp w has rows 16 w to 16 w + 15. */
static void fill_lanes(
	const struct form *f, const struct matrices *x, uint32_t *lanes, uint32_t *want)
{
	unsigned per = 32 / pt_element_bits(f->a);
	for (unsigned t = 0; t < 128; t++) {
		unsigned top = t / 32 * 16 + t % 32 / 4;
		uint32_t *words = lanes + t * LANE_WORDS;
		for (unsigned e = 0; e < 4 * per && !f->a_width; e++)
			put(words, f->a, e,
				x->stored[top + e / per % 2 * 8]
					 [t % 4 * per + e % per + e / per / 2 * 4 * per]);
		for (unsigned e = 0; e < f->n / 2; e++) {
			unsigned row = top + e / 2 % 2 * 8, column = e / 4 * 8 + t % 4 * 2 + e % 2;
			put(words + 4, f->d, e, x->c[row][column]);
			put(want + t * MAX_SUMS, f->d, e, sum(f, x, row, column));
		}
		for (unsigned i = sum_count(f); i < MAX_SUMS; i++)
			want[t * MAX_SUMS + i] = 0xa5a5a5a5;
	}
}

static bool run_wgmma(struct pt_run *run)
{
	const struct form *f = &forms[run->c->arg[0]];
	static struct matrices x;
	static uint32_t in[BLOCKS * BLOCK_WORDS], want[BLOCKS * THREADS * MAX_SUMS],
		got[BLOCKS * THREADS * MAX_SUMS];
	unsigned threads = f->overwrites ? 128 : THREADS, stored = depth(f) / (f->sparse ? 2 : 1),
		 pair = !f->sparse ? 3
		: f->b_width == 8  ? 2
				   : 0;
	struct place a = place_of(f->a_width ? f->a_width : 1, f->a_trans, 64,
			     f->a_width > 1 && !f->a_trans ? 2 : 1, 1),
		     b = place_of(f->b_width, f->b_trans, f->n, 1, pair);
	memset(in, 0, sizeof in);
	memset(want, 0, sizeof want);
	for (unsigned r = 0; r < BLOCKS; r++) {
		uint32_t *words = in + r * BLOCK_WORDS, *sums = want + r * threads * MAX_SUMS;
		uint8_t *image = (uint8_t *)words;
		fill(run, f, &x);
		make_stored(run, f, &x, words + IMAGE / 4);
		for (unsigned k = 0; k < depth(f); k++) {
			for (unsigned i = 0; i < 64 && f->a_width && k < stored; i++)
				put_element(image, &a, f->a, i, k, x.stored[i][k]);
			for (unsigned j = 0; j < f->n; j++)
				put_element(image + B_AT, &b, f->b, j, k, x.b[j][k]);
		}
		fill_lanes(f, &x, words + IMAGE / 4, sums);
		if (threads > 128)
			memcpy(sums + 128 * MAX_SUMS, sums, 128 * MAX_SUMS * 4);
	}
	size_t size = BLOCKS * threads * MAX_SUMS;
	CUdeviceptr from = pt_run_put(run, in, sizeof in), to = pt_run_put(run, NULL, size * 4);
	pt_run_line(run, "wgmma", BLOCKS, threads, from, to, descriptor(&a), descriptor(&b));
	pt_run_get(run, to, got, size * 4);
	return pt_run_same32(run, "word", got, want, size);
}

void pt_group_wgmma(struct pt_suite *s)
{
	for (size_t i = 0; i < N_FORMS; i++) {
		const struct form *f = &forms[i];
		char *op = opcode(f), *text = form_text(f, op),
		     *name = pt_format("%s, A %s %u%s, B %u%s%s%s", op,
			     f->a_width ? "memory" : "registers", f->a_width * 16,
			     f->a_trans ? " transposed" : "", f->b_width * 16,
			     f->b_trans ? " transposed" : "", f->adds ? "" : ", scale-d 0",
			     f->overwrites ? ", overwritten" : "");
		struct pt_case *c = pt_case_add(s, run_wgmma, name, text);
		c->target = "sm_90a";
		c->arg[0] = (int)i;
		free(op);
		free(text);
		free(name);
	}
}
