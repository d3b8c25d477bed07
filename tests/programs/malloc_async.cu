/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cudaMallocAsync: order with the stream's work, use on other streams after an event, the default
 * pool and its limits.
 */
#include "check.h"

enum { LENGTH = 4096, ROUNDS = 20 };

__global__ void start(unsigned *data, unsigned base)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	data[i] = base + i;
}

__global__ void add(unsigned *sum, const unsigned *data, int repeat)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = data[i];

	for (int k = 0; k < repeat; k++)
		x = x * 3 + 1;
	sum[i] += x;
}

int main()
{
	cudaStream_t first, second;
	cudaEvent_t event;
	cudaMemPool_t pool, current;
	unsigned *sum, *data;
	static unsigned got[LENGTH];
	int device, supported = 0;
	unsigned long long threshold = 99, used = 99;

	CU(cudaGetDevice(&device));
	CU(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device));
	OK(supported == 1);
	CU(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	CU(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	CU(cudaEventCreate(&event));

	/*
	 * A round may get the memory of the previous round, whose kernel must have finished by
	 * then.
	 */
	CU(cudaMallocAsync(&sum, sizeof(got), first));
	CU(cudaMemsetAsync(sum, 0, sizeof(got), first));
	for (unsigned round = 0; round < ROUNDS; round++) {
		CU(cudaMallocAsync(&data, sizeof(got), first));
		start<<<LENGTH / 256, 256, 0, first>>>(data, round * 100000);
		add<<<LENGTH / 256, 256, 0, first>>>(sum, data, 20);
		CU(cudaFreeAsync(data, first));
	}
	/* Allocated on one stream, used on a second, freed on the first. */
	CU(cudaMallocAsync(&data, sizeof(got), first));
	start<<<LENGTH / 256, 256, 0, first>>>(data, 5);
	CU(cudaEventRecord(event, first));
	CU(cudaStreamWaitEvent(second, event, 0));
	add<<<LENGTH / 256, 256, 0, second>>>(sum, data, 0);
	CU(cudaEventRecord(event, second));
	CU(cudaStreamWaitEvent(first, event, 0));
	CU(cudaFreeAsync(data, first));
	CU(cudaMemcpyAsync(got, sum, sizeof(got), cudaMemcpyDeviceToHost, first));
	CU(cudaStreamSynchronize(first));
	for (unsigned i = 0; i < LENGTH; i++) {
		unsigned want = 5 + i;
		for (unsigned round = 0; round < ROUNDS; round++) {
			unsigned x = round * 100000 + i;
			for (int k = 0; k < 20; k++)
				x = x * 3 + 1;
			want += x;
		}
		OK(got[i] == want);
	}
	printf("sum %016llx\n", (unsigned long long)checksum(got, sizeof(got)));

	CU(cudaDeviceGetDefaultMemPool(&pool, device));
	CU(cudaDeviceGetMemPool(&current, device));
	OK(pool != nullptr && pool == current);
	CU(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	OK(threshold == 0);
	threshold = 1 << 20;
	CU(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	threshold = 0;
	CU(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	OK(threshold == 1 << 20);
	CU(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	OK(used >= sizeof(got));
	CU(cudaMallocFromPoolAsync(&data, sizeof(got), pool, second));
	CU(cudaFreeAsync(data, second));
	CU(cudaFree(sum)); /* cudaFree may free memory of cudaMallocAsync */
	CU(cudaStreamSynchronize(second));
	CU(cudaMemPoolTrimTo(pool, 0));
	EXPECT(cudaErrorMemoryAllocation, cudaMallocAsync(&data, (size_t)1 << 50, first));
	EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
	CU(cudaStreamDestroy(first));
	CU(cudaStreamDestroy(second));
	return verdict("malloc_async");
}
