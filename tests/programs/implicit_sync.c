/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tests which calls wait for running kernels. Each row of WAITING runs in a separate process after
 * the launch of a kernel that fails: the call itself must return the kernel's error. Each row of
 * NOT_WAITING runs after the launch of a kernel that spins until a later memset in another stream
 * sets its flag. If the call waits, the kernel gives up, and its result shows that the flag was not
 * set.
 */
#include "sync_calls.h"
#include <sys/wait.h>

static const char SOURCE[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry fail()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, 16;\nst.global.u32 [%rd1], "
	"1;\nret;\n}\n"
	".visible .entry endless()\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, 0;\nround:\nadd.u32 %r1, "
	"%r1, 1;\nbra round;\n}\n"
	/* flag[0]: stop; flag[1]: 1: stopped by the flag, 2: gave up waiting */
	".visible .entry spin(.param .u64 p)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<4>;\n.reg .b64 "
	"%rd<3>;\n"
	"ld.param.u64 %rd1, [p];\nmov.u32 %r1, 0;\nmov.u32 %r3, 1;\n"
	"again:\nld.volatile.global.u32 %r2, [%rd1];\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra done;\n"
	"add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 200000000;\n@%p2 bra again;\nmov.u32 %r3, 2;\n"
	"done:\nst.global.u32 [%rd1+4], %r3;\nret;\n}\n";

static CUcontext other;
static CUmodule kernels;
static CUfunction fail, spin;
static CUdeviceptr memory2, flag;
static CUstream free_stream;
static CUmemoryPool pool;
static int result_is_int;

/* ---- calls that wait ---- */

static CUresult mem_free_pooled(void)
{
	return cuMemFree(memory2);
}
static CUresult stream_synchronize(void)
{
	return cuStreamSynchronize(NULL);
}
static CUresult event_synchronize(void)
{
	return cuEventSynchronize(event);
}
static CUresult dtoh_async(void)
{
	return cuMemcpyDtoHAsync(pageable, memory, PAGE, NULL);
}
static CUresult dtoh_pinned(void)
{
	return cuMemcpyDtoH(pinned, memory, PAGE);
}
static CUresult htod_pinned(void)
{
	return cuMemcpyHtoD(memory, pinned, LARGE);
}
static CUresult unified_up(void)
{
	return cuMemcpy(memory, (CUdeviceptr)(uintptr_t)pageable, LARGE);
}
static CUresult unified_down(void)
{
	return cuMemcpy((CUdeviceptr)(uintptr_t)pageable, memory, PAGE);
}

static CUDA_MEMCPY2D rows(int up)
{
	CUDA_MEMCPY2D c = {
		.WidthInBytes = 1024, .Height = 512, .srcPitch = 2048, .dstPitch = 2048
	};

	c.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	c.srcHost = c.dstHost = pageable;
	c.srcDevice = c.dstDevice = memory;
	return c;
}

static CUresult rows_up(void)
{
	CUDA_MEMCPY2D c = rows(1);
	return cuMemcpy2D(&c);
}
static CUresult rows_down(void)
{
	CUDA_MEMCPY2D c = rows(0);
	return cuMemcpy2D(&c);
}

static CUresult box(int up)
{
	CUDA_MEMCPY3D c = { .WidthInBytes = 1024,
		.Height = 64,
		.Depth = 8,
		.srcPitch = 1024,
		.dstPitch = 1024,
		.srcHeight = 64,
		.dstHeight = 64 };

	c.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	c.srcHost = c.dstHost = pageable;
	c.srcDevice = c.dstDevice = memory;
	return cuMemcpy3D(&c);
}

static CUresult box_up(void)
{
	return box(1);
}
static CUresult box_down(void)
{
	return box(0);
}

/* Another context is current. */
static CUresult free_from_other(void)
{
	CU(cuCtxPushCurrent(other));
	return cuMemFree(memory);
}

enum { OWN, PRIMARY };
struct row {
	const char *name;
	CUresult (*call)(void);
	int where;
};

static const struct row WAITING[] = {
	{ "cuMemFree", mem_free, OWN },
	{ "cuMemFree of memory of a pool", mem_free_pooled, OWN },
	{ "cuMemFree with another context current", free_from_other, OWN },
	{ "cuMemFreeHost", mem_free_host, OWN },
	{ "cuMemHostUnregister", host_unregister, OWN },
	{ "cuModuleUnload", module_unload, OWN },
	{ "cuLibraryUnload", library_unload, OWN },
	{ "cuCtxSynchronize", ctx_synchronize, OWN },
	{ "cuStreamSynchronize", stream_synchronize, OWN },
	{ "cuEventSynchronize", event_synchronize, OWN },
	{ "cuMemcpyDtoH", dtoh, OWN },
	{ "cuMemcpyDtoH to pinned memory", dtoh_pinned, OWN },
	{ "cuMemcpyDtoHAsync to pageable memory", dtoh_async, OWN },
	{ "cuMemcpyHtoD of 1 MiB", htod_large, OWN },
	{ "cuMemcpyHtoD of 1 MiB of pinned memory", htod_pinned, OWN },
	{ "cuMemcpy of 1 MiB to the device", unified_up, OWN },
	{ "cuMemcpy from the device", unified_down, OWN },
	{ "cuMemcpy2D of 512 KiB to the device", rows_up, OWN },
	{ "cuMemcpy2D from the device", rows_down, OWN },
	{ "cuMemcpy3D of 512 KiB to the device", box_up, OWN },
	{ "cuMemcpy3D from the device", box_down, OWN },
	{ "cuCtxDestroy", ctx_destroy, OWN },
	{ "cuDevicePrimaryCtxReset", primary_reset, PRIMARY },
	{ "cuDevicePrimaryCtxRelease", primary_release, PRIMARY },
};

/* ---- calls that do not wait ---- */

static CUresult mem_alloc(void)
{
	return cuMemAlloc(&memory2, LARGE);
}
static CUresult host_alloc(void)
{
	return cuMemHostAlloc(&pinned, LARGE, 0);
}
static CUresult host_register(void)
{
	CU(cuMemHostRegister(pageable, PAGE, 0));
	return CUDA_SUCCESS;
}
static CUresult stream_create(void)
{
	return cuStreamCreate(&free_stream, 0);
}
static CUresult stream_destroy(void)
{
	return cuStreamDestroy(stream);
}
static CUresult stream_query(void)
{
	return cuStreamQuery(stream);
}
static CUresult event_create(void)
{
	return cuEventCreate(&event, 0);
}
static CUresult event_record(void)
{
	return cuEventRecord(event, NULL);
}
static CUresult event_destroy(void)
{
	return cuEventDestroy(event);
}
static CUresult event_query(void)
{
	CU(cuEventRecord(event, stream));
	return cuEventQuery(event);
}
static CUresult stream_wait_event(void)
{
	CU(cuEventRecord(event, stream));
	return cuStreamWaitEvent(NULL, event, 0);
}
static CUresult memset8(void)
{
	return cuMemsetD8(memory, 1, LARGE);
}
static CUresult dtod(void)
{
	return cuMemcpyDtoD(memory, memory + LARGE / 2, PAGE);
}
static CUresult htod_small(void)
{
	return cuMemcpyHtoD(memory, pageable, 65536);
}
static CUresult free_async(void)
{
	return cuMemFreeAsync(memory2, stream);
}
static CUresult pool_trim(void)
{
	return cuMemPoolTrimTo(pool, 0);
}
static CUresult pool_destroy(void)
{
	return cuMemPoolDestroy(pool);
}
static CUresult module_function(void)
{
	return cuModuleGetFunction(&fail, kernels, "fail");
}
static CUresult function_attribute(void)
{
	return cuFuncGetAttribute(&result_is_int, CU_FUNC_ATTRIBUTE_NUM_REGS, fail);
}
static CUresult context_create(void)
{
	CUcontext more;
	return cuCtxCreate(&more, NULL, 0, device);
}

static const struct row NOT_WAITING[] = {
	{ "cuMemAlloc", mem_alloc, OWN },
	{ "cuMemHostAlloc", host_alloc, OWN },
	{ "cuMemHostRegister", host_register, OWN },
	{ "cuStreamCreate", stream_create, OWN },
	{ "cuStreamDestroy", stream_destroy, OWN },
	{ "cuStreamQuery", stream_query, OWN },
	{ "cuStreamWaitEvent", stream_wait_event, OWN },
	{ "cuEventCreate", event_create, OWN },
	{ "cuEventRecord", event_record, OWN },
	{ "cuEventQuery", event_query, OWN },
	{ "cuEventDestroy", event_destroy, OWN },
	{ "cuMemsetD8", memset8, OWN },
	{ "cuMemcpyDtoD", dtod, OWN },
	{ "cuMemcpyHtoD of 64 KiB", htod_small, OWN },
	{ "cuMemFreeAsync", free_async, OWN },
	{ "cuMemPoolTrimTo", pool_trim, OWN },
	{ "cuMemPoolDestroy", pool_destroy, OWN },
	{ "cuModuleGetFunction", module_function, OWN },
	{ "cuFuncGetAttribute", function_attribute, OWN },
	{ "cuCtxCreate", context_create, OWN },
};

/* ---- processes ---- */

static void begin(int where)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&other, NULL, 0, device));
	if (where == PRIMARY) {
		CU(cuDevicePrimaryCtxRetain(&context, device));
		CU(cuCtxSetCurrent(context));
	} else {
		CU(cuCtxCreate(&context, NULL, 0, device));
	}
	CU(cuModuleLoadData(&kernels, SOURCE));
	CU(cuModuleLoadData(&module, SOURCE));
	CU(cuLibraryLoadData(&library, SOURCE, NULL, NULL, 0, NULL, NULL, 0));
	CU(cuModuleGetFunction(&fail, kernels, "fail"));
	CU(cuModuleGetFunction(&spin, kernels, "spin"));
	CU(cuMemAlloc(&memory, LARGE));
	CU(cuMemAlloc(&flag, 8));
	CU(cuMemsetD32(flag, 0, 2));
	CU(cuMemHostAlloc(&pinned, LARGE, 0));
	pageable = calloc(1, LARGE);
	aligned = aligned_alloc(PAGE, PAGE);
	OK(pageable && aligned);
	CU(cuMemHostRegister(aligned, PAGE, 0));
	CU(cuStreamCreate(&stream, 0));
	CU(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
	CU(cuEventCreate(&event, 0));
	CU(cuMemPoolCreate(&pool, &props));
	CU(cuMemAllocAsync(&memory2, 256, stream));
	CU(cuCtxSynchronize());
}

