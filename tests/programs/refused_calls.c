/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Calls that must fail, each printed with its error code: code that cannot be loaded, launches,
 * destroyed handles, memory, contexts, and the results of every group of calls after a kernel has
 * failed. Each group runs in a separate process. The program waits for asynchronous errors, so that
 * always the same call returns them.
 */
#include "driver.h"
#include "refused.h"
#include "../fatbin.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static const char GOOD[] =
	HEAD ".visible .global .align 4 .u32 word;\n"
	     ".visible .entry fail()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, 16;\nst.global.u32 "
	     "[%rd1], 1;\nret;\n}\n"
	     ".visible .entry add(.param .u64 p)\n{\n.reg .b32 %r<3>;\n.reg .b64 "
	     "%rd<2>;\nld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\n"
	     "add.u32 %r2, %r1, 1;\nst.global.u32 [%rd1], %r2;\nret;\n}\n";
static const char UNKNOWN[] = HEAD ".visible .entry k()\n{\nno_such_instruction.u32 1;\nret;\n}\n";
static const char UNDECLARED[] = HEAD ".visible .entry k()\n{\nmov.u32 %r1, 0;\nret;\n}\n";
static const char UNRESOLVED[] =
	HEAD ".extern .func missing();\n.visible .entry k()\n{\ncall missing, ();\nret;\n}\n";
static const char SHARED[] = HEAD ".visible .entry k()\n{\n.reg .b64 %rd<2>;\n.shared .align 4 .b8 "
				  "big[1000000];\nmov.u64 %rd1, big;\nret;\n}\n";
static const char NEWER[] =
	".version 99.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
static const char TOO_NEW[] =
	".version 7.0\n.target sm_999\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";

static CUdevice device;
static CUcontext context;
static CUmodule module;
static CUfunction add, fail;
static CUdeviceptr memory;
static char host[256];

static void *ptx(const char *text)
{
	return fatbin_new(FATBIN_PTX, 75, text, strlen(text));
}

static void begin(void)
{
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&context, NULL, 0, device));
}

static void begin_with_code(void)
{
	begin();
	CU(cuModuleLoadData(&module, GOOD));
	CU(cuModuleGetFunction(&add, module, "add"));
	CU(cuModuleGetFunction(&fail, module, "fail"));
	CU(cuMemAlloc(&memory, 256));
	CU(cuMemsetD8(memory, 0, 256));
}

static CUresult launch(CUfunction function, unsigned threads, unsigned shared, CUstream stream)
{
	void *args[] = { &memory };

	return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, shared, stream, args, NULL);
}

/* ---- code ---- */

static void bad_code_at_once(void)
{
	static const char *const TEXTS[] = { UNKNOWN, UNDECLARED, UNRESOLVED, SHARED, NEWER,
		TOO_NEW };
	CUmodule bad;
	CUlibrary library;

	begin();
	TRY(cuModuleLoadData(&bad, NULL));
	TRY(cuModuleLoadData(NULL, GOOD));
	TRY(cuModuleLoadData(&bad, ""));
	TRY(cuModuleLoadData(&bad, "no code at all"));
	for (int i = 0; i < 6; i++) {
		TRY(cuModuleLoadData(&bad, TEXTS[i]));
		TRY(cuModuleLoadData(&bad, TEXTS[i]));
		TRY(cuLibraryLoadData(&library, TEXTS[i], NULL, NULL, 0, NULL, NULL, 0));
	}
	/*
	 * The same without a container: the call loads the code and therefore fails. Repeated,
	 * because a failed load must leave no state.
	 */
	for (int i = 0; i < 3; i++) {
		TRY(cuModuleLoadData(&bad, ptx(UNKNOWN)));
		TRY(cuModuleLoadData(&bad, ptx(NEWER)));
	}
	TRY(cuModuleLoadData(&bad, fatbin_new(FATBIN_ELF, 75, "\177ELF this is cut off", 22)));
	TRY(cuModuleLoad(&bad, "/no/such/file"));
	CU(cuModuleLoadData(&bad, GOOD));
	TRY(cuCtxSynchronize());
}

