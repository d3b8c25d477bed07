/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/gpu/facts.h"

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry plain()\n{\n\tret;\n}\n"
			  ".visible .entry narrow() .maxntid 32, 1, 1\n{\n\tret;\n}\n"
			  ".visible .entry fault()\n{\n\t.reg .u64 a;\n\t.reg .u32 b;\n\tmov.u64 "
			  "a, 8;\n\tmov.u32 b, 1;\n\tst.global.u32 [a], b;\n\tret;\n}\n"
			  ".visible .entry trapped()\n{\n\ttrap;\n}\n";
static uint64_t garbage[64]; /* its address is not a valid handle */

static CUmodule module(void)
{
	CUmodule m = NULL;

	gpu_context();
	if (cu.cuModuleLoadData(&m, ptx)) {
		fprintf(stderr, "gpu-facts: the module of the wrong calls is not taken\n");
		exit(2);
	}
	return m;
}

static CUfunction function(const char *name)
{
	CUfunction f = NULL;

	if (cu.cuModuleGetFunction(&f, module(), name))
		exit(2);
	return f;
}

/* A kernel of a library, cast to a function, which is what the CUDA runtime launches. */
static CUfunction kernel(const char *name)
{
	CUlibrary library = NULL;
	CUkernel k = NULL;

	gpu_context();
	if (cu.cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) ||
		cu.cuLibraryGetKernel(&k, library, name))
		exit(2);
	return (CUfunction)k;
}

static CUresult launch(
	CUfunction f, unsigned grid_x, unsigned grid_y, unsigned block, unsigned shared)
{
	return cu.cuLaunchKernel(f, grid_x, grid_y, 1, block, 1, 1, shared, NULL, NULL, NULL);
}

#define CASE(name, expression)       \
	static CUresult name(void)   \
	{                            \
		return (expression); \
	}
static CUresult load(const void *image)
{
	CUmodule m;

	gpu_context();
	return cu.cuModuleLoadData(&m, image);
}

static CUresult freed_twice(void)
{
	CUdeviceptr p;

	gpu_context();
	return cu.cuMemAlloc_v2(&p, 4096) || cu.cuMemFree_v2(p) ? CUDA_ERROR_UNKNOWN
								: cu.cuMemFree_v2(p);
}

static CUresult freed_inside(void)
{
	CUdeviceptr p;

	gpu_context();
	return cu.cuMemAlloc_v2(&p, 4096) ? CUDA_ERROR_UNKNOWN : cu.cuMemFree_v2(p + 16);
}

static CUresult copied_past_the_end(void)
{
	static char host[8 << 20];
	CUdeviceptr p;

	gpu_context();
	return cu.cuMemAlloc_v2(&p, 4096) ? CUDA_ERROR_UNKNOWN
					  : cu.cuMemcpyDtoH_v2(host, p, sizeof host);
}

CASE(launch_null, (gpu_context(), launch(NULL, 1, 1, 1, 0)))
CASE(launch_garbage, (gpu_context(), launch((CUfunction)garbage, 1, 1, 1, 0)))
CASE(launch_module, launch((CUfunction)module(), 1, 1, 1, 0))
CASE(function_block_2048, launch(function("plain"), 1, 1, 2048, 0))
CASE(kernel_block_2048, launch(kernel("plain"), 1, 1, 2048, 0))
CASE(function_grid_y_65536, launch(function("plain"), 1, 65536, 1, 0))
CASE(kernel_grid_y_65536, launch(kernel("plain"), 1, 65536, 1, 0))
CASE(function_grid_0, launch(function("plain"), 0, 1, 1, 0))
CASE(kernel_grid_0, launch(kernel("plain"), 0, 1, 1, 0))
CASE(function_bounds, launch(function("narrow"), 1, 1, 64, 0))
CASE(kernel_bounds, launch(kernel("narrow"), 1, 1, 64, 0))
CASE(shared_49153, launch(function("plain"), 1, 1, 1, 49153))
CASE(shared_attribute_1M,
	cu.cuFuncSetAttribute(function("plain"), (CUfunction_attribute)8, 1 << 20))
CASE(module_text, load("this is no code at all, only some text"))
CASE(module_empty, load(""))
CASE(module_zeros, load(garbage))
CASE(module_elf_alone,
	load("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	     "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"))
CASE(function_of_garbage, ({
	CUfunction f;
	gpu_context();
	cu.cuModuleGetFunction(&f, (CUmodule)garbage, "plain");
}))
CASE(function_of_null, ({
	CUfunction f;
	gpu_context();
	cu.cuModuleGetFunction(&f, NULL, "plain");
}))
CASE(free_of_garbage, (gpu_context(), cu.cuMemFree_v2(0x1234)))
CASE(stream_garbage, (gpu_context(), cu.cuStreamSynchronize((CUstream)garbage)))
CASE(stream_destroy_null, (gpu_context(), cu.cuStreamDestroy_v2(NULL)))
CASE(event_destroy_null, (gpu_context(), cu.cuEventDestroy_v2(NULL)))
CASE(context_garbage, cu.cuCtxSetCurrent((CUcontext)garbage))
CASE(fault_address, launch(function("fault"), 1, 1, 1, 0))
CASE(fault_trap, launch(function("trapped"), 1, 1, 1, 0))

static const struct {
	const char *name;
	CUresult (*run)(void);
} cases[] = {
#define ROW(name)           \
	{                   \
#name, name \
	}
	ROW(launch_null),
	ROW(launch_garbage),
	ROW(launch_module),
	ROW(function_block_2048),
	ROW(kernel_block_2048),
	ROW(function_grid_y_65536),
	ROW(kernel_grid_y_65536),
	ROW(function_grid_0),
	ROW(kernel_grid_0),
	ROW(function_bounds),
	ROW(kernel_bounds),
	ROW(shared_49153),
	ROW(shared_attribute_1M),
	ROW(module_text),
	ROW(module_empty),
	ROW(module_zeros),
	ROW(module_elf_alone),
	ROW(function_of_garbage),
	ROW(function_of_null),
	ROW(freed_twice),
	ROW(freed_inside),
	ROW(free_of_garbage),
	ROW(copied_past_the_end),
	ROW(stream_garbage),
	ROW(stream_destroy_null),
	ROW(event_destroy_null),
	ROW(context_garbage),
	ROW(fault_address),
	ROW(fault_trap),
#undef ROW
};

int errors_list(void)
{
	for (size_t i = 0; i < ob_count(cases); i++)
		puts(cases[i].name);
	return 0;
}

int errors_run(const char *name)
{
	for (size_t i = 0; i < ob_count(cases); i++)
		if (strcmp(cases[i].name, name) == 0) {
			CUresult result = cases[i].run();

			printf("%s: %d, then waiting gives %d\n", name, (int)result,
				(int)cu.cuCtxSynchronize());
			return 0;
		}
	fprintf(stderr, "gpu-facts: there is no case called '%s'\n", name);
	return 2;
}
