/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Start, devices, contexts, stacks, context-local storage, fork. */
#include <pthread.h>

#include "front.h"

static const CUuuid storage_id = {
	"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93"
};
static const CUuuid interface_id = {
	"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9"
};

TEST(before_start)
{
	CUcontext ctx;
	const char *text;
	int n = 0;

	fake_attach(NULL, 0);
	CHECK_INT(obf_cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_INT(obf_cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_INT(obf_cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
	OK(obf_cuDriverGetVersion(&n));
	CHECK(n == 13000);
	OK(obf_cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text));
	CHECK(strcmp(text, "CUDA_ERROR_NOT_INITIALIZED") == 0);
	CHECK_INT(obf_cuInit(1), CUDA_ERROR_INVALID_VALUE);
	CHECK(fake.starts == 0 && obf_device_count() == 0 && !obf_initialised());
}

TEST(failed_start_is_remembered)
{
	int n;

	fake.start_result = CUDA_ERROR_NO_DEVICE;
	fake_attach(NULL, 0);
	CHECK_INT(obf_cuInit(0), CUDA_ERROR_NO_DEVICE);
	fake.start_result = CUDA_SUCCESS;
	CHECK_INT(obf_cuInit(0), CUDA_ERROR_NO_DEVICE);
	CHECK_INT(obf_cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	CHECK(fake.starts == 1);
}

TEST(no_devices)
{
	fake.n_devices = 0;
	fake_attach(NULL, 0);
	CHECK_INT(obf_cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST(devices)
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
	CHECK_INT(obf_cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
	CHECK_INT(obf_cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
	CHECK_INT(obf_cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
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
	CHECK_INT(obf_cuDeviceGetAttribute(&n, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuDeviceGetAttribute(&n, (CUdevice_attribute)OBF_DEVICE_ATTR_MAX, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(
		obf_cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
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
	CHECK_INT(obf_cuDeviceGetByPCIBusId(&device, "1a:03.0"), CUDA_ERROR_INVALID_DEVICE);
	CHECK_INT(obf_cuDeviceGetByPCIBusId(&device, "nothing"), CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuDeviceCanAccessPeer(&n, 0, 1));
	CHECK(n == 0);
	fake.alive_result = CUDA_ERROR_DEVICE_UNAVAILABLE;
	CHECK_INT(obf_cuDeviceGetCount(&n), CUDA_ERROR_DEVICE_UNAVAILABLE);
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* The way NVIDIA's runtime goes: a handle from its private table, made current, then retained. */
TEST(primary_context)
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
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	OK(obf_cuDevicePrimaryCtxRetain(&retained, 1));
	OK(obf_cuDevicePrimaryCtxRetain(&retained, 1));
	CHECK(retained == early && fake.creates == 1);
	OK(obf_cuDevicePrimaryCtxGetState(1, &flags, &active));
	CHECK(active == 1);
	OK(obf_cuCtxSynchronize());
	OK(obf_cuCtxGetId(NULL, &id));
	CHECK_INT(obf_cuCtxDestroy_v2(early), CUDA_ERROR_INVALID_CONTEXT);
	OK(obf_cuDevicePrimaryCtxRelease_v2(1));
	CHECK(fake.destroys == 0);
	OK(obf_cuDevicePrimaryCtxRelease_v2(1));
	CHECK(fake.destroys == 1);
	CHECK_INT(obf_cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(obf_cuCtxGetCurrent(&current));
	CHECK(current == early);
	OK(obf_cuDevicePrimaryCtxRetain(&retained, 1));
	OK(obf_cuCtxSynchronize());
	OK(obf_cuCtxGetId(NULL, &id_after));
	CHECK(id != id_after && fake.creates == 2);
	OK(obf_cuDevicePrimaryCtxReset_v2(1));
	CHECK(fake.destroys == 2);
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHECK_INT(obf_cuDevicePrimaryCtxRetain(&retained, 2), CUDA_ERROR_INVALID_DEVICE);
	CHECK_INT(obf_cuDevicePrimaryCtxSetFlags_v2(0, 3), CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC));
	OK(obf_cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(flags == CU_CTX_SCHED_BLOCKING_SYNC && active == 0);
	fake.create_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuDevicePrimaryCtxRetain(&retained, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(obf_cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(sticky_error)
{
	CUcontext current;
	struct obf_ctx *ctx;

	begin();
	OK(obf_ctx_enter(&ctx));
	CHECK(ctx == obf_ctx_primary(0) && ctx == obf_ctx_peek());
	ctx->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
	CHECK_INT(obf_ctx_enter(&ctx), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
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
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	OK(obf_cuCtxSetCurrent(handle));
	OK(obf_cuCtxDestroy_v2(handle));
	OK(obf_cuCtxGetCurrent(&ctx));
	CHECK(ctx == NULL);
	return NULL;
}

TEST(stacks)
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
	CHECK_INT(obf_cuCtxPopCurrent_v2(&got), CUDA_ERROR_INVALID_CONTEXT);
	OK(obf_cuCtxSetCurrent(NULL));
	CHECK_INT(obf_cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_INT(obf_cuCtxPushCurrent_v2((CUcontext)0x1234), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_INT(obf_cuCtxSetCurrent((CUcontext)0x1234), CUDA_ERROR_INVALID_CONTEXT);
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
	CHECK_INT(obf_cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_UNSUPPORTED_LIMIT);
	/* a is destroyed by another thread while it is current here, twice. */
	OK(pthread_create(&thread, NULL, still_current, a));
	OK(pthread_join(thread, NULL));
	CHECK(fake.destroys == 1);
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHECK_INT(obf_cuCtxSetCurrent(a), CUDA_ERROR_INVALID_CONTEXT);
	/* The object is used again; the old handle is not. */
	OK(obf_cuCtxPushCurrent_v2(b));
	OK(obf_cuCtxCreate_v3(&c, NULL, 0, 0, 0));
	CHECK(c != a);
	OK(obf_cuCtxPopCurrent_v2(&got));
	OK(obf_cuCtxPopCurrent_v2(&got));
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(obf_cuCtxDestroy_v2(c));
	CHECK_INT(obf_cuCtxDestroy_v2(c), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(stack_limit)
{
	CUcontext ctx = begin();

	for (int i = 1; i < 128; i++)
		OK(obf_cuCtxPushCurrent_v2(ctx));
	CHECK_INT(obf_cuCtxPushCurrent_v2(ctx), CUDA_ERROR_OUT_OF_MEMORY);
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

TEST(storage)
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
	CHECK_INT(table.get(&value, NULL, (void *)1), CUDA_ERROR_INVALID_HANDLE);
	for (uintptr_t i = 1; i < 40; i++) {
		values[i] = 1000 + (int)i;
		OK(table.put(i & 1 ? ctx : NULL, (void *)i, &values[i], storage_end));
	}
	for (uintptr_t i = 1; i < 40; i++) {
		OK(table.get(&value, NULL, (void *)i));
		CHECK(value == &values[i]);
	}
	OK(table.delete(ctx, (void *)7));
	CHECK_INT(table.delete(ctx, (void *)7), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(table.get(&value, ctx, (void *)7), CUDA_ERROR_INVALID_HANDLE);
	OK(table.put(ctx, (void *)8, &values[8], storage_end));
	CHECK(ended == 0);
	OK(obf_cuDevicePrimaryCtxReset_v2(0));
	CHECK(ended == 38);
	CHECK_INT(table.get(&value, ctx, (void *)9), CUDA_ERROR_INVALID_HANDLE);
	OK(obf_cuCtxSetCurrent(NULL));
	CHECK_INT(table.get(&value, NULL, (void *)9), CUDA_ERROR_INVALID_CONTEXT);
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

	CHECK_INT(obf_cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_INT(obf_cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_INT(obf_cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_INT(obf_cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
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

TEST(forks)
{
	fake.start_result = CUDA_ERROR_NO_DEVICE;
	fake_attach(NULL, 0);
	CHECK(child(child_of_failed) == 0);
	CHECK_INT(obf_cuInit(0), CUDA_ERROR_NO_DEVICE);
	CHECK(child(child_of_failed) == 0);
}

TEST(forks_started)
{
	fake_attach(NULL, 0);
	CHECK(child(child_of_fresh) == 0);
	begin();
	CHECK(child(child_of_started) == 0);
	OK(obf_cuCtxSynchronize());
}

TEST(small_questions)
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
	CHECK_INT(obf_cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuCtxEnablePeerAccess(ctx, 0), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_INT(obf_cuCtxEnablePeerAccess(obf_ctx_primary(1)->handle, 0),
		CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	OK(obf_cuProfilerStart());
}

/*
 * Calls that synchronise implicitly wait in the context that matters, do their work whatever comes
 * of it, and return what came of it.
 */
TEST(implicit_synchronisation)
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
	CHECK_INT(obf_cuMemFreeHost(pinned), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(obf_cuMemHostUnregister(page), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(obf_cuModuleUnload(module), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(obf_cuLibraryUnload(library), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(fake.settles == 4 && fake.unloads == 2 && fake.ranges == 0);
	CHECK(obf_ctx_peek()->handle == two);
	CHECK_INT(obf_cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	CHECK(fake.settles == 4);
	fake.destroy_result = CUDA_ERROR_LAUNCH_FAILED;
	CHECK_INT(obf_cuCtxDestroy_v2(two), CUDA_ERROR_LAUNCH_FAILED);
	CHECK_INT(obf_cuCtxDestroy_v2(two), CUDA_ERROR_INVALID_CONTEXT);
	OK(obf_cuCtxSetCurrent(one));
	CHECK_INT(obf_cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_LAUNCH_FAILED);
	OK(obf_cuDevicePrimaryCtxRetain(&one, 0));
	CHECK_INT(obf_cuDevicePrimaryCtxReset_v2(0), CUDA_ERROR_LAUNCH_FAILED);
	CHECK(fake.destroys == 3);
}

static CUmodule left_module;

static void unload_at_exit(void)
{
	/* The driver's handlers have run: nothing waits any more. */
	OK(obf_cuModuleUnload(left_module));
	CHECK(fake.settles == 0);
}

TEST(exit_waits_for_nothing)
{
	atexit(unload_at_exit);
	begin();
	OK(obf_cuModuleLoadData(&left_module, ptx_text));
	fake.settle_result = CUDA_ERROR_ILLEGAL_ADDRESS;
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
