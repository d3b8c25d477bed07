/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Barriers, special registers, shapes of grids and blocks, blocks that wait for each other. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

/* clang-format off */
#define SHARED "	.shared .align 8 .u32 s[1024];\n"
/* clang-format on */
/* %r60 = &s[%t] */
/* clang-format off */
#define MY_SLOT "	mov.u32 %r61, s;\n	mad.lo.u32 %r60, %t, 4, %r61;\n"
#define OUT2 "	mad.wide.u32 %p1, %i, 8, %p1;\n	st.global.v2.u32 [%p1], {%r10, %r11};\n	ret;\n}\n"
/* clang-format on */

/* clang-format off */
static const char barriers_text[] =
        /* in each round every thread reads what a distant thread wrote in the previous round */
        PT_ENTRY("rounds") "{\n" SHARED PT_PROLOGUE MY_SLOT
        "	mov.u32 %r10, %t;\n	mov.u32 %r11, 0;\nL:\n	st.shared.u32 [%r60], %r10;\n	bar.sync 0;\n"
        "	add.u32 %r1, %t, 37;\n	rem.u32 %r1, %r1, %r63;\n	mad.lo.u32 %r1, %r1, 4, %r61;\n"
        "	ld.shared.u32 %r2, [%r1];\n"
        "	barrier.sync 0;\n	mad.lo.u32 %r10, %r2, 3, %r11;\n	add.u32 %r11, %r11, 1;\n"
        "	setp.lt.u32 %q1, %r11, 20;\n	@%q1 bra L;\n"
        OUT2
        /*
 * each half of the block uses a different barrier; barrier number and thread count are in registers
 */
        PT_ENTRY("halves") "{\n" SHARED PT_PROLOGUE MY_SLOT
        "	shr.u32 %r1, %r63, 1;\n	setp.ge.u32 %q1, %t, %r1;\n	selp.u32 %r2, 9, 4, %q1;\n"
        "	selp.u32 %r3, %r1, 0, %q1;\n"
        "	mov.u32 %r10, 0;\n	mov.u32 %r11, 0;\n	selp.u32 %r12, 17, 5, %q1;\n"
        "L:\n	mad.lo.u32 %r4, %r11, 1000, %t;\n	st.shared.u32 [%r60], %r4;\n	bar.sync %r2, %r1;\n"
        "	sub.u32 %r5, %t, %r3;\n	not.b32 %r6, %r5;\n	add.u32 %r6, %r6, %r1;\n	add.u32 %r6, %r6, %r3;\n"
        "	mad.lo.u32 %r6, %r6, 4, %r61;\n	ld.shared.u32 %r7, [%r6];\n	add.u32 %r10, %r10, %r7;\n"
        "	bar.sync %r2, %r1;\n"
        "	add.u32 %r11, %r11, 1;\n	setp.lt.u32 %q2, %r11, %r12;\n	@%q2 bra L;\n" OUT2
        /* producers arrive without waiting, consumers wait: two barriers, two buffers */
        PT_ENTRY("pipe") "{\n" SHARED PT_PROLOGUE
        "	mov.u32 %r61, s;\n	setp.ge.u32 %q1, %t, 64;\n	and.b32 %r1, %t, 63;\n"
        "	mad.lo.u32 %r2, %r1, 4, %r61;\n	mov.u32 %r3, 0;\n"
        "	mov.u32 %r10, 0;\n	mov.u32 %r11, 0;\n	@%q1 bra CONSUMER;\n"
        "PRODUCER:\n	bar.sync 2, 128;\n	mad.lo.u32 %r4, %r3, 100, %r1;\n"
        "	st.shared.u32 [%r2], %r4;\n	membar.cta;\n	bar.arrive 1, 128;\n"
        "	add.u32 %r3, %r3, 1;\n	setp.lt.u32 %q2, %r3, 8;\n	@%q2 bra PRODUCER;\n	bra OUT;\n"
        "CONSUMER:\n	bar.arrive 2, 128;\n	bar.sync 1, 128;\n	xor.b32 %r5, %r1, 33;\n"
        "	mad.lo.u32 %r5, %r5, 4, %r61;\n	ld.shared.u32 %r6, [%r5];\n"
        "	mad.lo.u32 %r10, %r10, 5, %r6;\n	bar.sync 3, 64;\n	add.u32 %r3, %r3, 1;\n"
        "	setp.lt.u32 %q2, %r3, 8;\n	@%q2 bra CONSUMER;\n"
        "OUT:\n" OUT2
        /* bar.red over a predicate that depends on the thread */
        PT_ENTRY("red") "{\n" PT_PROLOGUE
        "	mad.wide.u32 %p0, %i, 4, %p0;\n	ld.global.u32 %r1, [%p0];\n	and.b32 %r2, %r1, 1;\n"
        "	setp.ne.u32 %q1, %r2, 0;\n"
        "	bar.red.popc.u32 %r10, 0, %q1;\n	bar.red.and.pred %q2, 0, %q1;\n	bar.red.or.pred %q3, 0, %q1;\n"
        "	barrier.red.popc.u32 %r3, 5, !%q1;\n	bar.red.and.pred %q4, 1, %r63, !%q1;\n"
        "	barrier.red.or.aligned.pred %q5, 0, !%q1;\n"
        "	selp.u32 %r11, 1, 0, %q2;\n	@%q3 or.b32 %r11, %r11, 2;\n	@%q4 or.b32 %r11, %r11, 4;\n"
        "	@%q5 or.b32 %r11, %r11, 8;\n"
        "	shl.b32 %r3, %r3, 8;\n	or.b32 %r11, %r11, %r3;\n" OUT2
        /* both sides of a divergent branch wait at the same barrier, in different instructions */
        PT_ENTRY("sides") "{\n" SHARED PT_PROLOGUE MY_SLOT
        "	mov.u32 %r10, 0;\n	mov.u32 %r11, 0;\n	and.b32 %r1, %t, 5;\n"
        "	setp.eq.u32 %q1, %r1, 0;\n	st.shared.u32 [%r60], %t;\n"
        "	@%q1 bra SIDE;\n	mul.lo.u32 %r2, %t, 2;\n	st.shared.u32 [%r60], %r2;\n"
        "	barrier.sync 0;\n	bra READ;\n"
        "SIDE:\n	mul.lo.u32 %r2, %t, 3;\n	st.shared.u32 [%r60], %r2;\n	barrier.sync 0;\n"
        "READ:\n	sub.u32 %r3, %r63, 1;\n	sub.u32 %r3, %r3, %t;\n	mad.lo.u32 %r3, %r3, 4, %r61;\n"
        "	ld.shared.u32 %r10, [%r3];\n" OUT2
        /* whole warps, and the last lanes of one, exit before the barrier */
        PT_ENTRY("gone") "{\n" SHARED PT_PROLOGUE MY_SLOT
        "	mov.u32 %r11, 1;\n	setp.ge.u32 %q1, %t, 72;\n	@%q1 exit;\n"
        "	st.shared.u32 [%r60], %t;\n	bar.sync 0;\n"
        "	mov.u32 %r3, 71;\n	sub.u32 %r3, %r3, %t;\n	mad.lo.u32 %r3, %r3, 4, %r61;\n"
        "	ld.shared.u32 %r10, [%r3];\n	bar.sync 0;\n" OUT2
        /* the newer form, barrier.cta, with a thread count */
        PT_ENTRY("cta") "{\n" SHARED PT_PROLOGUE MY_SLOT
        "	st.shared.u32 [%r60], %i;\n	barrier.cta.sync.aligned 0;\n	xor.b32 %r1, %t, 63;\n"
        "	mad.lo.u32 %r1, %r1, 4, %r61;\n"
        "	ld.shared.u32 %r10, [%r1];\n	barrier.cta.sync 15, %r63;\n	mov.u32 %r11, 3;\n" OUT2;
