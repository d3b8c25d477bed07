/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Bitonic sort of keys with values: short distances in shared memory, long ones in one launch each.
 */
#include "check.h"
#include <algorithm>
#include <vector>

enum { LENGTH = 8192, CHUNK = 1024 };

__device__ void compare_swap(unsigned *a, unsigned *b, bool up)
{
	if ((*a > *b) == up) {
		unsigned c = *a;
		*a = *b;
		*b = c;
	}
}

__global__ void sort_shared(unsigned *keys, int first_size, int last_size)
{
	__shared__ unsigned chunk[CHUNK];
	int base = blockIdx.x * CHUNK;

	for (int i = threadIdx.x; i < CHUNK; i += blockDim.x)
		chunk[i] = keys[base + i];
	for (int size = first_size; size <= last_size; size *= 2)
		for (int step = min(size, CHUNK) / 2; step; step /= 2) {
			__syncthreads();
			int i = 2 * threadIdx.x - (threadIdx.x & (step - 1));
			compare_swap(&chunk[i], &chunk[i + step], ((base + i) & size) == 0);
		}
	__syncthreads();
	for (int i = threadIdx.x; i < CHUNK; i += blockDim.x)
		keys[base + i] = chunk[i];
}

__global__ void merge_global(unsigned *keys, int size, int step)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x, i = 2 * t - (t & (step - 1));

	compare_swap(&keys[i], &keys[i + step], (i & size) == 0);
}

int main()
{
	std::vector<unsigned> keys(LENGTH), want;
	unsigned *device_keys;
	uint32_t seed = 99;

	for (unsigned &x : keys)
		x = random_next(&seed) % 5000;
	want = keys;
	std::sort(want.begin(), want.end());
	CU(cudaMalloc(&device_keys, LENGTH * 4));
	CU(cudaMemcpy(device_keys, keys.data(), LENGTH * 4, cudaMemcpyHostToDevice));
	sort_shared<<<LENGTH / CHUNK, CHUNK / 2>>>(device_keys, 2, CHUNK);
	for (int size = 2 * CHUNK; size <= LENGTH; size *= 2) {
		for (int step = size / 2; step >= CHUNK; step /= 2)
			merge_global<<<LENGTH / 2 / 256, 256>>>(device_keys, size, step);
		sort_shared<<<LENGTH / CHUNK, CHUNK / 2>>>(device_keys, size, size);
	}
	CU(cudaGetLastError());
	CU(cudaMemcpy(keys.data(), device_keys, LENGTH * 4, cudaMemcpyDeviceToHost));
	OK(keys == want);
	printf("first %u middle %u last %u checksum %016llx\n", keys[0], keys[LENGTH / 2],
		keys[LENGTH - 1], (unsigned long long)checksum(keys.data(), LENGTH * 4));
	return verdict("bitonic_sort");
}
