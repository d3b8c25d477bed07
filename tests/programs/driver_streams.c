/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Streams, events, host functions and callbacks through the driver API, and cuGetProcAddress for
 * names and versions.
 */
#include "driver.h"

enum { ROUNDS = 10 };

static int order[2 * ROUNDS], calls;

static void CUDA_CB on_host(void *argument)
{
	order[calls++] = (int)(intptr_t)argument;
}

static void CUDA_CB on_callback(CUstream stream, CUresult status, void *argument)
{
	(void)stream;
	order[calls++] = status == CUDA_SUCCESS ? (int)(intptr_t)argument : -1;
}

int main(void)
{
	CUdevice device;
	CUcontext context, of = NULL;
	CUmodule module;
	CUfunction bounded;
	CUstream stream, other;
	CUevent start, end;
	CUdeviceptr data;
	unsigned flags = 99;
	int priority = 99, least = 99, greatest = 99, got[128];
	float ms = -1;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoad(&module, beside("driver_kernels.ptx")));
	CU(cuModuleGetFunction(&bounded, module, "bounded"));
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	CU(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
	CU(cuStreamCreate(&other, CU_STREAM_DEFAULT));
	CU(cuStreamGetPriority(stream, &priority));
	CU(cuStreamGetFlags(stream, &flags));
	CU(cuStreamGetCtx(stream, &of));
	OK(priority == greatest && flags == CU_STREAM_NON_BLOCKING && of == context);
	CU(cuEventCreate(&start, CU_EVENT_DEFAULT));
	CU(cuEventCreate(&end, CU_EVENT_BLOCKING_SYNC));

	CU(cuMemAlloc(&data, sizeof(got)));
	CU(cuMemsetD32Async(data, 0, 128, stream));
	void *args[] = { &data };
	CU(cuEventRecord(start, stream));
	for (int i = 0; i < ROUNDS; i++) {
		CU(cuLaunchKernel(bounded, 1, 1, 1, 128, 1, 1, 0, stream, args, NULL));
		CU(cuLaunchHostFunc(stream, on_host, (void *)(intptr_t)(2 * i)));
		CU(cuStreamAddCallback(stream, on_callback, (void *)(intptr_t)(2 * i + 1), 0));
	}
	CU(cuEventRecord(end, stream));
	CU(cuStreamWaitEvent(other, end, CU_EVENT_WAIT_DEFAULT));
	CU(cuMemcpyDtoHAsync(got, data, sizeof(got), other));
	CU(cuStreamSynchronize(other));
	CU(cuEventSynchronize(end));
	CU(cuEventElapsedTime(&ms, start, end));
	OK(ms >= 0 && calls == 2 * ROUNDS && got[0] == ROUNDS && got[127] == ROUNDS);
	for (int i = 0; i < 2 * ROUNDS; i++)
		OK(order[i] == i);
	CU(cuEventQuery(end));
	CU(cuStreamQuery(stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&end, 0x1000));

	/* The same call, found by name and version. */
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, CUstream, void **, void **) = NULL;
	CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;
	CUdriverProcAddressQueryResult found;
	CUdeviceptr p = 0;
	void *none = (void *)1;
	CU(cuGetProcAddress(
		"cuLaunchKernel", (void **)&launch, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found));
	OK(found == CU_GET_PROC_ADDRESS_SUCCESS && launch);
	CU(launch(bounded, 1, 1, 1, 128, 1, 1, 0, stream, args, NULL));
	CU(cuGetProcAddress(
		"cuMemAlloc", (void **)&alloc, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found));
	CU(alloc(&p, 5000));
	CU(cuMemFree(p));
	CUresult status =
		cuGetProcAddress("cuNoSuchCall", &none, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found);
	OK((status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_FOUND) && none == NULL);
	OK(found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(got, data, sizeof(got)));
	OK(got[5] == ROUNDS + 1);
	CU(cuEventDestroy(start));
	CU(cuEventDestroy(end));
	CU(cuStreamDestroy(stream));
	CU(cuStreamDestroy(other));
	CU(cuMemFree(data));
	CU(cuModuleUnload(module));
	CU(cuDevicePrimaryCtxRelease(device));
	printf("host functions and callbacks in order\n");
	return verdict("driver_streams");
}
