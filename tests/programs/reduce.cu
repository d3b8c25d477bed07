/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Sum and maximum of an array by three methods: a tree in shared memory, warp shuffles, and one
 * atomic per block. The results must be equal.
 */
#include "check.h"
#include <vector>

enum { LENGTH = 100003, THREADS = 256, BLOCKS = 24 };

__global__ void sum_shared(const int *in, int length, long long *out)
{
	__shared__ long long partial[THREADS];
	long long sum = 0;

	for (int i = blockIdx.x * THREADS + threadIdx.x; i < length; i += gridDim.x * THREADS)
		sum += in[i];
	partial[threadIdx.x] = sum;
	__syncthreads();
	for (int step = THREADS / 2; step; step /= 2) {
		if (threadIdx.x < step)
			partial[threadIdx.x] += partial[threadIdx.x + step];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		out[blockIdx.x] = partial[0];
}

__global__ void sum_shuffle(const int *in, int length, unsigned long long *out)
{
	__shared__ long long warp_sum[THREADS / 32];
	long long sum = 0;

	for (int i = blockIdx.x * THREADS + threadIdx.x; i < length; i += gridDim.x * THREADS)
		sum += in[i];
	for (int step = 16; step; step /= 2)
		sum += __shfl_down_sync(0xffffffffu, sum, step);
	if (threadIdx.x % 32 == 0)
		warp_sum[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x < THREADS / 32) {
		sum = warp_sum[threadIdx.x];
		for (int step = THREADS / 64; step; step /= 2)
			sum += __shfl_xor_sync(0xffu, sum, step, THREADS / 32);
		if (threadIdx.x == 0)
			atomicAdd(out, (unsigned long long)sum);
	}
}

__global__ void maximum(const int *in, int length, int *out)
{
	int best = INT32_MIN;

	for (int i = blockIdx.x * THREADS + threadIdx.x; i < length; i += gridDim.x * THREADS)
		best = max(best, in[i]);
	for (int step = 16; step; step /= 2)
		best = max(best, __shfl_xor_sync(0xffffffffu, best, step));
	if (threadIdx.x % 32 == 0)
		atomicMax(out, best);
}

int main()
{
	std::vector<int> in(LENGTH);
	long long want = 0, shared = 0, partial[BLOCKS], *device_partial;
	unsigned long long shuffle, *device_sum;
	int best = INT32_MIN, got_best, *device_in, *device_best;
	uint32_t seed = 11;

	for (int &x : in) {
		x = (int)random_next(&seed);
		want += x;
		best = x > best ? x : best;
	}
	CU(cudaMalloc(&device_in, LENGTH * sizeof(int)));
	CU(cudaMalloc(&device_partial, sizeof(partial)));
	CU(cudaMalloc(&device_sum, sizeof(*device_sum)));
	CU(cudaMalloc(&device_best, sizeof(int)));
	CU(cudaMemcpy(device_in, in.data(), LENGTH * sizeof(int), cudaMemcpyHostToDevice));
	CU(cudaMemset(device_sum, 0, sizeof(*device_sum)));
	CU(cudaMemset(device_best, 0x80, sizeof(int)));
	sum_shared<<<BLOCKS, THREADS>>>(device_in, LENGTH, device_partial);
	sum_shuffle<<<BLOCKS, THREADS>>>(device_in, LENGTH, device_sum);
	maximum<<<BLOCKS, THREADS>>>(device_in, LENGTH, device_best);
	CU(cudaMemcpy(partial, device_partial, sizeof(partial), cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(&shuffle, device_sum, sizeof(shuffle), cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(&got_best, device_best, sizeof(got_best), cudaMemcpyDeviceToHost));
	for (long long x : partial)
		shared += x;
	OK(shared == want);
	OK((long long)shuffle == want);
	OK(got_best == best);
	printf("sum %lld %lld maximum %d\n", shared, (long long)shuffle, got_best);
	return verdict("reduce");
}
