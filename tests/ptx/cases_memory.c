/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory that rows cannot test: module variables and their initialisers, parameters, dynamic shared
 * memory, arrays in local memory.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

#define WARPS   4u
#define THREADS (32u * WARPS)

/* clang-format off */
static const char variables_text[] =
        ".visible .global .align 4 .u32 words[6] = {1, 0x80000000, 4294967295, 7};\n"
        ".visible .global .s16 halves[3] = {-1, -32768, 32767};\n"
        ".visible .global .u8 bytes[5] = {1, 2, 255, 0x7f, 0101};\n"
        ".visible .global .f32 singles[2] = {0f3F800000, -2.5};\n"
        ".visible .global .f64 doubles[2] = {0d4000000000000000, 0.1};\n"
        ".visible .global .u64 pointer = words;\n"
        ".visible .global .u64 pointer_in = generic(words)+8;\n"
        ".visible .global .s32 table[2][3] = {{1, 2, 3}, {4, 5, 6}};\n"
        ".visible .const .align 8 .b8 fixed[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};\n"
        ".visible .const .u32 fixed_words[4] = {10, 20, 30, 40};\n"
        ".visible .global .align 16 .b8 zeros[64];\n" PT_ENTRY("read") "{\n" PT_PROLOGUE
        "	setp.ne.u32 %q1, %i, 0;\n	@%q1 ret;\n"
        "	mov.u64 %l1, words;\n	ld.global.v2.u32 {%r1, %r2}, [words];\n	st.global.v2.u32 [%p0], {%r1, %r2};\n"
        "	ld.global.u32 %r1, [words+8];\n	ld.global.u32 %r2, [%l1+12];\n	st.global.v2.u32 [%p0+8], {%r1, %r2};\n"
        "	ld.global.u32 %r1, [words+16];\n	ld.global.s16 %r2, [halves+2];\n"
        "	st.global.v2.u32 [%p0+16], {%r1, %r2};\n"
        "	ld.global.u8 %r1, [bytes+2];\n	ld.global.u8 %r2, [bytes+4];\n	st.global.v2.u32 [%p0+24], {%r1, %r2};\n"
        "	ld.global.b32 %r1, [singles];\n	ld.global.b32 %r2, [singles+4];\n"
        "	st.global.v2.u32 [%p0+32], {%r1, %r2};\n"
        "	ld.global.b64 %l2, [doubles];\n	st.global.b64 [%p0+40], %l2;\n"
        "	ld.global.b64 %l2, [doubles+8];\n	st.global.b64 [%p0+48], %l2;\n"
        "	ld.global.u64 %l2, [pointer];\n	ld.global.u32 %r1, [%l2+12];\n"
        "	ld.global.u64 %l2, [pointer_in];\n	ld.u32 %r2, [%l2];\n	st.global.v2.u32 [%p0+56], {%r1, %r2};\n"
        "	ld.global.s32 %r1, [table+8];\n	ld.global.s32 %r2, [table+12];\n"
        "	st.global.v2.u32 [%p0+64], {%r1, %r2};\n"
        "	ld.const.b64 %l2, [fixed+8];\n	st.global.b64 [%p0+72], %l2;\n"
        "	ld.const.v2.u32 {%r1, %r2}, [fixed_words+8];\n	st.global.v2.u32 [%p0+80], {%r1, %r2};\n"
        "	ld.global.b64 %l2, [zeros+56];\n	st.global.b64 [%p0+88], %l2;\n"
        "	ret;\n}\n"
        /* a different element in each lane, through the constant and the generic window */
        PT_ENTRY("lanes") "{\n" PT_PROLOGUE "	and.b32 %r1, %i, 15;\n	mov.u32 %r2, fixed;\n	add.u32 %r2, %r2, %r1;\n"
        "	cvt.u64.u32 %l1, %r1;\n	mov.u64 %l2, fixed;\n	add.u64 %l3, %l2, %l1;\n	ld.const.u8 %r3, [%l3];\n"
        "	cvta.const.u64 %l3, %l3;\n	ld.u8 %r4, [%l3];\n	shl.b32 %r4, %r4, 8;\n	or.b32 %r3, %r3, %r4;\n"
        "	mad.wide.u32 %p0, %i, 4, %p0;\n	st.global.u32 [%p0], %r3;\n	ret;\n}\n";