/* clang-format on */

#define MAX_THREADS 1024u

static bool pairs(struct pt_run *run, const char *kernel, unsigned grid, unsigned block,
	const uint32_t *in, uint32_t *got)
{
	size_t n = (size_t)grid * block;
	CUdeviceptr a = in ? pt_run_put(run, in, n * 4) : 0, b = pt_run_put(run, NULL, n * 8);
	pt_run_line(run, kernel, grid, block, a, b, 0, 0);
	pt_run_get(run, b, got, n * 8);
	return pt_run_ok(run);
}

static bool run_rounds(struct pt_run *run)
{
	unsigned n = (unsigned)run->c->arg[0];
	uint32_t got[2 * 2 * MAX_THREADS], x[MAX_THREADS], y[MAX_THREADS];
	if (!pairs(run, "rounds", 2, n, NULL, got))
		return false;
	for (uint32_t i = 0; i < n; i++)
		x[i] = i;
	for (uint32_t r = 0; r < 20; r++) {
		for (uint32_t i = 0; i < n; i++)
			y[i] = x[(i + 37) % n] * 3 + r;
		memcpy(x, y, sizeof x);
	}
	for (uint32_t i = 0; i < 2 * n; i++) {
		if (got[2 * i] != x[i % n])
			return pt_run_fail(run,
				"thread %" PRIu32 ": expected %" PRIu32 " got %" PRIu32, i,
				x[i % n], got[2 * i]);
	}
	return true;
}