static void lazy(const char *text, const char *name)
{
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUmodule inside;
	CUdeviceptr p;
	size_t size;
	int value;

	printf("-- %s\n", name);
	TRY(cuLibraryLoadData(&library, ptx(text), NULL, NULL, 0, NULL, NULL, 0));
	TRY(cuLibraryGetKernel(&kernel, library, "missing"));
	TRY(cuLibraryGetKernel(&kernel, library, "k"));
	TRY(launch((CUfunction)kernel, 1, 0, NULL));
	TRY(launch((CUfunction)kernel, 1, 0, NULL));
	TRY(cuCtxSynchronize());
	TRY(cuKernelGetFunction(&function, kernel));
	TRY(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, device));
	TRY(cuLibraryGetModule(&inside, library));
	TRY(cuLibraryGetGlobal(&p, &size, library, "none"));
	TRY(cuMemAlloc(&p, 16));
	TRY(cuMemFree(p));
	TRY(cuLibraryUnload(library));
	TRY(launch((CUfunction)kernel, 1, 0, NULL));
	TRY(cuCtxSynchronize());
}

/* The first call that needs the code returns the error. */
static void bad_code_at_first_use(void)
{
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	int value = 0;

	begin();
	lazy(UNKNOWN, "an unknown instruction");
	lazy(UNRESOLVED, "a function that is not there");
	lazy(SHARED, "too much shared memory");
	puts("-- other first uses");
	CU(cuLibraryLoadData(&library, ptx(UNKNOWN), NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&kernel, library, "k"));
	TRY(cuKernelGetFunction(&function, kernel));
	TRY(cuKernelGetFunction(&function, kernel));
	CU(cuLibraryLoadData(&library, ptx(UNKNOWN), NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&kernel, library, "k"));
	TRY(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, device));
	/* Valid code in the same module is not affected. */
	CU(cuLibraryLoadData(&library, ptx(GOOD), NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&kernel, library, "add"));
	CU(cuMemAlloc(&memory, 4));
	TRY(launch((CUfunction)kernel, 1, 0, NULL));
	TRY(cuCtxSynchronize());
}

static void names(void)
{
	CUfunction function;
	CUdeviceptr p;
	CUlibrary library;
	CUkernel kernel;
	size_t size;
	int value;

	begin_with_code();
	TRY(cuModuleGetFunction(&function, module, "missing"));
	TRY(cuModuleGetFunction(&function, module, ""));
	TRY(cuModuleGetFunction(&function, module, NULL));
	TRY(cuModuleGetFunction(NULL, module, "add"));
	TRY(cuModuleGetGlobal(&p, &size, module, "missing"));
	TRY(cuModuleGetGlobal(&p, &size, module, "add"));
	TRY(cuFuncGetAttribute(&value, (CUfunction_attribute)999, add));
	TRY(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, add));
	TRY(cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30));
	TRY(cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
	CU(cuLibraryLoadData(&library, GOOD, NULL, NULL, 0, NULL, NULL, 0));
	TRY(cuLibraryGetKernel(&kernel, library, "missing"));
	TRY(cuLibraryGetGlobal(&p, &size, library, "missing"));
	TRY(cuModuleUnload((CUmodule)library));
	TRY(cuCtxSynchronize());
}

/* ---- launches ---- */

