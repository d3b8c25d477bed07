/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Clusters of four blocks: special registers, barriers, and accesses to the shared memory of other
 * blocks by addresses of shared::cluster and by generic addresses.
 */
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

#define BLOCKS  8u
#define THREADS 40u
#define N       (BLOCKS * THREADS)
#define SIZE    ".explicitcluster .reqnctapercluster "

/* clang-format off */
#define ENTRY(name, size) \
	".visible .entry " name "(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n" SIZE size "\n"
static const char cluster_text[] =
        /* each thread: its rank, the cluster and its size, in a grid of 2 x 4 blocks and clusters of 2 x 2 */
        ENTRY("numbers", "2, 2, 1") "{\n" PT_PROLOGUE
        "	mov.u32 %r1, %cluster_ctarank;\n	mov.u32 %r2, %cluster_nctarank;\n	mov.u32 %r3, %cluster_ctaid.x;\n"
        "	mov.u32 %r4, %cluster_ctaid.y;\n	mov.u32 %r5, %clusterid.x;\n	mov.u32 %r6, %clusterid.y;\n"
        "	mov.u32 %r7, %nclusterid.x;\n	mov.u32 %r8, %nclusterid.y;\n	mov.u32 %r9, %cluster_nctaid.x;\n"
        "	mov.u32 %r10, %cluster_nctaid.z;\n	mov.pred %q1, %is_explicit_cluster;\n	selp.u32 %r11, 1, 0, %q1;\n"
        "	mov.u32 %r12, %clusterid.z;\n	mov.u32 %r13, %ctaid.y;\n	mad.lo.u32 %r13, %r13, 2, %r62;\n"
        "	mad.lo.u32 %r13, %r13, %r63, %t;\n	mad.wide.u32 %p1, %r13, 48, %p1;\n"
        "	st.global.v4.u32 [%p1], {%r1, %r2, %r3, %r4};\n	st.global.v4.u32 [%p1+16], {%r5, %r6, %r7, %r8};\n"
        "	st.global.v4.u32 [%p1+32], {%r9, %r10, %r11, %r12};\n	ret;\n}\n"
        /*
         * Each thread writes 16 bytes to the block behind its own and reads those from the block
         * before, adds its index to a counter in block 0, and takes the widths in turn.
         */
        ENTRY("remote", "4, 1, 1") "{\n	.shared .align 16 .b8 cell[640];\n	.shared .align 8 .b64 sum;\n" PT_PROLOGUE
        "	mov.u32 %r1, %cluster_ctarank;\n	mov.u32 %r2, cell;\n	mad.lo.u32 %r2, %t, 16, %r2;\n"
        "	mov.u64 %l9, 0;\n	st.shared.u64 [sum], %l9;\n	barrier.cluster.arrive.release;\n	barrier.cluster.wait.acquire;\n"
        "	add.u32 %r3, %r1, 1;\n	and.b32 %r3, %r3, 3;\n	mapa.shared::cluster.u32 %r4, %r2, %r3;\n"
        "	add.u32 %r5, %i, 1000;\n	add.u32 %r6, %i, 2000;\n	add.u32 %r7, %i, 3000;\n"
        "	st.shared::cluster.v4.u32 [%r4], {%i, %r5, %r6, %r7};\n"
        "	mov.u32 %r8, sum;\n	mapa.shared::cluster.u32 %r9, %r8, 0;\n	cvt.u64.u32 %l1, %i;\n"
        "	red.relaxed.cluster.shared::cluster.add.u64 [%r9], %l1;\n"
        "	barrier.cluster.arrive.aligned;\n	barrier.cluster.wait.aligned;\n"
        "	ld.shared.u32 %r10, [%r2+4];\n	ld.shared::cluster.u8 %r11, [%r4];\n"
        "	ld.shared::cluster.v2.u32 {%r12, %r13}, [%r4+8];\n	ld.shared::cluster.u64 %l2, [%r9];\n"
        "	getctarank.shared::cluster.u32 %r14, %r4;\n"
        "	mad.wide.u32 %p1, %i, 40, %p1;\n	st.global.v2.u32 [%p1], {%r10, %r11};\n"
        "	st.global.v2.u32 [%p1+8], {%r12, %r13};\n	st.global.u64 [%p1+16], %l2;\n"
        "	mov.u32 %r15, 0;\n	st.global.v2.u32 [%p1+24], {%r14, %r15};\n"
        "	atom.acquire.cluster.shared::cluster.exch.b32 %r16, [%r4+12], %r15;\n"
        "	ld.volatile.shared::cluster.u32 %r17, [%r4+12];\n	st.global.v2.u32 [%p1+32], {%r16, %r17};\n"
        "	barrier.cluster.arrive.relaxed;\n	barrier.cluster.wait;\n	ret;\n}\n"
        /*
         * Each thread sends 28 bytes to the block behind its own and adds to two counters there; the
         * barrier of that block counts the bytes.
         */
        ENTRY("asynchronous", "4, 1, 1") "{\n	.shared .align 16 .b8 cell[1280];\n	.shared .align 8 .b8 sums[16];\n"
        "	.shared .align 8 .b64 bar;\n" PT_PROLOGUE
        "	mov.u32 %r1, %cluster_ctarank;\n	add.u32 %r3, %r1, 1;\n	and.b32 %r3, %r3, 3;\n	setp.ne.u32 %q1, %t, 0;\n"
        "	mov.u32 %r4, bar;\n	mov.u64 %l9, 0;\n	@%q1 bra READY;\n	mbarrier.init.shared.b64 [%r4], 1;\n"
        "	st.shared.u64 [sums], %l9;\n	st.shared.u64 [sums+8], %l9;\n"
        "	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 1600;\nREADY:\n"
        "	barrier.cluster.arrive;\n	barrier.cluster.wait;\n"
        "	mov.u32 %r2, cell;\n	mad.lo.u32 %r2, %t, 32, %r2;\n	mapa.shared::cluster.u32 %r5, %r2, %r3;\n"
        "	mov.u32 %r6, sums;\n	mapa.shared::cluster.u32 %r6, %r6, %r3;\n	mapa.shared::cluster.u32 %r7, %r4, %r3;\n"
        "	add.u32 %r8, %i, 1000;\n	cvt.u64.u32 %l1, %i;\n	add.u64 %l2, %l1, 5;\n	cvt.rn.f32.u32 %f1, %i;\n"
        "	st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%r5], {%l1, %l2}, [%r7];\n"
        "	st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r5+16], {%i, %r8}, [%r7];\n"
        "	st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%r5+24], %f1, [%r7];\n"
        "	red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6], %i, [%r7];\n"
        "	red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r6+4], %r8, [%r7];\n"
        "	red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.or.b32 [%r6+8], %i, [%r7];\n"
        "	mov.u32 %r9, 0;\nL:\n	mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q2, [%r4], %r9;\n	@!%q2 bra L;\n"
        "	mad.wide.u32 %p1, %i, 40, %p1;\n	ld.shared.v2.u64 {%l3, %l4}, [%r2];\n	st.global.u64 [%p1], %l3;\n"
        "	st.global.u64 [%p1+8], %l4;\n	ld.shared.v2.u32 {%r10, %r11}, [%r2+16];\n	ld.shared.f32 %f2, [%r2+24];\n"
        "	cvt.rzi.u32.f32 %r12, %f2;\n	st.global.u32 [%p1+16], %r10;\n	st.global.u32 [%p1+20], %r11;\n"
        "	ld.shared.u32 %r13, [sums];\n	ld.shared.u32 %r14, [sums+4];\n	ld.shared.u32 %r15, [sums+8];\n"
        "	st.global.u32 [%p1+24], %r12;\n	st.global.u32 [%p1+28], %r13;\n	st.global.u32 [%p1+32], %r14;\n"
        "	st.global.u32 [%p1+36], %r15;\n	barrier.cluster.arrive;\n	barrier.cluster.wait;\n	ret;\n}\n"
        /* the same memory by generic addresses, and the conversions between the two kinds */
        ENTRY("generic", "4, 1, 1") "{\n	.shared .align 4 .b32 cell[40];\n" PT_PROLOGUE
        "	mov.u32 %r1, %cluster_ctarank;\n	mov.u64 %l1, cell;\n	mad.wide.u32 %l1, %t, 4, %l1;\n"
        "	cvta.shared.u64 %l2, %l1;\n	xor.b32 %r2, %r1, 3;\n	mapa.u64 %l3, %l2, %r2;\n"
        "	barrier.cluster.arrive;\n	barrier.cluster.wait;\n	st.u32 [%l3], %i;\n"
        "	barrier.cluster.arrive;\n	barrier.cluster.wait;\n	ld.shared.u32 %r3, [%l1];\n"
        "	cvta.to.shared::cluster.u64 %l4, %l3;\n	ld.shared::cluster.u32 %r4, [%l4];\n"
        "	cvta.shared::cluster.u64 %l5, %l4;\n	sub.u64 %l6, %l5, %l3;\n	cvt.u32.u64 %r5, %l6;\n"
        "	mapa.shared::cluster.u64 %l7, %l1, %r2;\n	sub.u64 %l7, %l7, %l4;\n	cvt.u32.u64 %r6, %l7;\n"
        "	getctarank.u64 %r7, %l3;\n	isspacep.shared::cluster %q1, %l3;\n	isspacep.shared::cta %q2, %l3;\n"
        "	isspacep.shared::cluster %q3, %l2;\n	isspacep.shared::cluster %q4, %p1;\n	isspacep.global %q5, %l3;\n"
        "	selp.u32 %r8, 1, 0, %q1;\n	@%q2 add.u32 %r8, %r8, 10;\n	@%q3 add.u32 %r8, %r8, 100;\n"
        "	@%q4 add.u32 %r8, %r8, 1000;\n	@%q5 add.u32 %r8, %r8, 10000;\n"
        "	mad.wide.u32 %p1, %i, 24, %p1;\n	st.global.v2.u32 [%p1], {%r3, %r4};\n"
        "	st.global.v2.u32 [%p1+8], {%r5, %r6};\n	st.global.v2.u32 [%p1+16], {%r7, %r8};\n"
        "	barrier.cluster.arrive;\n	barrier.cluster.wait;\n	ret;\n}\n"
        /* the halves of the barrier apart, in a loop; threads of a block that leave after some rounds */
        ENTRY("rounds", "4, 1, 1") "{\n	.shared .align 4 .b32 cell[2];\n" PT_PROLOGUE
        "	mov.u32 %r1, %cluster_ctarank;\n	mov.u32 %r2, 0;\n	mov.u32 %r3, %r1;\n	mov.u32 %r4, cell;\n"
        "	add.u32 %r5, %r1, 1;\n	and.b32 %r5, %r5, 3;\n	mapa.shared::cluster.u32 %r6, %r4, %r5;\n"
        "NEXT:\n	and.b32 %r7, %r2, 1;\n	shl.b32 %r7, %r7, 2;\n	add.u32 %r8, %r6, %r7;\n	add.u32 %r9, %r4, %r7;\n"
        "	setp.eq.u32 %q1, %t, 0;\n	@%q1 st.shared::cluster.u32 [%r8], %r3;\n"
        "	barrier.cluster.arrive;\n	mad.lo.u32 %r3, %r3, 3, %r2;\n	barrier.cluster.wait;\n"
        "	ld.shared.u32 %r10, [%r9];\n	add.u32 %r3, %r3, %r10;\n	add.u32 %r2, %r2, 1;\n"
        "	setp.ge.u32 %q2, %r2, 4;\n	setp.gt.u32 %q3, %t, 33;\n	and.pred %q3, %q2, %q3;\n	@%q3 bra OUT;\n"
        "	setp.lt.u32 %q4, %r2, 12;\n	@%q4 bra NEXT;\n"
        "OUT:\n	mad.wide.u32 %p1, %i, 4, %p1;\n	st.global.u32 [%p1], %r3;\n	ret;\n}\n";
