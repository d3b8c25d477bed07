/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Machine code (softdevice/core/engine/native.h): its memory, code that is made again, and faults,
 * which name what the interpreter names. That it computes what the interpreter computes is tested
 * by fuzz_native and by the PTX suite.
 */
#include <stdarg.h>
#include <sys/resource.h>

#include "softdevice/core/code.h"
#include "softdevice/core/engine/exec.h"
#include "softdevice/core/engine/native.h"
#include "softdevice/core/native/code_memory.h"
#include "softdevice/core/native/x86.h"
#include "tests/unit/softcore/device.h"

#define MIB  ((size_t)1 << 20)
#define PAGE 4096u

static bool has_native(void)
{
	return obd_code_memory_ready() && obd_isa_current->native;
}

static const unsigned char forty_two[] = { 0xb8, 42, 0, 0, 0, 0xc3 }; /* mov eax, 42; ret */
static unsigned char nothing[64 * MIB + 1];

TEST(code_memory)
{
	int (*fn)(void);
	void *p, *all[64];

	if (!obd_code_memory_ready())
		return;
	p = obd_code_memory_add(forty_two, sizeof(forty_two));
	CHECK(p != NULL);
	memcpy(&fn, &p, sizeof(fn));
	CHECK_INT(fn(), 42);
	obd_code_memory_remove(p, sizeof(forty_two));
	/* ranges that are given back in any order are one range again */
	for (int i = 0; i < 64; i++)
		CHECK((all[i] = obd_code_memory_add(nothing, MIB)) != NULL);
	CHECK(obd_code_memory_add(nothing, 1) == NULL);
	for (int i = 0; i < 64; i++)
		obd_code_memory_remove(all[i * 37 % 64], MIB);
	p = obd_code_memory_add(nothing, 64 * MIB);
	CHECK(p != NULL);
	obd_code_memory_remove(p, 64 * MIB);
	CHECK(obd_code_memory_add(nothing, 64 * MIB + 1) == NULL);
}

