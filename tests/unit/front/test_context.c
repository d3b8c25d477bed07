/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Start, devices, contexts, stacks, context-local storage, fork. */
#include <pthread.h>

#include "harness.h"

static const CUuuid storage_id = {
	"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93"
};
static const CUuuid interface_id = {
	"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9"
};

static void before_start(void)
{
	CUcontext ctx;
	const char *text;
	int n = 0;

	fake_attach(NULL, 0);
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuDeviceGetCount(&n));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuCtxGetCurrent(&ctx));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuDevicePrimaryCtxRetain(&ctx, 0));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuCtxSynchronize());
	OK(obf_cuDriverGetVersion(&n));
	CHECK(n == 13000);
	OK(obf_cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text));
	CHECK(strcmp(text, "CUDA_ERROR_NOT_INITIALIZED") == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuInit(1));
	CHECK(fake.starts == 0 && obf_device_count() == 0 && !obf_initialised());
}

static void failed_start_is_remembered(void)
{
	int n;

	fake.start_result = CUDA_ERROR_NO_DEVICE;
	fake_attach(NULL, 0);
	GIVES(CUDA_ERROR_NO_DEVICE, obf_cuInit(0));
	fake.start_result = CUDA_SUCCESS;
	GIVES(CUDA_ERROR_NO_DEVICE, obf_cuInit(0));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuDeviceGetCount(&n));
	CHECK(fake.starts == 1);
}

static void no_devices(void)
{
	fake.n_devices = 0;
	fake_attach(NULL, 0);
	GIVES(CUDA_ERROR_NO_DEVICE, obf_cuInit(0));
}

static void devices(void)
{
	CUdevice device = -1;
	CUuuid uuid;
	CUdevprop prop;
	char text[32];
	size_t bytes;
	int n = 0, major, minor;

	begin();
	OK(obf_cuInit(0));
	CHECK(fake.starts == 1);
	OK(obf_cuDeviceGetCount(&n));
	CHECK(n == 2);
	GIVES(CUDA_ERROR_INVALID_DEVICE, obf_cuDeviceGet(&device, 2));
	GIVES(CUDA_ERROR_INVALID_DEVICE, obf_cuDeviceGet(&device, -1));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuDeviceGet(NULL, 0));
	OK(obf_cuDeviceGet(&device, 1));
	CHECK(device == 1);
	OK(obf_cuDeviceGetName(text, sizeof text, 1));
	CHECK(strcmp(text, "Fake device 1") == 0);
	OK(obf_cuDeviceGetName(text, 5, 1));
	CHECK(strcmp(text, "Fake") == 0);
	OK(obf_cuDeviceGetUuid_v2(&uuid, 1));
	CHECK(uuid.bytes[3] == 19);
	OK(obf_cuDeviceTotalMem_v2(&bytes, 0));
	CHECK(bytes == 1ull << 34);
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuDeviceGetAttribute(&n, (CUdevice_attribute)0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE,
		obf_cuDeviceGetAttribute(&n, (CUdevice_attribute)OBF_DEVICE_ATTR_MAX, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MAX, 0));
	OK(obf_cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	CHECK(n == 132);
	OK(obf_cuDeviceComputeCapability(&major, &minor, 0));
	CHECK(major == 9 && minor == 0);
	OK(obf_cuDeviceGetProperties(&prop, 0));
	CHECK(prop.maxThreadsDim[2] == 64 && prop.regsPerBlock == 65536);
	OK(obf_cuDeviceGetPCIBusId(text, sizeof text, 1));
	CHECK(strcmp(text, "0001:1b:03.0") == 0);
	OK(obf_cuDeviceGetByPCIBusId(&device, text));
	CHECK(device == 1);
	OK(obf_cuDeviceGetByPCIBusId(&device, "1:1a:3"));
	CHECK(device == 0);
	GIVES(CUDA_ERROR_INVALID_DEVICE, obf_cuDeviceGetByPCIBusId(&device, "1a:03.0"));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuDeviceGetByPCIBusId(&device, "nothing"));
	OK(obf_cuDeviceCanAccessPeer(&n, 0, 1));
	CHECK(n == 0);
	fake.alive_result = CUDA_ERROR_DEVICE_UNAVAILABLE;
	GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, obf_cuDeviceGetCount(&n));
	GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, obf_cuCtxSynchronize());
}

