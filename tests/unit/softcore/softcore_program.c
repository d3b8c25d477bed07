/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Loading: a module's attributes, layouts, initial values, and error messages. */
#include "softdevice/core/heap.h"
#include "tests/unit/softcore/device.h"

static void refused(const char *text, CUresult want, const char *words)
{
	struct obd_program *p = NULL;

	CHECK_INT(device_load(text, &p), want);
	if (!strstr(load_log, words))
		fprintf(stderr, "the log says: %s", load_log);
	CHECK(strstr(load_log, words) != NULL);
	CHECK_INT(live_blocks, 0);
}

TEST(refuses_with_line_and_reason)
{
	refused("", CUDA_ERROR_INVALID_PTX, "no .version");
	refused(".version 9.0\n.target sm_75\n.address_size 32\n", CUDA_ERROR_INVALID_PTX,
		"64-bit");
	refused(".version 77.0\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "newer");
	refused(".version 8.0\n.target sm_999\n", CUDA_ERROR_NO_BINARY_FOR_GPU, "sm_999");
	refused(HEAD ".visible .entry k() {\n\n frobnicate.u32 1;\n}\n", CUDA_ERROR_INVALID_PTX,
		"line 6: unknown instruction frobnicate");
	refused(HEAD ".entry k() { .reg .b32 %r<2>; add.u32 %r1, %r5, 1; }", CUDA_ERROR_INVALID_PTX,
		"unknown register %r5");
	refused(HEAD ".entry k() { .reg .b32 %r<2>; add.u32.frob %r1, %r1, 1; }",
		CUDA_ERROR_INVALID_PTX, "unknown qualifier .frob of add");
	refused(HEAD ".entry k() { bra NOWHERE; }", CUDA_ERROR_INVALID_PTX, "undefined label");
	refused(HEAD ".entry k() { L: L: ret; }", CUDA_ERROR_INVALID_PTX, "defined twice");
	refused(HEAD ".entry k() { ret;", CUDA_ERROR_INVALID_PTX,
		"unexpected end of text in function k");
	refused(HEAD ".global .b8 a[4] = {1,2,3,4,5};", CUDA_ERROR_INVALID_PTX,
		"more initial values");
	refused(HEAD ".extern .global .u32 gone; .entry k() { .reg .b64 %d<2>; mov.u64 %d1, gone; "
		     "ret; }",
		CUDA_ERROR_INVALID_PTX, "has no definition");
	refused(HEAD ".entry k(.param .align 4 .b8 p[40000]) { ret; }", CUDA_ERROR_INVALID_PTX,
		"more than 32764 bytes");
	refused(HEAD ".entry k() { .reg .b32 %r<2000000>; ret; }", CUDA_ERROR_INVALID_PTX,
		"registers");
}

/*
 * Valid code that the device does not implement: only the kernels that reach it are marked, with
 * the line and the reason.
 */
TEST(marks_kernels_that_reach_what_is_missing)
{
	struct obd_program *p = device_load_good(HEAD
		".func helper() {\n tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, "
		"%rd2, %r1, %p1;\n ret;\n}\n"
		".func through() { call helper, (); ret; }\n"
		".extern .func absent();\n"
		".visible .entry direct() { { .reg .b32 %r<2>; { multimem.st.global.u32 [%r1], "
		"%r1; } } ret; }\n"
		".visible .entry indirect() { call through, (); ret; }\n"
		".visible .entry word() { .reg .b32 %r<3>; cvt.rn.satfinite.s2f6x2.f32 %r1, "
		"%r2, %r1; ret; }\n"
		".visible .entry parts() { .reg .b32 %r<3>; vmad.s32.s32.s32 %r1, %r2.h0, "
		"-%r2.b1, %r1; ret; }\n"
		".visible .entry vectors() { .reg .v2 .f32 %v; ret; }\n"
		".visible .entry calls() { call absent, (); ret; }\n"
		".visible .entry good() { .reg .b32 %r<3>; mov.u32 %r1, 0; LOOP: add.u32 %r1, "
		"%r1, 1; ret; }\n");

	CHECK(strstr(obd_program_kernel(p, "direct")->refused,
		      "instruction multimem is not supported") != NULL);
	CHECK(strstr(obd_program_kernel(p, "indirect")->refused,
		      "PTX line 5: instruction tcgen05") != NULL);
	CHECK(strstr(obd_program_kernel(p, "word")->refused, "qualifier .s2f6x2 of cvt") != NULL);
	CHECK(strstr(obd_program_kernel(p, "parts")->refused, "instruction vmad") != NULL);
	CHECK(strstr(obd_program_kernel(p, "vectors")->refused, "vector registers") != NULL);
	CHECK(strstr(obd_program_kernel(p, "calls")->refused,
		      "it calls the undefined function absent") != NULL);
	CHECK(obd_program_kernel(p, "good")->refused == NULL);
	device_end(p);
	/* The text after a function that was skipped is parsed normally. */
	refused(HEAD ".entry k() { tcgen05.fence x; ", CUDA_ERROR_INVALID_PTX,
		"unexpected end of text in function k");
	refused(HEAD ".entry k() { tcgen05.fence x; } .entry j() { frobnicate; }",
		CUDA_ERROR_INVALID_PTX, "unknown instruction frobnicate");
}

/* The functions for barriers of the grid are defined only if the module means them. */
TEST(defines_cooperative_functions)
{
	static const char *const tail =
		".visible .entry k() { .param .b32 s; .param .b64 h; st.param.b32 [s], 1; "
		"call (h), cudaCGGetIntrinsicHandle, (s); ret; }\n.visible .entry good() { ret; "
		"}\n";
	static const struct {
		const char *declaration;
		bool refused;
	} cases[] = {
		{ ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);\n",
			false },
		{ ".func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s) { ret; }\n",
			false },
		{ ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);\n"
		  ".extern .func cudaCGSynchronize();\n",
			true },
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct obd_program *p;

		snprintf(text, sizeof(text), "%s%s%s", HEAD, cases[i].declaration, tail);
		p = device_load_good(text);
		CHECK(!obd_program_kernel(p, "k")->refused == !cases[i].refused);
		CHECK(obd_program_kernel(p, "good")->refused == NULL);
		device_end(p);
	}
}