/* Runs fn in a child process, which returns whether it was as expected. */
static void in_child(bool (*fn)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(fn() ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool code_runs(void)
{
	int (*fn)(void);
	void *p = obd_code_memory_add(forty_two, sizeof(forty_two));

	memcpy(&fn, &p, sizeof(fn));
	return p && fn() == 42;
}

/* A child process has code memory of its own. */
TEST(code_memory_of_a_child)
{
	void *mine;

	if (!obd_code_memory_ready())
		return;
	mine = obd_code_memory_add(forty_two, sizeof(forty_two));
	in_child(code_runs);
	obd_code_memory_remove(mine, sizeof(forty_two));
}

static bool no_code_memory(void)
{
	return !obd_code_memory_ready() && !obd_code_memory_add(forty_two, sizeof(forty_two));
}

/* Under a limit on the size of files there is no code memory, and no signal. */
TEST(code_memory_under_a_limit)
{
	struct rlimit before, limit;

	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	limit = before;
	if (!obd_code_memory_ready() || before.rlim_max < 64 * MIB)
		return;
	limit.rlim_cur = 64 * MIB - 1;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	in_child(no_code_memory);
	limit.rlim_cur = 64 * MIB;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	in_child(code_runs);
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

/*
 * %x is a constant on both ways to JOIN, and so is taken to be the same in all lanes, which holds
 * for no warp. The entries of the loop's block are refused until the code is made again.
 */
static const char again_text[] =
	HEAD ".visible .entry k(.param .u64 p)\n{\n	.reg .b32 %r<8>, %x;\n	.reg .b64 "
	     "%d<4>;\n	.reg .pred %p<3>;\n"
	     "	ld.param.u64 %d0, [p];\n	mov.u32 %r0, %tid.x;\n	and.b32 %r1, %r0, 1;\n	"
	     "setp.eq.u32 %p0, %r1, 0;\n"
	     "	mov.u32 %r2, 0;\n	mov.u32 %r3, 0;\n	@%p0 bra EVEN;\n	mov.u32 "
	     "%x, 3;\n	bra JOIN;\n"
	     "EVEN:\n	mov.u32 %x, 5;\nJOIN:\n	add.u32 %r3, %r3, %x;\n	add.u32 %r2, %r2, 1;\n"
	     "	setp.lt.u32 %p1, %r2, 100;\n	@%p1 bra JOIN;\n	mul.wide.u32 %d1, %r0, "
	     "4;\n	add.u64 %d1, %d1, %d0;\n"
	     "	st.global.u32 [%d1], %r3;\n	ret;\n}\n";

TEST(code_made_again)
{
	struct obd_program *p = device_load_good(again_text);
	uint32_t *out = device_take(NULL, 64 * 4, 256);
	uint64_t params = (uintptr_t)out;

	for (int run = 0; run < 40; run++) {
		memset(out, 0, 64 * 4);
		CHECK_INT(device_run(p, "k", 1, 64, &params), CUDA_SUCCESS);
		for (uint32_t i = 0; i < 64; i++)
			CHECK_INT(out[i], i & 1 ? 300 : 500);
	}
	const struct obd_entry *e =
		(const struct obd_entry *)(const void *)obd_program_kernel(p, "k");
	const struct obd_native *n = e->func->native[OBD_NATIVE_ROWS];

	if (has_native()) {
		CHECK(n && n->entry && n->entry[0]);
		CHECK_INT(n->made, 2);
		CHECK(n->before && !n->before->before);
	}
	device_end(p);
}

/*
 * Accesses at p + the offset of the block's row: one cell for all lanes, a row, a row for each half
 * of a warp, a cell for each half; p1: also a store.
 */
#define FAULT_KERNEL(name, address)                                             \
	".visible .entry " name                                                 \
	"(.param .u64 p)\n{\n	.reg .b32 %r<8>;\n	.reg .b64 %d<4>;\n"            \
	"	ld.param.u64 %d0, [p];\n	mov.u32 %r0, %tid.x;\n	mov.u32 %r1, "        \
	"%tid.y;\n" address "\n"                                                \
	"	add.u64 %d1, %d1, %d0;\n	ld.global.u32 %r2, [%d1+8];\n	add.u32 %r2, " \
	"%r2, 1;\n"                                                             \
	"	st.global.u32 [%d1+8], %r2;\n	ret;\n}\n"
/* The same in shared memory, at the lower half of p. */
#define SHARED_KERNEL(name, stride, type, width)                                     \
	".visible .entry " name "(.param .u64 p)\n{\n	.reg .b32 %r<8>;\n	.reg .b64 " \
	"%d<2>;\n	.shared .b8 s[2048];\n"                                            \
	"	ld.param.u64 %d0, [p];\n	mov.u32 %r0, %tid.x;\n	cvt.u32.u64 %r1, %d0;\n"   \
	"	mad.lo.u32 %r1, %r0, " stride                                        \
	", %r1;\n	mov.u32 %r3, s;\n	add.u32 %r1, %r1, %r3;\n"                        \
	"	ld.shared." type " %" width "1, [%r1+8];\n	st.shared." type     \
	" [%r1+16], %" width "1;\n	ret;\n}\n"
static const char fault_text[] = HEAD FAULT_KERNEL("same", "mov.u64 %d1, 0;") FAULT_KERNEL(
	"row", "mul.wide.u32 %d1, %r0, 4;") FAULT_KERNEL("rows",
	"mad.lo.u32 %r3, %r1, 1000, %r0; mul.wide.u32 %d1, %r3, 4;") FAULT_KERNEL("pair",
	"mul.wide.u32 %d1, %r1, 4000;") FAULT_KERNEL("index",
	"sub.u32 %r3, %r0, 5; mul.wide.s32 %d1, %r3, 4;") FAULT_KERNEL("wraps",
	"add.u32 %r3, %r0, 2147483632; mul.wide.s32 %d1, %r3, 4;") FAULT_KERNEL("down",
	"mul.wide.s32 %d1, %r0, -4;") FAULT_KERNEL("vector",
	"mul.wide.u32 %d1, %r0, 8; add.u64 %d2, %d1, %d0; ld.global.v2.u64 {%d2, %d3}, [%d2];")
	FAULT_KERNEL("apart", "mul.wide.u32 %d1, %r0, 4096;")
		FAULT_KERNEL("back", "mad.lo.s32 %r3, %r1, -1000, %r0; mul.wide.s32 %d1, %r3, 4;")
			SHARED_KERNEL("shared", "4", "u32", "r")
				SHARED_KERNEL("bytes", "1", "u8", "r")
					SHARED_KERNEL("longs", "8", "u64", "d")
						SHARED_KERNEL("one", "0", "u32", "r");

static struct obd_fault fault_of(
	const char *kernel, uint32_t x, uint32_t y, uint64_t at, bool native)
{
	size_t used = window_used; /* the same addresses each time */
	struct obd_program *p = device_load_good(fault_text);
	struct obd_fault f = { .result = CUDA_SUCCESS };
	struct obd_grid g = { .program = p,
		.kernel = obd_program_kernel(p, kernel),
		.grid = { 1, 1, 1 },
		.block = { x, y, 1 },
		.cluster = { 1, 1, 1 },
		.params = &at };

	obd_native_on = native;
	pool = obd_pool_new(1);
	CHECK(pool != NULL);
	obd_grid_run(pool, &g, &f);
	obd_native_on = true;
	device_end(p);
	window_used = used;
	return f;
}

static const struct fault_case {
	const char *kernel;
	uint32_t x, y;
} fault_cases[] = { { "same", 32, 1 }, { "row", 64, 1 }, { "rows", 16, 2 }, { "pair", 16, 2 },
	{ "index", 64, 1 }, { "wraps", 64, 1 }, { "down", 64, 1 }, { "apart", 32, 2 },
	{ "vector", 32, 2 }, { "vector", 16, 2 }, { "back", 16, 2 }, { "row", 40, 1 },
	{ "index", 8, 8 } };
static const struct fault_case shared_cases[] = { { "shared", 64, 1 }, { "bytes", 64, 1 },
	{ "longs", 64, 1 }, { "one", 64, 1 }, { "shared", 16, 2 }, { "longs", 8, 8 } };

static void compare_faults(const struct fault_case *c, uint64_t at)
{
	struct obd_fault plain = fault_of(c->kernel, c->x, c->y, at, false),
			 native = fault_of(c->kernel, c->x, c->y, at, true);

	CHECK_INT(native.result, plain.result);
	CHECK_STR(native.text, plain.text);
	CHECK(native.address == plain.address && native.is_write == plain.is_write);
}

TEST(faults)
{
	struct obd_env env = device_env();
	char *page = device_take(NULL, 3 * PAGE, PAGE);
	uint64_t end = (uintptr_t)window + WINDOW_BYTES;
	/*
	 * before, in and into a page that cannot be accessed; misaligned; at the end of the window,
	 * and outside
	 */
	const uint64_t places[] = { (uintptr_t)page, (uintptr_t)page + PAGE,
		(uintptr_t)page + PAGE - 72, (uintptr_t)page + 2 * PAGE + 60, (uintptr_t)page + 2,
		end - 100, end - 20, end + 4096, (uintptr_t)window - 12, 0 };
	static const int rights[] = { PROT_NONE, PROT_READ };

	CHECK(env.alloc && page);
	for (int r = 0; r < 2; r++) {
		CHECK(mprotect(page + PAGE, PAGE, rights[r]) == 0);
		for (size_t k = 0; k < sizeof(fault_cases) / sizeof(*fault_cases); k++)
			for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
				compare_faults(&fault_cases[k], places[i]);
	}
	CHECK(mprotect(page + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
}

TEST(faults_of_shared_memory)
{
	static const uint64_t places[] = { 0, 2, 4, 1024, 1800, 2000, 2040, 2048, 0xffffffecu,
		0x7fffffffu };

	for (size_t k = 0; k < sizeof(shared_cases) / sizeof(*shared_cases); k++)
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
			compare_faults(&shared_cases[k], places[i]);
}

/*
 * Values that are the same in all lanes, chosen by a predicate that is so: the first of them is the
 * constant 0; another predicate is written under a guard in between.
 */
static const char chosen_text[] =
	HEAD ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n	.reg .b32 %r<8>;\n	"
	     ".reg .b64 %d<4>;\n	.reg .pred %p<3>;\n"
	     "	ld.param.u64 %d0, [p];\n	ld.param.u32 %r1, [n];\n	mov.u32 %r0, "
	     "%tid.x;\n	mul.wide.u32 %d1, %r0, 8;\n	add.u64 %d1, %d1, %d0;\n"
	     "	setp.lt.u32 %p0, %r1, 9;\n	setp.lt.u32 %p2, %r0, 64;\n	selp.u32 %r2, 0, "
	     "%r1, %p0;\n	@%p0 setp.lt.u32 %p1, %r0, 5;\n	selp.u32 %r3, 17, "
	     "%r1, %p0;\n	@%p2 bra NEXT;\n	mov.u32 %r2, 1;\n"
	     "NEXT:\n	st.global.u32 [%d1], %r2;\n	st.global.u32 [%d1+4], "
	     "%r3;\n	ret;\n}\n";

TEST(chosen_values)
{
	struct obd_program *p = device_load_good(chosen_text);
	uint32_t *out = device_take(NULL, 64 * 8, 256);

	for (uint32_t n = 7; n < 12; n += 4) {
		struct {
			uint64_t p;
			uint32_t n;
		} params = { (uintptr_t)out, n };

		memset(out, 255, 64 * 8);
		CHECK_INT(device_run(p, "k", 1, 64, &params), CUDA_SUCCESS);
		for (uint32_t i = 0; i < 64; i++) {
			CHECK_INT(out[2 * i], n < 9 ? 0 : n);
			CHECK_INT(out[2 * i + 1], n < 9 ? 17 : n);
		}
	}
	device_end(p);
}

/*
 * Without memory for code the interpreter runs. The memory of a program's code is free after its
 * end.
 */
TEST(code_memory_is_full)
{
	struct obd_env env = device_env();
	uint32_t *out = device_take(NULL, 64 * 4, 256);
	uint64_t params = (uintptr_t)out;
	void *all = NULL;

	CHECK(env.alloc != NULL);

	if (!has_native())
		return;
	for (int run = 0; run < 1000; run++) {
		struct obd_program *p = device_load_good(again_text);
		bool full = run % 100 == 7;

		if (full)
			CHECK((all = obd_code_memory_add(nothing, 64 * MIB)) != NULL);
		memset(out, 0, 64 * 4);
		CHECK_INT(device_run(p, "k", 1, 64, &params), CUDA_SUCCESS);
		CHECK_INT(out[62], 500);
		CHECK_INT(out[63], 300);
		const struct obd_entry *e =
			(const struct obd_entry *)(const void *)obd_program_kernel(p, "k");
		const struct obd_native *n = e->func->native[OBD_NATIVE_ROWS];

		CHECK(n && !n->entry == full);
		obd_program_free(p);
		if (full)
			obd_code_memory_remove(all, 64 * MIB);
	}
	all = obd_code_memory_add(nothing, 64 * MIB);
	CHECK(all != NULL);
	obd_code_memory_remove(all, 64 * MIB);
}

/* The time to make code of a long block grows with its length, not with the square of it. */
TEST(long_blocks)
{
	enum { LOADS = 20000, ROOM = LOADS * 64 + 1024 };
	struct obd_env env = device_env();
	char *text = malloc(ROOM);
	uint32_t *data = device_take(NULL, 64 * 4, 256), *out = device_take(NULL, 64 * 4, 256);
	struct {
		uint64_t in, out;
	} params = { (uintptr_t)data, (uintptr_t)out };
	size_t at;

	CHECK(env.alloc && text);
	at = (size_t)snprintf(text, ROOM,
		HEAD
		".visible .entry k(.param .u64 p, .param .u64 q)\n{\n	.reg .b32 %%r<8>;\n	"
		".reg .b64 %%d<4>;\n	ld.param.u64 %%d0, [p];\n	ld.param.u64 %%d1, "
		"[q];\n	mov.u32 %%r0, %%tid.x;\n	mul.wide.u32 %%d2, %%r0, 4;\n	"
		"add.u64 %%d0, %%d0, %%d2;\n	add.u64 %%d1, %%d1, %%d2;\n	mov.u32 %%r1, "
		"0;\n");
	for (int i = 0; i < LOADS; i++)
		at += (size_t)snprintf(text + at, ROOM - at,
			"	ld.global.u32 %%r2, [%%d0];\n	mad.lo.u32 %%r1, %%r1, 3, %%r2;\n");
	snprintf(text + at, ROOM - at, "	st.global.u32 [%%d1], %%r1;\n	ret;\n}\n");
	struct obd_program *p = device_load_good(text);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 64; i++)
		data[i] = i * 77 + 1;
	for (int i = 0; i < LOADS; i++)
		sum = sum * 3 + 5 * 77 + 1;
	CHECK_INT(device_run(p, "k", 1, 64, &params), CUDA_SUCCESS);
	CHECK(out[5] == sum);
	device_end(p);
	free(text);
}

/* ---- limits ---- */

/* The text of a kernel that is written in a loop. */
static char *made_text;
static size_t made_size, made_room;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list args;

	if (made_size + 512 > made_room) {
		made_room = made_room ? made_room * 2 : 65536;
		made_text = realloc(made_text, made_room);
		CHECK(made_text != NULL);
	}
	va_start(args, format);
	made_size += (size_t)vsnprintf(made_text + made_size, made_room - made_size, format, args);
	va_end(args);
}

/* Begins kernel k(u32 *p, u32 n): %d1 = p + tid.x, %r0 = tid.x, %r1 = n. */
static void put_begin(uint32_t n_registers)
{
	made_size = 0;
	put(HEAD ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
		 ".reg .b32 %%r<%u>;\n.reg .b64 %%d<4>;\n.reg .pred %%p<4>;\n"
		 "ld.param.u64 %%d0, [p];\nld.param.u32 %%r1, [n];\nmov.u32 %%r0, %%tid.x;\n"
		 "mul.wide.u32 %%d1, %%r0, 4;\nadd.u64 %%d1, %%d1, %%d0;\n",
		n_registers);
}

static struct obd_program *put_end(void)
{
	put("}\n");
	struct obd_program *p = device_load_good(made_text);

	free(made_text);
	made_text = NULL;
	made_room = 0;
	return p;
}

static const struct obd_func *func_of(struct obd_program *p)
{
	const struct obd_entry *e =
		(const struct obd_entry *)(const void *)obd_program_kernel(p, "k");

	return e->func;
}

/* Runs the kernel with 64 threads. Returns the code that was made; NULL: there is none. */
static const struct obd_native *run_made(struct obd_program *p, uint32_t *out, uint32_t n)
{
	struct {
		uint64_t p;
		uint32_t n;
	} params = { (uintptr_t)out, n };

	memset(out, 0, 64 * 4);
	CHECK_INT(device_run(p, "k", 1, 64, &params), CUDA_SUCCESS);
	const struct obd_native *made = func_of(p)->native[OBD_NATIVE_ROWS];

	return made && made->entry ? made : NULL;
}

static uint32_t *out_new(void)
{
	struct obd_env env = device_env();
	uint32_t *out = device_take(NULL, 64 * 4, 256);

	CHECK(env.alloc && out);
	return out;
}

/*
 * n blocks, each of which branches to the one before it in the text. They read no registers, not
 * even those of constants, so that only the search for linear values takes many passes.
 */
TEST(limit_of_passes)
{
	static const uint32_t numbers[] = { 31, 32, 30000 };
	uint32_t *out = out_new();

	for (int k = 0; k < 3; k++) {
		put_begin(4);
		put("st.global.u32 [%%d1], %%r0;\nbra L%u;\nL0: ret;\n", numbers[k]);
		for (uint32_t i = 1; i <= numbers[k]; i++)
			put("L%u: mov.u32 %%r2, %%clock; bra L%u;\n", i, i - 1);
		struct obd_program *p = put_end();

		CHECK((run_made(p, out, 0) != NULL) == (has_native() && k == 0));
		CHECK_INT(out[63], 63);
		device_end(p);
	}
}

static struct obd_program *load_long(uint32_t n)
{
	put_begin(4);
	put("mov.u32 %%r2, %%clock;\nxor.b32 %%r2, %%r2, %%r2;\n");
	for (uint32_t i = 0; i < n; i++)
		put("add.u32 %%r2, %%r2, %%r0;\n");
	put("st.global.u32 [%%d1], %%r2;\nret;\n");
	return put_end();
}

TEST(limit_of_instructions)
{
	uint32_t *out = out_new();
	struct obd_program *p = load_long(100);
	uint32_t others = func_of(p)->n_code - 100;

	device_end(p);
	for (uint32_t more = 0; more < 2; more++) {
		p = load_long(100000 - others + more);
		CHECK_INT(func_of(p)->n_code, 100000 + more);
		CHECK((run_made(p, out, 0) != NULL) == (has_native() && !more));
		CHECK_INT(out[63], 63 * (100000 - others + more));
		device_end(p);
	}
}

/* All of n values are live at the same time. */
static struct obd_program *load_wide(uint32_t n)
{
	put_begin(n + 4);
	put("mov.u32 %%r2, %%tid.x;\nld.global.u32 %%r3, [%%d1];\n");
	for (uint32_t i = 0; i < n; i++)
		put("add.u32 %%r%u, %%r%u, %%r0;\n", i + 4, i + 3);
	for (uint32_t i = 0; i < n; i++)
		put("add.u32 %%r2, %%r2, %%r%u;\n", i + 4);
	put("st.global.u32 [%%d1], %%r2;\nret;\n");
	return put_end();
}

TEST(limit_of_slots)
{
	uint32_t *out = out_new();
	struct obd_program *p = load_wide(100);
	uint32_t others = func_of(p)->n_slots - 100;

	device_end(p);
	for (uint32_t more = 0; more < 2; more++) {
		uint32_t n = 16000 - others + more;

		p = load_wide(n);
		CHECK_INT(func_of(p)->n_slots, 16000 + more);
		CHECK((run_made(p, out, 0) != NULL) == (has_native() && !more));
		CHECK(out[63] == 63 + 63 * (n * (n + 1) / 2));
		device_end(p);
	}
}

TEST(limit_of_bytes)
{
	struct x_buf b = { .failed = false };

	for (uint32_t i = 0; i < 32 * MIB; i++)
		x_ret(&b);
	CHECK(!b.failed && b.n == 32 * MIB);
	x_ret(&b);
	CHECK(b.failed);
	x_free(&b);
}

/* Accesses with many exits, for which there would be more than 32 MiB of code. */
TEST(too_much_code)
{
	enum { ACCESSES = 40000 };
	uint32_t *out = out_new();

	put_begin(4);
	put("mov.u32 %%r2, 5;\n");
	for (uint32_t i = 0; i < ACCESSES; i++)
		put("st.global.u32 [%%d1], %%r2;\nld.global.u32 %%r2, [%%d1];\n");
	put("st.global.u32 [%%d1], %%r0;\nret;\n");
	struct obd_program *p = put_end();

	CHECK(!run_made(p, out, 0));
	CHECK_INT(out[63], 63);
	device_end(p);
}

/*
 * As in code_made_again, but n selects one of ten values that are not as assumed, so that the code
 * is refused after it has been made again. The values are all live, in slots of their own.
 */
TEST(limit_of_making_again)
{
	enum { VALUES = 10, MOST = 8 };
	uint32_t *out = out_new();

	put_begin(VALUES + 6);
	put("and.b32 %%r2, %%r0, 1;\nsetp.eq.u32 %%p0, %%r2, 0;\nmov.u32 %%r3, 0;\n"
	    "mov.u32 %%r4, 0;\n");
	for (int i = 0; i < VALUES; i++)
		put("mov.u32 %%r%d, 1;\n", i + 6);
	for (int i = 0; i < VALUES; i++)
		put("setp.ne.u32 %%p1, %%r1, %d;\n@%%p1 bra NEXT%d;\n@%%p0 bra EVEN%d;\n"
		    "mov.u32 %%r%d, 3;\nbra JOIN%d;\nEVEN%d: mov.u32 %%r%d, 5;\nJOIN%d:\n"
		    "add.u32 %%r3, %%r3, %%r%d;\nadd.u32 %%r4, %%r4, 1;\n"
		    "setp.lt.u32 %%p2, %%r4, 100;\n@%%p2 bra JOIN%d;\nNEXT%d:\n",
			i, i, i, i + 6, i, i, i + 6, i, i + 6, i, i);
	for (int i = 0; i < VALUES; i++)
		put("add.u32 %%r3, %%r3, %%r%d;\n", i + 6);
	put("st.global.u32 [%%d1], %%r3;\nret;\n");
	struct obd_program *p = put_end();

	for (uint32_t n = 0; n < VALUES; n++)
		for (int run = 0; run < 5; run++) {
			const struct obd_native *made = run_made(p, out, n);

			CHECK_INT(out[62], 505 + VALUES - 1);
			CHECK_INT(out[63], 303 + VALUES - 1);
			CHECK((made != NULL) == has_native());
			if (made && run == 4)
				CHECK_INT(made->made, n + 2 < MOST ? n + 2 : MOST);
		}
	device_end(p);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
