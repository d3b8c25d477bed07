/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Runs kernels with the interpreter alone and with machine code, and compares all memory afterwards.
 * PTX statements, their registers, numbers and labels, and the shape of the block are
 * chosen at random. The
 * kernels end, access only memory of their own, and have the same result in any order of warps.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "softdevice/core/engine/native.h"
#include "softdevice/core/program.h"
#include "tests/fuzz/fuzz.h"

#define WINDOW         ((size_t)16 << 20)
#define STATEMENTS_MAX 48u
#define LABELS         6u
#define TEXT_MAX       65536u
#define DATA_BYTES     8192u
#define THREADS_MAX    256u
#define CELLS          40u /* of 8 bytes, that each thread writes */

/*
 * Templates of statements. R, D, F, G, P: a register of 32 or 64 bits, float, double, predicate; I: a
 * number; K: a small multiple of 4; N: one of 8 and below 16; C: a comparison; L: a later label; B: an
 * earlier one. %i is the number of the thread, %n a count that bounds the loops, %e and %h are scratch.
 */
static const char *const statements[] = {
	"add.u32 R, R, R",
	"sub.s32 R, R, I",
	"add.u32 R, R, %i",
	"mul.lo.u32 R, R, R",
	"mul.lo.u32 R, %i, I",
	"mul.hi.s32 R, R, R",
	"mad.lo.s32 R, R, R, R",
	"mad.lo.s32 R, %i, I, R",
	"mul.wide.u32 D, R, R",
	"mul.wide.s32 D, R, I",
	"mul.wide.s32 D, %i, I",
	"mad.wide.s32 D, R, I, D",
	"mad.wide.u32 D, %i, 4, D",
	"div.u32 R, R, R",
	"and.b32 R, R, I",
	"or.b32 R, R, R",
	"xor.b64 D, D, D",
	"not.b32 R, R",
	"neg.s32 R, R",
	"abs.s32 R, R",
	"shl.b32 R, R, R",
	"shl.b32 R, R, N",
	"shl.b64 D, D, R",
	"shr.u32 R, R, R",
	"shr.s32 R, R, N",
	"shr.s64 D, D, R",
	"shr.u64 D, D, N",
	"min.u32 R, R, R",
	"max.s32 R, R, R",
	"min.s64 D, D, D",
	"lop3.b32 R, R, R, R, 150",
	"shf.l.wrap.b32 R, R, R, R",
	"shf.r.wrap.b32 R, R, R, R",
	"prmt.b32 R, R, R, R",
	"mov.u32 R, I",
	"mov.u64 D, I",
	"mov.u32 R, R",
	"mov.u32 R, %tid.x",
	"mov.u32 R, %tid.y",
	"mov.u32 R, %laneid",
	"mov.u32 R, %ntid.x",
	"mov.u32 R, %warpid",
	"mov.b64 D, {R, R}",
	"mov.b64 {R, R}, D",
	"add.u64 D, D, D",
	"sub.u64 D, D, D",
	"mul.lo.u64 D, D, D",
	"mad.lo.u64 D, D, D, D",
	"add.u64 D, D, I",
	"cvt.u64.u32 D, R",
	"cvt.s64.s32 D, R",
	"cvt.u32.u64 R, D",
	"cvt.u32.u16 R, R",
	"cvt.s32.s8 R, R",
	"cvt.rn.f32.s32 F, R",
	"cvt.rn.f32.u32 F, R",
	"cvt.rn.f64.s32 G, R",
	"cvt.rzi.s32.f32 R, F",
	"cvt.f64.f32 G, F",
	"cvt.rn.f32.f64 F, G",
	"add.f32 F, F, F",
	"sub.ftz.f32 F, F, F",
	"mul.f32 F, F, F",
	"fma.rn.f32 F, F, F, F",
	"fma.rn.f32 F, F, F, 0f40490fdb",
	"div.rn.f32 F, F, F",
	"sqrt.rn.f32 F, F",
	"rcp.rn.f32 F, F",
	"ex2.approx.f32 F, F",
	"rsqrt.approx.f32 F, F",
	"min.f32 F, F, F",
	"max.f32 F, F, F",
	"abs.f32 F, F",
	"neg.f32 F, F",
	"cvt.rmi.f32.f32 F, F",
	"mov.b32 F, R",
	"mov.b32 R, F",
	"add.f64 G, G, G",
	"mul.f64 G, G, G",
	"fma.rn.f64 G, G, G, G",
	"div.rn.f64 G, G, G",
	"neg.f64 G, G",
	"fma.rn.f16x2 R, R, R, R",
	"setp.C.u32 P, R, R",
	"setp.C.s32 P, R, I",
	"setp.C.s32 P, %i, I",
	"setp.C.s64 P, D, D",
	"setp.C.u64 P, D, I",
	"setp.C.f32 P, F, F",
	"setp.C.f64 P, G, G",
	"selp.b32 R, R, R, P",
	"selp.b64 D, D, D, P",
	"selp.f32 F, F, I.0, P",
	"and.pred P, P, P",
	"or.pred P, P, P",
	"xor.pred P, P, P",
	"not.pred P, P",
	"@P add.u32 R, R, R",
	"@!P mov.u32 R, I",
	"@P mul.wide.u32 D, R, R",
	"@!P fma.rn.f32 F, F, F, F",
	"@P ld.global.u32 R, [%a+K]",
	"add.cc.u32 R, R, R; addc.u32 R, R, R",
	"ld.global.u32 R, [%a+K]",
	"ld.global.f64 G, [%a+N]",
	"ld.global.u8 R, [%a+K]",
	"ld.global.u32 R, [%c+K]",
	"ld.global.f32 F, [%c+K]",
	"ld.global.u32 R, [%w+K]",
	"ld.global.v4.u32 {R, R, R, R}, [%v]",
	"ld.global.u64 D, [%x+N]",
	"ld.global.u16 R, [%y+K]",
	"and.b32 %h, R, 252; cvt.u64.u32 %e, %h; add.u64 %e, %e, %a; ld.global.u32 R, [%e+K]",
	"mul.wide.u32 %e, %i, N; add.u64 %e, %e, %a; ld.global.u32 R, [%e+K]",
	"ld.shared.u32 R, [%s]",
	"st.shared.u32 [%s], R",
	"st.shared.f32 [%s], F; ld.shared.u32 R, [%s]",
	"st.local.u32 [lo+K], R",
	"ld.local.u32 R, [lo+K]",
	"ld.param.u64 D, [p0]",
	"st.global.u32 [%o], R; ld.global.u32 R, [%o]",
	"st.global.u64 [%q], D",
	"st.global.u8 [%o], R",
	"atom.global.add.u32 R, [%o], R",
	"@P bra L",
	"@!P bra L",
	"bra L",
	"add.u32 %n, %n, 1; setp.lt.u32 %z, %n, 40; @%z bra B",
	"add.u32 %n, %n, 1; setp.lt.and.u32 %z, %n, 40, P; @%z bra B",
	"call (R), half, (R)",
};