static int waits(const struct row *row)
{
	begin(row->where);
	CU(cuLaunchKernel(fail, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	/*
	 * The kernel may fail before the record: then the record returns the error, which is also
	 * correct.
	 */
	if (row->call == event_synchronize && cuEventRecord(event, NULL) != CUDA_SUCCESS)
		printf("%s -> 700\n", row->name);
	else
		printf("%s -> %d\n", row->name, (int)row->call());
	fflush(stdout);
	return 0;
}

static int does_not_wait(const struct row *row)
{
	void *args[] = { &flag };
	unsigned left[2] = { 0, 0 };
	CUresult status;

	begin(row->where);
	CU(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
	status = row->call();
	CU(cuCtxSetCurrent(context));
	CU(cuMemsetD32Async(flag, 1, 1, free_stream));
	CU(cuCtxSynchronize());
	CU(cuMemcpyDtoH(left, flag, sizeof(left)));
	printf("%s -> %d, %s\n", row->name, (int)status, left[1] == 1 ? "at once" : "after a wait");
	fflush(stdout);
	return 0;
}

static void unload_at_exit(void)
{
	cuModuleUnload(module);
	cuLibraryUnload(library);
}

/*
 * After the driver's exit handlers have run, no call may wait, including the calls by which the
 * runtime's handlers unload modules.
 */
static int ends_while_a_kernel_runs(const struct row *row)
{
	CUfunction endless;

	atexit(unload_at_exit);
	begin(row->where);
	CU(cuModuleGetFunction(&endless, kernels, "endless"));
	CU(cuLaunchKernel(endless, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	puts(row->name);
	exit(0);
}

static const struct row ENDING[] = { { "a process ends while a kernel runs", NULL, OWN } };

static void each(const struct row *rows, size_t n, int (*child)(const struct row *row))
{
	for (size_t i = 0; i < n; i++) {
		int status = -1;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0)
			_exit(child(&rows[i]));
		OK(pid > 0 && waitpid(pid, &status, 0) == pid);
		OK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

int main(void)
{
	each(WAITING, sizeof(WAITING) / sizeof(WAITING[0]), waits);
	each(NOT_WAITING, sizeof(NOT_WAITING) / sizeof(NOT_WAITING[0]), does_not_wait);
	each(ENDING, 1, ends_while_a_kernel_runs);
	return verdict("implicit_sync");
}