/* The way NVIDIA's runtime goes: a handle from its private table, made current, then retained. */
static void primary_context(void)
{
	CUresult (*primary)(CUcontext *, CUdevice);
	const void *table;
	CUcontext early, retained, current;
	unsigned flags;
	unsigned long long id, id_after;
	int active = -1;

	fake_attach(NULL, 0);
	OK(obf_cuInit(0));
	OK(obf_cuGetExportTable(&table, &interface_id));
	memcpy(&primary, (const char *)table + 2 * sizeof(void *), sizeof primary);
	OK(primary(&early, 1));
	CHECK((uint64_t)(uintptr_t)early == OBF_CTX_PRIMARY_ID(1));
	OK(obf_cuDevicePrimaryCtxGetState(1, &flags, &active));
	CHECK(active == 0 && flags == 0 && fake.creates == 0);
	OK(obf_cuCtxSetCurrent(early));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxSynchronize());
	OK(obf_cuDevicePrimaryCtxRetain(&retained, 1));
	OK(obf_cuDevicePrimaryCtxRetain(&retained, 1));
	CHECK(retained == early && fake.creates == 1);
	OK(obf_cuDevicePrimaryCtxGetState(1, &flags, &active));
	CHECK(active == 1);
	OK(obf_cuCtxSynchronize());
	OK(obf_cuCtxGetId(NULL, &id));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxDestroy_v2(early));
	OK(obf_cuDevicePrimaryCtxRelease_v2(1));
	CHECK(fake.destroys == 0);
	OK(obf_cuDevicePrimaryCtxRelease_v2(1));
	CHECK(fake.destroys == 1);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuDevicePrimaryCtxRelease_v2(1));
	GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, obf_cuCtxSynchronize());
	OK(obf_cuCtxGetCurrent(&current));
	CHECK(current == early);
	OK(obf_cuDevicePrimaryCtxRetain(&retained, 1));
	OK(obf_cuCtxSynchronize());
	OK(obf_cuCtxGetId(NULL, &id_after));
	CHECK(id != id_after && fake.creates == 2);
	OK(obf_cuDevicePrimaryCtxReset_v2(1));
	CHECK(fake.destroys == 2);
	GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, obf_cuCtxSynchronize());
	GIVES(CUDA_ERROR_INVALID_DEVICE, obf_cuDevicePrimaryCtxRetain(&retained, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuDevicePrimaryCtxSetFlags_v2(0, 3));
	OK(obf_cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC));
	OK(obf_cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(flags == CU_CTX_SCHED_BLOCKING_SYNC && active == 0);
	fake.create_result = CUDA_ERROR_OUT_OF_MEMORY;
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, obf_cuDevicePrimaryCtxRetain(&retained, 0));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuDevicePrimaryCtxRelease_v2(0));
}

static void sticky_error(void)
{
	CUcontext current;
	struct obf_ctx *ctx;

	begin();
	OK(obf_ctx_enter(&ctx));
	CHECK(ctx == obf_ctx_primary(0) && ctx == obf_ctx_peek());
	ctx->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, obf_ctx_enter(&ctx));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, obf_cuCtxSynchronize());
	OK(obf_cuCtxGetCurrent(&current));
	OK(obf_cuDevicePrimaryCtxReset_v2(0));
	OK(obf_cuDevicePrimaryCtxRetain(&current, 0));
	OK(obf_cuCtxSynchronize());
}

static void *still_current(void *handle)
{
	CUcontext ctx;

	OK(obf_cuCtxGetCurrent(&ctx));
	CHECK(ctx == NULL);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxSynchronize());
	OK(obf_cuCtxSetCurrent(handle));
	OK(obf_cuCtxDestroy_v2(handle));
	OK(obf_cuCtxGetCurrent(&ctx));
	CHECK(ctx == NULL);
	return NULL;
}

