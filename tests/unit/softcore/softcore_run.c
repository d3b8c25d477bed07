/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Execution: divergent SIMD lanes, waiting blocks, calls, faults with their positions, and grids
 * stopped from outside.
 */
#include <pthread.h>

#include "tests/unit/softcore/device.h"

static uint32_t *words(size_t n)
{
	uint32_t *p;

	device_env();
	p = device_take(NULL, n * 4, 64);
	CHECK(p != NULL);
	return p;
}

/* out[tid] = f(tid) for one block */
#define PROLOGUE                                                                                \
	".reg .b64 %d<8>; .reg .b32 %r<40>; .reg .pred %p<8>; .reg .f32 %f<8>;\n"               \
	"ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, " \
	"%d1, %d0;\n"
#define KERNEL(name, body) \
	".visible .entry " name "(.param .u64 out) {\n" PROLOGUE body "\nret; }\n"

TEST(parted_lanes_meet_again)
{
	/*
	 * each SIMD lane loops tid times; odd ones take another branch; at the end each counts the
	 * active lanes
	 */
	struct obd_program *p = device_load_good(HEAD KERNEL("k",
		"mov.u32 %r1, 0; mov.u32 %r2, %r0;\n"
		"LOOP: setp.eq.u32 %p0, %r2, 0; @%p0 bra OUT; add.u32 %r1, %r1, 3; sub.u32 %r2, "
		"%r2, 1; bra LOOP;\n"
		"OUT: and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra EVEN; add.u32 %r1, "
		"%r1, 1000; bra DONE;\n"
		"EVEN: add.u32 %r1, %r1, 2000;\n"
		"DONE: activemask.b32 %r4; popc.b32 %r4, %r4; mad.lo.u32 %r1, %r4, 10000, %r1; "
		"st.global.u32 [%d1], %r1;"));
	uint32_t *out = words(40);

	CHECK_INT(device_run(p, "k", 1, 40, &out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 40; i++)
		CHECK_INT(out[i], (i < 32 ? 32u : 8u) * 10000 + i * 3 + (i & 1 ? 1000 : 2000));
	device_end(p);
}

TEST(guards_keep_other_lanes)
{
	struct obd_program *p = device_load_good(HEAD KERNEL("k",
		"mov.u32 %r1, 7; and.b32 %r2, %r0, 3; setp.eq.u32 %p0, %r2, 1;\n"
		"@%p0 mov.u32 %r1, 9; @!%p0 add.cc.u32 %r1, %r1, 0xffffffff; addc.u32 %r1, %r1, "
		"0;\n"
		"@%p0 mul.rz.f32 %f1, 0f3f800001, 0f3f800001; st.global.u32 [%d1], %r1;"));
	uint32_t *out = words(32);

	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		if ((i & 3) != 1)
			CHECK_INT(out[i], 7); /* 7 - 1 plus its carry */
	device_end(p);
}

TEST(spin_lock_inside_a_warp)
{
	/*
	 * every SIMD lane takes the lock once: its holder must be scheduled although the others
	 * spin at a lower pc
	 */
	struct obd_program *p =
		device_load_good(HEAD ".global .u32 lock; .global .u32 sum;\n" KERNEL("k",
			"mov.u64 %d2, lock; mov.u64 %d3, sum;\n"
			"SPIN: atom.global.cas.b32 %r1, [%d2], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 "
			"bra SPIN;\n"
			"ld.volatile.global.u32 %r2, [%d3]; add.u32 %r2, %r2, %r0; "
			"st.volatile.global.u32 [%d3], %r2;\n"
			"atom.global.exch.b32 %r1, [%d2], 0;"));
	uint32_t *out = words(64);

	CHECK_INT(device_run(p, "k", 3, 64, &out), CUDA_SUCCESS);
	CHECK_INT(*(uint32_t *)obd_program_global(p, "sum")->addr, 3 * 64 * 63 / 2);
	device_end(p);
}

TEST(blocks_wait_for_earlier_blocks)
{
	/* a chain through all blocks: block i adds to what block i - 1 leaves */
	struct obd_program *p = device_load_good(HEAD ".global .u32 chain[2000];\n" KERNEL("k",
		"mov.u32 %r1, %ctaid.x; mov.u64 %d2, chain; mul.wide.u32 %d3, %r1, 4; add.u64 %d2, "
		"%d2, %d3; mov.u32 %r2, 0;\n"
		"setp.eq.u32 %p0, %r1, 0; @%p0 bra GO;\n"
		"WAIT: ld.acquire.gpu.global.u32 %r2, [%d2+-4]; setp.eq.u32 %p1, %r2, 0; @%p1 bra "
		"WAIT;\n"
		"GO: bar.sync 0; setp.ne.u32 %p2, %r0, 0; @%p2 bra END; add.u32 %r2, %r2, 2; "
		"st.release.gpu.global.u32 [%d2], %r2;\nEND:"));
	uint32_t *out = words(1);

	CHECK_INT(device_run(p, "k", 1500, 32, &out), CUDA_SUCCESS);
	CHECK_INT(((uint32_t *)obd_program_global(p, "chain")->addr)[1499], 3000);
	device_end(p);
}

/*
 * Even blocks write vectors whose elements are all equal, odd blocks read them: a mixture of two
 * writes is a torn vector.
 */
static void check_whole_vectors(const char *store, const char *load, unsigned n, unsigned bytes)
{
	char text[4096], regs[64] = "", given[64] = "", compare[256] = "";
	const char *r = bytes == 8 ? "%w" : "%r";
	uint32_t *out = words(1);

	for (unsigned i = 0; i < n; i++) {
		snprintf(regs + strlen(regs), sizeof(regs) - strlen(regs), "%s%s%u", i ? ", " : "",
			r, 10 + i);
		snprintf(given + strlen(given), sizeof(given) - strlen(given), "%s%s2",
			i ? ", " : "", r);
		if (i)
			snprintf(compare + strlen(compare), sizeof(compare) - strlen(compare),
				"setp.ne.b%u %%p1, %s10, %s%u; @%%p1 add.u32 %%r3, %%r3, 1;\n",
				bytes < 4 ? 32 : bytes * 8, r, r, 10 + i);
	}
	snprintf(text, sizeof(text), "%s%s [%%d2], {%s}; bra NEXT;\nREAD: %s {%s}, [%%d2];\n%s%s",
		HEAD ".global .align 16 .b8 cell[16]; .global .u32 torn;\n.visible .entry k(.param "
		     ".u64 out) {\n" PROLOGUE
		     ".reg .b64 %w<20>; mov.u64 %d2, cell; mov.u32 %r1, %ctaid.x; and.b32 %r4, "
		     "%r1, 1; setp.eq.u32 %p0, %r4, 1;\n"
		     "mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r5, 0;\nLOOP: cvt.u64.u32 %w2, %r2; "
		     "@%p0 bra READ;\n",
		store, given, load, regs, compare,
		"NEXT: add.u32 %r2, %r2, 1; and.b32 %r2, %r2, 127; add.u32 %r5, %r5, 1; "
		"setp.lt.u32 %p2, %r5, 40000; @%p2 bra LOOP;\n"
		"mov.u64 %d3, torn; red.global.add.u32 [%d3], %r3; ret; }\n");
	struct obd_program *p = device_load_good(text);

	CHECK_INT(device_run(p, "k", 2, 1, &out), CUDA_SUCCESS);
	CHECK_INT(*(uint32_t *)obd_program_global(p, "torn")->addr, 0);
	device_end(p);
}

TEST(vectors_travel_whole)
{
	check_whole_vectors("st.relaxed.gpu.global.v2.u32", "ld.relaxed.gpu.global.v2.u32", 2, 4);
	check_whole_vectors("st.relaxed.gpu.global.v2.u64", "ld.relaxed.gpu.global.v2.u64", 2, 8);
	check_whole_vectors("st.volatile.global.v4.u32", "ld.volatile.global.v4.u32", 4, 4);
	check_whole_vectors("st.release.gpu.v2.u64", "ld.acquire.gpu.v2.u64", 2, 8);
	check_whole_vectors("st.global.cg.v2.u64", "ld.global.cg.v2.u64", 2, 8);
	check_whole_vectors("st.global.cg.v4.u32", "ld.global.cg.v4.u32", 4, 4);
	check_whole_vectors("st.relaxed.gpu.v2.u16", "ld.relaxed.gpu.v2.u16", 2, 2);
	check_whole_vectors("st.relaxed.gpu.v4.u8", "ld.relaxed.gpu.v4.u8", 4, 1);
	check_whole_vectors("st.relaxed.gpu.v2.u8", "ld.relaxed.gpu.v2.s8", 2, 1);
}

TEST(cooperative_blocks_are_all_resident)
{
	/* every block sets its flag and waits for the flags of all */
	struct obd_program *p = device_load_good(HEAD ".global .u32 here;\n" KERNEL("k",
		"mov.u64 %d2, here; mov.u32 %r5, %nctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra "
		"MEET;\n"
		"atom.add.release.gpu.global.u32 %r1, [%d2], 1;\n"
		"WAIT: ld.acquire.gpu.global.u32 %r2, [%d2]; setp.lt.u32 %p1, %r2, %r5; @%p1 bra "
		"WAIT;\n"
		"MEET: barrier.sync 0; mov.u32 %r6, %envreg1; mov.u32 %r7, %envreg2; or.b32 %r6, "
		"%r6, %r7; st.relaxed.gpu.global.u32 [%d1], %r6;"));
	uint32_t *out = words(64);

	CHECK_INT(device_run_shape(p, "k", 150, 64, &out, true, NULL), CUDA_SUCCESS);
	CHECK_INT(*(uint32_t *)obd_program_global(p, "here")->addr, 150);
	CHECK(out[5] != 0);
	device_end(p);
}

TEST(calls_recurse_and_part)
{
	/*
	 * recursive fib with a different depth per SIMD lane, then calls through a table of
	 * functions, two of them in one warp
	 */
	struct obd_program *p = device_load_good(
		HEAD ".func (.param .b32 r) fib(.param .b32 n);\n"
		     ".func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %a; ld.param.b32 %a, "
		     "[n]; add.u32 %a, %a, %a; st.param.b32 [r], %a; ret; }\n"
		     ".func (.param .b32 r) fib(.param .b32 n) { .reg .b32 %a<6>; .reg .pred %q; "
		     "ld.param.b32 %a1, [n]; setp.lt.s32 %q, %a1, 2;\n"
		     "@%q bra LEAF; sub.s32 %a2, %a1, 1; { .param .b32 x; .param .b32 y; "
		     "st.param.b32 [x], %a2; call.uni (y), fib, (x); ld.param.b32 %a3, [y]; }\n"
		     "sub.s32 %a2, %a1, 2; { .param .b32 x; .param .b32 y; st.param.b32 [x], %a2; "
		     "call.uni (y), fib, (x); ld.param.b32 %a4, [y]; }\n"
		     "add.s32 %a1, %a3, %a4;\nLEAF: st.param.b32 [r], %a1; ret; }\n"
		     ".global .u64 table[2] = {fib, twice};\n" KERNEL("k",
			     "rem.u32 %r1, %r0, 12; { .param .b32 x; .param .b32 y; st.param.b32 "
			     "[x], %r1; call.uni (y), fib, (x); ld.param.b32 %r2, [y]; }\n"
			     "and.b32 %r3, %r0, 1; mul.wide.u32 %d2, %r3, 8; mov.u64 %d3, table; "
			     "add.u64 %d2, %d2, %d3; ld.global.u64 %d4, [%d2];\n"
			     "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; P: "
			     ".callprototype (.param .b32 _) _ (.param .b32 _);\n"
			     "call (y), %d4, (x), P; ld.param.b32 %r4, [y]; }\n"
			     "activemask.b32 %r5; setp.eq.u32 %p0, %r5, 0xffffffff; selp.u32 %r5, "
			     "100000, 0, %p0;\n"
			     "mad.lo.u32 %r2, %r4, 1000, %r2; add.u32 %r2, %r2, %r5; st.global.u32 "
			     "[%d1], %r2;"));
	static const uint32_t fib[] = { 0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89 };
	uint32_t *out = words(64);

	CHECK_INT(device_run(p, "k", 1, 64, &out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		CHECK_INT(
			out[i], 100000 + 1000 * (i & 1 ? 2 * (i % 12) : fib[i % 12]) + fib[i % 12]);
	device_end(p);
}

TEST(structs_go_by_value)
{
	struct obd_program *p = device_load_good(HEAD
		".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 s[16]) { .reg .b64 %x; "
		".reg .b32 %y; .reg .b16 %h;\n"
		"ld.param.b64 %x, [s]; ld.param.b32 %y, [s+8]; ld.param.s8 %h, [s+13];\n"
		"st.param.b64 [r+8], %x; st.param.b32 [r], %y; st.param.b16 [r+4], %h; st.param.b8 "
		"[r+7], 5; st.param.b8 [r+6], %h; ret; }\n" KERNEL("k",
			"cvt.u64.u32 %d2, %r0; { .param .align 8 .b8 x[16]; .param .align 8 .b8 "
			"y[16]; st.param.b64 [x], %d2; st.param.b32 [x+8], 77;\n"
			"st.param.b8 [x+13], 254; call (y), swap, (x); ld.param.b32 %r1, [y+8]; "
			"ld.param.b32 %r2, [y]; ld.param.b32 %r3, [y+4]; }\n"
			"mul.wide.u32 %d1, %r0, 12; add.u64 %d1, %d1, %d0; st.global.u32 [%d1], "
			"%r1; st.global.u32 [%d1+4], %r2; st.global.u32 [%d1+8], %r3;"));
	uint32_t *out = words(96);

	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++) {
		CHECK_INT(out[i * 3], i);
		CHECK_INT(out[i * 3 + 1], 77);
		CHECK_INT(out[i * 3 + 2], 0x05fefffe);
	}
	device_end(p);
}

TEST(endless_recursion_is_a_fault)
{
	struct obd_program *p = device_load_good(HEAD
		".func f(.param .b32 n);\n"
		".func f(.param .b32 n) { .local .b8 room[64]; .reg .b64 %x; mov.u64 %x, room; "
		"{ .param .b32 m; st.param.b32 [m], 1; call f, (m); } st.local.u8 [%x], 1; ret; "
		"}\n" KERNEL("k", "{ .param .b32 m; st.param.b32 [m], 1; call f, (m); }"));
	uint32_t *out = words(1);

	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_ERROR_HARDWARE_STACK_ERROR);
	CHECK(strstr(fault.text, "stack overflow") != NULL);
	device_end(p);
}

TEST(labels_belong_to_their_block)
{
	/*
	 * inline assembly repeats label names in nested blocks; one of them branches to an outer
	 * label
	 */
	struct obd_program *p = device_load_good(HEAD KERNEL("k",
		"mov.u32 %r1, 0;\n{ .reg .pred q; setp.lt.u32 q, %r0, 4; @q bra DONE; add.u32 %r1, "
		"%r1, 1; DONE: }\n"
		"{ .reg .pred q; setp.lt.u32 q, %r0, 8; @q bra DONE; add.u32 %r1, %r1, 10; DONE: "
		"}\n"
		"{ .reg .pred q; setp.lt.u32 q, %r0, 16; @q bra STORE; add.u32 %r1, %r1, 100; "
		"}\nSTORE: st.global.u32 [%d1], %r1;"));
	uint32_t *out = words(32);

	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		CHECK_INT(out[i], (i >= 4) + 10 * (i >= 8) + 100 * (i >= 16));
	device_end(p);
}

TEST(parameters_have_addresses_of_32_and_64_bits)
{
	struct obd_program *p = device_load_good(HEAD
		".visible .entry k(.param .u64 out, .param .align 16 .b8 block[32]) {\n"
		".reg .b32 %r<4>; .reg .b64 %d<6>;\nld.param.u64 %d0, [out];\n"
		"mov.b32 %r0, block; cvt.u64.u32 %d1, %r0; cvta.param.u64 %d2, %d1;\n"
		"ld.u32 %r1, [%d2]; st.global.u32 [%d0], %r1;\n"
		"mov.b64 %d3, block; cvta.param.u64 %d4, %d3; sub.u64 %d5, %d4, %d2;\n"
		"ld.u32 %r2, [%d4+28]; st.global.u32 [%d0+4], %r2; st.global.u64 [%d0+8], %d5;\n"
		"ret; }\n");
	struct {
		uint32_t *out;
		uint64_t gap;
		uint32_t block[8];
	} params = { words(4), 0, { 17, 0, 0, 0, 0, 0, 0, 19 } };

	CHECK_INT(device_run(p, "k", 1, 1, &params), CUDA_SUCCESS);
	CHECK_INT(params.out[0], 17);
	CHECK_INT(params.out[1], 19);
	CHECK(params.out[2] == 0 && params.out[3] == 0);
	device_end(p);
}

TEST(faults_say_where)
{
	struct obd_program *p = device_load_good(HEAD KERNEL("far",
		"setp.eq.u32 %p0, %r0, 37; selp.u64 %d1, 64, %d1, %p0; st.global.u32 [%d1], 1;")
			KERNEL("odd", "add.u64 %d1, %d1, 2; ld.global.u32 %r1, [%d1];") KERNEL(
				"beyond_shared",
				"mov.u32 %r1, 5000; st.shared.u32 [%r1], %r1;") KERNEL("trap",
				"setp.eq.u32 %p0, %r0, 3; @%p0 trap;") KERNEL("nowhere",
				"mov.u64 %d2, 12345; { P: .callprototype _ (); call %d2, P; }")
				KERNEL("deadlock",
					"setp.lt.u32 %p0, %r0, 16; @%p0 bar.warp.sync -1;\n@!%p0 "
					"bar.sync 0;"));
	uint32_t *out = words(64);

	CHECK_INT(device_run(p, "far", 1, 64, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(fault.thread[0], 37);
	CHECK_INT(fault.address, 64);
	CHECK_INT(fault.access_bytes, 4);
	CHECK(fault.is_write && fault.ptx_line > 0);
	CHECK(strstr(fault.text,
		      "Invalid __global__ write of size 4 bytes at 0x40 by thread (37,0,0) in "
		      "block (0,0,0)") != NULL);
	CHECK_INT(device_run(p, "odd", 1, 32, &out), CUDA_ERROR_MISALIGNED_ADDRESS);
	CHECK(!fault.is_write && strstr(fault.text, "Misaligned __global__ read") != NULL);
	CHECK_INT(device_run(p, "beyond_shared", 1, 32, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(strstr(fault.text, "Invalid __shared__ write of size 4 bytes") != NULL);
	CHECK_INT(device_run(p, "trap", 1, 32, &out), CUDA_ERROR_LAUNCH_FAILED);
	CHECK_INT(fault.thread[0], 3);
	CHECK_INT(device_run(p, "nowhere", 1, 32, &out), CUDA_ERROR_INVALID_PC);
	CHECK_INT(device_run(p, "deadlock", 1, 32, &out), CUDA_ERROR_LAUNCH_FAILED);
	CHECK(strstr(fault.text, "deadlock") != NULL);
	device_end(p);
}

TEST(unmapped_memory_is_a_fault)
{
	struct obd_program *p = device_load_good(HEAD KERNEL("k",
		"setp.eq.u32 %p0, %r0, 9; @%p0 add.u64 %d1, %d1, 1048576; "
		"ld.global.u32 %r1, [%d1];\nst.global.u32 [%d1], %r1;"));
	uint32_t *out = words(1 << 20);

	CHECK_INT(
		mprotect((char *)(((uintptr_t)out + 1048576) & ~(uintptr_t)4095), 65536, PROT_NONE),
		0);
	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(fault.thread[0], 9);
	CHECK(fault.address == (uintptr_t)out + 1048576 + 36);
	CHECK_INT(mprotect((char *)(((uintptr_t)out + 1048576) & ~(uintptr_t)4095), 65536,
			  PROT_READ | PROT_WRITE),
		0);
	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_SUCCESS);
	device_end(p);
}

struct stopping {
	_Atomic int stop;
	const _Atomic uint32_t *out;
};

/* Stops the grid as soon as the kernel runs. */
static void *stop_running(void *arg)
{
	struct stopping *s = arg;

	UNTIL(atomic_load(s->out) != 0);
	atomic_store(&s->stop, 1);
	return NULL;
}

TEST(a_grid_can_be_stopped)
{
	struct obd_program *p = device_load_good(HEAD KERNEL(
		"k", "red.global.or.b32 [%d0], 1; LOOP: add.u32 %r1, %r1, 1; bra LOOP;"));
	uint32_t *out = words(1);
	struct stopping s = { .out = (const _Atomic uint32_t *)out };
	pthread_t t;

	*out = 0;
	CHECK_INT(pthread_create(&t, NULL, stop_running, &s), 0);
	CHECK_INT(device_run_shape(p, "k", 5, 64, &out, false, &s.stop), CUDA_ERROR_LAUNCH_TIMEOUT);
	pthread_join(t, NULL);
	device_end(p);
}

TEST(many_registers)
{
	/* 3000 values live at once, then summed: more slots than any cache holds, all distinct */
	static char text[400000];
	size_t n = (size_t)snprintf(text, sizeof(text),
		HEAD ".visible .entry k(.param .u64 out) { .reg .b32 %%v<3000>;\n%s", PROLOGUE);

	for (int i = 0; i < 3000; i++)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "add.u32 %%v%d, %%r0, %d;\n", i, i);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "mov.u32 %%r1, 0;\n");
	for (int i = 0; i < 3000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"xor.b32 %%r2, %%v%d, %d; add.u32 %%r1, %%r1, %%r2;\n", i, i);
	snprintf(text + n, sizeof(text) - n, "st.global.u32 [%%d1], %%r1; ret; }\n");
	struct obd_program *p = device_load_good(text);
	uint32_t *out = words(32);

	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_SUCCESS);
	for (uint32_t t = 0; t < 32; t++) {
		uint32_t sum = 0;

		for (uint32_t i = 0; i < 3000; i++)
			sum += (t + i) ^ i;
		CHECK_INT(out[t], sum);
	}
	device_end(p);
}

TEST(prints)
{
	struct obd_program *p = device_load_good(
		HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
		     ".global .align 1 .b8 text[30] = "
		     "{37,100,32,37,53,46,50,102,124,37,115,32,37,108,108,120,10,0};\n.global "
		     ".align 1 .b8 word[4] = {97,98,99,0};\n" KERNEL("k",
			     ".local .align 8 .b8 args[32]; mov.u64 %d2, args; st.local.u32 [%d2], "
			     "-7; mov.f64 %d3, 0d400A000000000000;\n"
			     "st.local.u64 [%d2+8], %d3; mov.u64 %d4, word; st.local.u64 [%d2+16], "
			     "%d4; st.local.u64 [%d2+24], 3735928559;\n"
			     "cvta.local.u64 %d2, %d2; mov.u64 %d5, text;\n"
			     "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], "
			     "%d5; st.param.b64 [a], %d2; "
			     "call (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }\n"
			     "st.global.u32 [%d1], %r1;"));
	uint32_t *out = words(1);

	CHECK_INT(device_run(p, "k", 1, 1, &out), CUDA_SUCCESS);
	printed[printed_size] = 0;
	CHECK_STR(printed, "-7  3.25|abc deadbeef\n");
	CHECK_INT(out[0], 4);
	device_end(p);
}

static bool second_word_is_dead(void *user, uintptr_t address, size_t size)
{
	(void)user;
	(void)size;
	return address % 4096 != 4;
}

TEST(memcheck_asks_about_every_lane)
{
	struct obd_env env = device_env();
	struct obd_program *p = NULL;
	const char *text = HEAD KERNEL("k", "st.global.u32 [%d1], %r0;");
	uint32_t *out = device_take(NULL, 8192, 4096);

	env.check = second_word_is_dead;
	CHECK_INT(obd_program_load(text, strlen(text), &env, &p, load_log, sizeof(load_log)),
		CUDA_SUCCESS);
	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(fault.thread[0], 1);
	device_end(p);
}

static bool all_is_well(void *user, uintptr_t address, size_t size)
{
	(void)user;
	(void)address;
	(void)size;
	return true;
}

/* SIMD lanes that their own member masks do not contain continue, unless the memory check is on. */
TEST(member_masks_without_their_lane)
{
	const char *text = HEAD KERNEL("k",
		"mov.u32 %r1, %lanemask_lt; and.b32 %r2, %r0, 1; setp.ne.u32 %p0, %r2, 0;\n"
		"vote.sync.ballot.b32 %r3, %p0, %r1; bar.sync 0; st.global.u32 [%d1], %r3;");
	struct obd_env env = device_env();
	struct obd_program *p = NULL;
	uint32_t *out = words(32);

	CHECK_INT(obd_program_load(text, strlen(text), &env, &p, load_log, sizeof(load_log)),
		CUDA_SUCCESS);
	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		CHECK_INT(out[i], 0xaaaaaaaau & ((1u << i) - 1));
	obd_program_free(p);
	env.check = all_is_well;
	CHECK_INT(obd_program_load(text, strlen(text), &env, &p, load_log, sizeof(load_log)),
		CUDA_SUCCESS);
	CHECK_INT(device_run(p, "k", 1, 32, &out), CUDA_ERROR_LAUNCH_FAILED);
	CHECK(strstr(fault.text, "the member mask does not include the executing lane") != NULL);
	device_end(p);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