/* A name that is unknown in a version newer than the known ones may be an instruction of it. */
TEST(marks_what_a_newer_version_may_have)
{
	struct obd_program *p = device_load_good(
		".version 9.3\n.target sm_90\n.address_size 64\n"
		".func helper() { frobnicate.u32 1; }\n"
		".visible .entry reaches() { call helper, (); ret; }\n"
		".visible .entry word() { .reg .b32 %r<2>; add.frob.u32 %r1, %r1, 1; ret; }\n"
		".visible .entry good() { ret; }\n");

	CHECK(strstr(obd_program_kernel(p, "reaches")->refused,
		      "PTX line 4: instruction frobnicate is not supported") != NULL);
	CHECK(strstr(obd_program_kernel(p, "word")->refused, "qualifier .frob of add") != NULL);
	CHECK(obd_program_kernel(p, "good")->refused == NULL);
	device_end(p);
}

/* Without a table of textures all references are unknown handles; the code is valid. */
TEST(declares_references)
{
	struct obd_program *p = device_load_good(
		HEAD ".visible .global .texref a, b = { addr_mode_0 = wrap, width = 5 }, c[2];\n"
		     ".global .surfref s; .global .samplerref sampler; .global .u32 x = 7;\n"
		     ".visible .entry fetch() { .reg .b32 %r<6>; tex.1d.v4.u32.s32 {%r1, %r2, %r3, "
		     "%r4}, [a, {%r5}]; ret; }\n"
		     ".visible .entry takes() { .reg .b64 %d<2>; mov.u64 %d1, s; ret; }\n"
		     ".visible .entry good() { .reg .b32 %r<2>; ld.global.u32 %r1, [x]; ret; }\n");

	CHECK(obd_program_kernel(p, "fetch")->refused == NULL);
	CHECK(obd_program_kernel(p, "takes")->refused == NULL);
	CHECK_INT(obd_program_ref(p, "a"), 0);
	CHECK(obd_program_kernel(p, "good")->refused == NULL);
	CHECK(obd_program_global(p, "a") == NULL);
	CHECK_INT(*(const uint32_t *)obd_program_global(p, "x")->addr, 7);
	device_end(p);
	refused(HEAD ".global .texref a", CUDA_ERROR_INVALID_PTX, "");
	refused(HEAD ".global .texref ;", CUDA_ERROR_INVALID_PTX, "a variable name");
	refused(HEAD ".global .texref a = { width", CUDA_ERROR_INVALID_PTX, "");
	refused(HEAD ".const .texref a;", CUDA_ERROR_INVALID_PTX, "");
	refused(HEAD ".global .texref a; .global .u64 p = a;", CUDA_ERROR_INVALID_PTX, "");
}