/* clang-format on */

static bool run_variables(struct pt_run *run)
{
	static const uint32_t want[] = { 1, 0x80000000, 0xffffffff, 7, 0, 0xffff8000, 255, 'A',
		0x3f800000, 0xc0200000, 0, 0x40000000, 0x9999999a, 0x3fb99999, 7, 0xffffffff, 3, 4,
		0x0c0b0a09, 0x100f0e0d, 30, 40, 0, 0 };
	uint32_t got[24];
	CUdeviceptr out = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "read", 1, 32, out, 0, 0, 0);
	pt_run_get(run, out, got, sizeof got);
	return pt_run_same32(run, "word", got, want, 24);
}

static bool run_const_lanes(struct pt_run *run)
{
	uint32_t got[THREADS], want[THREADS];
	CUdeviceptr out = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "lanes", 1, THREADS, out, 0, 0, 0);
	pt_run_get(run, out, got, sizeof got);
	for (uint32_t i = 0; i < THREADS; i++)
		want[i] = (i % 16 + 1) * 0x101;
	return pt_run_same32(run, "lane", got, want, THREADS);
}

/*
 * The host finds a variable by name, reads its initial value and writes a new one, which the kernel
 * reads.
 */
static bool run_symbols(struct pt_run *run)
{
	uint32_t got[24] = { 0 }, first[4];
	static const uint32_t change[4] = { 100, 200, 300, 400 };
	CUdeviceptr p = 0;
	size_t size = 0;
	CUdeviceptr out = pt_run_put(run, NULL, sizeof got);
	if (run->d->module_global(&p, &size, run->module, "fixed_words") || size != 16)
		return pt_run_fail(run, "cuModuleGetGlobal(fixed_words): size %zu", size);
	pt_run_get(run, p, first, sizeof first);
	if (first[3] != 40)
		return pt_run_fail(run, "fixed_words[3] is %u", first[3]);
	if (run->d->copy_to(p, change, sizeof change))
		return pt_run_fail(run, "cannot write a constant from the host");
	if (run->d->module_global(&p, &size, run->module, "words") || size != 24 ||
		run->d->copy_to(p, change, sizeof change))
		return pt_run_fail(run, "cannot write a global variable: size %zu", size);
	pt_run_line(run, "read", 1, 1, out, 0, 0, 0);
	pt_run_get(run, out, got, sizeof got);
	return pt_run_ok(run) && got[0] == 100 && got[3] == 400 && got[20] == 300 && got[21] == 400;
}

/* Parameters of every size, and structs by value: the offsets follow from alignment. */
/* clang-format off */
static const char parameters_text[] =
        ".visible .entry parameters(.param .u64 out, .param .u8 a, .param .u16 b, .param .s8 c, .param .u32 d, .param .f32 e,\n"
        "	.param .u64 f, .param .align 16 .b8 g[48], .param .u8 h, .param .f64 k, .param .align 4 .b8 m[12])\n{\n"
        "	.reg .b64 %o, %x, %y;\n	.reg .b32 %r<8>;\n"
        "	ld.param.u64 %o, [out];\n"
        "	ld.param.u8 %r1, [a];\n	ld.param.u16 %r2, [b];\n	ld.param.s8 %r3, [c];\n	ld.param.u32 %r4, [d];\n"
        "	st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};\n"
        "	ld.param.b32 %r1, [e];\n	ld.param.u32 %r2, [f+4];\n	ld.param.v2.u32 {%r3, %r4}, [g+8];\n"
        "	st.global.v4.u32 [%o+16], {%r1, %r2, %r3, %r4};\n"
        "	ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [g+32];\n	st.global.v4.u32 [%o+32], {%r1, %r2, %r3, %r4};\n"
        "	ld.param.u8 %r1, [h];\n	ld.param.b64 %x, [k];\n	mov.b64 {%r2, %r3}, %x;\n	ld.param.u32 %r4, [m+8];\n"
        "	st.global.v4.u32 [%o+48], {%r1, %r2, %r3, %r4};\n"
        "	mov.b64 %y, g;\n	ld.param.u8 %r1, [g+47];\n	ld.param.s16 %r2, [g+2];\n"
        "	ld.param.u8 %r3, [m+1];\n"
        "	mov.u32 %r4, 0;\n	st.global.v4.u32 [%o+64], {%r1, %r2, %r3, %r4};\n	ret;\n}\n";
