/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Runs kernels with the interpreter alone and with machine code, and compares all memory afterwards.
 * PTX statements, their registers, numbers and labels, and the shape of the block are chosen at
 * random. The kernels end, access only memory of their own, and have the same result in any order
 * of warps. The two blocks use the same cells; a pool of one thread runs them in order.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "softdevice/core/engine/exec.h"
#include "softdevice/core/engine/native.h"
#include "softdevice/core/native/code_memory.h"
#include "softdevice/core/program.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_kernel_text.h"
#include "tests/fuzz/fuzz_native_text.h"

#define WINDOW         ((size_t)16 << 20)
#define STATEMENTS_MAX 48u
#define LABELS         6u
#define DATA_BYTES     8192u
#define THREADS_MAX    256u
#define CELLS          40u /* of 8 bytes, that each thread writes */

/*
 * Choices are random numbers that begin with the input's hash, and not read from the input as
 * fuzz_input.h does: a kernel takes hundreds of them, and the small engine's inputs are short.
 */
static uint64_t state;

static unsigned take(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 20) % below);
}

static size_t window_used;
static uint8_t *window;
static unsigned label, table, registers, predicates;

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

static void put_word(char c)
{
	static const char *const compares[] = { "eq", "ne", "lt", "le", "gt", "ge" };
	static const long long numbers[] = { 0, 1, 2, 3, 4, 8, 16, 31, 32, 64, 255, 1024, 65536,
		0x7fffffff, -1, -8, 0x80000000 };

	switch (c) {
	case 'R':
		fuzz_put_number("%r", take(registers));
		break;
	case 'D':
		fuzz_put_number("%d", take(6));
		break;
	case 'F':
		fuzz_put_number("%f", take(4));
		break;
	case 'G':
		fuzz_put_number("%g", take(4));
		break;
	case 'P':
		fuzz_put_number("%p", take(predicates));
		break;
	case 'I':
		fuzz_put_number("", numbers[take(ob_count(numbers))]);
		break;
	case 'K':
		fuzz_put_number("", 4 * (long long)take(16));
		break;
	case 'N':
		fuzz_put_number("", 8 * (long long)take(2));
		break;
	case 'L':
		fuzz_put_number("L", label + take(LABELS - label + 1));
		break;
	case 'T':
		fuzz_put_number("T", table);
		break;
	case 'B':
		fuzz_put_number("L", label ? take(label) : 0);
		break;
	default:
		fuzz_put(compares[take(ob_count(compares))]);
		break;
	}
}

static void put_statement(const char *pattern)
{
	table++;
	fuzz_put_statement(pattern, "RDFGPIKNLBCT", put_word);
}