TEST(nests_without_recursion)
{
	static char text[200000];
	size_t n = (size_t)snprintf(
		text, sizeof(text), HEAD ".entry k() { .reg .b32 %%r<2>; mov.u32 %%r1, ");

	memset(text + n, '(', 100000);
	refused(text, CUDA_ERROR_INVALID_PTX,
		"a constant expression is nested more than 64 levels deep");
	n = (size_t)snprintf(text, sizeof(text), HEAD ".entry k() ");
	memset(text + n, 0, sizeof(text) - n);
	memset(text + n, '{', 100000);
	refused(text, CUDA_ERROR_INVALID_PTX, "blocks { } nested more than 64 levels deep");
}

TEST(describes_its_kernels)
{
	struct obd_program *p = device_load_good(
		HEAD ".visible .entry one(.param .u32 a, .param .align 8 .b8 s[20], .param .u64 b, "
		     ".param .u8 c)\n"
		     ".maxntid 128, 2, 1\n{ .local .align 8 .b8 l[40]; .shared .align 4 .b8 "
		     "s[100]; .reg .b32 %r<4>; mov.u32 %r1, s; ret; }\n"
		     ".entry two() .reqntid 64 { ret; }\n");
	const struct obd_kernel *k = obd_program_kernel(p, "one");

	CHECK_INT(obd_program_kernel_count(p), 2);
	CHECK(k != NULL && obd_program_kernel(p, "three") == NULL);
	CHECK_INT(k->n_params, 4);
	CHECK_INT(k->params[1].offset, 8);
	CHECK_INT(k->params[1].size, 20);
	CHECK_INT(k->params[2].offset, 32);
	CHECK_INT(k->params[3].offset, 40);
	CHECK_INT(k->param_bytes, 41);
	CHECK_INT(k->static_shared, 100);
	CHECK_INT(k->local_bytes, 48);
	CHECK_INT(k->max_threads, 256);
	CHECK(k->registers > 0);
	CHECK_INT(k->ptx_version, 80);
	CHECK_INT(k->target_arch, 70);
	k = obd_program_kernel(p, "two");
	CHECK_INT(k->reqntid[0], 64);
	CHECK_INT(k->reqntid[1], 1);
	CHECK_INT(k->max_threads, 64);
	CHECK_INT(k->static_shared, 0);
	device_end(p);
}

