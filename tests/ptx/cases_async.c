/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Asynchronous copies, single and in bulk, and the transaction counts of mbarriers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

/* One thread changes a barrier step by step; bit i of the result: has the phase ended by then? */
/* clang-format off */
#define TEST(bit) \
	"	mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %q1, [%r1], %r4;\n" \
	"	selp.u32 %r6, " bit ", 0, %q1;\n	or.b32 %r5, %r5, %r6;\n"
static const char tx_text[] = PT_ENTRY("tx") "{\n	.shared .align 8 .b64 bar;\n" PT_PROLOGUE
	"	mov.u32 %r1, bar;\n	mov.u32 %r5, 0;\n	mov.u32 %r4, 0;\n	mbarrier.init.shared::cta.b64 [%r1], 3;\n"
	"	mbarrier.arrive.noComplete.shared.b64 %l3, [%r1], 1;\n"
	/* bytes are expected before the arrivals: the phase waits for them */
	"	mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %l1, [%r1], 100;\n" TEST("1")
	"	mbarrier.pending_count.b64 %r10, %l1;\n"
	"	mbarrier.arrive.shared.b64 %l2, [%r1], 1;\n	mbarrier.pending_count.b64 %r11, %l2;\n" TEST("2")
	"	mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 60;\n" TEST("4")
	"	mbarrier.complete_tx.shared::cluster.relaxed.cluster.b64 [%r1], 40;\n" TEST("8")
	/* the second phase: bytes that are complete before the arrivals, and one arrival that leaves */
	"	mov.u32 %r4, 1;\n	mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 1000;\n"
	"	mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 1000;\n" TEST("16")
	"	mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%r1], 8;\n" TEST("32")
	"	mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 8;\n" TEST("64")
	"	mbarrier.arrive.shared.b64 _, [%r1];\n	mbarrier.arrive.release.cta.shared::cta.b64 %l3, [%r1];\n" TEST("128")
	/* the third: two arrivals are left */
	"	mbarrier.try_wait.shared.b64 %q1, [%r1], %l3, 20;\n	selp.u32 %r6, 256, 0, %q1;\n	or.b32 %r5, %r5, %r6;\n"
	"	mov.u32 %r4, 0;\n" TEST("512")
	"	mbarrier.arrive.shared.b64 _, [%r1], 2;\n" TEST("1024")
	"	mbarrier.inval.shared.b64 [%r1];\n"
	"	st.global.u32 [%p1], %r5;\n	st.global.v2.u32 [%p1+8], {%r10, %r11};\n	ret;\n}\n";
/* clang-format on */

static bool run_tx(struct pt_run *run)
{
	uint32_t got[4], want[4] = { 8 | 128 | 256 | 1024, 0xa5a5a5a5, 2, 1 };
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "tx", 1, 1, 0, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "word", got, want, 4);
}