/* Labels L0 to L5 stand before the statements, L6 before the end. */
static void kernel_make(void)
{
	unsigned n = 1 + take(STATEMENTS_MAX);

	label = 0;
	registers = take(4) ? 6 : 60;
	predicates = take(4) ? 4 : 80;
	fuzz_ptx_start(head);
	for (unsigned k = 6; k < registers; k++) {
		fuzz_put_number("mad.lo.u32 %r", k);
		fuzz_put_number(k % 2 ? ", %i, 4, " : ", %n, 5, ", k);
		fuzz_put(";\n");
	}
	for (unsigned k = 4; k < predicates; k++) {
		fuzz_put_number("setp.lt.u32 %p", k);
		fuzz_put_number(k % 2 ? ", %i, " : ", %n, ", k);
		fuzz_put(";\n");
	}
	for (unsigned k = take(4); k; k--) {
		put_statement(together[take(ob_count(together))]);
		put_statement(statements[take(STRAIGHT)]);
	}
	fuzz_put("L0:\n");
	for (unsigned i = 0; i < n; i++) {
		for (; label < i * LABELS / n; label++) {
			fuzz_put_number("L", label + 1);
			fuzz_put(":\n");
		}
		label++; /* a branch forward leads to the next label or a later one */
		put_statement(statements[take(ob_count(statements))]);
		label--;
	}
	for (; label < LABELS; label++) {
		fuzz_put_number("L", label + 1);
		fuzz_put(":\n");
	}
	for (unsigned k = 0; k < 6; k++) {
		fuzz_put_number("st.global.u32 [%o+", (long long)(1 + k) * THREADS_MAX * 4);
		fuzz_put_number("], %r", k);
		fuzz_put_number("; st.global.u64 [%q+", (long long)(1 + k) * THREADS_MAX * 8);
		fuzz_put_number("], %d", k);
		fuzz_put(";\n");
	}
	for (unsigned k = 0; k < 4; k++) {
		/* which of two NaNs of type f64 an operation passes on is not defined */
		fuzz_put_number("setp.nan.f64 %z, %g", k);
		fuzz_put_number(", %g", k);
		fuzz_put_number("; selp.f64 %g", k);
		fuzz_put_number(", 0d7ff8000000000000, %g", k);
		fuzz_put(", %z;\n");
		fuzz_put_number("st.global.f32 [%o+", (long long)(7 + k) * THREADS_MAX * 4);
		fuzz_put_number("], %f", k);
		fuzz_put_number("; st.global.f64 [%q+", (long long)(7 + k) * THREADS_MAX * 8);
		fuzz_put_number("], %g", k);
		fuzz_put_number("; selp.u32 %h, 1, 2, %p", k);
		fuzz_put_number("; st.global.u32 [%o+", (long long)(11 + k) * THREADS_MAX * 4);
		fuzz_put("], %h;\n");
	}
	fuzz_put("mov.u32 %n, 0;\n");
	for (unsigned k = 6; k < registers; k++) {
		fuzz_put_number("mad.lo.u32 %n, %n, 33, %r", k);
		fuzz_put(";\n");
	}
	for (unsigned k = 4; k < predicates; k++) {
		fuzz_put_number("selp.u32 %h, 1, 2, %p", k);
		fuzz_put("; mad.lo.u32 %n, %n, 33, %h;\n");
	}
	fuzz_put_number("st.global.u32 [%o+", 15ll * THREADS_MAX * 4);
	fuzz_put("], %n;\nret;\n}\n");
}

static uint8_t results[2][2 * CELLS * 8 * THREADS_MAX];

/* There is code for the kernel: its two passes have agreed, or it would have been left out. */
static void code_check(const struct obd_program *program)
{
	const struct obd_entry *e =
		(const struct obd_entry *)(const void *)obd_program_kernel(program, "k");
	bool made = !obd_code_memory_ready() || !obd_isa_current->native;

	for (int k = 0; k < OBD_NATIVE_KINDS && !made; k++) {
		const struct obd_native *n = e->func->native[k];

		made = n && n->entry;
	}
	if (!made) {
		fprintf(stderr, "there is no machine code for this kernel\n%s\n", fuzz_ptx);
		abort();
	}
}

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
	if (obd_program_load(fuzz_ptx, fuzz_ptx_size, env, &program, log, sizeof log) !=
		CUDA_SUCCESS) {
		fprintf(stderr, "%s\n%s\n", log, fuzz_ptx);
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
	if (native)
		code_check(program);
	obd_program_free(program);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t shapes[][2] = { { 32, 1 }, { 64, 1 }, { 128, 2 }, { 16, 2 },
		{ 16, 16 }, { 8, 8 }, { 40, 3 }, { 96, 1 }, { 16, 3 }, { 24, 2 }, { 33, 1 },
		{ 32, 4 } };
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
			.free = fuzz_memory_keep,
			.window_base = (uintptr_t)window,
			.window_size = WINDOW,
			.scratch_alloc = memory_take,
			.scratch_free = fuzz_scratch_keep,
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
			plain, native, at, shape[0], shape[1], fuzz_ptx);
		abort();
	}
	return 0;
}