static bool run_halves(struct pt_run *run)
{
	enum { N = 256 };
	uint32_t got[2 * N], want[2 * N];
	if (!pairs(run, "halves", 1, N, NULL, got))
		return false;
	for (uint32_t i = 0; i < N; i++) {
		uint32_t base = i / (N / 2) * (N / 2), partner = base + (N / 2 - 1 - (i - base)),
			 rounds = base ? 17 : 5;
		want[2 * i] = 0;
		for (uint32_t r = 0; r < rounds; r++)
			want[2 * i] += r * 1000 + partner;
		want[2 * i + 1] = rounds;
	}
	return pt_run_same32(run, "word", got, want, 2 * N);
}

static bool run_pipe(struct pt_run *run)
{
	uint32_t got[256], want[256];
	if (!pairs(run, "pipe", 1, 128, NULL, got))
		return false;
	for (uint32_t i = 0; i < 128; i++) {
		uint32_t sum = 0;
		for (uint32_t r = 0; r < 8 && i >= 64; r++)
			sum = sum * 5 + r * 100 + ((i & 63) ^ 33);
		want[2 * i] = sum;
		want[2 * i + 1] = 0;
	}
	return pt_run_same32(run, "word", got, want, 256);
}

static bool run_red(struct pt_run *run)
{
	enum { N = 160, BLOCKS = 5 };
	uint32_t in[N * BLOCKS], got[2 * N * BLOCKS], want[2 * N * BLOCKS];
	for (uint32_t b = 0; b < BLOCKS; b++) {
		uint32_t count = 0;
		for (uint32_t i = 0; i < N; i++) {
			uint32_t odd = b == 0 ? 1
				: b == 1      ? 0
				: b == 2      ? i == 77
				: b == 3      ? i != 159
					      : (uint32_t)pt_rng_next(&run->rng) & 1;
			in[b * N + i] = odd;
			count += odd;
		}
		for (uint32_t i = 0; i < N; i++) {
			want[2 * (b * N + i)] = count;
			want[2 * (b * N + i) + 1] = (count == N) | (count > 0) << 1 |
				(count == 0) << 2 | (count < N) << 3 | (N - count) << 8;
		}
	}
	return pairs(run, "red", BLOCKS, N, in, got) &&
		pt_run_same32(run, "word", got, want, 2 * N * BLOCKS);
}

static bool run_sides(struct pt_run *run)
{
	uint32_t got[400], want[400];
	if (!pairs(run, "sides", 1, 200, NULL, got))
		return false;
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t j = 199 - i;
		want[2 * i] = j & 5 ? 2 * j : 3 * j;
		want[2 * i + 1] = 0;
	}
	return pt_run_same32(run, "word", got, want, 400);
}

static bool run_gone(struct pt_run *run)
{
	uint32_t got[400], want[400];
	if (!pairs(run, "gone", 1, 200, NULL, got))
		return false;
	for (uint32_t i = 0; i < 200; i++) {
		want[2 * i] = i < 72 ? 71 - i : 0xa5a5a5a5;
		want[2 * i + 1] = i < 72 ? 1 : 0xa5a5a5a5;
	}
	return pt_run_same32(run, "word", got, want, 400);
}

