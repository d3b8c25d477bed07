/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Modules, libraries, kernels, functions and their attributes; what is asked of the backend, and when.
 */
#include <fcntl.h>

#include "front.h"
#include "tests/fatbin.h"

TEST(module_from_text)
{
	CUmodule module, same;
	CUfunction first, again, all[8];
	CUdeviceptr addr;
	const char *name;
	size_t size, offset;
	unsigned n;
	struct obf_mem mem;

	begin();
	OK(obf_cuModuleLoadData(&module, ptx_text));
	CHECK(fake.loads == 1 && fake.last_from_text && strcmp(fake.last_payload, ptx_text) == 0);
	CHECK_INT(obf_cuModuleGetFunction(&first, module, "nothing"), CUDA_ERROR_NOT_FOUND);
	CHECK(fake.func_gets == 0);
	OK(obf_cuModuleGetFunction(&first, module, "first"));
	OK(obf_cuModuleGetFunction(&again, module, "first"));
	CHECK(first == again && fake.func_gets == 1);
	OK(obf_cuModuleGetFunctionCount(&n, module));
	CHECK(n == 3);
	OK(obf_cuModuleEnumerateFunctions(all, 8, module));
	CHECK(fake.func_gets == 3 && (all[0] == first || all[1] == first || all[2] == first));
	OK(obf_cuFuncGetName(&name, first));
	CHECK(strcmp(name, "first") == 0);
	OK(obf_cuFuncGetModule(&same, first));
	CHECK(same == module);
	OK(obf_cuFuncGetParamInfo(first, 2, &offset, &size));
	CHECK(offset == 16 && size == 8);
	OK(obf_cuFuncGetParamInfo(first, 1, &offset, NULL));
	CHECK(offset == 8);
	CHECK_INT(obf_cuFuncGetParamInfo(first, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuModuleGetGlobal_v2(&addr, &size, module, "table"));
	OK(obf_cuModuleGetGlobal_v2(NULL, &size, module, "table"));
	CHECK(fake.globals == 1 && size == 64);
	CHECK(obf_mem_find(addr + 63, &mem) && mem.is_global && !obf_mem_find(addr + 64, &mem));
	CHECK_INT(obf_cuModuleGetGlobal_v2(&addr, &size, module, "chair"), CUDA_ERROR_NOT_FOUND);
	CHECK_INT(obf_cuModuleGetGlobal_v2(NULL, NULL, module, "table"), CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuModuleUnload(module));
	CHECK(fake.unloads == 1 && !obf_mem_find(addr, &mem));
	CHECK_INT(obf_cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuModuleGetFunction(&first, module, "first"), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuFuncGetName(&name, first), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuModuleUnload((CUmodule)first), CUDA_ERROR_INVALID_HANDLE);
}

TEST(modules_are_unloaded_in_any_order)
{
	CUmodule modules[5];
	CUcontext ctx = begin();

	for (int i = 0; i < 5; i++)
		OK(obf_cuModuleLoadData(&modules[i], ptx_text));
	OK(obf_cuModuleUnload(modules[2])); /* from the middle, then both ends */
	OK(obf_cuModuleUnload(modules[4]));
	OK(obf_cuModuleUnload(modules[0]));
	CHECK_INT(obf_cuModuleUnload(modules[0]), CUDA_ERROR_INVALID_HANDLE);
	CHECK(fake.unloads == 3);
	OK(obf_cuDevicePrimaryCtxReset_v2(0)); /* ends those that are left */
	CHECK(fake.unloads == 5);
	CHECK_INT(obf_cuModuleUnload(modules[1]), CUDA_ERROR_INVALID_HANDLE);
	(void)ctx;
}

TEST(bad_images)
{
	static const char nothing[64] = "this is no image of any kind";
	CUmodule module;
	CUlibrary library;

	begin();
	CHECK_INT(obf_cuModuleLoadData(&module, nothing), CUDA_ERROR_INVALID_IMAGE);
	CHECK_INT(obf_cuLibraryLoadData(&library, nothing, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_INVALID_IMAGE);
	CHECK_INT(obf_cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuModuleLoadData(NULL, ptx_text), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuModuleLoad(&module, "/nothing/here"), CUDA_ERROR_FILE_NOT_FOUND);
	CHECK_INT(
		obf_cuLibraryLoadFromFile(&library, "/nothing/here", NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_FILE_NOT_FOUND);
	fake.load_result = CUDA_ERROR_INVALID_PTX;
	CHECK_INT(obf_cuModuleLoadData(&module, ptx_text), CUDA_ERROR_INVALID_PTX);
	/* PTX given as text: what is wrong with it shows at the load of the library too. */
	CHECK_INT(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_INVALID_PTX);
	OK(obf_cuCtxSetCurrent(NULL));
	CHECK_INT(obf_cuModuleLoadData(&module, ptx_text), CUDA_ERROR_INVALID_CONTEXT);
}

/* Reads what `run` writes to stderr. */
static void capture(void (*run)(void *fatbin), void *fatbin, char *ret, size_t size)
{
	int ends[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	OK(pipe(ends));
	CHECK(dup2(ends[1], STDERR_FILENO) >= 0);
	run(fatbin);
	CHECK(dup2(saved, STDERR_FILENO) >= 0);
	close(ends[1]);
	n = read(ends[0], ret, size - 1);
	ret[n < 0 ? 0 : n] = 0;
	close(ends[0]);
	close(saved);
}

static void load_machine_code(void *fatbin)
{
	CUmodule module;

	CHECK_INT(obf_cuModuleLoadFatBinary(&module, fatbin), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

static unsigned char own_image[144]; /* a fatbin with 64 bytes of code */

TEST(machine_code_only)
{
	static const char code[64];
	void *fatbin = fatbin_new(FATBIN_ELF, 80, code, sizeof code);
	char text[2048];
	CUlibrary library;

	fake.ptx_only = true;
	begin();
	capture(load_machine_code, fatbin, text, sizeof text);
	CHECK(strstr(text, "sm_80") &&
		strstr(text, "nvcc -gencode arch=compute_75,code=compute_75") &&
		strstr(text,
			"an image that the program made or "
			"read") &&
		strchr(text, '\n') == strrchr(text, '\n'));
	CHECK_INT(obf_cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK(fake.loads == 0);
	free(fatbin);
	/* Part of the program's own file: whose it is, is said. */
	fatbin = fatbin_new(FATBIN_ELF, 86, code, sizeof code);
	memcpy(own_image, fatbin, sizeof own_image);
	free(fatbin);
	capture(load_machine_code, own_image, text, sizeof text);
	CHECK(strstr(text, "in the program itself, /") && strstr(text, "test_front_module,") &&
		strstr(text, "it holds sm_86 (no PTX). Rebuild"));
	/* PTX for a newer device than this. */
	fatbin = fatbin_new(FATBIN_PTX, 120, ptx_text, sizeof ptx_text);
	capture(load_machine_code, fatbin, text, sizeof text);
	CHECK(strstr(text, "PTX for compute_120") && strstr(text, "OUTBOARD_SOFT_CC=12.0") &&
		!strstr(text, "nvcc"));
	free(fatbin);
}

TEST(from_file)
{
	char path[] = "/tmp/front-XXXXXX";
	int fd = mkstemp(path);
	CUmodule module;
	CUlibrary library;
	CUkernel kernel;

	begin();
	CHECK(fd >= 0 && write(fd, ptx_text, sizeof ptx_text - 1) == sizeof ptx_text - 1 &&
		close(fd) == 0);
	OK(obf_cuModuleLoad(&module, path));
	OK(obf_cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
	OK(unlink(path));
	OK(obf_cuLibraryGetKernel(&kernel, library, "third"));
	OK(obf_cuLibraryUnload(library));
}

static CUfunction as_function(CUkernel kernel)
{
	return (CUfunction)(void *)kernel;
}

/* A library is loaded in a context when something of it is used there, once. */
TEST(library_is_lazy)
{
	char *fatbin = fatbin_new(FATBIN_PTX, 75, ptx_text, sizeof ptx_text);
	CUcontext primary = begin(), other;
	CUlibrary library;
	CUkernel kernel, again, all[3];
	CUfunction function;
	CUmodule module;
	struct obf_ctx *ctx;
	struct obf_func *func, *twice;
	const char *name;
	size_t offset;
	unsigned n;

	OK(obf_cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, NULL, NULL, 0));
	/* Nobody promised that the bytes stay. */
	memset(fatbin, 0xee, 512);
	free(fatbin);
	OK(obf_cuLibraryGetKernel(&kernel, library, "second"));
	OK(obf_cuLibraryGetKernel(&again, library, "second"));
	CHECK_INT(obf_cuLibraryGetKernel(&again, library, "fourth"), CUDA_ERROR_NOT_FOUND);
	CHECK(kernel == again);
	OK(obf_cuLibraryGetKernelCount(&n, library));
	CHECK(n == 3);
	OK(obf_cuLibraryEnumerateKernels(all, 3, library));
	OK(obf_cuKernelGetName(&name, kernel));
	CHECK(strcmp(name, "second") == 0);
	OK(obf_cuKernelGetParamInfo(kernel, 0, &offset, NULL));
	CHECK_INT(obf_cuKernelGetParamInfo(kernel, 1, &offset, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK(fake.loads == 0 && fake.func_gets == 0);

	OK(obf_ctx_enter(&ctx));
	OK(obf_func_resolve(as_function(kernel), ctx, &func));
	OK(obf_func_resolve(as_function(kernel), ctx, &twice));
	CHECK(func == twice && fake.loads == 1 && fake.func_gets == 1 && !fake.last_from_text);
	CHECK(strcmp(fake.last_payload, ptx_text) == 0);
	OK(obf_cuKernelGetFunction(&function, kernel));
	CHECK(function == func->handle);
	OK(obf_func_resolve(function, ctx, &twice));
	CHECK(func == twice);
	OK(obf_cuLibraryGetModule(&module, library));
	CHECK_INT(obf_cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);

	OK(obf_cuCtxCreate_v2(&other, 0, 1));
	OK(obf_ctx_enter(&ctx));
	CHECK_INT(obf_func_resolve(function, ctx, &twice), CUDA_ERROR_INVALID_HANDLE);
	OK(obf_func_resolve(as_function(kernel), ctx, &twice));
	CHECK(func != twice && fake.loads == 2 && twice->mod->ctx == ctx);
	OK(obf_cuCtxDestroy_v2(other));
	CHECK(fake.unloads == 1);

	OK(obf_cuDevicePrimaryCtxReset_v2(0));
	CHECK(fake.unloads == 2);
	OK(obf_cuDevicePrimaryCtxRetain(&primary, 0));
	OK(obf_ctx_enter(&ctx));
	OK(obf_func_resolve(as_function(kernel), ctx, &func));
	CHECK(fake.loads == 3);
	OK(obf_cuLibraryUnload(library));
	CHECK(fake.unloads == 3);
	CHECK_INT(obf_func_resolve(as_function(kernel), ctx, &func), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_func_resolve(NULL, ctx, &func), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_func_resolve((CUfunction)0x7fff0000, ctx, &func), CUDA_ERROR_INVALID_HANDLE);
}

TEST(library_is_eager)
{
	void *fatbin = fatbin_new(FATBIN_PTX, 75, ptx_text, sizeof ptx_text);
	CUlibraryOption options[] = { CU_LIBRARY_BINARY_IS_PRESERVED };
	void *values[] = { (void *)1 };
	CUmoduleLoadingMode mode;
	CUlibrary library;

	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	begin();
	OK(obf_cuModuleGetLoadingMode(&mode));
	CHECK(mode == CU_MODULE_EAGER_LOADING);
	OK(obf_cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, options, values, 1));
	CHECK(fake.loads == 1);
	OK(obf_cuLibraryUnload(library));
	free(fatbin);
}

/* Where an array of options has no array of values, every value is 0: the image is copied. */
TEST(options_without_values)
{
	void *fatbin = fatbin_new(FATBIN_PTX, 75, ptx_text, sizeof ptx_text);
	CUlibraryOption options[] = { CU_LIBRARY_BINARY_IS_PRESERVED,
		CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE };
	char path[] = "/tmp/front-XXXXXX";
	int fd = mkstemp(path);
	CUlibrary library, from_file;
	CUkernel kernel;
	struct obf_func *func;
	struct obf_ctx *ctx;

	begin();
	OK(obf_cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, options, NULL, 2));
	memset(fatbin, 0xee, 512);
	free(fatbin);
	OK(obf_cuLibraryGetKernel(&kernel, library, "second"));
	OK(obf_ctx_enter(&ctx));
	OK(obf_func_resolve(as_function(kernel), ctx, &func));
	CHECK(strcmp(fake.last_payload, ptx_text) == 0);
	CHECK(fd >= 0 && write(fd, ptx_text, sizeof ptx_text) == (ssize_t)sizeof ptx_text);
	close(fd);
	OK(obf_cuLibraryLoadFromFile(&from_file, path, NULL, NULL, 0, options, NULL, 1));
	CHECK_INT(obf_cuLibraryLoadFromFile(&from_file, path, NULL, NULL, 0, NULL, NULL, 1),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuLibraryLoadFromFile(&from_file, path, NULL, NULL, 0, options, NULL, 3),
		CUDA_ERROR_INVALID_VALUE);
	unlink(path);
}

/* CUDA_MODULE_LOADING=EAGER: every context has every library, whichever came first. */
TEST(eager_everywhere)
{
	void *fatbin = fatbin_new(FATBIN_PTX, 75, ptx_text, sizeof ptx_text);
	CUlibrary first, second;
	CUcontext made, primary;

	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	primary = begin();
	OK(obf_cuCtxCreate_v2(&made, 0, 1));
	OK(obf_cuCtxSetCurrent(NULL));
	OK(obf_cuLibraryLoadData(&first, fatbin, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(fake.loads == 2);
	OK(obf_cuDevicePrimaryCtxRetain(&primary, 1));
	CHECK(fake.loads == 3);
	OK(obf_cuLibraryLoadData(&second, fatbin, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(fake.loads == 6);
	/*
	 * A library that does not load is not there, and a context that cannot take every library
	 * is not made.
	 */
	fake.load_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuLibraryLoadData(&second, fatbin, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(fake.creates == 3 && fake.destroys == 0);
	CHECK_INT(obf_cuCtxCreate_v2(&made, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(fake.creates == 4 && fake.destroys == 1);
	OK(obf_cuDevicePrimaryCtxReset_v2(1));
	free(fatbin);
}

TEST(data_is_eager)
{
	void *fatbin = fatbin_new(FATBIN_PTX, 75, ptx_text, sizeof ptx_text);
	CUmoduleLoadingMode mode;
	CUlibrary library;

	setenv("CUDA_MODULE_DATA_LOADING", "EAGER", 1);
	begin();
	OK(obf_cuModuleGetLoadingMode(&mode));
	CHECK(mode == CU_MODULE_LAZY_LOADING);
	OK(obf_cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(fake.loads == 1);
	free(fatbin);
}

/*
 * A fatbin with what is no sound cubin, for the device's own architecture, and with PTX: which of
 * them is taken shows in the result.
 */
static void *both_kinds(void)
{
	static const char junk[64];
	uint8_t *machine = fatbin_new(FATBIN_ELF, 90, junk, sizeof junk),
		*ptx = fatbin_new(FATBIN_PTX, 75, ptx_text, sizeof ptx_text);
	uint64_t sizes[2], sum;
	uint8_t *both;

	memcpy(&sizes[0], machine + 8, 8);
	memcpy(&sizes[1], ptx + 8, 8);
	sum = sizes[0] + sizes[1];
	both = malloc(16 + sum);
	CHECK(both);
	memcpy(both, machine, 16 + sizes[0]);
	memcpy(both + 8, &sum, 8);
	memcpy(both + 16 + sizes[0], ptx + 16, sizes[1]);
	free(machine);
	free(ptx);
	return both;
}

static CUresult load_both(void)
{
	CUmodule module;
	void *both = both_kinds();
	CUresult result;

	begin();
	result = obf_cuModuleLoadData(&module, both);
	free(both);
	return result;
}

TEST(machine_code_first)
{
	CHECK_INT(load_both(), CUDA_ERROR_INVALID_IMAGE);
}

TEST(ptx_is_forced)
{
	setenv("CUDA_FORCE_PTX_JIT", "1", 1);
	OK(load_both());
	CHECK(strcmp(fake.last_payload, ptx_text) == 0);
}

/* The name with PTX in it decides where both are set. */
TEST(forced_by_either_name)
{
	setenv("CUDA_FORCE_JIT", "1", 1);
	OK(load_both());
}

TEST(forced_by_neither)
{
	setenv("CUDA_FORCE_JIT", "1", 1);
	setenv("CUDA_FORCE_PTX_JIT", "0", 1);
	CHECK_INT(load_both(), CUDA_ERROR_INVALID_IMAGE);
}

TEST(ptx_is_disabled)
{
	CUmodule module;
	CUlibrary library;

	setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
	CHECK_INT(load_both(), CUDA_ERROR_INVALID_IMAGE); /* machine code is still taken */
	CHECK_INT(obf_cuModuleLoadData(&module, ptx_text), CUDA_ERROR_JIT_COMPILATION_DISABLED);
	CHECK_INT(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_JIT_COMPILATION_DISABLED);
	CHECK(fake.loads == 0);
}

/* What the environment says counts from cuInit on. */
TEST(read_once)
{
	CUmodule module;

	begin();
	setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
	OK(obf_cuModuleLoadData(&module, ptx_text));
}

TEST(managed_and_globals)
{
	CUlibrary library;
	CUdeviceptr addr;
	size_t size;
	void *entry;

	begin();
	OK(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	OK(obf_cuLibraryGetGlobal(&addr, &size, library, "table"));
	CHECK_INT(obf_cuLibraryGetGlobal(&addr, &size, library, "chair"), CUDA_ERROR_NOT_FOUND);
	CHECK_INT(obf_cuLibraryGetManaged(&addr, &size, library, "table"), CUDA_ERROR_NOT_FOUND);
	CHECK_INT(obf_cuLibraryGetUnifiedFunction(&entry, library, "table"), CUDA_ERROR_NOT_FOUND);
}

/* More contexts than a kernel keeps inline rows for. */
TEST(many_contexts)
{
	enum { N = 20 };
	CUcontext contexts[N];
	struct obf_func *funcs[N], *again;
	CUlibrary library;
	CUkernel kernel;
	struct obf_ctx *ctx;

	begin();
	OK(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	OK(obf_cuLibraryGetKernel(&kernel, library, "first"));
	for (int i = 0; i < N; i++) {
		OK(obf_cuCtxCreate_v2(&contexts[i], 0, 0));
		OK(obf_ctx_enter(&ctx));
		OK(obf_func_resolve(as_function(kernel), ctx, &funcs[i]));
		for (int j = 0; j < i; j++)
			CHECK(funcs[i] != funcs[j]);
	}
	for (int i = 0; i < N; i++) {
		OK(obf_cuCtxSetCurrent(contexts[i]));
		OK(obf_ctx_enter(&ctx));
		OK(obf_func_resolve(as_function(kernel), ctx, &again));
		CHECK(again == funcs[i]);
	}
	for (int i = 0; i < N; i++)
		OK(obf_cuCtxDestroy_v2(contexts[i]));
	CHECK(fake.loads == N + 1 && fake.unloads == N);
}

TEST(attributes)
{
	CUmodule module;
	CUfunction first, second;
	int value;

	fake.shared_bytes = 1000;
	begin();
	OK(obf_cuModuleLoadData(&module, ptx_text));
	OK(obf_cuModuleGetFunction(&first, module, "first"));
	OK(obf_cuModuleGetFunction(&second, module, "second"));
	OK(obf_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, first));
	CHECK(value == 32 && fake.func_attrs == 1);
	OK(obf_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, second));
	CHECK(value == 128 && fake.func_attrs == 2);
	OK(obf_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, first));
	CHECK(value == 48152 && fake.func_attrs == 2);
	CHECK_INT(obf_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, first),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuFuncGetAttribute(&value, (CUfunction_attribute)-1, first),
		CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuFuncSetAttribute(
		first, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 1000));
	CHECK(fake.func_sets == 1 &&
		fake.last_attr == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
		fake.last_value == 231448);
	CHECK_INT(obf_cuFuncSetAttribute(
			  first, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 999),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(
		obf_cuFuncSetAttribute(first, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuFuncSetAttribute(first, CU_FUNC_ATTRIBUTE_NUM_REGS, 1),
		CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuFuncSetAttribute(first, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100));
	CHECK_INT(obf_cuFuncSetAttribute(
			  first, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101),
		CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, first));
	CHECK(value == 231448);
	OK(obf_cuFuncSetCacheConfig(first, CU_FUNC_CACHE_PREFER_SHARED));
	CHECK_INT(obf_cuFuncSetCacheConfig(first, (CUfunc_cache)9), CUDA_ERROR_INVALID_VALUE);
}

/*
 * What is set for a kernel on a device holds in contexts that come later, and is not undone by the
 * device's own figures.
 */
TEST(kernel_attributes)
{
	CUlibrary library;
	CUkernel kernel;
	CUcontext other;
	int value;

	fake_attach(NULL, 0);
	OK(obf_cuInit(0));
	OK(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	OK(obf_cuLibraryGetKernel(&kernel, library, "first"));
	OK(obf_cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
	CHECK(value == 1024 && fake.loads == 0);
	OK(obf_cuKernelSetAttribute(
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 0));
	OK(obf_cuKernelGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
	CHECK(value == 100000 && fake.loads == 0 && fake.func_sets == 0);
	CHECK_INT(obf_cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 2),
		CUDA_ERROR_INVALID_DEVICE);
	OK(obf_cuCtxCreate_v2(&other, 0, 0));
	OK(obf_cuKernelGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
	CHECK(value == 100000 && fake.loads == 1 && fake.func_sets == 1);
	OK(obf_cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0));
	CHECK(value == 32 && fake.func_attrs == 1);
	OK(obf_cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, as_function(kernel)));
	CHECK(value == 100000);
	OK(obf_cuKernelSetAttribute(
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, kernel, 0));
	OK(obf_cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, as_function(kernel)));
	CHECK(value == 50000 && fake.func_sets == 2);
	/* The other device is untouched. */
	OK(obf_cuKernelGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 1));
	CHECK(value == 49152);
	CHECK_INT(obf_cuKernelSetAttribute(
			  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000, kernel, 0),
		CUDA_ERROR_INVALID_VALUE);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