/* clang-format on */

static bool run_parameters(struct pt_run *run)
{
	uint32_t got[20], g[12], m[3] = { 0x44332211, 5, 0xfeedface };
	uint64_t f = UINT64_C(0x0123456789abcdef);
	uint8_t a = 200, h = 77;
	uint16_t b = 60000;
	int8_t c = -5;
	uint32_t d = 0xdeadbeef;
	float e = 1.5f;
	double k = -2;
	for (uint32_t i = 0; i < 12; i++)
		g[i] = 0x81800000u + i * 0x01010101u;
	CUdeviceptr out = pt_run_put(run, NULL, sizeof got);
	CUfunction fn;
	void *args[] = { &out, &a, &b, &c, &d, &e, &f, g, &h, &k, m };
	if (!pt_run_ok(run))
		return false;
	CUresult r = run->d->module_function(&fn, run->module, "parameters");
	if (!r)
		r = run->d->launch(fn, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
	if (!r)
		r = run->d->ctx_sync();
	if (r)
		return pt_run_fail(run, "CUDA error %d", (int)r);
	pt_run_get(run, out, got, sizeof got);
	const uint32_t want[20] = { 200, 60000, 0xfffffffb, 0xdeadbeef, 0x3fc00000, 0x01234567,
		g[2], g[3], g[8], g[9], g[10], g[11], 77, 0, 0xc0000000, m[2], g[11] >> 24,
		(uint32_t)(int32_t)(int16_t)(g[0] >> 16), 0x22, 0 };
	return pt_run_same32(run, "parameter word", got, want, 20);
}

/* A table of parameters read at an address that differs from lane to lane. */
/* clang-format off */
static const char parameter_array_text[] =
        ".visible .entry indexed(.param .u64 out, .param .align 8 .b8 table[4000])\n{\n"
        "	.reg .b64 %o, %x, %y;\n	.reg .b32 %r<8>;\n	ld.param.u64 %o, [out];\n	mov.u32 %r1, %tid.x;\n"
        "	mul.wide.u32 %x, %r1, 40;\n	mov.b64 %y, table;\n	add.u64 %y, %y, %x;\n	ld.param.u32 %r2, [%y+4];\n"
        /* the same through its generic address, which Triton makes of the lower half */
        "	mov.b32 %r3, table;\n	cvt.u64.u32 %y, %r3;\n	cvta.param.u64 %y, %y;\n	add.u64 %y, %y, %x;\n"
        "	ld.u32 %r4, [%y+4];\n	and.b32 %r2, %r2, %r4;\n"
        "	mad.wide.u32 %o, %r1, 4, %o;\n	st.global.u32 [%o], %r2;\n	ret;\n}\n";
/* clang-format on */

static bool run_parameter_array(struct pt_run *run)
{
	uint32_t table[1000], got[96], want[96];
	for (uint32_t i = 0; i < 1000; i++)
		table[i] = i * 2654435761u;
	CUdeviceptr out = pt_run_put(run, NULL, sizeof got);
	CUfunction fn;
	void *args[] = { &out, table };
	if (!pt_run_ok(run))
		return false;
	CUresult r = run->d->module_function(&fn, run->module, "indexed");
	if (!r)
		r = run->d->launch(fn, 1, 1, 1, 96, 1, 1, 0, NULL, args, NULL);
	if (!r)
		r = run->d->ctx_sync();
	if (r)
		return pt_run_fail(run, "CUDA error %d", (int)r);
	pt_run_get(run, out, got, sizeof got);
	for (uint32_t i = 0; i < 96; i++)
		want[i] = table[i * 10 + 1];
	return pt_run_same32(run, "lane", got, want, 96);
}

/*
 * Static shared arrays and the dynamic one after them do not overlap; the dynamic one has the size
 * that the launch requested.
 */
/* clang-format off */
static const char shared_text[] =
        ".extern .shared .align 16 .b8 dynamic[];\n" PT_ENTRY("shared") "{\n" PT_PROLOGUE
        "	.shared .align 4 .u32 first[32];\n	.shared .align 8 .u64 second[32];\n"
        "	mov.u32 %r1, first;\n	mad.lo.u32 %r1, %t, 4, %r1;\n	mov.u32 %r2, second;\n"
        "	mad.lo.u32 %r2, %t, 8, %r2;\n"
        "	mov.u32 %r3, dynamic;\n	cvt.u32.u64 %r4, %p1;\n	sub.u32 %r4, %r4, 128;\n	add.u32 %r5, %r3, %r4;\n"
        "	mad.lo.u32 %r3, %t, 4, %r3;\n	mad.lo.u32 %r5, %t, 4, %r5;\n"
        "	st.shared.u32 [%r1], %t;\n	cvt.u64.u32 %l1, %t;\n	shl.b64 %l1, %l1, 33;\n	st.shared.u64 [%r2], %l1;\n"
        "	add.u32 %r6, %t, 1000;\n	st.shared.u32 [%r3], %r6;\n	add.u32 %r6, %t, 2000;\n"
        "	st.shared.u32 [%r5], %r6;\n"
        "	bar.sync 0;\n"
        "	xor.b32 %r7, %t, 31;\n	sub.s32 %r8, %r7, %t;\n	mad.lo.s32 %r1, %r8, 4, %r1;\n"
        "	mad.lo.s32 %r2, %r8, 8, %r2;\n"
        "	mad.lo.s32 %r3, %r8, 4, %r3;\n	mad.lo.s32 %r5, %r8, 4, %r5;\n"
        "	ld.shared.u32 %r10, [%r1];\n	ld.shared.u64 %l2, [%r2];\n	shr.u64 %l2, %l2, 33;\n"
        "	cvt.u32.u64 %r11, %l2;\n"
        "	ld.shared.u32 %r12, [%r3];\n	ld.shared.u32 %r13, [%r5];\n"
        "	mad.wide.u32 %p0, %i, 16, %p0;\n	st.global.v4.u32 [%p0], {%r10, %r11, %r12, %r13};\n	ret;\n}\n";
/* clang-format on */

static bool run_shared(struct pt_run *run)
{
	uint32_t got[32 * 4 * 3], want[32 * 4 * 3];
	uint64_t size = (uint64_t)run->c->arg[0];
	CUdeviceptr out = pt_run_put(run, NULL, sizeof got);
	pt_run_go(run, "shared", (struct pt_dim){ 3, 1, 1 }, (struct pt_dim){ 32, 1, 1 },
		(unsigned)size, (const uint64_t[4]){ out, size, 0, 0 });
	pt_run_get(run, out, got, sizeof got);
	for (uint32_t i = 0; i < 96; i++) {
		uint32_t t = (i % 32) ^ 31;
		const uint32_t w[4] = { t, t, t + 1000, t + 2000 };
		memcpy(want + 4 * i, w, sizeof w);
	}
	return pt_run_same32(run, "word", got, want, 32 * 4 * 3);
}

/*
 * Local arrays indexed at run time: each thread has its own, also in another warp and in a called
 * function.
 */
/* clang-format off */
static const char local_text[] =
        ".func (.param .b32 ret) sum(.param .b64 at, .param .b32 n)\n{\n"
        "	.local .align 4 .b8 scratch[64];\n	.reg .b64 %l<4>;\n	.reg .b32 %r<8>;\n	.reg .pred %q;\n"
        "	ld.param.b64 %l0, [at];\n	ld.param.b32 %r0, [n];\n	mov.u32 %r1, 0;\n"
        "	mov.u64 %l1, scratch;\n"
        "	mov.u32 %r2, 0;\n"
        "COPY:\n	mad.wide.u32 %l2, %r2, 4, %l0;\n	ld.u32 %r3, [%l2];\n	mad.wide.u32 %l2, %r2, 4, %l1;\n"
        "	st.local.u32 [%l2], %r3;\n	add.u32 %r2, %r2, 1;\n	setp.lt.u32 %q, %r2, %r0;\n	@%q bra COPY;\n"
        "	mov.u32 %r2, 0;\n"
        "ADD:\n	mad.wide.u32 %l2, %r2, 4, %l1;\n	ld.local.u32 %r3, [%l2];\n	add.u32 %r1, %r1, %r3;\n"
        "	add.u32 %r2, %r2, 1;\n	setp.lt.u32 %q, %r2, %r0;\n	@%q bra ADD;\n"
        "	st.param.b32 [ret], %r1;\n	ret;\n}\n" PT_ENTRY("local") "{\n	.local .align 8 .b8 mine[64];\n" PT_PROLOGUE
        "	mov.u64 %l1, mine;\n	mov.u32 %r1, 0;\n"
        "FILL:\n	mad.wide.u32 %l2, %r1, 4, %l1;\n	mad.lo.u32 %r2, %r1, %r1, %i;\n	st.local.u32 [%l2], %r2;\n"
        "	add.u32 %r1, %r1, 1;\n	setp.lt.u32 %q1, %r1, 16;\n	@%q1 bra FILL;\n"
        "	and.b32 %r3, %i, 15;\n	add.u32 %r3, %r3, 1;\n	cvta.local.u64 %l3, %l1;\n"
        "	{\n	.param .b64 x;\n	.param .b32 y;\n	.param .b32 z;\n"
        "	st.param.b64 [x], %l3;\n	st.param.b32 [y], %r3;\n"
        "	call (z), sum, (x, y);\n	ld.param.b32 %r4, [z];\n	}\n"
        "	and.b32 %r5, %i, 7;\n	mad.wide.u32 %l2, %r5, 4, %l1;\n	ld.local.u32 %r6, [%l2];\n"
        "	mad.wide.u32 %p0, %i, 8, %p0;\n	st.global.v2.u32 [%p0], {%r4, %r6};\n	ret;\n}\n";
/* clang-format on */

static bool run_local(struct pt_run *run)
{
	uint32_t got[2 * THREADS * 2], want[2 * THREADS * 2];
	CUdeviceptr out = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "local", 2, THREADS, out, 0, 0, 0);
	pt_run_get(run, out, got, sizeof got);
	for (uint32_t i = 0; i < 2 * THREADS; i++) {
		want[2 * i] = 0;
		for (uint32_t k = 0; k <= i % 16; k++)
			want[2 * i] += k * k + i;
		want[2 * i + 1] = (i & 7) * (i & 7) + i;
	}
	return pt_run_same32(run, "word", got, want, 4 * THREADS);
}

