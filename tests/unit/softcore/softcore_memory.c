/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Loading a kernel when the n-th call of malloc, calloc or realloc fails: the load ends with "out
 * of memory" or does without, and frees what it has allocated. The linker replaces these functions
 * in the program and its static libraries.
 */
#include "tests/unit/softcore/device.h"

#define PLACES 4096u

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

static bool counting;
static unsigned left, n_held; /* calls that succeed; what they have returned, and nobody freed */
static void *held[PLACES];

static bool refuse(void)
{
	return counting && left-- == 0;
}

static void *hold(void *p)
{
	if (!counting || !p)
		return p;
	CHECK(n_held < PLACES);
	held[n_held++] = p;
	return p;
}

static void release(const void *p)
{
	for (unsigned i = 0; i < n_held; i++)
		if (held[i] == p) {
			held[i] = held[--n_held];
			return;
		}
}

void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : hold(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse() ? NULL : hold(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	if (refuse())
		return NULL;
	release(p);
	return hold(__real_realloc(p, size));
}

void __wrap_free(void *p)
{
	release(p);
	__real_free(p);
}

/* A kernel that all passes change; a sum of two bases takes a register that they add. */
static char *kernel(void)
{
	size_t size = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	fputs(HEAD ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
		   ".reg .b32 %r<9>; .reg .b64 %d<600>;\n"
		   "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x;\n"
		   "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;\n"
		   "mul.wide.s32 %d2, %r4, 4;\n",
		f);
	for (unsigned i = 3; i < 303; i++)
		fprintf(f,
			"add.s64 %%d%u, %%d%u, %u; add.s64 %%d%u, %%d0, %%d2;\n"
			"add.s64 %%d%u, %%d%u, %%d%u; ld.global.u32 %%r5, [%%d%u];\n"
			"st.global.u32 [%%d%u], %%r5;\n",
			i, i == 3 ? 1 : i - 1, i * 8, 303, 304, i, 303, 304, 304);
	fputs("ret; }\n", f);
	fclose(f);
	return text;
}

TEST(every_refused_allocation_of_a_load_is_out_of_memory)
{
	char *text = kernel();
	unsigned n = 0, failed = 0;
	bool all = false;

	device_env();
	for (; !all && n < PLACES; n++) {
		struct obd_program *p = NULL;

		n_held = 0;
		left = n;
		counting = true;
		CUresult r = device_load(text, &p);

		counting = false;
		all = left <= n;
		CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY);
		failed += r != CUDA_SUCCESS;
		device_end(p);
		if (n_held)
			fprintf(stderr, "call %u fails: %u are not freed\n", n, n_held);
		CHECK_INT(n_held, 0);
		CHECK_INT(live_blocks, 0);
	}
	CHECK(all && failed > 10);
	free(text);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