static const char head[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			   ".func (.reg .b32 o) half(.reg .b32 i) { .reg .pred %z; shr.u32 o, i, "
			   "1; setp.lt.u32 %z, i, 9; @%z ret; "
			   "xor.b32 o, o, i; ret; }\n"
			   ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2)\n{\n"
			   ".reg .b32 %r<6>, %i, %n, %h, %s, %t<3>; .reg .b64 %d<6>, %a, %c, %w, "
			   "%v, %x, %y, %o, %q, %e, %u; "
			   ".reg .f32 %f<4>; .reg .f64 %g<4>; .reg .pred %p<4>, %z;\n"
			   ".shared .align 16 .b8 sh[1024]; .local .align 16 .b8 lo[128];\n"
			   "ld.param.u64 %a, [p0]; ld.param.u64 %o, [p1]; ld.param.u64 %q, [p2];\n"
			   "mov.u32 %t0, %tid.x; mov.u32 %t1, %tid.y; mov.u32 %t2, %ntid.x; "
			   "mad.lo.u32 %i, %t1, %t2, %t0;\n"
			   "mov.u32 %s, sh; mad.lo.u32 %s, %i, 4, %s; mul.wide.u32 %u, %i, 4; "
			   "add.u64 %c, %a, %u; add.u64 %o, %o, %u;\n"
			   "mul.wide.u32 %u, %i, 16; add.u64 %v, %a, %u; mul.wide.u32 %u, %i, 8; "
			   "add.u64 %x, %a, %u; add.u64 %q, %q, %u;\n"
			   "mul.wide.u32 %u, %i, 2; add.u64 %y, %a, %u; mul.wide.u32 %u, %t1, 64; "
			   "add.u64 %w, %a, %u;\n"
			   "mov.u32 %n, 0; mov.u32 %r0, 7; mov.u32 %r1, %tid.x; mov.u32 %r2, 1; "
			   "mov.u32 %r3, -2; mov.u32 %r4, %i;\n"
			   "ld.global.u32 %r5, [%c]; mov.u64 %d0, 5; mov.u64 %d1, %a; sub.u64 %d1, "
			   "%d1, %a; cvt.u64.u32 %d2, %i; mov.u64 %d3, -8; "
			   "ld.global.u64 %d4, [%x]; mov.u64 %d5, 0;\n"
			   "mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f7f800000; mov.f32 %f2, "
			   "0fffffffff; ld.global.f32 %f3, [%c];\n"
			   "mov.f64 %g0, 0d3ff8000000000000; mov.f64 %g1, %g0; ld.global.f64 %g2, "
			   "[%x]; cvt.rn.f64.s32 %g3, %i;\n"
			   "setp.eq.u32 %p0, %r1, 0; setp.ne.u32 %p1, %r0, 0; setp.lt.u32 %p2, %i, "
			   "40; setp.gt.f32 %p3, %f3, 0f00000000;\n"
			   "st.local.v4.u32 [lo], {%r0, %r1, %r2, %r5}; st.local.v4.u32 [lo+16], "
			   "{%r4, %r4, %r4, %r4}; st.shared.u32 [%s], %r5;\n";

/* Each input gives another kernel: choices are random numbers that begin with its hash. */
static uint64_t state;

static unsigned take(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 20) % below);
}

