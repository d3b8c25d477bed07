/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Executes kernels. The input chooses PTX statements, their registers, numbers and labels, the
 * shape of the launch and the targets of its parameters. The memory check is on. Each kernel must
 * end within its time or be stopped, and no byte of the window outside the allocations may change.
 * One input in eight also has bytes of its text changed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "softdevice/core/program.h"
#include "softdevice/core/texture.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_kernel_text.h"
#include "tests/waiting.h"

#define WINDOW          ((size_t)64 << 20)
#define GUARD           256u /* bytes after each allocation */
#define ALLOCATIONS_MAX 512u
#define STATEMENTS_MAX  64u
#define LIMIT_NS        (20 * OB_MS) /* of one kernel; then it is requested to stop */
/* limit of processor time between the request and the stop */
#define STOP_NS         (20 * OB_SECOND)

/*
 * Templates of statements. R, D, F, G, P: a register of 32 or 64 bits, float, double, predicate; I:
 * a number; O: a small offset; L: a label; C: a comparison; A: an address in global memory, often a
 * valid one; S, T: one in shared and local memory.
 */
static const char *const statements[] = {
	"add.u32 R, R, R",
	"sub.s32 R, R, I",
	"mul.lo.u32 R, R, R",
	"mul.hi.s32 R, R, R",
	"mad.lo.s32 R, R, R, R",
	"mul.wide.u32 D, R, R",
	"div.u32 R, R, R",
	"rem.s32 R, R, R",
	"div.s64 D, D, D",
	"and.b32 R, R, I",
	"xor.b64 D, D, D",
	"shl.b32 R, R, R",
	"shr.s64 D, D, R",
	"bfe.u32 R, R, R, R",
	"bfi.b32 R, R, R, R, R",
	"prmt.b32 R, R, R, R",
	"clz.b32 R, R",
	"popc.b64 R, D",
	"brev.b32 R, R",
	"lop3.b32 R, R, R, R, 150",
	"shf.l.wrap.b32 R, R, R, R",
	"mov.u32 R, I",
	"mov.u64 D, I",
	"mov.u32 R, %tid.x",
	"mov.u32 R, %laneid",
	"mov.u32 R, %ctaid.x",
	"mov.u32 R, %clock",
	"mov.b64 D, {R, R}",
	"mov.b64 {R, R}, D",
	"cvt.u64.u32 D, R",
	"cvt.u32.u64 R, D",
	"cvt.rn.f32.s32 F, R",
	"cvt.rzi.s32.f32 R, F",
	"cvt.f64.f32 G, F",
	"cvt.rn.f32.f64 F, G",
	"cvt.s8.s32 R, R",
	"add.f32 F, F, F",
	"fma.rn.f32 F, F, F, F",
	"div.rn.f32 F, F, F",
	"sqrt.rn.f32 F, F",
	"ex2.approx.f32 F, F",
	"rcp.rn.f64 G, G",
	"fma.rn.f64 G, G, G, G",
	"sin.approx.f32 F, F",
	"lg2.approx.ftz.f32 F, F",
	"fma.rn.f16x2 R, R, R, R",
	"mul.rn.ftz.sat.f16x2 R, R, R",
	"fma.rn.relu.bf16x2 R, R, R, R",
	"cvt.rn.f16x2.f32 R, F, F",
	"cvt.rz.satfinite.bf16x2.f32 R, F, F",
	"cvt.rm.f32.u64 F, D",
	"cvt.sat.s16.s64 R, D",
	"rem.u64 D, D, D",
	"min.f32 F, F, F",
	"setp.C.u32 P, R, R",
	"setp.C.s64 P, D, D",
	"setp.C.f32 P, F, F",
	"selp.b32 R, R, R, P",
	"and.pred P, P, P",
	"not.pred P, P",
	"add.cc.u32 R, R, R",
	"addc.u32 R, R, R",
	"sad.u32 R, R, R, R",
	"vote.sync.ballot.b32 R, P, I",
	"vote.sync.any.pred P, P, -1",
	"shfl.sync.bfly.b32 R, R, R, 31, -1",
	"shfl.sync.idx.b32 R, R, R, R, -1",
	"match.any.sync.b32 R, R, -1",
	"activemask.b32 R",
	"redux.sync.add.s32 R, R, -1",
	"bar.sync 0",
	"bar.warp.sync -1",
	"barrier.sync I, 32",
	"bar.red.popc.u32 R, 0, P",
	"membar.gl",
	"fence.acq_rel.gpu",
	"ld.global.u32 R, [A+O]",
	"ld.global.u8 R, [D]",
	"ld.global.v4.u32 {R, R, R, R}, [A+O]",
	"ld.global.v2.u64 {D, D}, [D+O]",
	"ld.u32 R, [D+O]",
	"ld.u64 D, [A+O]",
	"ld.volatile.global.u32 R, [A]",
	"ld.acquire.gpu.global.u32 R, [A]",
	"ld.const.u32 R, [consts+O]",
	"ld.param.u64 D, [p0]",
	"ld.param.u32 R, [p1]",
	"st.global.u32 [A+O], R",
	"st.global.u8 [D], R",
	"st.global.v4.u32 [A+O], {R, R, R, R}",
	"st.u64 [D+O], D",
	"st.u32 [A+O], R",
	"st.release.gpu.global.u32 [A], R",
	"ld.shared.u32 R, [S+O]",
	"st.shared.u32 [S+O], R",
	"ld.shared.v4.u32 {R, R, R, R}, [S+O]",
	"st.shared.u64 [D], D",
	"ld.local.u32 R, [T+O]",
	"st.local.u32 [T+O], R",
	"st.local.u64 [D+O], D",
	"cvta.to.shared.u64 D, D",
	"cvta.shared.u64 D, D",
	"cvta.local.u64 D, D",
	"isspacep.shared P, D",
	"atom.global.add.u32 R, [A+O], R",
	"atom.global.cas.b64 D, [D], D, D",
	"atom.shared.exch.b32 R, [S+O], R",
	"atom.add.f32 F, [A], F",
	"red.global.max.s32 [A], R",
	"atom.inc.u32 R, [D], R",
	"tex.1d.v4.f32.s32 {F, F, F, F}, [%x0, {R}]",
	"tex.2d.v4.f32.f32 {F, F, F, F}, [%x0, {F, F}]",
	"tex.a2d.v4.u32.f32 {R, R, R, R}, [%x1, {R, F, F, F}]",
	"tex.3d.v4.s32.s32 {R, R, R, R}, [%x1, {R, R, R, R}], {R, R, R, R}",
	"tex.cube.v4.f32.f32 {F, F, F, F}, [%x1, {F, F, F, F}]",
	"tex.level.2d.v4.f32.f32 {F, F, F, F}, [%x1, {F, F}], F",
	"tex.grad.2d.v4.f32.f32 {F, F, F, F}, [%x0, {F, F}], {F, F}, {F, F}",
	"tld4.a.2d.v4.f32.f32 {F, F, F, F}, [%x1, {F, F}]",
	"@P tex.1d.v4.u32.f32 {R, R, R, R}, [D, {F}]",
	"txq.level.width.b32 R, [%x1], R",
	"suq.channel_order.b32 R, [%x2]",
	"istypep.surfref P, D",
	"suld.b.2d.v2.b32.zero {R, R}, [%x2, {R, R}]",
	"suld.b.3d.v2.b64.clamp {D, D}, [%x2, {R, R, R, R}]",
	"suld.b.a1d.b8.trap R, [%x2, {R, R}]",
	"sust.b.2d.v4.b32.clamp [%x2, {R, R}], {R, R, R, R}",
	"sust.b.1d.b64.zero [%x2, {R}], D",
	"sust.p.a2d.v4.b32.zero [%x2, {R, R, R, R}], {R, R, R, R}",
	"sured.b.add.2d.u64.clamp [%x2, {R, R}], D",
	"sured.p.min.1d.s32.zero [%x2, {R}], R",
	"mov.u64 D, image",
	"bra L",
	"@P bra L",
	"@!P bra L",
	"@P exit",
	"@P ret",
	"call (R), half, (R)",
	"call (R), deep, (R)",
	"nanosleep.u32 1",
	"prefetch.global.L2 [D]",
	"mov.u64 D, total",
	"mov.u64 D, sh",
	"mov.u64 D, lo",
	"add.u64 D, D, I",
	"add.u64 D, A, I",
	"mad.wide.u32 D, R, 4, A",
	"@P trap",
	"brkpt",
	("{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], D; st.param.b64 [a], D; "
	 "call (r), vprintf, (f, a); ld.param.b32 "
	 "R, [r]; }"),
	("{ .param .b64 f; .param .b64 a; .param .b32 r; cvta.local.u64 D, D; st.param.b64 [f], A; "
	 "st.param.b64 [a], D; call (r), vprintf, "
	 "(f, a); ld.param.b32 R, [r]; }"),
	("{ .param .b64 n; .param .b64 r; st.param.b64 [n], D; call (r), malloc, (n); ld.param.b64 "
	 "D, [r]; }"),
	"{ .param .b64 p; st.param.b64 [p], D; call free, (p); }",
};