static void launches(void)
{
	void *args[] = { NULL };
	CUfunction none = NULL;

	begin_with_code();
	TRY(launch(add, 1, 49153, NULL));
	TRY(launch(add, 1, 1 << 30, NULL));
	TRY(launch(add, 0, 0, NULL));
	TRY(launch(add, 1025, 0, NULL));
	TRY(launch(none, 1, 0, NULL));
	TRY(launch((CUfunction)module, 1, 0, NULL));
	TRY(launch(add, 1, 0, (CUstream)module));
	TRY(cuLaunchKernel(add, 0, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	TRY(cuLaunchKernel(add, 1, 70000, 1, 1, 1, 1, 0, NULL, args, NULL));
	TRY(cuLaunchKernel(add, 1, 1, 1, 1, 1, 65, 0, NULL, args, NULL));
	TRY(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	TRY(cuLaunchCooperativeKernel(add, 1000000, 1, 1, 1024, 1, 1, 0, NULL, args));
	TRY(launch(add, 1, 0, NULL));
	TRY(cuCtxSynchronize());
	CU(cuMemcpyDtoH(host, memory, 4));
	printf("the good launch counted %d\n", host[0]);
}

/* ---- destroyed handles ---- */

static void gone_streams_events(void)
{
	CUstream stream;
	CUevent event, never, timed;
	CUmemoryPool pool;
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	CUdeviceptr p;
	float ms;

	begin_with_code();
	CU(cuStreamCreate(&stream, 0));
	CU(cuEventCreate(&event, 0));
	CU(cuEventCreate(&never, 0));
	CU(cuEventCreate(&timed, CU_EVENT_DISABLE_TIMING));
	TRY(cuEventQuery(never));
	TRY(cuEventSynchronize(never));
	TRY(cuStreamWaitEvent(stream, never, 0));
	CU(cuEventRecord(event, stream));
	CU(cuEventRecord(timed, stream));
	CU(cuStreamSynchronize(stream));
	TRY(cuEventElapsedTime(&ms, never, event));
	TRY(cuEventElapsedTime(&ms, event, never));
	TRY(cuEventElapsedTime(&ms, event, timed));
	TRY(cuEventElapsedTime(NULL, event, event));
	TRY(cuEventCreate(&event, 0x1000));
	TRY(cuStreamCreate(&stream, 0x1000));
	CU(cuStreamDestroy(stream));
	TRY(cuStreamDestroy(stream));
	TRY(cuStreamSynchronize(stream));
	TRY(cuStreamQuery(stream));
	TRY(cuStreamWaitEvent(stream, event, 0));
	TRY(cuEventRecord(event, stream));
	TRY(launch(add, 1, 0, stream));
	TRY(cuMemcpyHtoDAsync(memory, host, 4, stream));
	TRY(cuMemsetD8Async(memory, 0, 4, stream));
	TRY(cuMemAllocAsync(&p, 4, stream));
	CU(cuEventDestroy(event));
	TRY(cuEventDestroy(event));
	TRY(cuEventRecord(event, NULL));
	TRY(cuEventQuery(event));
	TRY(cuEventSynchronize(event));
	TRY(cuStreamWaitEvent(NULL, event, 0));
	CU(cuMemPoolCreate(&pool, &props));
	CU(cuMemPoolDestroy(pool));
	TRY(cuMemPoolDestroy(pool));
	TRY(cuMemPoolTrimTo(pool, 0));
	props.location.id = 1000;
	TRY(cuMemPoolCreate(&pool, &props));
	props.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_HOST, 0 };
	TRY(cuMemPoolCreate(&pool, &props));
	TRY(cuMemAllocFromPoolAsync(&p, 4, pool, NULL));
	TRY(cuCtxSynchronize());
}

static void gone_code(void)
{
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUdeviceptr p;
	size_t size;
	int value;

	begin_with_code();
	CU(cuLibraryLoadData(&library, ptx(GOOD), NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&kernel, library, "add"));
	CU(launch((CUfunction)kernel, 1, 0, NULL));
	CU(cuCtxSynchronize());
	CU(cuLibraryUnload(library));
	TRY(cuLibraryUnload(library));
	TRY(cuLibraryGetKernel(&kernel, library, "add"));
	TRY(launch((CUfunction)kernel, 1, 0, NULL));
	TRY(cuKernelGetFunction(&function, kernel));
	CU(cuModuleUnload(module));
	TRY(cuModuleUnload(module));
	TRY(cuModuleGetFunction(&function, module, "add"));
	TRY(cuModuleGetGlobal(&p, &size, module, "word"));
	TRY(launch(add, 1, 0, NULL));
	TRY(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, add));
	TRY(cuCtxSynchronize());
}

/* ---- memory ---- */

static void wrong_memory(void)
{
	CUdeviceptr p;
	size_t size;
	void *pinned, *more;
	unsigned flags;

	begin_with_code();
	CU(cuMemAlloc(&p, 1024));
	TRY(cuMemFree(p + 4));
	CU(cuMemFree(p));
	TRY(cuMemFree(p));
	TRY(cuMemFreeAsync(p, NULL));
	TRY(cuMemFree((CUdeviceptr)(uintptr_t)host));
	TRY(cuMemAlloc(&p, 0));
	TRY(cuMemAlloc(NULL, 4));
	TRY(cuMemAlloc(&p, (size_t)1 << 62));
	TRY(cuMemAllocPitch(&p, &size, 16, 16, 3));
	CU(cuMemHostAlloc(&pinned, 4096, 0));
	TRY(cuMemFree((CUdeviceptr)(uintptr_t)pinned));
	TRY(cuMemHostUnregister(pinned));
	TRY(cuMemHostRegister(pinned, 4096, 0));
	CU(cuMemFreeHost(pinned));
	TRY(cuMemFreeHost(pinned));
	TRY(cuMemFreeHost(host));
	TRY(cuMemHostUnregister(host));
	TRY(cuMemHostGetFlags(&flags, host));
	TRY(cuMemHostAlloc(&more, 0, 0));
	/* Wrong directions, wrong ranges. */
	TRY(cuMemcpyDtoH(host, memory, 257));
	TRY(cuMemcpyHtoD(memory, host, 257));
	TRY(cuMemcpyHtoD(memory + 255, host, 2));
	TRY(cuMemcpyDtoD(memory, memory + 128, 129));
	TRY(cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)host, 4));
	TRY(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host, 4));
	TRY(cuMemcpyDtoD((CUdeviceptr)(uintptr_t)host, memory, 4));
	TRY(cuMemcpyDtoH(NULL, memory, 4));
	TRY(cuMemcpyHtoD(memory, NULL, 4));
	TRY(cuMemcpyHtoD(0, host, 4));
	TRY(cuMemsetD8(memory, 0, 257));
	TRY(cuMemsetD32(memory + 1, 0, 1));
	TRY(cuMemsetD32(0, 0, 1));
	TRY(cuMemsetD32(memory + 2, 0, 0));
	TRY(cuMemGetInfo(NULL, NULL));
	TRY(cuMemGetInfo(&size, NULL));
	TRY(cuMemsetD8Async(memory + 256, 0, 1, NULL));
	TRY(cuMemGetAddressRange(&p, &size, (CUdeviceptr)(uintptr_t)host));
	/* TRY prints the source text of the call, so its layout must not change */
	/* clang-format off */
	TRY(cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
	/* clang-format on */
	TRY(cuCtxSynchronize());
}

