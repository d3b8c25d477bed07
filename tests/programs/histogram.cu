/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * 256-bin histogram with atomics on global memory, and with atomics on shared memory that each
 * block adds to global memory at its end.
 */
#include "check.h"
#include <vector>

enum { LENGTH = 120000, BINS = 256, THREADS = 256, BLOCKS = 16 };

__global__ void histogram_global(const unsigned char *in, int length, unsigned *bins)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < length; i += gridDim.x * blockDim.x)
		atomicAdd(&bins[in[i]], 1u);
}

__global__ void histogram_shared(const unsigned char *in, int length, unsigned *bins)
{
	__shared__ unsigned local[BINS];

	local[threadIdx.x] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < length; i += gridDim.x * blockDim.x)
		atomicAdd(&local[in[i]], 1u);
	__syncthreads();
	if (local[threadIdx.x])
		atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main()
{
	std::vector<unsigned char> in(LENGTH);
	unsigned want[BINS] = {}, got[2][BINS], *device_bins;
	unsigned char *device_in;
	uint32_t seed = 3;

	for (unsigned char &x : in) {
		/* A product of two random numbers: an uneven distribution, with contention on some bins. */
		x = (unsigned char)((random_next(&seed) >> 28) * (random_next(&seed) >> 28));
		want[x]++;
	}
	CU(cudaMalloc(&device_in, LENGTH));
	CU(cudaMalloc(&device_bins, sizeof(want)));
	CU(cudaMemcpy(device_in, in.data(), LENGTH, cudaMemcpyHostToDevice));
	for (int way = 0; way < 2; way++) {
		CU(cudaMemset(device_bins, 0, sizeof(want)));
		if (way == 0)
			histogram_global<<<BLOCKS, THREADS>>>(device_in, LENGTH, device_bins);
		else
			histogram_shared<<<BLOCKS, THREADS>>>(device_in, LENGTH, device_bins);
		CU(cudaGetLastError());
		CU(cudaMemcpy(got[way], device_bins, sizeof(want), cudaMemcpyDeviceToHost));
		OK(!memcmp(got[way], want, sizeof(want)));
		printf("bin 0 %u bin 36 %u bin 225 %u checksum %016llx\n", got[way][0],
			got[way][36], got[way][225],
			(unsigned long long)checksum(got[way], sizeof(want)));
	}
	return verdict("histogram");
}