/* clang-format on */

static bool run_numbers(struct pt_run *run)
{
	uint32_t got[N * 12], want[N * 12];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);

	pt_run_go(run, "numbers", (struct pt_dim){ 2, 4, 1 }, (struct pt_dim){ THREADS, 1, 1 }, 0,
		(const uint64_t[]){ b, b, 0, 0 });
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t x = i / THREADS % 2, y = i / THREADS / 2;
		const uint32_t w[12] = { x + 2 * (y % 2), 4, x, y % 2, 0, y / 2, 1, 2, 2, 1, 1, 0 };

		memcpy(want + i * 12, w, sizeof w);
	}
	return pt_run_same32(run, "word", got, want, N * 12);
}

static bool run_remote(struct pt_run *run)
{
	uint32_t got[N * 10], want[N * 10];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);

	pt_run_line(run, "remote", BLOCKS, THREADS, 0, b, b, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t rank = i / THREADS % 4, cluster = i / THREADS / 4, size = 4 * THREADS;
		uint32_t before = i - rank * THREADS + (rank + 3) % 4 * THREADS;
		uint32_t sum = size * (size - 1) / 2 + cluster * size * size;
		const uint32_t w[10] = { before + 1000, i & 255, i + 2000, i + 3000, sum, 0,
			(rank + 1) % 4, 0, i + 3000, 0 };

		memcpy(want + i * 10, w, sizeof w);
	}
	return pt_run_same32(run, "word", got, want, N * 10);
}