/* ---- contexts ---- */

static void contexts(void)
{
	CUcontext second, popped;
	CUstream stream;
	CUevent event;
	CUdeviceptr p;
	unsigned flags;
	size_t size;

	begin_with_code();
	CU(cuStreamCreate(&stream, 0));
	CU(cuEventCreate(&event, 0));
	CU(cuCtxCreate(&second, NULL, 0, device));
	/* Objects of the first context. */
	TRY(launch(add, 1, 0, NULL));
	TRY(cuMemsetD8Async(memory, 0, 4, stream));
	TRY(cuMemcpyHtoDAsync(memory, host, 4, stream));
	TRY(cuEventRecord(event, NULL));
	TRY(cuEventRecord(event, stream));
	TRY(cuStreamWaitEvent(NULL, event, 0));
	TRY(cuStreamWaitEvent(stream, event, 0));
	TRY(cuMemAllocAsync(&p, 16, stream));
	TRY(cuMemFreeAsync(p, stream));
	TRY(cuStreamSynchronize(stream));
	TRY(cuCtxSynchronize());
	CU(cuCtxDestroy(second));
	TRY(cuCtxDestroy(second));
	TRY(cuCtxSetCurrent(second));
	TRY(cuCtxPushCurrent(second));
	CU(cuCtxSetCurrent(context));
	CU(cuCtxCreate(&second, NULL, 0, device));
	CU(cuCtxDestroy(context));
	TRY(cuStreamSynchronize(stream));
	TRY(cuStreamDestroy(stream));
	TRY(cuEventQuery(event));
	TRY(launch(add, 1, 0, NULL));
	TRY(cuMemFree(memory));
	TRY(cuMemcpyDtoH(host, memory, 4));
	TRY(cuModuleUnload(module));
	TRY(cuCtxSynchronize());
	TRY(cuCtxPopCurrent(&popped));
	TRY(cuCtxDestroy(second));
	while (cuCtxPopCurrent(&popped) == CUDA_SUCCESS)
		;
	TRY(cuCtxPopCurrent(&popped));
	TRY(cuMemAlloc(&p, 4));
	TRY(cuStreamCreate(&stream, 0));
	TRY(cuCtxSynchronize());
	TRY(cuModuleLoadData(&module, GOOD));
	TRY(cuCtxGetFlags(&flags));
	TRY(cuMemGetInfo(&size, &size));
	TRY(cuDevicePrimaryCtxRelease(device));
	TRY(cuDeviceGet(&device, 1000));
	TRY(cuDevicePrimaryCtxRetain(&second, 1000));
}

/* ---- after a kernel has failed ---- */