/* Global to shared, shared to shared, and back, by one thread; all wait for the barrier. */
/* clang-format off */
static const char bulk_text[] = PT_ENTRY("bulk") "{\n	.shared .align 16 .b8 x[4096];\n	.shared .align 16 .b8 y[4096];\n"
	"	.shared .align 8 .b64 bar;\n" PT_PROLOGUE
	"	mov.u32 %r1, bar;\n	mov.u32 %r2, x;\n	mov.u32 %r3, y;\n	setp.ne.u32 %q1, %t, 0;\n"
	"	mov.u32 %r10, 2064;\n	mov.u32 %r11, 0;\n	mov.u32 %r12, 1;\n"
	"	@%q1 bra READY;\n	mbarrier.init.shared.b64 [%r1], 1;\n	fence.proxy.async;\nREADY:\n	bar.sync 0;\n"
	"	@%q1 bra FIRST;\n	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4096;\n"
	"	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%p0], %r10, [%r1];\n"
	"	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+2064], [%p0+2064], 2032, [%r1];\n"
	"FIRST:\n	mbarrier.try_wait.parity.shared::cta.b64 %q2, [%r1], %r11;\n	@!%q2 bra FIRST;\n	bar.sync 0;\n"
	"	@%q1 bra SECOND;\n	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4096;\n"
	"	cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3], [%r2], 4096, [%r1];\n"
	"SECOND:\n	mbarrier.try_wait.parity.shared::cta.b64 %q2, [%r1], %r12;\n	@!%q2 bra SECOND;\n"
	"	mad.lo.u32 %r4, %t, 4, %r3;\n	ld.shared.u32 %r5, [%r4];\n	add.u32 %r5, %r5, %t;\n	st.shared.u32 [%r4], %r5;\n"
	"	fence.proxy.async.shared::cta;\n	bar.sync 0;\n	@%q1 ret;\n"
	"	cp.async.bulk.global.shared::cta.bulk_group [%p1], [%r3], 4096;\n	cp.async.bulk.commit_group;\n"
	"	cp.async.bulk.wait_group.read 0;\n	cp.async.bulk.wait_group 0;\n	ret;\n}\n"
	PT_ENTRY("edges") "{\n	.shared .align 16 .b8 x[64];\n" PT_PROLOGUE
	"	mov.u32 %r1, x;\n	mad.lo.u32 %r2, %t, 16, %r1;\n	mad.wide.u32 %l1, %t, 16, %p0;\n	mad.wide.u32 %l2, %t, 16, %p1;\n"
	"	setp.eq.u32 %q1, %t, 1;\n	mov.u32 %r3, -1;\n	st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3};\n"
	"	cp.async.ca.shared.global [%r2], [%l1], 16, %q1;\n"
	"	cp.async.commit_group;\n	cp.async.wait_group 0;\n	ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\n"
	"	st.global.v4.u32 [%l2], {%r4, %r5, %r6, %r7};\n	ret;\n}\n"
	PT_ENTRY("noinc") "{\n	.shared .align 8 .b64 bar;\n	.shared .align 16 .b8 x[1024];\n" PT_PROLOGUE
	"	mov.u32 %r1, bar;\n	mov.u32 %r2, x;\n	mad.lo.u32 %r2, %t, 16, %r2;\n	mad.wide.u32 %l1, %t, 16, %p0;\n"
	"	mad.wide.u32 %l2, %t, 16, %p1;\n"
	"	setp.eq.u32 %q1, %t, 0;\n	@%q1 mbarrier.init.shared.b64 [%r1], 128;\n	bar.sync 0;\n	mov.u32 %r3, 0;\n"
	"	cp.async.cg.shared.global [%r2], [%l1], 16;\n	cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\n"
	"	cp.async.mbarrier.arrive.shared::cta.b64 [%r1];\n	mbarrier.arrive.shared.b64 %l3, [%r1];\n"
	"L:\n	mbarrier.test_wait.parity.shared.b64 %q2, [%r1], %r3;\n	@!%q2 bra L;\n	xor.b32 %r4, %t, 63;\n"
	"	mov.u32 %r2, x;\n	mad.lo.u32 %r2, %r4, 16, %r2;\n"
	"	ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\n	st.global.v4.u32 [%l2], {%r4, %r5, %r6, %r7};\n	ret;\n}\n";
/* clang-format on */

static bool run_bulk(struct pt_run *run)
{
	uint32_t in[1024], want[1024], got[1024];
	for (uint32_t i = 0; i < 1024; i++) {
		in[i] = (uint32_t)pt_rng_next(&run->rng);
		want[i] = in[i] + i;
	}
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "bulk", 1, 1024, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	pt_run_same32(run, "bulk word", got, want, 1024);
	/* thread 1 ignores its source */
	b = pt_run_put(run, NULL, 64);
	pt_run_line(run, "edges", 1, 4, a, b, 0, 0);
	pt_run_get(run, b, got, 64);
	memcpy(want, in, 64);
	memset(want + 4, 0, 16);
	pt_run_same32(run, "single word", got, want, 16);
	b = pt_run_put(run, NULL, 1024);
	pt_run_line(run, "noinc", 1, 64, a, b, 0, 0);
	pt_run_get(run, b, got, 1024);
	for (uint32_t i = 0; i < 256; i++)
		want[i] = in[(i / 4 ^ 63) * 4 + i % 4];
	return pt_run_same32(run, "word of the neighbour", got, want, 256);
}