static void stacks(void)
{
	CUcontext primary = begin(), a, b, c, got;
	CUdevice device;
	pthread_t thread;
	size_t value;

	OK(obf_cuCtxCreate_v2(&a, CU_CTX_SCHED_SPIN, 1));
	OK(obf_cuCtxCreate_v4(&b, NULL, 0, 0));
	CHECK(a != b && fake.creates == 3);
	OK(obf_cuCtxGetCurrent(&got));
	CHECK(got == b);
	OK(obf_cuCtxGetDevice(&device));
	CHECK(device == 0);
	OK(obf_cuCtxGetDevice_v2(&device, a));
	CHECK(device == 1);
	OK(obf_cuCtxPopCurrent_v2(&got));
	CHECK(got == b);
	OK(obf_cuCtxPopCurrent_v2(&got));
	CHECK(got == a);
	OK(obf_cuCtxPopCurrent_v2(&got));
	CHECK(got == primary);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxPopCurrent_v2(&got));
	OK(obf_cuCtxSetCurrent(NULL));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxGetDevice(&device));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxPushCurrent_v2((CUcontext)0x1234));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxSetCurrent((CUcontext)0x1234));
	OK(obf_cuCtxPushCurrent_v2(a));
	OK(obf_cuCtxPushCurrent_v2(b));
	OK(obf_cuCtxSetCurrent(a));
	OK(obf_cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	CHECK(value == 1024 && fake.limits == 1);
	OK(obf_cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	CHECK(fake.limits == 1);
	OK(obf_cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	OK(obf_cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	CHECK(value == 4096 && fake.limits == 3);
	GIVES(CUDA_ERROR_UNSUPPORTED_LIMIT, obf_cuCtxGetLimit(&value, CU_LIMIT_MAX));
	/* a is destroyed by another thread while it is current here, twice. */
	OK(pthread_create(&thread, NULL, still_current, a));
	OK(pthread_join(thread, NULL));
	CHECK(fake.destroys == 1);
	GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, obf_cuCtxSynchronize());
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxSetCurrent(a));
	/* The object is used again; the old handle is not. */
	OK(obf_cuCtxPushCurrent_v2(b));
	OK(obf_cuCtxCreate_v3(&c, NULL, 0, 0, 0));
	CHECK(c != a);
	OK(obf_cuCtxPopCurrent_v2(&got));
	OK(obf_cuCtxPopCurrent_v2(&got));
	GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, obf_cuCtxSynchronize());
	OK(obf_cuCtxDestroy_v2(c));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxDestroy_v2(c));
}

static void stack_limit(void)
{
	CUcontext ctx = begin();

	for (int i = 1; i < 128; i++)
		OK(obf_cuCtxPushCurrent_v2(ctx));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, obf_cuCtxPushCurrent_v2(ctx));
	OK(obf_cuCtxSynchronize());
}

static int ended;

static void storage_end(CUcontext ctx, void *key, void *value)
{
	CUdevice device;

	CHECK(ctx == obf_ctx_primary(0)->handle && *(int *)value == 1000 + (int)(uintptr_t)key);
	OK(obf_cuCtxGetDevice(&device)); /* a destructor may call the driver */
	ended++;
}

static void storage(void)
{
	static int values[40];
	struct {
		CUresult (*put)(CUcontext, void *, void *, void (*)(CUcontext, void *, void *));
		CUresult (*delete)(CUcontext, void *);
		CUresult (*get)(void **, CUcontext, void *);
		void *end;
	} table;
	const void *words;
	CUcontext ctx = begin();
	void *value = NULL;

	OK(obf_cuGetExportTable(&words, &storage_id));
	memcpy(&table, words, sizeof table);
	CHECK(table.end == NULL);
	GIVES(CUDA_ERROR_INVALID_HANDLE, table.get(&value, NULL, (void *)1));
	for (uintptr_t i = 1; i < 40; i++) {
		values[i] = 1000 + (int)i;
		OK(table.put(i & 1 ? ctx : NULL, (void *)i, &values[i], storage_end));
	}
	for (uintptr_t i = 1; i < 40; i++) {
		OK(table.get(&value, NULL, (void *)i));
		CHECK(value == &values[i]);
	}
	OK(table.delete(ctx, (void *)7));
	GIVES(CUDA_ERROR_INVALID_HANDLE, table.delete(ctx, (void *)7));
	GIVES(CUDA_ERROR_INVALID_HANDLE, table.get(&value, ctx, (void *)7));
	OK(table.put(ctx, (void *)8, &values[8], storage_end));
	CHECK(ended == 0);
	OK(obf_cuDevicePrimaryCtxReset_v2(0));
	CHECK(ended == 38);
	GIVES(CUDA_ERROR_INVALID_HANDLE, table.get(&value, ctx, (void *)9));
	OK(obf_cuCtxSetCurrent(NULL));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, table.get(&value, NULL, (void *)9));
}

static int child(void (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		run();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

static void child_of_started(void)
{
	CUcontext ctx;
	int n;

	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuInit(0));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuDeviceGetCount(&n));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuCtxGetCurrent(&ctx));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuCtxSynchronize());
	OK(obf_cuDriverGetVersion(&n));
	CHECK(obf_initialised() && obf_device_count() == 0);
}

static void child_of_fresh(void)
{
	begin();
	OK(obf_cuCtxSynchronize());
}

static void child_of_failed(void)
{
	fake.start_result = CUDA_SUCCESS;
	begin();
}

static void forks(void)
{
	fake.start_result = CUDA_ERROR_NO_DEVICE;
	fake_attach(NULL, 0);
	CHECK(child(child_of_failed) == 0);
	GIVES(CUDA_ERROR_NO_DEVICE, obf_cuInit(0));
	CHECK(child(child_of_failed) == 0);
}