static bool run_cta(struct pt_run *run)
{
	uint32_t got[512], want[512];
	if (!pairs(run, "cta", 2, 128, NULL, got))
		return false;
	for (uint32_t i = 0; i < 256; i++) {
		want[2 * i] = i ^ 63;
		want[2 * i + 1] = 3;
	}
	return pt_run_same32(run, "word", got, want, 512);
}

/* All index registers in a 3-D grid of 3-D blocks; 28 words per thread. */
#define WORDS 28u
/* clang-format off */
static const char registers_text[] =
        PT_ENTRY("shape") "{\n" PT_PROLOGUE
        "	mov.u32 %r1, %ctaid.x;\n	mov.u32 %r2, %ctaid.y;\n	mov.u32 %r3, %ctaid.z;\n"
        "	mov.u32 %r4, %nctaid.x;\n	mov.u32 %r5, %nctaid.y;\n	mov.u32 %r6, %nctaid.z;\n"
        "	mov.u32 %r7, %tid.x;\n	mov.u32 %r8, %tid.y;\n	mov.u32 %r9, %tid.z;\n"
        "	mov.u32 %r10, %ntid.x;\n	mov.u32 %r11, %ntid.y;\n	mov.u32 %r12, %ntid.z;\n"
        "	mov.u32 %r13, %laneid;\n	mov.u32 %r14, %warpid;\n	mov.u32 %r15, %nwarpid;\n"
        "	mov.u32 %r16, %smid;\n	mov.u32 %r17, %nsmid;\n"
        "	mov.u32 %r18, %dynamic_smem_size;\n	mov.u32 %r19, %total_smem_size;\n"
        "	mov.u32 %r20, %cluster_ctaid.x;\n	mov.u32 %r21, %cluster_nctaid.x;\n"
        "	mov.u32 %r22, %nclusterid.x;\n	mov.u32 %r23, %cluster_ctarank;\n"
        "	mov.pred %q1, %is_explicit_cluster;\n	selp.u32 %r24, 1, 0, %q1;\n"
        "	mov.u32 %r25, %clusterid.y;\n	mov.u32 %r26, %cluster_nctarank;\n"
        "	mov.u32 %r27, WARP_SZ;\n	mov.u32 %r28, 0;\n"
        "	mad.lo.u32 %r40, %r3, %r5, %r2;\n	mad.lo.u32 %r40, %r40, %r4, %r1;\n"
        "	mad.lo.u32 %r41, %r9, %r11, %r8;\n"
        "	mad.lo.u32 %r41, %r41, %r10, %r7;\n	mul.lo.u32 %r42, %r10, %r11;\n	mul.lo.u32 %r42, %r42, %r12;\n"
        "	mad.lo.u32 %r40, %r40, %r42, %r41;\n	mad.wide.u32 %p1, %r40, 112, %p1;\n"
        "	st.global.v4.u32 [%p1], {%r1, %r2, %r3, %r4};\n	st.global.v4.u32 [%p1+16], {%r5, %r6, %r7, %r8};\n"
        "	st.global.v4.u32 [%p1+32], {%r9, %r10, %r11, %r12};\n"
        "	st.global.v4.u32 [%p1+48], {%r13, %r14, %r15, %r16};\n"
        "	st.global.v4.u32 [%p1+64], {%r17, %r18, %r19, %r20};\n"
        "	st.global.v4.u32 [%p1+80], {%r21, %r22, %r23, %r24};\n"
        "	st.global.v4.u32 [%p1+96], {%r25, %r26, %r27, %r28};\n	ret;\n}\n"
        /* the program's shared memory and the reserved one do not overlap */
        PT_ENTRY("reserved") "{\n	.shared .align 4 .b8 own[2000];\n" PT_PROLOGUE
        "	mov.u32 %r1, %reserved_smem_offset_begin;\n	mov.u32 %r2, %reserved_smem_offset_end;\n"
        "	mov.u32 %r3, %reserved_smem_offset_cap;\n	mov.u32 %r4, %reserved_smem_offset_0;\n"
        "	mov.u32 %r5, %reserved_smem_offset_1;\n	mov.u32 %r8, own;\n	mad.lo.u32 %r8, %t, 4, %r8;\n"
        "	mad.lo.u32 %r9, %t, 4, %r5;\n	st.shared.u32 [%r8], %t;\n	st.shared.u32 [%r9], %i;\n	bar.sync 0;\n"
        "	ld.shared.u32 %r6, [%r8];\n	ld.shared.u32 %r7, [%r9];\n	mad.wide.u32 %p1, %i, 32, %p1;\n"
        "	mov.u32 %r8, own;\n	st.global.v4.u32 [%p1], {%r1, %r2, %r3, %r4};\n"
        "	st.global.v4.u32 [%p1+16], {%r5, %r6, %r7, %r8};\n	ret;\n}\n"
        PT_ENTRY("time") "{\n" PT_PROLOGUE
        "	mov.u64 %l1, %clock64;\n	mov.u32 %r1, %clock;\n	mov.u64 %l2, %globaltimer;\n"
        "	mov.u32 %r5, %globaltimer_lo;\n"
        "	mov.u32 %r3, 0;\nL:\n	add.u32 %r3, %r3, 1;\n	setp.lt.u32 %q1, %r3, 1000;\n	@%q1 bra L;\n"
        "	nanosleep.u32 20000;\n"
        "	mov.u64 %l3, %clock64;\n	mov.u32 %r2, %clock_hi;\n	mov.u64 %l4, %globaltimer;\n"
        "	mov.u64 %l5, %gridid;\n"
        "	mov.u32 %r6, %envreg1;\n	mov.u32 %r7, %envreg2;\n"
        "	setp.ne.u32 %q2, %i, 0;\n	@%q2 ret;\n	st.global.v2.u64 [%p1], {%l1, %l3};\n"
        "	st.global.v2.u64 [%p1+16], {%l2, %l4};\n"
        "	st.global.u64 [%p1+32], %l5;\n	ret;\n}\n";
