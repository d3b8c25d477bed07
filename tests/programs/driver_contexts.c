/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Contexts: primary and created ones, the stack of each thread, ownership of objects, and calls
 * without a context.
 */
#include "driver.h"
#include <pthread.h>

#define MANY 200 /* on a GPU: a fifth, each takes half a second there */

static CUcontext shared_context;

static void *other_thread(void *argument)
{
	CUcontext current = (CUcontext)1;
	CUdeviceptr p;

	(void)argument;
	/* A new thread has no current context. */
	CU(cuCtxGetCurrent(&current));
	OK(current == NULL);
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 16));
	CU(cuCtxSetCurrent(shared_context));
	CU(cuMemAlloc(&p, 16));
	CU(cuMemFree(p));
	return NULL;
}

/*
 * More contexts at a time than a thread may push. All their resources must be freed when they are
 * destroyed.
 */
static void many_contexts(CUdevice device)
{
	static CUcontext contexts[MANY];
	CUcontext popped, last;
	CUdeviceptr p;
	char name[64];
	int n;

	CU(cuDeviceGetName(name, sizeof name, device));
	n = strstr(name, "software device") ? MANY : MANY / 5;
	for (int i = 0; i < n; i++) {
		CU(cuCtxCreate(&contexts[i], NULL, 0, device));
		CU(cuCtxPopCurrent(&popped));
		OK(popped == contexts[i]);
	}
	for (int i = 0; i < n; i++)
		CU(cuCtxDestroy(contexts[i]));
	CU(cuCtxCreate(&last, NULL, 0, device));
	CU(cuMemAlloc(&p, 16));
	CU(cuMemsetD8(p, 1, 16));
	CU(cuCtxSynchronize());
	CU(cuCtxDestroy(last));
}

int main(void)
{
	CUdevice device, got_device = -1;
	CUcontext primary, again, own, second, current, popped;
	CUdeviceptr a, b;
	unsigned flags = 99, version = 0;
	int active = 99, value = 0;
	pthread_t thread;

	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&device, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuInit(1));
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxGetCurrent(&current));
	OK(current == NULL);
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&a, 16));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	CU(cuDevicePrimaryCtxGetState(device, &flags, &active));
	OK(active == 0);
	CU(cuDevicePrimaryCtxRetain(&primary, device));
	CU(cuDevicePrimaryCtxRetain(&again, device));
	OK(primary == again && primary != NULL);
	CU(cuDevicePrimaryCtxGetState(device, &flags, &active));
	OK(active == 1);
	CU(cuCtxGetCurrent(&current));
	OK(current == NULL);
	CU(cuCtxSetCurrent(primary));
	CU(cuCtxGetDevice(&got_device));
	OK(got_device == device);
	CU(cuMemAlloc(&a, 1024));
	CU(cuMemsetD8(a, 7, 1024));
	/* Another context has its own default stream, which does not wait for this context's. */
	CU(cuCtxSynchronize());

	/* A created context becomes current; popping it restores the primary one. */
	CU(cuCtxCreate(&own, NULL, CU_CTX_SCHED_BLOCKING_SYNC, device));
	CU(cuCtxGetCurrent(&current));
	OK(current == own && own != primary);
	CU(cuCtxGetFlags(&flags));
	OK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);
	CU(cuCtxGetApiVersion(own, &version));
	OK(version >= 3010);
	CU(cuMemAlloc(&b, 1024));
	/* All contexts of a process share one address space; copies between them are allowed. */
	CU(cuMemcpyDtoD(b, a, 1024));
	unsigned char byte = 0;
	CU(cuMemcpyDtoH(&byte, b + 1023, 1));
	OK(byte == 7);
	CU(cuCtxPopCurrent(&popped));
	OK(popped == own);
	CU(cuCtxGetCurrent(&current));
	OK(current == primary);
	CU(cuCtxPushCurrent(own));
	CU(cuCtxPushCurrent(primary));
	CU(cuCtxPopCurrent(&popped));
	OK(popped == primary);
	CU(cuCtxGetCurrent(&current));
	OK(current == own);

	/* A pointer attribute reports the context that owns the memory. */
	CUcontext of = NULL;
	CU(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, a));
	OK(of == primary);
	CU(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, b));
	OK(of == own);
	CU(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b));
	OK(value == 0);

	shared_context = own;
	OK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
	pthread_join(thread, NULL);

	CU(cuCtxCreate(&second, NULL, 0, device));
	CU(cuCtxDestroy(second));
	CU(cuCtxGetCurrent(&current));
	OK(current == own);
	/* Destroying a context frees its memory. */
	CU(cuCtxDestroy(own));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&byte, b, 1));
	CU(cuCtxSetCurrent(primary));
	CU(cuMemcpyDtoH(&byte, a, 1));
	OK(byte == 7);
	CU(cuMemFree(a));
	CU(cuDevicePrimaryCtxRelease(device));
	CU(cuDevicePrimaryCtxGetState(device, &flags, &active));
	OK(active == 1);
	CU(cuDevicePrimaryCtxRelease(device));
	CU(cuDevicePrimaryCtxGetState(device, &flags, &active));
	OK(active == 0);
	many_contexts(device);
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 1000));
	return verdict("driver_contexts");
}
