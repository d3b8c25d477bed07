/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Modules, libraries, kernels, functions and their attributes; what is asked of the backend, and when.
 */
#include <fcntl.h>

#include "harness.h"

static void module_from_text(void)
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
	GIVES(CUDA_ERROR_NOT_FOUND, obf_cuModuleGetFunction(&first, module, "nothing"));
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
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuFuncGetParamInfo(first, 3, &offset, &size));
	OK(obf_cuModuleGetGlobal_v2(&addr, &size, module, "table"));
	OK(obf_cuModuleGetGlobal_v2(NULL, &size, module, "table"));
	CHECK(fake.globals == 1 && size == 64);
	CHECK(obf_mem_find(addr + 63, &mem) && mem.is_global && !obf_mem_find(addr + 64, &mem));
	GIVES(CUDA_ERROR_NOT_FOUND, obf_cuModuleGetGlobal_v2(&addr, &size, module, "chair"));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuModuleGetGlobal_v2(NULL, NULL, module, "table"));
	OK(obf_cuModuleUnload(module));
	CHECK(fake.unloads == 1 && !obf_mem_find(addr, &mem));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_cuModuleUnload(module));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_cuModuleGetFunction(&first, module, "first"));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_cuFuncGetName(&name, first));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_cuModuleUnload((CUmodule)first));
}

static void bad_images(void)
{
	static const char nothing[64] = "this is no image of any kind";
	CUmodule module;
	CUlibrary library;

	begin();
	GIVES(CUDA_ERROR_INVALID_IMAGE, obf_cuModuleLoadData(&module, nothing));
	GIVES(CUDA_ERROR_INVALID_IMAGE,
		obf_cuLibraryLoadData(&library, nothing, NULL, NULL, 0, NULL, NULL, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuModuleLoadData(&module, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuModuleLoadData(NULL, ptx_text));
	GIVES(CUDA_ERROR_FILE_NOT_FOUND, obf_cuModuleLoad(&module, "/nothing/here"));
	GIVES(CUDA_ERROR_FILE_NOT_FOUND,
		obf_cuLibraryLoadFromFile(&library, "/nothing/here", NULL, NULL, 0, NULL, NULL, 0));
	fake.load_result = CUDA_ERROR_INVALID_PTX;
	GIVES(CUDA_ERROR_INVALID_PTX, obf_cuModuleLoadData(&module, ptx_text));
	/* PTX given as text: what is wrong with it shows at the load of the library too. */
	GIVES(CUDA_ERROR_INVALID_PTX,
		obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	OK(obf_cuCtxSetCurrent(NULL));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuModuleLoadData(&module, ptx_text));
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

	GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, obf_cuModuleLoadFatBinary(&module, fatbin));
}

static unsigned char own_image[144]; /* a fatbin with 64 bytes of code */

static void machine_code_only(void)
{
	static const char code[64];
	void *fatbin = fake_fatbin(2, 80, code, sizeof code);
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
	GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU,
		obf_cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(fake.loads == 0);
	free(fatbin);
	/* Part of the program's own file: whose it is, is said. */
	fatbin = fake_fatbin(2, 86, code, sizeof code);
	memcpy(own_image, fatbin, sizeof own_image);
	free(fatbin);
	capture(load_machine_code, own_image, text, sizeof text);
	CHECK(strstr(text, "in the program itself, /") && strstr(text, "test_front_module,") &&
		strstr(text, "it holds sm_86 (no PTX). Rebuild"));
	/* PTX for a newer device than this. */
	fatbin = fake_fatbin(1, 120, ptx_text, sizeof ptx_text);
	capture(load_machine_code, fatbin, text, sizeof text);
	CHECK(strstr(text, "PTX for compute_120") && strstr(text, "OUTBOARD_SOFT_CC=12.0") &&
		!strstr(text, "nvcc"));
	free(fatbin);
}

static void from_file(void)
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
static void library_is_lazy(void)
{
	char *fatbin = fake_fatbin(1, 75, ptx_text, sizeof ptx_text);
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
	GIVES(CUDA_ERROR_NOT_FOUND, obf_cuLibraryGetKernel(&again, library, "fourth"));
	CHECK(kernel == again);
	OK(obf_cuLibraryGetKernelCount(&n, library));
	CHECK(n == 3);
	OK(obf_cuLibraryEnumerateKernels(all, 3, library));
	OK(obf_cuKernelGetName(&name, kernel));
	CHECK(strcmp(name, "second") == 0);
	OK(obf_cuKernelGetParamInfo(kernel, 0, &offset, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuKernelGetParamInfo(kernel, 1, &offset, NULL));
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
	GIVES(CUDA_ERROR_NOT_PERMITTED, obf_cuModuleUnload(module));

	OK(obf_cuCtxCreate_v2(&other, 0, 1));
	OK(obf_ctx_enter(&ctx));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_func_resolve(function, ctx, &twice));
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
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_func_resolve(as_function(kernel), ctx, &func));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_cuLibraryUnload(library));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_func_resolve(NULL, ctx, &func));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_func_resolve((CUfunction)0x7fff0000, ctx, &func));
}

