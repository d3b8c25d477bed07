/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Host functions. Calls that synchronise implicitly wait for them, because they use the program's
 * memory. Calls inside a host function are refused, because a call that waits for the stream would
 * wait for its own caller.
 */
#include "sync_calls.h"
#include "../waiting.h"
#include <stdatomic.h>
#include <time.h>

/*
 * A call that does not wait must return within this time. A call that waits passes the test on a
 * machine of any speed.
 */
#define HOLD_MS 200

static const char SOURCE[] =
	".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";

static CUfunction nothing;

/* ---- calls that wait ---- */

static atomic_int returned;

static void slow(void *user)
{
	(void)user;
	let_pass(HOLD_MS * 1000, "a call that does not wait for this returns before it ends");
	atomic_store(&returned, 1);
}

static const struct row {
	const char *name;
	CUresult (*call)(void);
	int own; /* in a separate context, not the primary one */
} WAITING[] = {
	{ "cuMemFree", mem_free, 0 },
	{ "cuMemFreeHost", mem_free_host, 0 },
	{ "cuMemHostUnregister", host_unregister, 0 },
	{ "cuModuleUnload", module_unload, 0 },
	{ "cuLibraryUnload", library_unload, 0 },
	{ "cuCtxSynchronize", ctx_synchronize, 0 },
	{ "cuMemcpyHtoD of 1 MiB", htod_large, 0 },
	{ "cuMemcpyDtoH", dtoh, 0 },
	{ "cuCtxDestroy", ctx_destroy, 1 },
	{ "cuDevicePrimaryCtxReset", primary_reset, 0 },
	{ "the last cuDevicePrimaryCtxRelease", primary_release, 0 },
};

static void begin(int own)
{
	if (own) {
		CU(cuCtxCreate(&context, NULL, 0, device));
	} else {
		CU(cuDevicePrimaryCtxRetain(&context, device));
		CU(cuCtxSetCurrent(context));
	}
	CU(cuMemAlloc(&memory, LARGE));
	CU(cuMemHostAlloc(&pinned, PAGE, 0));
	aligned = aligned_alloc(PAGE, PAGE);
	pageable = calloc(1, LARGE);
	OK(aligned && pageable);
	CU(cuMemHostRegister(aligned, PAGE, 0));
	CU(cuStreamCreate(&stream, 0));
	CU(cuEventCreate(&event, 0));
	CU(cuModuleLoadData(&module, SOURCE));
	CU(cuModuleGetFunction(&nothing, module, "nothing"));
	CU(cuLibraryLoadData(&library, SOURCE, NULL, NULL, 0, NULL, NULL, 0));
	CU(cuCtxSynchronize());
}

static void end(void)
{
	while (cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS)
		;
	free(aligned);
	free(pageable);
}

static void waits(const struct row *row)
{
	CUresult status;

	begin(row->own);
	atomic_store(&returned, 0);
	CU(cuLaunchHostFunc(stream, slow, NULL));
	status = row->call();
	printf("%s -> %d, the function %s\n", row->name, (int)status,
		atomic_load(&returned) ? "has returned" : "was still running");
	end();
}

/* ---- calls in a host function ---- */

static void calls(void)
{
	const char *name = NULL;
	CUdeviceptr other;
	CUstream made;
	size_t bytes;
	int n;

	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuCtxSetCurrent(context));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuMemAlloc(&other, 4));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuMemFree(memory));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuMemFreeHost(pinned));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuMemGetInfo(&bytes, &bytes));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuMemcpyDtoH(pageable, memory, 4));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuMemcpyHtoD(memory, pageable, 4));
	EXPECT(CUDA_ERROR_NOT_PERMITTED,
		cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuLaunchHostFunc(stream, slow, NULL));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuStreamCreate(&made, 0));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuStreamQuery(stream));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuStreamSynchronize(stream));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuEventQuery(event));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuEventSynchronize(event));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuCtxSynchronize());
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuModuleUnload(module));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuDevicePrimaryCtxReset(device));
	EXPECT(CUDA_ERROR_NOT_PERMITTED, cuDeviceGetCount(&n));
	EXPECT(CUDA_SUCCESS, cuGetErrorName(CUDA_ERROR_NOT_PERMITTED, &name));
	OK(name && strcmp(name, "CUDA_ERROR_NOT_PERMITTED") == 0);
}

static void in_function(void *user)
{
	calls();
	++*(int *)user;
}

static void in_callback(CUstream of, CUresult status, void *user)
{
	OK(of == stream && status == CUDA_SUCCESS);
	calls();
	++*(int *)user;
}

static void refused(void)
{
	int ran = 0;

	begin(0);
	CU(cuLaunchHostFunc(stream, in_function, &ran));
	CU(cuStreamAddCallback(stream, in_callback, &ran, 0));
	CU(cuStreamSynchronize(stream));
	printf("%d functions have called\n", ran);
	/* The thread may make the calls again outside a host function. */
	CU(cuMemcpyHtoD(memory, pageable, PAGE));
	end();
}

int main(void)
{
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	for (size_t i = 0; i < sizeof(WAITING) / sizeof(WAITING[0]); i++)
		waits(&WAITING[i]);
	refused();
	return verdict("host_functions");
}