static void forks_started(void)
{
	fake_attach(NULL, 0);
	CHECK(child(child_of_fresh) == 0);
	begin();
	CHECK(child(child_of_started) == 0);
	OK(obf_cuCtxSynchronize());
}

static void small_questions(void)
{
	CUcontext ctx = begin();
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUexecAffinityParam affinity;
	CUfunc_cache cache;
	CUsharedconfig banks;
	unsigned version, flags;
	int least, greatest;

	OK(obf_cuCtxGetStreamPriorityRange(&least, &greatest));
	CHECK(least == 0 && greatest == -5);
	OK(obf_cuCtxGetStreamPriorityRange(NULL, NULL));
	OK(obf_cuCtxGetApiVersion(ctx, &version));
	OK(obf_cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
	OK(obf_cuCtxGetCacheConfig(&cache));
	CHECK(cache == CU_FUNC_CACHE_PREFER_L1);
	OK(obf_cuCtxGetSharedMemConfig(&banks));
	CHECK(banks == CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
	OK(obf_cuCtxSetFlags(CU_CTX_SCHED_YIELD));
	OK(obf_cuCtxGetFlags(&flags));
	CHECK(flags == CU_CTX_SCHED_YIELD);
	OK(obf_cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
	CHECK(affinity.param.smCount.val == 132);
	OK(obf_cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(obf_cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	mode = (CUstreamCaptureMode)3;
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuThreadExchangeStreamCaptureMode(&mode));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxEnablePeerAccess(ctx, 0));
	GIVES(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
		obf_cuCtxEnablePeerAccess(obf_ctx_primary(1)->handle, 0));
	OK(obf_cuProfilerStart());
}

/*
 * Calls that synchronise implicitly wait in the context that matters, do their work whatever comes
 * of it, and return what came of it.
 */
static void implicit_synchronisation(void)
{
	CUcontext one = begin(), two;
	static char page[4096];
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUmodule module;
	void *pinned;

	OK(obf_cuMemHostAlloc(&pinned, 4096, 0));
	OK(obf_cuMemHostRegister_v2(page, sizeof page, 0));
	OK(obf_cuModuleLoadData(&module, ptx_text));
	OK(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	OK(obf_cuLibraryGetKernel(&kernel, library, "first"));
	OK(obf_cuKernelGetFunction(&function, kernel));
	OK(obf_cuCtxCreate_v2(&two, 0, 1));
	CHECK(fake.settles == 0);
	fake.settle_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	/* All belong to the first context; the second is current and stays it. */
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, obf_cuMemFreeHost(pinned));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, obf_cuMemHostUnregister(page));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, obf_cuModuleUnload(module));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, obf_cuLibraryUnload(library));
	CHECK(fake.settles == 4 && fake.unloads == 2 && fake.ranges == 0);
	CHECK(obf_ctx_peek()->handle == two);
	GIVES(CUDA_ERROR_INVALID_VALUE, obf_cuMemFreeHost(pinned));
	GIVES(CUDA_ERROR_INVALID_HANDLE, obf_cuModuleUnload(module));
	CHECK(fake.settles == 4);
	fake.destroy_result = CUDA_ERROR_LAUNCH_FAILED;
	GIVES(CUDA_ERROR_LAUNCH_FAILED, obf_cuCtxDestroy_v2(two));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, obf_cuCtxDestroy_v2(two));
	OK(obf_cuCtxSetCurrent(one));
	GIVES(CUDA_ERROR_LAUNCH_FAILED, obf_cuDevicePrimaryCtxRelease_v2(0));
	OK(obf_cuDevicePrimaryCtxRetain(&one, 0));
	GIVES(CUDA_ERROR_LAUNCH_FAILED, obf_cuDevicePrimaryCtxReset_v2(0));
	CHECK(fake.destroys == 3);
}

static CUmodule left_module;

static void unload_at_exit(void)
{
	/* The driver's handlers have run: nothing waits any more. */
	OK(obf_cuModuleUnload(left_module));
	CHECK(fake.settles == 0);
}

static void exit_waits_for_nothing(void)
{
	atexit(unload_at_exit);
	begin();
	OK(obf_cuModuleLoadData(&left_module, ptx_text));
	fake.settle_result = CUDA_ERROR_ILLEGAL_ADDRESS;
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(before_start),
		CASE(failed_start_is_remembered),
		CASE(no_devices),
		CASE(devices),
		CASE(primary_context),
		CASE(sticky_error),
		CASE(stacks),
		CASE(stack_limit),
		CASE(storage),
		CASE(forks),
		CASE(forks_started),
		CASE(small_questions),
		CASE(implicit_synchronisation),
		CASE(exit_waits_for_nothing),
	};

	return RUN(cases);
}