static const char managed_text[] =
	".visible .global .attribute(.managed) .align 4 .u32 shared_word = 5;\n" PT_ENTRY(
		"bump") "{\n" PT_PROLOGUE
			"	atom.global.add.u32 %r1, [shared_word], 2;\n	ret;\n}\n";

static bool run_managed(struct pt_run *run)
{
	CUdeviceptr p = 0;
	size_t size = 0;
	uint32_t got = 0, want = 5 + 2 * 64;
	pt_run_line(run, "bump", 2, 32, 0, 0, 0, 0);
	if (pt_run_ok(run) &&
		(run->d->module_global(&p, &size, run->module, "shared_word") || size != 4))
		return pt_run_fail(run, "cuModuleGetGlobal: size %zu", size);
	pt_run_get(run, p, &got, 4);
	return pt_run_same32(run, "word", &got, &want, 1);
}

void pt_group_memory(struct pt_suite *s)
{
	pt_memory_rows(s);
	pt_case_add(s, run_variables, "initialised variables", variables_text);
	pt_case_add(s, run_const_lanes, "ld.const at an address per lane", variables_text);
	pt_case_add(s, run_symbols, "variables by name from the host", variables_text);
	pt_case_add(s, run_parameters, "parameters of every size", parameters_text);
	pt_case_add(
		s, run_parameter_array, "4000 bytes of parameter, indexed", parameter_array_text);
	pt_case_add(s, run_shared, "static and dynamic shared memory", shared_text)->arg[0] = 4096;
	pt_case_add(s, run_shared, "dynamic shared memory over 48 KiB", shared_text)->arg[0] = 160
		<< 10;
	pt_case_add(s, run_local, "local arrays", local_text);
	pt_case_add(s, run_managed, "managed variable", managed_text);
}
