/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Opcodes of matrix libraries: mma, ldmatrix, cp.async, mbarrier. The operands are small integers,
 * so every sum is exact in any order. A driver without one of these opcodes refuses the module; the
 * case is then reported as "not offered".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

/* D = A * B + C with A 16 x k, B k x 8; fragments as in the manual's figures. */
struct mma {
	const char *name;
	unsigned k, bits; /* of an element of A and B */
	enum pt_type a, b, c;
};

static const struct mma mmas[] = {
	{ "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 8, 16, PT_F16, PT_F16, PT_F32 },
	{ "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, 16, PT_F16, PT_F16, PT_F32 },
	{ "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 8, 16, PT_F16, PT_F16, PT_F16 },
	{ "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 16, 16, PT_F16, PT_F16, PT_F16 },
	{ "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 8, 16, PT_BF16, PT_BF16, PT_F32 },
	{ "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, PT_BF16, PT_BF16, PT_F32 },
	{ "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 4, 32, PT_F32, PT_F32, PT_F32 },
	{ "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, 32, PT_F32, PT_F32, PT_F32 },
	{ "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", 16, 8, PT_S8, PT_S8, PT_S32 },
	{ "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 32, 8, PT_S8, PT_S8, PT_S32 },
	{ "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", 32, 8, PT_U8, PT_S8, PT_S32 },
	{ "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 8, PT_E4M3X2, PT_E4M3X2,
		PT_F32 },
	{ "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", 32, 8, PT_E5M2X2, PT_E4M3X2,
		PT_F32 },
};
#define N_MMAS     (sizeof mmas / sizeof mmas[0])
#define MMA_ROUNDS 6u

/* Elements of one register, registers of one lane. */
static unsigned per_register(const struct mma *m)
{
	return 32 / m->bits;
}

static unsigned a_registers(const struct mma *m)
{
	return 16 * m->k / 32 / per_register(m);
}

static unsigned b_registers(const struct mma *m)
{
	return 8 * m->k / 32 / per_register(m);
}

static unsigned c_registers(const struct mma *m)
{
	return m->c == PT_F16 ? 2 : 4;
}

/* Each round has 32 lanes x (4 of A, 2 of B, 4 of C) words in memory; the result has 32 x 4. */
static char *mma_text(const struct mma *m)
{
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s",
		PT_ENTRY("mma") "{\n" PT_PROLOGUE "	mad.wide.u32 %p0, %i, 40, %p0;\n	"
				"mad.wide.u32 %p1, %i, 16, %p1;\n");
	for (unsigned i = 0; i < 10; i++)
		pt_text_add(&t, "	ld.global.b32 %%r%u, [%%p0+%u];\n", 10 + i, i * 4);
	for (unsigned i = 0; i < 4; i++)
		pt_text_add(&t, "	mov.b32 %%f%u, %%r%u;\n", 4 + i, 16 + i);
	static const unsigned starts[] = { 20, 10, 14, 16 };
	const unsigned counts[] = { c_registers(m), a_registers(m), b_registers(m),
		c_registers(m) };
	pt_text_add(&t, "	%s ", m->name);
	for (unsigned o = 0; o < 4; o++) {
		pt_text_add(&t, "%s{", o ? ", " : "");
		for (unsigned i = 0; i < counts[o]; i++)
			pt_text_add(&t, "%s%%%c%u", i ? ", " : "",
				m->c == PT_F32 && (o == 0 || o == 3) ? 'f' : 'r',
				m->c == PT_F32 && o == 0           ? i
					: m->c == PT_F32 && o == 3 ? 4 + i
								   : starts[o] + i);
		pt_text_add(&t, "}");
	}
	pt_text_add(&t, ";\n");
	for (unsigned i = 0; i < c_registers(m); i++)
		pt_text_add(&t, "	st.global.b32 [%%p1+%u], %%%c%u;\n", i * 4,
			m->c == PT_F32 ? 'f' : 'r', m->c == PT_F32 ? i : 20 + i);
	pt_text_add(&t, "	ret;\n}\n");
	return t.p;
}

/* Row and column in the matrix of element e of the lane's fragment. */
static void place_a(const struct mma *m, unsigned lane, unsigned e, unsigned *row, unsigned *column)
{
	unsigned w = per_register(m), reg = e / w;
	*row = lane / 4 + (reg & 1 ? 8 : 0);
	*column = lane % 4 * w + e % w + (reg & 2 ? 4 * w : 0);
}

static void place_b(const struct mma *m, unsigned lane, unsigned e, unsigned *row, unsigned *column)
{
	unsigned w = per_register(m);
	*row = lane % 4 * w + e % w + (e / w ? 4 * w : 0);
	*column = lane / 4;
}

static void place_c(unsigned lane, unsigned e, unsigned *row, unsigned *column)
{
	*row = lane / 4 + (e / 2 ? 8 : 0);
	*column = lane % 4 * 2 + e % 2;
}

static uint32_t encode(enum pt_type t, int v)
{
	const struct pt_float_format *f = pt_type_format(t);
	if (!f)
		return (uint32_t)v & (uint32_t)pt_mask(pt_type_bits(t));
	return (uint32_t)pt_num_pack(
		f, pt_num_from_int(v < 0, (uint64_t)(v < 0 ? -v : v)), PT_RN, false, NULL);
}

static void pack_fragment(uint32_t *words, const struct mma *m, enum pt_type t, unsigned e, int v)
{
	words[e / per_register(m)] |= encode(t, v) << (e % per_register(m) * m->bits);
}

static void mma_round(struct pt_run *run, const struct mma *m, uint32_t *in, uint32_t *want)
{
	int a[16][32], b[32][8], c[16][8];
	bool is_unsigned = m->a == PT_U8;
	for (unsigned i = 0; i < 16; i++) {
		for (unsigned k = 0; k < 32; k++)
			a[i][k] = (int)pt_rng_below(&run->rng, 17) - (is_unsigned ? 0 : 8);
		for (unsigned j = 0; j < 8; j++)
			c[i][j] = (int)pt_rng_below(&run->rng, 201) - 100;
	}
	for (unsigned k = 0; k < 32; k++) {
		for (unsigned j = 0; j < 8; j++)
			b[k][j] = (int)pt_rng_below(&run->rng, 9) - 4;
	}
	for (unsigned lane = 0; lane < 32; lane++) {
		uint32_t *x = in + lane * 10, *y = want + lane * 4;
		unsigned row, column;
		for (unsigned e = 0; e < a_registers(m) * per_register(m); e++) {
			place_a(m, lane, e, &row, &column);
			pack_fragment(x, m, m->a, e, a[row][column]);
		}
		for (unsigned e = 0; e < b_registers(m) * per_register(m); e++) {
			place_b(m, lane, e, &row, &column);
			pack_fragment(x + 4, m, m->b, e, b[row][column]);
		}
		for (unsigned e = 0; e < 4; e++) {
			place_c(lane, e, &row, &column);
			int sum = c[row][column];
			for (unsigned k = 0; k < m->k; k++)
				sum += a[row][k] * b[k][column];
			unsigned word = m->c == PT_F16 ? e / 2 : e,
				 shift = m->c == PT_F16 ? e % 2 * 16 : 0;
			x[6 + word] |= encode(m->c, c[row][column]) << shift;
			y[word] |= encode(m->c, sum) << shift;
		}
	}
}

static bool run_mma(struct pt_run *run)
{
	const struct mma *m = &mmas[run->c->arg[0]];
	uint32_t in[MMA_ROUNDS * 320] = { 0 }, want[MMA_ROUNDS * 128] = { 0 },
				 got[MMA_ROUNDS * 128];
	for (unsigned r = 0; r < MMA_ROUNDS; r++)
		mma_round(run, m, in + r * 320, want + r * 128);
	if (m->c == PT_F16) {
		for (unsigned i = 0; i < MMA_ROUNDS * 32; i++)
			want[i * 4 + 2] = want[i * 4 + 3] = 0xa5a5a5a5;
	}
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "mma", MMA_ROUNDS / 2, 64, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "word", got, want, MMA_ROUNDS * 128);
}

/* Four 8 x 8 matrices of halves in shared memory; lane l gives the address of row l of the 32. */
/* clang-format off */
#define LDMATRIX(name, op, registers) \
	PT_ENTRY(name) "{\n	.shared .align 16 .b16 tile[512];\n" PT_PROLOGUE \
		       "	mov.u32 %r20, tile;\n	mad.lo.u32 %r21, %t, 16, %r20;\n	mad.wide.u32 %p0, %t, 16, %p0;\n" \
		       "	ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%p0];\n	st.shared.v4.b32 [%r21], {%r1, %r2, %r3, %r4};\n" \
		       "	bar.sync 0;\n	mov.b32 %r1, 0;\n	mov.b32 %r2, 0;\n	mov.b32 %r3, 0;\n	mov.b32 %r4, 0;\n" \
		       "	xor.b32 %r5, %t, 3;\n	mad.lo.u32 %r5, %r5, 16, %r20;\n" \
		       "	" op " {" registers "}, [%r5];\n" \
		       "	mad.wide.u32 %p1, %t, 16, %p1;\n	st.global.v4.b32 [%p1], {%r1, %r2, %r3, %r4};\n	ret;\n}\n"
/* clang-format on */

/* clang-format off */
static const char ldmatrix_text[] =
        LDMATRIX("x1", "ldmatrix.sync.aligned.m8n8.x1.shared.b16", "%r1")
        LDMATRIX("x2", "ldmatrix.sync.aligned.m8n8.x2.shared.b16", "%r1, %r2")
        LDMATRIX("x4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "%r1, %r2, %r3, %r4")
        LDMATRIX("x1t", "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", "%r1")
        LDMATRIX("x4t", "ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16", "%r1, %r2, %r3, %r4");
/* clang-format on */

static bool run_ldmatrix(struct pt_run *run)
{
	static const struct {
		const char *kernel;
		unsigned count;
		bool trans;
	} forms[] = { { "x1", 1, false }, { "x2", 2, false }, { "x4", 4, false },
		{ "x1t", 1, true }, { "x4t", 4, true } };
	uint16_t tile[32][8];
	uint32_t got[32][4], want[32][4];
	for (unsigned i = 0; i < 256; i++)
		tile[i / 8][i % 8] = (uint16_t)pt_rng_next(&run->rng);
	CUdeviceptr a = pt_run_put(run, tile, sizeof tile), b = pt_run_put(run, NULL, sizeof got);
	for (unsigned f = 0; f < 5 && pt_run_ok(run); f++) {
		pt_run_line(run, forms[f].kernel, 1, 32, a, b, 0, 0);
		pt_run_get(run, b, got, sizeof got);
		for (unsigned lane = 0; lane < 32; lane++) {
			for (unsigned m = 0; m < 4; m++) {
				unsigned row = lane / 4, column = lane % 4 * 2;
				uint32_t x[2];
				for (unsigned e = 0; e < 2; e++) {
					unsigned r = forms[f].trans ? column + e : row,
						 c = forms[f].trans ? row : column + e;
					/*
					 * row r of matrix m is at the address that lane 8 m + r
					 * gives: row (8 m + r) ^ 3
					 */
					x[e] = tile[(m * 8 + r) ^ 3][c];
				}
				want[lane][m] = m < forms[f].count ? x[1] << 16 | x[0] : 0;
			}
		}
		pt_run_same32(run, forms[f].kernel, got[0], want[0], 128);
	}
	return pt_run_ok(run);
}

/* Copies of every size, zero fill after a short source, waits for one group at a time. */
static const char cp_async_text[] = PT_ENTRY(
	"copy") "{\n	.shared .align 16 .b8 place[4096];\n" PT_PROLOGUE
		"	mov.u32 %r1, place;\n	mad.lo.u32 %r1, %t, 64, %r1;\n	mad.wide.u32 %l1, "
		"%t, 64, %p0;\n"
		"	cvta.global.u64 %l1, %l1;\n	cvta.to.global.u64 %l1, %l1;\n"
		"	st.shared.v4.b32 [%r1+32], {%t, %t, %t, %t};\n"
		"	cp.async.ca.shared.global [%r1], [%l1], 4;\n	cp.async.ca.shared.global "
		"[%r1+4], [%l1+4], 4;\n"
		"	cp.async.ca.shared.global [%r1+8], [%l1+8], 8;\n	"
		"cp.async.commit_group;\n"
		"	cp.async.cg.shared.global [%r1+16], [%l1+16], 16;\n	"
		"cp.async.commit_group;\n"
		"	and.b32 %r2, %t, 15;\n	cp.async.cg.shared.global [%r1+32], [%l1+32], 16, "
		"%r2;\n"
		"	cp.async.ca.shared.global.L2::128B [%r1+48], [%l1+48], 16;\n	"
		"cp.async.commit_group;\n"
		"	cp.async.wait_group 1;\n	ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, "
		"[%r1];\n	cp.async.wait_all;\n"
		"	bar.sync 0;\n	mad.wide.u32 %p1, %t, 64, %p1;\n	st.global.v4.b32 "
		"[%p1], {%r3, %r4, %r5, %r6};\n"
		"	ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r1+16];\n	st.global.v4.b32 "
		"[%p1+16], {%r3, %r4, %r5, %r6};\n"
		"	ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r1+32];\n	st.global.v4.b32 "
		"[%p1+32], {%r3, %r4, %r5, %r6};\n"
		"	ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r1+48];\n	st.global.v4.b32 "
		"[%p1+48], {%r3, %r4, %r5, %r6};\n"
		"	griddepcontrol.wait;\n	griddepcontrol.launch_dependents;\n	ret;\n}\n";

static bool run_cp_async(struct pt_run *run)
{
	uint8_t in[64 * 64], got[64 * 64], want[64 * 64];
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)pt_rng_next(&run->rng);
	memcpy(want, in, sizeof in);
	for (unsigned t = 0; t < 64; t++)
		memset(want + t * 64 + 32 + (t & 15), 0, 16 - (t & 15));
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "copy", 1, 64, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (size_t i = 0; i < sizeof got && pt_run_ok(run); i++) {
		if (got[i] != want[i])
			pt_run_fail(run, "thread %zu byte %zu: expected %u got %u", i / 64, i % 64,
				want[i], got[i]);
	}
	return pt_run_ok(run);
}

/* Phases of an mbarrier: all threads arrive, and wait by parity and by token. */
static const char mbarrier_text[] = PT_ENTRY(
	"phases") "{\n	.shared .align 8 .b64 bar;\n	.shared .align 4 .u32 s[128];\n" PT_PROLOGUE
		  "	mov.u32 %r1, bar;\n	setp.ne.u32 %q1, %t, 0;\n	@!%q1 "
		  "mbarrier.init.shared.b64 [%r1], %r63;\n	bar.sync 0;\n"
		  "	mov.u32 %r2, s;\n	mad.lo.u32 %r3, %t, 4, %r2;\n	mov.u32 %r4, "
		  "%t;\n	mov.u32 %r5, 0;\n"
		  "L:\n	st.shared.u32 [%r3], %r4;\n	mbarrier.arrive.shared.b64 %l1, [%r1];\n"
		  "W1:\n	mbarrier.test_wait.shared.b64 %q2, [%r1], %l1;\n	@!%q2 bra "
		  "W1;\n"
		  "	add.u32 %r6, %t, 5;\n	rem.u32 %r6, %r6, %r63;\n	mad.lo.u32 %r6, "
		  "%r6, 4, %r2;\n	ld.shared.u32 %r7, [%r6];\n"
		  "	mbarrier.arrive.shared.b64 _, [%r1];\n	mov.u32 %r8, 1;\n"
		  "W2:\n	mbarrier.try_wait.parity.shared.b64 %q2, [%r1], %r8;\n	@!%q2 bra "
		  "W2;\n"
		  "	mad.lo.u32 %r4, %r7, 3, %r5;\n	add.u32 %r5, %r5, 1;\n	setp.lt.u32 %q3, "
		  "%r5, 4;\n	@%q3 bra L;\n"
		  "	bar.sync 0;\n	@!%q1 mbarrier.inval.shared.b64 [%r1];\n	"
		  "mad.wide.u32 %p1, %i, 4, %p1;\n"
		  "	st.global.u32 [%p1], %r4;\n	ret;\n}\n";

static bool run_mbarrier(struct pt_run *run)
{
	uint32_t got[100], x[100], y[100];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "phases", 1, 100, 0, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < 100; i++)
		x[i] = i;
	for (uint32_t r = 0; r < 4; r++) {
		for (uint32_t i = 0; i < 100; i++)
			y[i] = x[(i + 5) % 100] * 3 + r;
		memcpy(x, y, sizeof x);
	}
	return pt_run_same32(run, "thread", got, x, 100);
}

void pt_group_library(struct pt_suite *s)
{
	for (size_t i = 0; i < N_MMAS; i++) {
		char *text = mma_text(&mmas[i]);
		struct pt_case *c = pt_case_add(s, run_mma, mmas[i].name, text);
		c->arg[0] = (int)i;
		c->optional = true;
		free(text);
	}
	pt_case_add(s, run_ldmatrix, "ldmatrix", ldmatrix_text)->optional = true;
	pt_case_add(s, run_cp_async, "cp.async", cp_async_text)->optional = true;
	pt_case_add(s, run_mbarrier, "mbarrier", mbarrier_text)->optional = true;
	pt_async_cases(s);
}