static bool run_asynchronous(struct pt_run *run)
{
	uint32_t got[N * 10], want[N * 10];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);

	pt_run_line(run, "asynchronous", BLOCKS, THREADS, 0, b, b, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t rank = i / THREADS % 4, sum = 0, all = 0;
		uint32_t first = (i / THREADS - rank + (rank + 3) % 4) * THREADS;
		uint32_t before = first + i % THREADS;

		for (uint32_t t = first; t < first + THREADS; t++) {
			sum += t;
			all |= t;
		}
		const uint32_t w[10] = { before, 0, before + 5, 0, before, before + 1000, before,
			sum, first + THREADS - 1 + 1000, all };

		memcpy(want + i * 10, w, sizeof w);
	}
	return pt_run_same32(run, "word", got, want, N * 10);
}

static bool run_generic(struct pt_run *run)
{
	uint32_t got[N * 6], want[N * 6];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);

	pt_run_line(run, "generic", BLOCKS, THREADS, 0, b, b, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t rank = i / THREADS % 4, other = rank ^ 3;
		uint32_t there = i - rank * THREADS + other * THREADS;
		const uint32_t w[6] = { there, i, 0, 0, other, 101 };

		memcpy(want + i * 6, w, sizeof w);
	}
	return pt_run_same32(run, "word", got, want, N * 6);
}

static bool run_rounds(struct pt_run *run)
{
	uint32_t got[N], want[N], x[4], y[4], early[4];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);

	pt_run_line(run, "rounds", BLOCKS, THREADS, 0, b, b, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t k = 0; k < 4; k++)
		x[k] = k;
	for (uint32_t round = 0; round < 12; round++) {
		for (uint32_t k = 0; k < 4; k++)
			y[k] = x[k] * 3 + round + x[(k + 3) % 4];
		memcpy(x, y, sizeof x);
		if (round == 3)
			memcpy(early, x, sizeof x);
	}
	for (uint32_t i = 0; i < N; i++)
		want[i] = (i % THREADS > 33 ? early : x)[i / THREADS % 4];
	return pt_run_same32(run, "thread", got, want, N);
}

void pt_group_cluster(struct pt_suite *s)
{
	pt_case_add(s, run_numbers, "cluster registers", cluster_text);
	pt_case_add(s, run_remote, "shared memory of other blocks", cluster_text);
	pt_case_add(s, run_asynchronous, "st.async and red.async", cluster_text);
	pt_case_add(s, run_generic, "generic addresses of other blocks", cluster_text);
	pt_case_add(s, run_rounds, "barrier.cluster, halves apart", cluster_text);
}