static char text[TEXT_MAX];
static size_t text_size, window_used;
static uint8_t *window;
static unsigned label;

static void *memory_take(void *user, size_t size, size_t align)
{
	size_t at = ob_round_up(window_used, ob_max(align, (size_t)16));

	(void)user;
	if (at > WINDOW || size > WINDOW - at)
		return NULL;
	window_used = at + size;
	memset(window + at, 0, size);
	return window + at;
}

static void memory_keep(void *user, void *p)
{
	(void)user;
	(void)p;
}

static void scratch_keep(void *user, void *p, size_t size)
{
	(void)user;
	(void)p;
	(void)size;
}

static void put(const char *s)
{
	size_t n = strlen(s);

	if (text_size + n < sizeof text) {
		memcpy(text + text_size, s, n + 1);
		text_size += n;
	}
}

static void put_number(const char *before, long long v)
{
	char s[40];

	snprintf(s, sizeof s, "%s%lld", before, v);
	put(s);
}

static void put_word(char c)
{
	static const char *const compares[] = { "eq", "ne", "lt", "le", "gt", "ge" };
	static const long long numbers[] = { 0, 1, 2, 3, 4, 8, 16, 31, 32, 64, 255, 1024, 65536,
		0x7fffffff };

	switch (c) {
	case 'R':
		put_number("%r", take(6));
		break;
	case 'D':
		put_number("%d", take(6));
		break;
	case 'F':
		put_number("%f", take(4));
		break;
	case 'G':
		put_number("%g", take(4));
		break;
	case 'P':
		put_number("%p", take(4));
		break;
	case 'I':
		put_number("", numbers[take(ob_count(numbers))]);
		break;
	case 'K':
		put_number("", 4 * (long long)take(16));
		break;
	case 'N':
		put_number("", 8 * (long long)take(2));
		break;
	case 'L':
		put_number("L", label + take(LABELS - label + 1));
		break;
	case 'B':
		put_number("L", label ? take(label) : 0);
		break;
	default:
		put(compares[take(ob_count(compares))]);
		break;
	}
}

/* A single capital letter is a placeholder. */
static void put_statement(const char *s)
{
	for (char one[2] = { 0 }; *s; s++)
		if (strchr("RDFGPIKNLBC", *s)) {
			put_word(*s);
		} else {
			one[0] = *s;
			put(one);
		}
	put(";\n");
}