/*
 * Shared to global: adds u32 to 256 words, f16 to the next 512 bytes; shared to shared: the maximum
 * of two areas, which is stored behind them.
 */
/* clang-format off */
static const char reduce_text[] = PT_ENTRY("reduce") "{\n	.shared .align 16 .b8 x[2048];\n	.shared .align 16 .b8 y[512];\n"
	"	.shared .align 8 .b64 bar;\n" PT_PROLOGUE
	"	mov.u32 %r1, bar;\n	mov.u32 %r2, x;\n	mov.u32 %r3, y;\n	setp.ne.u32 %q1, %t, 0;\n	mad.wide.u32 %l1, %t, 64, %p0;\n"
	"	mad.lo.u32 %r4, %t, 64, %r2;\n	mov.u32 %r11, 0;\n"
	"	ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%l1];\n	st.shared.v4.u32 [%r4], {%r20, %r21, %r22, %r23};\n"
	"	ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%l1+16];\n	st.shared.v4.u32 [%r4+16], {%r20, %r21, %r22, %r23};\n"
	"	ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%l1+32];\n	st.shared.v4.u32 [%r4+32], {%r20, %r21, %r22, %r23};\n"
	"	ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%l1+48];\n	st.shared.v4.u32 [%r4+48], {%r20, %r21, %r22, %r23};\n"
	"	mad.lo.u32 %r4, %t, 16, %r3;\n	st.shared.v4.u32 [%r4], {%t, %t, %t, %t};\n"
	"	@%q1 bra READY;\n	mbarrier.init.shared.b64 [%r1], 1;\nREADY:\n	fence.proxy.async;\n	bar.sync 0;\n	@%q1 bra WAIT;\n"
	"	cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p1], [%r2], 1024;\n"
	"	cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%p1+1024], [%r2+1024], 512;\n"
	"	cp.async.bulk.commit_group;\n	cp.async.bulk.wait_group 0;\n	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 512;\n"
	"	cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.u32 [%r3], [%r2+1536], 512, [%r1];\n"
	"WAIT:\n	mbarrier.try_wait.parity.shared::cta.b64 %q2, [%r1], %r11;\n	@!%q2 bra WAIT;\n"
	"	ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r4];\n	mad.wide.u32 %l2, %t, 16, %p1;\n"
	"	st.global.v4.u32 [%l2+1536], {%r20, %r21, %r22, %r23};\n	ret;\n}\n";
/* clang-format on */

static bool run_reduce(struct pt_run *run)
{
	uint32_t in[512], want[512], got[512];
	static const uint16_t halves[] = { 0x3c00, 0x4000, 0xc200, 0x0000 }; /* 1, 2, -3, 0 */
	for (uint32_t i = 0; i < 512; i++) {
		in[i] = i >= 384 ? pt_rng_below(&run->rng, 64) : (uint32_t)pt_rng_next(&run->rng);
		want[i] = (uint32_t)pt_rng_next(&run->rng);
		if (i >= 256 && i < 384) {
			in[i] = halves[i % 4] | (uint32_t)halves[i / 4 % 4] << 16;
			want[i] = 0x3c003c00; /* 1 */
		}
	}
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, want, sizeof want);
	static const uint16_t sums[] = { 0x4000, 0x4200, 0xc000, 0x3c00 }; /* 2, 3, -2, 1 */
	for (uint32_t i = 0; i < 512; i++)
		want[i] = i < 256               ? want[i] + in[i]
			: i < 384               ? sums[i % 4] | (uint32_t)sums[i / 4 % 4] << 16
			: in[i] > (i - 384) / 4 ? in[i]
						: (i - 384) / 4;
	pt_run_line(run, "reduce", 1, 32, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "word", got, want, 512);
}

void pt_async_cases(struct pt_suite *s)
{
	pt_case_add(s, run_tx, "mbarrier with transactions", tx_text);
	pt_case_add(s, run_reduce, "cp.reduce.async.bulk", reduce_text);
	pt_case_add(s, run_bulk, "cp.async.bulk and mbarriers", bulk_text);
}