static const char head[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".global .align 16 .b8 total[512];\n.const .align 16 .b8 consts[512] = {1, 2, 3, 37, 100, "
	"10, 0};\n"
	".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
	".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
	".func (.reg .b32 o) half(.reg .b32 i) { shr.u32 o, i, 1; ret; }\n"
	".func (.reg .b32 o) deep(.reg .b32 i) { .local .align 8 .b8 room[64]; .reg .b64 %q; .reg "
	".pred %z; mov.u64 %q, room; st.local.u32 "
	"[%q], i; mov.u32 o, i;\n"
	" setp.eq.u32 %z, i, 0; @%z ret; sub.u32 i, i, 1; call (o), deep, (i); ret; }\n"
	".global .texref image;\n"
	".visible .entry k(.param .u64 p0, .param .u32 p1, .param .u64 p2, .param .u64 p3, .param "
	".u64 p4)\n{\n"
	".reg .b64 %x<3>; ld.param.u64 %x0, [p2]; ld.param.u64 %x1, [p3]; ld.param.u64 %x2, "
	"[p4];\n"
	".reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<4>; .reg .f64 %g<4>; .reg .pred %p<4>; "
	".reg .b64 %a; .reg .b64 %s; .reg .b64 %t;\n"
	".shared .align 16 .b8 sh[256]; .local .align 16 .b8 lo[128];\n"
	"ld.param.u64 %a, [p0]; ld.param.u32 %r0, [p1]; mov.u64 %s, sh; mov.u64 %t, lo; mov.u32 "
	"%r1, %tid.x; mov.u64 %d0, %a; mov.u64 %d1, "
	"sh; mov.u64 %d2, lo;\n"
	"mov.u32 %r2, 1; mov.u32 %r3, 2; mov.u32 %r4, 3; mov.u32 %r5, 4; mov.u64 %d3, 8; mov.u64 "
	"%d4, total; mov.u64 %d5, -1;\n"
	"mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f7f800000; mov.f32 %f2, 0fffffffff; mov.f32 %f3, "
	"0f00000001;\n"
	"mov.f64 %g0, 0d3ff0000000000000; mov.f64 %g1, %g0; mov.f64 %g2, %g0; mov.f64 %g3, %g0;\n"
	"setp.eq.u32 %p0, %r1, 0; setp.ne.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 16; setp.gt.u32 "
	"%p3, %r1, 40;\n";

/* ---- device memory ---- */

static struct {
	uint8_t *base;
	size_t size;
} allocations[ALLOCATIONS_MAX];
static unsigned n_allocations;
static uint8_t *window;
static size_t window_used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *memory_take(void *user, size_t size, size_t align)
{
	uint8_t *p = NULL;
	size_t at;

	(void)user;
	pthread_mutex_lock(&lock);
	at = ob_round_up(window_used, ob_max(align, (size_t)16));
	if (n_allocations < ALLOCATIONS_MAX && at <= WINDOW && size <= WINDOW - at &&
		GUARD <= WINDOW - at - size) {
		p = window + at;
		memset(p, 0, size);
		memset(p + size, 0x5a, GUARD);
		allocations[n_allocations].base = p;
		allocations[n_allocations++].size = size;
		window_used = at + size + GUARD;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

static void *heap_take(void *user, size_t size)
{
	return size <= 1u << 20 ? memory_take(user, size, 16) : NULL;
}

static bool memory_check(void *user, uintptr_t addr, size_t size)
{
	bool good = false;

	(void)user;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n_allocations && !good; i++)
		good = addr >= (uintptr_t)allocations[i].base &&
			ob_span_inside(
				addr - (uintptr_t)allocations[i].base, size, allocations[i].size);
	pthread_mutex_unlock(&lock);
	return good;
}

static void guards_check(void)
{
	for (unsigned i = 0; i < n_allocations; i++)
		for (unsigned k = 0; k < GUARD; k++)
			if (allocations[i].base[allocations[i].size + k] != 0x5a) {
				fprintf(stderr,
					"byte %u behind allocation %u of %zu bytes was written\n",
					k, i, allocations[i].size);
				abort();
			}
}

static void print(void *user, const char *text, size_t size)
{
	static const volatile char *at;

	(void)user;
	at = text;
	for (size_t i = 0; i < size; i++)
		(void)at[i];
}

/* ---- stopping a kernel ---- */

static _Atomic int stop;
static _Atomic uint64_t running; /* start time of the kernel, ns; 0: none runs */

static uint64_t processor_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * OB_SECOND + (uint64_t)ts.tv_nsec;
}

/*
 * Detects a kernel that keeps using the processor after the request to stop. A kernel that waits
 * for ever is left to the engine's time-out, because it looks the same as a busy machine.
 */
static void *watch(void *unused)
{
	uint64_t told = 0, used = 0;

	(void)unused;
	for (;;) {
		uint64_t since = atomic_load(&running);

		if (since && since != told && ob_clock_ns() - since > LIMIT_NS) {
			atomic_store(&stop, 1);
			told = since;
			used = processor_ns();
		}
		if (since && since == told && processor_ns() - used > STOP_NS) {
			fprintf(stderr, "a kernel does not stop\n");
			abort();
		}
		waiting_look();
	}
	return NULL;
}

/* ---- the kernel ---- */

static struct obd_textures *textures;

static void put_immediate(void)
{
	static const long long numbers[] = { 0, 1, -1, 2, 4, 7, 8, 31, 32, 33, 63, 64, 255, 256,
		4095, 65536, 0x7fffffff, -0x7fffffff - 1 };

	fuzz_put_number("", fuzz_take(2) ? numbers[fuzz_take(ob_count(numbers))] : fuzz_take(256));
}

static void put_word(char c)
{
	static const char *const compares[] = { "eq", "ne", "lt", "le", "gt", "ge" };

	switch (c) {
	case 'R':
		fuzz_put_number("%r", fuzz_take(6));
		break;
	case 'D':
		fuzz_put_number("%d", fuzz_take(6));
		break;
	case 'F':
		fuzz_put_number("%f", fuzz_take(4));
		break;
	case 'G':
		fuzz_put_number("%g", fuzz_take(4));
		break;
	case 'P':
		fuzz_put_number("%p", fuzz_take(4));
		break;
	case 'I':
		put_immediate();
		break;
	case 'O':
		fuzz_put_number("",
			fuzz_take(4) ? 4 * (long long)fuzz_take(32)
				     : (long long)fuzz_take(256) * 4 - 512);
		break;
	case 'L':
		fuzz_put_number("L", fuzz_take(STATEMENTS_MAX / 8));
		break;
	case 'C':
		fuzz_put(compares[fuzz_take(ob_count(compares))]);
		break;
	case 'A':
		fuzz_put(fuzz_take(8) == 7 ? "%d0" : "%a");
		break;
	case 'S':
		fuzz_put("%s");
		break;
	default:
		fuzz_put("%t");
		break;
	}
}

static void kernel_make(void)
{
	unsigned n = 1 + fuzz_take(STATEMENTS_MAX), label = 0;

	fuzz_ptx_start(head);
	for (unsigned i = 0; i < n; i++) {
		if (i * (STATEMENTS_MAX / 8) / n >= label) {
			fuzz_put_number("L", label++);
			fuzz_put(":\n");
		}
		fuzz_put_statement(
			statements[fuzz_take(ob_count(statements))], "RDFGPIOLCAST", put_word);
	}
	for (; label < STATEMENTS_MAX / 8; label++) {
		fuzz_put_number("L", label);
		fuzz_put(":\n");
	}
	fuzz_put("ret;\n}\n");
	for (unsigned i = fuzz_take(8) == 7 ? fuzz_take(8) : 0; i; i--)
		fuzz_take_change(fuzz_ptx, fuzz_ptx_size, 128);
}

/* A texture or surface of the size, format and sampling that the input chooses. */
static uint64_t texture_make(enum obd_texture_kind kind)
{
	struct obd_texture t = { .kind = kind, .n_layers = 1 };

	t.texel = (enum obd_texel)fuzz_take(OBD_TEXEL_10_10_10_2 + 1);
	t.channels = (uint8_t)(1u << fuzz_take(3));
	t.dims = (uint8_t)(1 + fuzz_take(3));
	t.linear = fuzz_take(2);
	t.mip_linear = fuzz_take(2);
	t.normalized = fuzz_take(2);
	t.as_float = fuzz_take(2);
	t.seamless = fuzz_take(2);
	for (unsigned i = 0; i < 3; i++)
		t.wrap[i] = (uint8_t)fuzz_take(4);
	t.mip_bias = (float)fuzz_take(8) - 4;
	t.mip_max = (float)fuzz_take(8);
	t.n_levels = 1 + fuzz_take(3);
	if (t.texel == OBD_TEXEL_10_10_10_2)
		t.channels = 4;
	t.element = (uint8_t)obd_texel_bytes(t.texel, t.channels);
	for (uint32_t i = 0; i < t.n_levels; i++) {
		struct obd_texture_level *l = &t.levels[i];

		l->width = 1 + fuzz_take(9);
		l->height = t.dims > 1 ? 1 + fuzz_take(9) : 1;
		l->depth = 1 + fuzz_take(7);
		l->pitch = (uint64_t)l->width * t.element;
		l->slice = l->pitch * l->height;
		l->base = (uintptr_t)memory_take(NULL, l->slice * l->depth, 16);
		if (!l->base)
			return 0;
		t.n_layers = i && t.n_layers < l->depth ? t.n_layers : l->depth;
	}
	return obd_textures_add(textures, &t);
}

static void kernel_run(struct obd_program *program, struct obd_pool *pool)
{
	struct {
		uint64_t p0;
		uint32_t p1, pad;
		uint64_t textures[3];
	} params = { .p1 = fuzz_take(256) };
	struct obd_fault fault = { .result = CUDA_SUCCESS };
	struct obd_grid grid = { .program = program,
		.kernel = obd_program_kernel(program, "k"),
		.grid = { 1 + fuzz_take(3), 1, 1 },
		.block = { 1, 1, 1 },
		.cluster = { 1, 1, 1 },
		.params = &params,
		.abort = &stop };
	uint8_t *memory = memory_take(NULL, 4096, 256);

	grid.block[0] += fuzz_take(96);
	grid.block[1] += fuzz_take(2);
	grid.dynamic_shared = 16 * fuzz_take(16);
	grid.cooperative = fuzz_take(8) == 7;
	/* The change of the text may have changed the parameters. */
	if (!grid.kernel || grid.kernel->refused || grid.kernel->param_bytes > sizeof params ||
		!memory)
		return;
	memcpy(memory, "%d %s %5.3f %c\n", 16);
	fuzz_take_bytes(memory + 16, 240);
	params.p0 = fuzz_take(8) == 7 ? (uintptr_t)memory + 4090 : (uintptr_t)memory;
	for (unsigned i = 0; i < 3; i++)
		params.textures[i] = texture_make(i == 2 ? OBD_IS_SURFACE : OBD_IS_TEXTURE);
	atomic_store(&stop, 0);
	atomic_store(&running, ob_clock_ns());
	obd_grid_run(pool, &grid, &fault);
	atomic_store(&running, (uint64_t)0);
	if (!memchr(fault.text, 0, sizeof fault.text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct obd_env env;
	static struct obd_pool *pool;
	struct obd_program *program;
	pthread_t thread;
	char log[512];

	if (!pool) {
		window = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		pool = obd_pool_new(2);
		if (window == MAP_FAILED || !pool ||
			pthread_create(&thread, NULL, watch, NULL) != 0)
			exit(1);
		env = (struct obd_env){ .alloc = memory_take,
			.free = fuzz_memory_keep,
			.window_base = (uintptr_t)window,
			.window_size = WINDOW,
			.scratch_alloc = memory_take,
			.scratch_free = fuzz_scratch_keep,
			.check = memory_check,
			.check_texture = memory_check,
			.heap_alloc = heap_take,
			.heap_free = fuzz_memory_keep,
			.print = print,
			.compute_capability = 90,
			.sm_count = 2 };
	}
	fuzz_input_start(data, size);
	n_allocations = 0;
	window_used = 0;
	kernel_make();
	textures = env.textures = obd_textures_new();
	if (!textures)
		exit(1);
	if (obd_program_load(fuzz_ptx, fuzz_ptx_size, &env, &program, log, sizeof log) !=
		CUDA_SUCCESS) {
		if (getenv("OUTBOARD_FUZZ_SHOW"))
			fprintf(stderr, "%s", log);
		obd_textures_free(textures);
		return 0;
	}
	kernel_run(program, pool);
	guards_check();
	obd_program_free(program);
	obd_textures_free(textures);
	return 0;
}