TEST(initialises_variables)
{
	struct obd_program *p =
		device_load_good(HEAD ".global .u32 x[3] = {1, -1, (2+3)*4};\n.global .align 8 "
				      ".u64 where[2] = {x+4, generic(x)};\n"
				      ".const .f32 f[3] = {0f3f800000, 2.5, -3.0};\n.global .align "
				      "1 .b8 text[] = {104, 105, 0};\n.global .u16 zero[9];\n"
				      ".visible .global .attribute(.managed) .align 4 .u32 m;\n");
	const uint32_t *x = obd_program_global(p, "x")->addr;
	const uint64_t *where = obd_program_global(p, "where")->addr;
	const float *f = obd_program_global(p, "f")->addr;
	const struct obd_global *text = obd_program_global(p, "text");

	CHECK_INT(x[0], 1);
	CHECK_INT(x[1], 0xffffffff);
	CHECK_INT(x[2], 20);
	CHECK(where[0] == (uint64_t)(uintptr_t)(x + 1) && where[1] == (uint64_t)(uintptr_t)x);
	CHECK(f[0] == 1.0f && f[1] == 2.5f && f[2] == -3.0f);
	CHECK_INT(text->size, 3);
	CHECK_STR(text->addr, "hi");
	CHECK(obd_program_global(p, "f")->is_const && !text->is_const);
	CHECK(obd_program_global(p, "m")->is_managed);
	CHECK_INT(((const uint16_t *)obd_program_global(p, "zero")->addr)[8], 0);
	device_end(p);
	CHECK_INT(live_blocks, 0);
}

TEST(reads_debug_sections)
{
	struct obd_program *p = device_load_good(
		HEAD ".file 1 \"a.cu\"\n.visible .entry k() {\n .loc 1 3 0\n$L__a:\n .loc 1 4 5, "
		     "function_name $L_info, inlined_at 1 2 3\n ret;\n$L__b:\n}\n"
		     ".section .debug_info\n{\n.b32 12\n.b8 1,2,3\n.b64 $L__a\n}\n");

	CHECK_INT(obd_program_kernel_count(p), 1);
	device_end(p);
}

static uint32_t registers(const char *bounds)
{
	char text[512];
	struct obd_program *p;
	uint32_t n;

	snprintf(text, sizeof(text), HEAD ".entry k() %s { .reg .b32 %%r<2000>; ret; }", bounds);
	p = device_load_good(text);
	n = obd_program_kernel(p, "k")->registers;
	device_end(p);
	return n;
}

TEST(guesses_registers_that_fit_launch_bounds)
{
	CHECK_INT(registers(""), 64); /* any block can be launched */
	CHECK_INT(registers(".maxntid 512, 1, 1"), 128);
	CHECK_INT(registers(".reqntid 16, 32"), 128);
	CHECK_INT(registers(".maxntid 1024"), 64);
	/* 170 would be 5440 a warp, rounded up to 5632: eleven of the twelve warps */
	CHECK_INT(registers(".maxntid 384"), 168);
	CHECK_INT(registers(".maxntid 256 .minnctapersm 4"), 64);
	CHECK_INT(registers(".minnctapersm 4"), 64); /* of blocks of unknown size */
	CHECK_INT(registers(".maxntid 128 .maxnreg 40"), 40);
	CHECK_INT(registers(".maxntid 1024 .minnctapersm 1000000000"), 8);
	CHECK_INT(registers(".maxntid 128 .minnctapersm 1073741824"), 8); /* 2^32 warps */
}

/* ---- memory ---- */

static uint64_t held, peak, loads_left; /* bytes counted; allocations that may succeed */

static int counted(uint64_t bytes)
{
	if (loads_left == 0)
		return 0;
	loads_left--;
	held += bytes;
	peak = held > peak ? held : peak;
	return 1;
}

static void discounted(uint64_t bytes)
{
	held -= bytes;
}

enum bomb {
	SHARED_TIMES_ENTRIES,
	CALLERS_TIMES_FUNCTIONS,
	REFERENCES_THROUGH_ONE_FUNCTION,
	TARGETS,
	BOMBS
};

