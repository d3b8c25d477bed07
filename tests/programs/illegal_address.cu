/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * An illegal address is reported at the next synchronisation and by every call after it, until the
 * process ends.
 */
#include "check.h"

__global__ void write_to(int *p)
{
	p[threadIdx.x] = 1;
}

int main()
{
	int *good, host[32];
	void *more;
	cudaStream_t stream, another;
	cudaEvent_t event;
	const cudaError_t bad = cudaErrorIllegalAddress;

	CU(cudaMalloc(&good, sizeof(host)));
	CU(cudaStreamCreate(&stream));
	CU(cudaEventCreate(&event));
	write_to<<<1, 32>>>(good);
	CU(cudaMemcpy(host, good, sizeof(host), cudaMemcpyDeviceToHost));
	OK(host[31] == 1);

	write_to<<<1, 32, 0, stream>>>((int *)0x10);
	CU(cudaGetLastError());
	EXPECT(bad, cudaStreamSynchronize(stream));
	EXPECT(bad, cudaGetLastError());
	EXPECT(bad, cudaDeviceSynchronize());
	EXPECT(bad, cudaMalloc(&more, 16));
	EXPECT(bad, cudaFree(good));
	EXPECT(bad, cudaMemcpy(host, good, sizeof(host), cudaMemcpyDeviceToHost));
	EXPECT(bad, cudaMemcpy(good, host, sizeof(host), cudaMemcpyHostToDevice));
	EXPECT(bad, cudaMemset(good, 0, sizeof(host)));
	EXPECT(bad, cudaMemcpyAsync(good, host, sizeof(host), cudaMemcpyHostToDevice, stream));
	EXPECT(bad, cudaStreamCreate(&another));
	EXPECT(bad, cudaStreamQuery(stream));
	EXPECT(bad, cudaEventRecord(event, stream));
	EXPECT(bad, cudaEventSynchronize(event));
	write_to<<<1, 32>>>(good);
	EXPECT(bad, cudaGetLastError());
	EXPECT(bad, cudaStreamSynchronize(0));
	EXPECT(bad, cudaDeviceSynchronize());
	puts("every call returns the error");
	return verdict("illegal_address");
}
