/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cudaDeviceReset frees all memory, and all objects can be made again. Also the texts of errors,
 * and calls before the first use of the device.
 */
#include "check.h"

__device__ int variable = 7;

__global__ void bump(int *out)
{
	variable += 1;
	*out = variable;
}

static void round_trip(int number)
{
	int *out, got = 0;
	cudaStream_t stream;
	cudaEvent_t event;

	CU(cudaMalloc(&out, sizeof(int)));
	CU(cudaStreamCreate(&stream));
	CU(cudaEventCreate(&event));
	bump<<<1, 1, 0, stream>>>(out);
	CU(cudaGetLastError());
	CU(cudaEventRecord(event, stream));
	CU(cudaEventSynchronize(event));
	CU(cudaMemcpy(&got, out, sizeof(got), cudaMemcpyDeviceToHost));
	/* Variables start again from their initial values. */
	OK(got == 8);
	printf("round %d: %d\n", number, got);
	CU(cudaDeviceReset());
	EXPECT(cudaErrorInvalidValue, cudaMemcpy(&got, out, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
}

int main()
{
	EXPECT(cudaSuccess, cudaGetLastError());
	CU(cudaDeviceReset());
	for (int i = 0; i < 3; i++)
		round_trip(i);
	for (cudaError_t error : { cudaSuccess, cudaErrorInvalidValue, cudaErrorMemoryAllocation,
		     cudaErrorInvalidConfiguration, cudaErrorIllegalAddress, cudaErrorLaunchFailure,
		     cudaErrorNotReady, cudaErrorNoDevice })
		printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
	return verdict("device_reset");
}