/* Text in which one list is combined with another, n elements each. */
static char *bomb_write(enum bomb which, unsigned n)
{
	size_t size = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	fputs(HEAD, f);
	for (unsigned i = 0; i < n &&
		(which == SHARED_TIMES_ENTRIES || which == REFERENCES_THROUGH_ONE_FUNCTION);
		i++)
		fprintf(f, ".shared .b8 s%u;", i);
	if (which == REFERENCES_THROUGH_ONE_FUNCTION) {
		fputs(".func f() { .reg .b32 %r<2>; ", f);
		for (unsigned i = 0; i < n; i++)
			fprintf(f, "mov.u32 %%r1, s%u;", i);
		fputs("ret; }", f);
	}
	if (which == CALLERS_TIMES_FUNCTIONS)
		fputs(".func f() { ret; }", f);
	for (unsigned i = 0; i < n && which != TARGETS; i++)
		fprintf(f, ".entry k%u() { %sret; }", i,
			which == SHARED_TIMES_ENTRIES ? "" : "call f, (); ");
	if (which == TARGETS) {
		fputs(".entry k() { .reg .b32 %r<2>; T: .branchtargets ", f);
		for (unsigned i = 0; i < n; i++)
			fprintf(f, "%sL%u", i ? "," : "", i);
		fputs("; ", f);
		for (unsigned i = 0; i < n; i++)
			fprintf(f, "L%u: brx.idx %%r1, T;\n", i);
		fputs("ret; }", f);
	}
	fclose(f);
	return text;
}

static uint64_t peak_of(enum bomb which, unsigned n, size_t *ret_text)
{
	char *text = bomb_write(which, n);
	struct obd_program *p = NULL;

	held = peak = 0;
	loads_left = UINT64_MAX;
	if (device_load(text, &p) != CUDA_SUCCESS)
		fprintf(stderr, "the log says: %s", load_log);
	CHECK(p != NULL);
	obd_program_free(p);
	CHECK_INT(held, 0);
	*ret_text = strlen(text);
	free(text);
	return peak;
}

/* Twice the text takes twice the memory, not four times. */
TEST(memory_grows_with_the_text_and_not_with_its_square)
{
	obd_heap_count(counted, discounted);
	for (enum bomb which = 0; which < BOMBS; which++) {
		size_t small, large;
		uint64_t first, second;

		if (which == REFERENCES_THROUGH_ONE_FUNCTION)
			continue; /* limited by a count: tested below */
		first = peak_of(which, 1000, &small);
		second = peak_of(which, 4000, &large);
		if (second > 6 * first + (1 << 20))
			fprintf(stderr, "case %d: %zu bytes of text take %llu, %zu take %llu\n",
				which, small, (unsigned long long)first, large,
				(unsigned long long)second);
		CHECK(second <= 6 * first + (1 << 20));
	}
}

TEST(references_to_shared_memory_are_bounded_in_all)
{
	/* its square is just above the limit */
	char *text = bomb_write(REFERENCES_THROUGH_ONE_FUNCTION, 2100);
	struct obd_program *p = NULL;

	CHECK_INT(device_load(text, &p), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(load_log, "shared variables more than 4194304 times") != NULL);
	free(text);
	text = bomb_write(REFERENCES_THROUGH_ONE_FUNCTION, 2048); /* and exactly at it */
	CHECK_INT(device_load(text, &p), CUDA_SUCCESS);
	obd_program_free(p);
	free(text);
}

TEST(every_refused_allocation_is_out_of_memory)
{
	char *text = bomb_write(TARGETS, 2000);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t n;

	obd_heap_count(counted, discounted);
	for (n = 0; result != CUDA_SUCCESS && n < 1000; n++) {
		struct obd_program *p = NULL;

		held = 0;
		loads_left = n;
		result = device_load(text, &p);
		CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
		CHECK(result == CUDA_SUCCESS || live_blocks == 0);
		obd_program_free(p);
		CHECK_INT(held, 0);
	}
	CHECK(result == CUDA_SUCCESS && n > 4);
	free(text);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