static void after_a_failure(void)
{
	CUstream stream, more;
	CUevent event, recorded, fresh;
	CUmodule bad;
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUdeviceptr p;
	CUmemoryPool pool;
	void *pinned, *again;
	size_t size;
	int value;
	float ms;

	begin_with_code();
	CU(cuStreamCreate(&stream, 0));
	CU(cuEventCreate(&event, 0));
	CU(cuEventCreate(&recorded, 0));
	CU(cuEventRecord(recorded, stream));
	CU(cuMemHostAlloc(&pinned, 4096, 0));
	CU(cuLibraryLoadData(&library, ptx(GOOD), NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&kernel, library, "add"));
	CU(cuCtxSynchronize());
	CU(launch(fail, 1, 0, stream));
	TRY(cuStreamSynchronize(stream));
	TRY(cuStreamSynchronize(stream));
	TRY(cuCtxSynchronize());
	TRY(cuMemAlloc(&p, 4));
	TRY(cuMemAllocAsync(&p, 4, NULL));
	TRY(cuMemFree(memory));
	TRY(cuMemFreeAsync(memory, NULL));
	TRY(cuMemGetInfo(&size, &size));
	TRY(cuMemcpyDtoH(host, memory, 4));
	TRY(cuMemcpyHtoD(memory, host, 4));
	TRY(cuMemcpyDtoD(memory, memory + 128, 4));
	TRY(cuMemcpyHtoDAsync(memory, host, 4, stream));
	TRY(cuMemsetD8(memory, 0, 4));
	TRY(cuMemsetD32Async(memory, 0, 1, stream));
	TRY(cuMemHostAlloc(&again, 4096, 0));
	TRY(cuMemHostRegister(host, 4, 0));
	TRY(cuMemFreeHost(pinned));
	TRY(cuStreamCreate(&more, 0));
	TRY(cuStreamQuery(stream));
	TRY(cuStreamWaitEvent(stream, recorded, 0));
	TRY(cuEventCreate(&fresh, 0));
	TRY(cuEventRecord(event, stream));
	TRY(cuEventQuery(recorded));
	TRY(cuEventSynchronize(recorded));
	TRY(cuEventElapsedTime(&ms, recorded, recorded));
	TRY(cuModuleLoadData(&bad, GOOD));
	TRY(cuModuleGetFunction(&function, module, "add"));
	TRY(cuModuleGetGlobal(&p, &size, module, "word"));
	TRY(cuKernelGetFunction(&function, kernel));
	TRY(launch((CUfunction)kernel, 1, 0, NULL));
	TRY(launch(add, 1, 0, NULL));
	TRY(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, add));
	TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, add, 32, 0));
	TRY(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	TRY(cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE));
	TRY(cuDeviceGetDefaultMemPool(&pool, device));
	TRY(cuMemPoolTrimTo(pool, 0));
	TRY(cuStreamDestroy(stream));
	TRY(cuEventDestroy(event));
	TRY(cuModuleUnload(module));
	TRY(cuLibraryUnload(library));
	TRY(cuCtxSynchronize());
	TRY(cuCtxDestroy(context));
	TRY(cuCtxSynchronize());
}

/*
 * A failed kernel affects only its own context: the next context works, whether it is created or
 * the primary one after a reset.
 */
static void next_context(void)
{
	CUcontext primary;

	begin_with_code();
	CU(launch(fail, 1, 0, NULL));
	TRY(cuCtxSynchronize());
	TRY(cuMemFree(memory));
	TRY(cuCtxDestroy(context));
	begin_with_code();
	TRY(launch(add, 1, 0, NULL));
	TRY(cuCtxSynchronize());
	for (int i = 0; i < 2; i++) {
		CU(cuDevicePrimaryCtxRetain(&primary, device));
		CU(cuCtxSetCurrent(primary));
		CU(cuModuleLoadData(&module, GOOD));
		CU(cuModuleGetFunction(&add, module, "add"));
		CU(cuModuleGetFunction(&fail, module, "fail"));
		CU(cuMemAlloc(&memory, 256));
		TRY(launch(add, 1, 0, NULL));
		TRY(cuCtxSynchronize());
		TRY(launch(fail, 1, 0, NULL));
		TRY(cuCtxSynchronize());
		TRY(cuMemFree(memory));
		TRY(cuDevicePrimaryCtxReset(device));
	}
}

static const struct refused_group GROUPS[] = {
	{ "code, loaded at once", bad_code_at_once },
	{ "code, loaded at its first use", bad_code_at_first_use },
	{ "names", names },
	{ "launches", launches },
	{ "streams and events that are gone", gone_streams_events },
	{ "code that is gone", gone_code },
	{ "memory", wrong_memory },
	{ "contexts", contexts },
	{ "after a kernel has failed", after_a_failure },
	{ "in the next context", next_context },
};

int main(void)
{
	return refused_run("refused_calls", GROUPS, sizeof GROUPS / sizeof *GROUPS);
}