static void library_is_eager(void)
{
	void *fatbin = fake_fatbin(1, 75, ptx_text, sizeof ptx_text);
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
static void options_without_values(void)
{
	void *fatbin = fake_fatbin(1, 75, ptx_text, sizeof ptx_text);
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
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuLibraryLoadFromFile(&from_file, path, NULL, NULL, 0, NULL, NULL, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuLibraryLoadFromFile(&from_file, path, NULL, NULL, 0, options, NULL, 3));
	unlink(path);
}

/* CUDA_MODULE_LOADING=EAGER: every context has every library, whichever came first. */
static void eager_everywhere(void)
{
	void *fatbin = fake_fatbin(1, 75, ptx_text, sizeof ptx_text);
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
	GIVES(CUDA_ERROR_OUT_OF_MEMORY,
		obf_cuLibraryLoadData(&second, fatbin, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(fake.creates == 3 && fake.destroys == 0);
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, obf_cuCtxCreate_v2(&made, 0, 0));
	CHECK(fake.creates == 4 && fake.destroys == 1);
	OK(obf_cuDevicePrimaryCtxReset_v2(1));
	free(fatbin);
}

static void data_is_eager(void)
{
	void *fatbin = fake_fatbin(1, 75, ptx_text, sizeof ptx_text);
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
	uint8_t *machine = fake_fatbin(2, 90, junk, sizeof junk),
		*ptx = fake_fatbin(1, 75, ptx_text, sizeof ptx_text);
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

static void machine_code_first(void)
{
	GIVES(CUDA_ERROR_INVALID_IMAGE, load_both());
}

static void ptx_is_forced(void)
{
	setenv("CUDA_FORCE_PTX_JIT", "1", 1);
	OK(load_both());
	CHECK(strcmp(fake.last_payload, ptx_text) == 0);
}

/* The name with PTX in it decides where both are set. */
static void forced_by_either_name(void)
{
	setenv("CUDA_FORCE_JIT", "1", 1);
	OK(load_both());
}

static void forced_by_neither(void)
{
	setenv("CUDA_FORCE_JIT", "1", 1);
	setenv("CUDA_FORCE_PTX_JIT", "0", 1);
	GIVES(CUDA_ERROR_INVALID_IMAGE, load_both());
}

static void ptx_is_disabled(void)
{
	CUmodule module;
	CUlibrary library;

	setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
	GIVES(CUDA_ERROR_INVALID_IMAGE, load_both()); /* machine code is still taken */
	GIVES(CUDA_ERROR_JIT_COMPILATION_DISABLED, obf_cuModuleLoadData(&module, ptx_text));
	GIVES(CUDA_ERROR_JIT_COMPILATION_DISABLED,
		obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(fake.loads == 0);
}

/* What the environment says counts from cuInit on. */
static void read_once(void)
{
	CUmodule module;

	begin();
	setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
	OK(obf_cuModuleLoadData(&module, ptx_text));
}

static void managed_and_globals(void)
{
	CUlibrary library;
	CUdeviceptr addr;
	size_t size;
	void *entry;

	begin();
	OK(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	OK(obf_cuLibraryGetGlobal(&addr, &size, library, "table"));
	GIVES(CUDA_ERROR_NOT_FOUND, obf_cuLibraryGetGlobal(&addr, &size, library, "chair"));
	GIVES(CUDA_ERROR_NOT_FOUND, obf_cuLibraryGetManaged(&addr, &size, library, "table"));
	GIVES(CUDA_ERROR_NOT_FOUND, obf_cuLibraryGetUnifiedFunction(&entry, library, "table"));
}

/* More contexts than a kernel keeps inline rows for. */
static void many_contexts(void)
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

static void attributes(void)
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
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, first));
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuFuncGetAttribute(&value, (CUfunction_attribute)-1, first));
	OK(obf_cuFuncSetAttribute(
		first, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 1000));
	CHECK(fake.func_sets == 1 &&
		fake.last_attr == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
		fake.last_value == 231448);
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuFuncSetAttribute(
			first, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448 - 999));
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuFuncSetAttribute(first, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuFuncSetAttribute(first, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
	OK(obf_cuFuncSetAttribute(first, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100));
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuFuncSetAttribute(
			first, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
	OK(obf_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, first));
	CHECK(value == 231448);
	OK(obf_cuFuncSetCacheConfig(first, CU_FUNC_CACHE_PREFER_SHARED));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuFuncSetCacheConfig(first, (CUfunc_cache)9));
}

/*
 * What is set for a kernel on a device holds in contexts that come later, and is not undone by the
 * device's own figures.
 */
static void kernel_attributes(void)
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
	GIVES(CUDA_ERROR_INVALID_DEVICE,
		obf_cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 2));
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
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuKernelSetAttribute(
			CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000, kernel, 0));
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(module_from_text),
		CASE(bad_images),
		CASE(machine_code_only),
		CASE(from_file),
		CASE(library_is_lazy),
		CASE(library_is_eager),
		CASE(options_without_values),
		CASE(eager_everywhere),
		CASE(data_is_eager),
		CASE(machine_code_first),
		CASE(ptx_is_forced),
		CASE(forced_by_either_name),
		CASE(forced_by_neither),
		CASE(ptx_is_disabled),
		CASE(read_once),
		CASE(managed_and_globals),
		CASE(many_contexts),
		CASE(attributes),
		CASE(kernel_attributes),
	};

	return RUN(cases);
}