/* Labels L0 to L5 stand before the statements, L6 before the end. */
static void kernel_make(void)
{
	unsigned n = 1 + take(STATEMENTS_MAX);

	text_size = 0;
	label = 0;
	put(head);
	put("L0:\n");
	for (unsigned i = 0; i < n; i++) {
		for (; label < i * LABELS / n; label++) {
			put_number("L", label + 1);
			put(":\n");
		}
		label++; /* a branch forward leads to the next label or a later one */
		put_statement(statements[take(ob_count(statements))]);
		label--;
	}
	for (; label < LABELS; label++) {
		put_number("L", label + 1);
		put(":\n");
	}
	for (unsigned k = 0; k < 6; k++) {
		put_number("st.global.u32 [%o+", (long long)(1 + k) * THREADS_MAX * 4);
		put_number("], %r", k);
		put_number("; st.global.u64 [%q+", (long long)(1 + k) * THREADS_MAX * 8);
		put_number("], %d", k);
		put(";\n");
	}
	for (unsigned k = 0; k < 4; k++) {
		/* which of two NaNs of type f64 an operation passes on is not defined */
		put_number("setp.nan.f64 %z, %g", k);
		put_number(", %g", k);
		put_number("; selp.f64 %g", k);
		put_number(", 0d7ff8000000000000, %g", k);
		put(", %z;\n");
		put_number("st.global.f32 [%o+", (long long)(7 + k) * THREADS_MAX * 4);
		put_number("], %f", k);
		put_number("; st.global.f64 [%q+", (long long)(7 + k) * THREADS_MAX * 8);
		put_number("], %g", k);
		put_number("; selp.u32 %h, 1, 2, %p", k);
		put_number("; st.global.u32 [%o+", (long long)(11 + k) * THREADS_MAX * 4);
		put("], %h;\n");
	}
	put("ret;\n}\n");
}

static uint8_t results[2][2 * CELLS * 8 * THREADS_MAX];

static CUresult run(const struct obd_env *env, struct obd_pool *pool, const uint8_t *data,
	uint32_t x, uint32_t y, bool native)
{
	struct obd_program *program;
	struct obd_fault fault = { .result = CUDA_SUCCESS };
	struct {
		uint64_t p[3];
	} params;
	static _Atomic int stop;
	char log[512];
	CUresult r;
	uint8_t *in, *out;

	window_used = 0;
	obd_native_on = native;
	if (obd_program_load(text, text_size, env, &program, log, sizeof log) != CUDA_SUCCESS) {
		fprintf(stderr, "%s\n%s\n", log, text);
		abort();
	}
	in = memory_take(NULL, DATA_BYTES, 256);
	out = memory_take(NULL, sizeof results[0], 256);
	if (!in || !out)
		exit(1);
	memcpy(in, data, DATA_BYTES);
	params.p[0] = (uintptr_t)in;
	params.p[1] = (uintptr_t)out;
	params.p[2] = (uintptr_t)out + sizeof results[0] / 2;
	/* twice, since some of the machine code is made again after a first run */
	for (int k = 0; k < 2; k++) {
		memset(out, 0, sizeof results[0]);
		struct obd_grid grid = { .program = program,
			.kernel = obd_program_kernel(program, "k"),
			.grid = { 2, 1, 1 },
			.block = { x, y, 1 },
			.cluster = { 1, 1, 1 },
			.params = &params,
			.abort = &stop };

		r = obd_grid_run(pool, &grid, &fault);
	}
	memcpy(results[native], out, sizeof results[0]);
	obd_program_free(program);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t shapes[][2] = { { 32, 1 }, { 64, 1 }, { 128, 2 }, { 16, 2 },
		{ 16, 16 }, { 8, 8 }, { 40, 3 }, { 96, 1 } };
	static struct obd_env env;
	static struct obd_pool *pool;
	static uint8_t in[DATA_BYTES];

	if (!pool) {
		window = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		pool = obd_pool_new(1);
		if (window == MAP_FAILED || !pool)
			exit(1);
		env = (struct obd_env){ .alloc = memory_take,
			.free = memory_keep,
			.window_base = (uintptr_t)window,
			.window_size = WINDOW,
			.scratch_alloc = memory_take,
			.scratch_free = scratch_keep,
			.compute_capability = 90,
			.sm_count = 4 };
	}
	state = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < size; i++)
		state = (state ^ data[i]) * UINT64_C(0x100000001b3);
	state |= 1;
	const uint8_t *shape = shapes[take(ob_count(shapes))];

	kernel_make();
	for (uint32_t i = 0; i < DATA_BYTES; i++)
		in[i] = (uint8_t)(i * 37 + (i >> 7) * 11);
	for (uint32_t i = 0; i < 512; i++)
		in[i] = (uint8_t)take(256);
	CUresult plain = run(&env, pool, in, shape[0], shape[1], false),
		 native = run(&env, pool, in, shape[0], shape[1], true);

	if (plain != native || memcmp(results[0], results[1], sizeof results[0]) != 0) {
		uint32_t at = 0;

		while (at < sizeof results[0] && results[0][at] == results[1][at])
			at++;
		fprintf(stderr,
			"interpreter: result %d, machine code: result %d; byte %u differs, block "
			"%u x %u\n%s\n",
			plain, native, at, shape[0], shape[1], text);
		abort();
	}
	return 0;
}