/* clang-format on */

static bool shape_word(struct pt_run *run, const uint32_t *w, struct pt_dim grid,
	struct pt_dim block, unsigned cta, unsigned thread)
{
	const uint32_t warps = (block.x * block.y * block.z + 31) / 32;
	const uint32_t want[WORDS] = {
		cta % grid.x,
		cta / grid.x % grid.y,
		cta / grid.x / grid.y,
		grid.x,
		grid.y,
		grid.z,
		thread % block.x,
		thread / block.x % block.y,
		thread / block.x / block.y,
		block.x,
		block.y,
		block.z,
		thread % 32,
		/* the manual allows %warpid to change; it must be below %nwarpid */
		w[13] < w[14] ? w[13] : UINT32_MAX,
		w[14] >= warps ? w[14] : UINT32_MAX,
		w[15] < w[16] ? w[15] : UINT32_MAX,
		w[16],
		512,
		w[18] >= 512 ? w[18] : UINT32_MAX,
		0,
		1,
		grid.x,
		0,
		0,
		cta / grid.x % grid.y,
		1,
		32,
		0,
	};
	for (unsigned k = 0; k < WORDS; k++) {
		if (w[k] != want[k])
			return pt_run_fail(run,
				"block %u thread %u word %u: expected %" PRIu32 " got %" PRIu32,
				cta, thread, k, want[k], w[k]);
	}
	return true;
}

static bool run_shape(struct pt_run *run)
{
	static const struct pt_dim shapes[][2] = {
		{ { 3, 2, 2 }, { 5, 7, 3 } },
		{ { 1, 1, 1 }, { 1, 1, 1 } },
		{ { 2, 1, 3 }, { 33, 1, 1 } },
		{ { 1, 4, 1 }, { 1, 31, 2 } },
		{ { 2, 2, 1 }, { 32, 4, 8 } },
		{ { 1, 1, 2 }, { 1, 1, 64 } },
	};
	struct pt_dim grid = shapes[run->c->arg[0]][0], block = shapes[run->c->arg[0]][1];
	unsigned ctas = grid.x * grid.y * grid.z, threads = block.x * block.y * block.z;
	size_t size = (size_t)ctas * threads * WORDS * 4;
	uint32_t *got = pt_alloc(size);
	CUdeviceptr b = pt_run_put(run, NULL, size);
	pt_run_go(run, "shape", grid, block, 512, (const uint64_t[4]){ 0, b, 0, 0 });
	pt_run_get(run, b, got, size);
	for (unsigned i = 0; i < ctas * threads && pt_run_ok(run); i++)
		shape_word(run, got + i * WORDS, grid, block, i / threads, i % threads);
	free(got);
	return pt_run_ok(run);
}

/* The first 72 threads of each block write 288 bytes, what cooperative groups may expect. */
static bool run_reserved(struct pt_run *run)
{
	uint32_t got[144 * 8];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "reserved", 2, 72, 0, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < 144; i++) {
		const uint32_t *w = got + i * 8;
		bool apart = w[0] >= w[7] + 2000 || w[1] <= w[7];
		if (!apart || w[1] - w[0] != w[2] || w[3] < w[0] || w[4] < w[3] ||
			w[4] + 288 > w[1] || w[5] != i % 72 || w[6] != i)
			return pt_run_fail(run, "thread %u: wrong place or value", i);
	}
	return true;
}

static bool run_time(struct pt_run *run)
{
	uint64_t got[5];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "time", 2, 64, 0, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	if (!pt_run_ok(run))
		return false;
	if (got[1] <= got[0])
		return pt_run_fail(
			run, "%%clock64 went from %" PRIu64 " to %" PRIu64, got[0], got[1]);
	if (got[2] == 0 || got[3] < got[2])
		return pt_run_fail(
			run, "%%globaltimer went from %" PRIu64 " to %" PRIu64, got[2], got[3]);
	return true;
}

/*
 * Blocks that wait for each other: each for the previous block (any number of blocks), or each for
 * all others (cooperative launch).
 */
/* clang-format off */
static const char waiting_text[] =
        PT_ENTRY("chain") "{\n" PT_PROLOGUE
        "	setp.ne.u32 %q1, %t, 0;\n	@%q1 bra OUT;\n	mad.wide.u32 %l1, %r62, 4, %p0;\n	mov.u32 %r1, 0;\n"
        "	setp.eq.u32 %q2, %r62, 0;\n	@%q2 bra PUT;\n"
        "W:\n	ld.acquire.gpu.global.u32 %r1, [%l1+-4];\n	setp.eq.u32 %q3, %r1, 0;\n	@%q3 bra W;\n"
        "PUT:\n	add.u32 %r2, %r1, %r62;\n	add.u32 %r2, %r2, 1;\n"
        "	st.release.gpu.global.u32 [%l1], %r2;\nOUT:\n	bar.sync 0;\n	ret;\n}\n"
        PT_ENTRY("grid") "{\n" PT_PROLOGUE
        "	mov.u32 %r10, %nctaid.x;\n	mov.u32 %r11, 0;\n	mov.u32 %r12, %r62;\n"
        "ROUND:\n	setp.ne.u32 %q1, %t, 0;\n	mad.wide.u32 %l1, %r62, 4, %p0;\n	bar.sync 0;\n"
        "	@%q1 bra WAITED;\n"
        "	st.global.u32 [%l1], %r12;\n	fence.acq_rel.gpu;\n	atom.global.add.u32 %r1, [%p1], 1;\n"
        "	add.u32 %r2, %r11, 1;\n	mul.lo.u32 %r2, %r2, %r10;\n"
        "W:\n	ld.relaxed.gpu.global.u32 %r1, [%p1];\n	setp.lt.u32 %q2, %r1, %r2;\n	@%q2 bra W;\n	fence.acq_rel.gpu;\n"
        "WAITED:\n	bar.sync 0;\n"
        /*
 * reads the value of the neighbour in this round; the rounds use two arrays alternately, so that
 * the next round does not overwrite the value
 */
        "	add.u32 %r3, %r62, 1;\n	rem.u32 %r3, %r3, %r10;\n	mad.wide.u32 %l2, %r3, 4, %p0;\n"
        "	ld.relaxed.gpu.global.u32 %r4, [%l2];\n"
        "	mad.lo.u32 %r12, %r4, 5, %r11;\n	xor.b32 %r5, %r11, 1;\n	cvt.u64.u32 %l3, %r10;\n"
        "	shl.b64 %l3, %l3, 2;\n"
        "	and.b32 %r6, %r11, 1;\n	setp.eq.u32 %q3, %r6, 0;\n	@%q3 add.u64 %p0, %p0, %l3;\n"
        "	@!%q3 sub.u64 %p0, %p0, %l3;\n"
        "	add.u32 %r11, %r11, 1;\n	setp.lt.u32 %q2, %r11, 6;\n	@%q2 bra ROUND;\n"
        "	mad.wide.u32 %p2, %i, 4, %p2;\n	st.global.u32 [%p2], %r12;\n	ret;\n}\n";
/* clang-format on */

static bool run_chain(struct pt_run *run)
{
	enum { N = 300 };
	uint32_t zero[N] = { 0 }, got[N], want[N];
	CUdeviceptr a = pt_run_put(run, zero, sizeof zero);
	pt_run_line(run, "chain", N, 64, a, 0, 0, 0);
	pt_run_get(run, a, got, sizeof got);
	for (uint32_t i = 0; i < N; i++)
		want[i] = (i ? want[i - 1] : 0) + i + 1;
	return pt_run_same32(run, "block", got, want, N);
}

static bool run_grid(struct pt_run *run)
{
	enum { BLOCKS = 24, THREADS = 64 };
	uint32_t zero[2 * BLOCKS + 1] = { 0 }, got[BLOCKS * THREADS], want[BLOCKS * THREADS],
				   x[BLOCKS], y[BLOCKS];
	CUdeviceptr a = pt_run_put(run, zero, sizeof zero), b = pt_run_put(run, zero, 4),
		    c = pt_run_put(run, NULL, sizeof got);
	CUfunction f;
	uint64_t none = 0;
	void *args[] = { &a, &b, &c, &none };
	if (!pt_run_ok(run))
		return false;
	CUresult r = run->d->module_function(&f, run->module, "grid");
	if (!r)
		r = run->d->launch_cooperative(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, args);
	if (!r)
		r = run->d->ctx_sync();
	if (r)
		return pt_run_fail(run, "CUDA error %d", (int)r);
	pt_run_get(run, c, got, sizeof got);
	for (uint32_t i = 0; i < BLOCKS; i++)
		x[i] = i;
	for (uint32_t round = 0; round < 6; round++) {
		for (uint32_t i = 0; i < BLOCKS; i++)
			y[i] = x[(i + 1) % BLOCKS] * 5 + round;
		memcpy(x, y, sizeof x);
	}
	for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
		want[i] = x[i / THREADS];
	return pt_run_same32(run, "thread", got, want, BLOCKS * THREADS);
}

void pt_group_block(struct pt_suite *s)
{
	pt_case_add(s, run_rounds, "bar.sync and barrier.sync, 20 rounds", barriers_text)->arg[0] =
		256;
	pt_case_add(s, run_rounds, "bar.sync with a partial warp", barriers_text)->arg[0] = 75;
	pt_case_add(s, run_rounds, "bar.sync of 1024 threads", barriers_text)->arg[0] = 1024;
	pt_case_add(s, run_halves, "numbered barriers with thread counts", barriers_text);
	pt_case_add(s, run_pipe, "bar.arrive", barriers_text);
	pt_case_add(s, run_red, "bar.red popc, and, or", barriers_text);
	pt_case_add(s, run_sides, "barrier.sync from both sides of a branch", barriers_text);
	pt_case_add(s, run_gone, "bar.sync after some threads left", barriers_text);
	pt_case_add(s, run_cta, "barrier.cta.sync", barriers_text);
	for (int i = 0; i < 6; i++) {
		char *name = pt_format("index registers, shape %d", i);
		pt_case_add(s, run_shape, name, registers_text)->arg[0] = i;
		free(name);
	}
	pt_case_add(s, run_reserved, "reserved shared memory", registers_text);
	pt_case_add(s, run_time, "clocks", registers_text);
	pt_case_add(s, run_chain, "each block waits for the one before", waiting_text);
	pt_case_add(s, run_grid, "cooperative launch, all blocks meet", waiting_text);
}
