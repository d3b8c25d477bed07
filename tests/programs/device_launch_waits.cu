/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The first form of launches by device code, for devices before compute capability 9.0: blocks wait
 * with cudaDeviceSynchronize for the grids that they launched, and use what these computed.
 */
#include "check.h"

enum { DEPTH = 5, BLOCKS = 6 };

/* out[i] = the sum of the numbers in the node's part, each half computed by a grid below. */
__global__ void sum(unsigned long long *out, unsigned first, unsigned count, int depth)
{
	unsigned long long *half = out + 1, total = 0;
	unsigned below = (1u << (DEPTH - depth)) - 1;

	if (depth == DEPTH) {
		for (unsigned i = 0; i < count; i++)
			total += first + i;
		*out = total;
		return;
	}
	sum<<<1, 1>>>(half, first, count / 2, depth + 1);
	sum<<<1, 1>>>(half + below, first + count / 2, count - count / 2, depth + 1);
	if (cudaDeviceSynchronize() == cudaSuccess)
		*out = half[0] + half[below];
}

__global__ void fill(unsigned *to, unsigned value)
{
	to[threadIdx.x] = value;
}

/* All threads of a block wait for the grid that one of them launched. */
__global__ void blocks(unsigned *value, unsigned *seen)
{
	unsigned *mine = value + blockIdx.x * 32;

	for (unsigned round = 1; round <= 10; round++) {
		if (threadIdx.x == 0) {
			fill<<<1, 32>>>(mine, round * 100 + blockIdx.x);
			cudaDeviceSynchronize();
		}
		__syncthreads();
		seen[blockIdx.x * 32 + threadIdx.x] += mine[(threadIdx.x + 7) % 32];
		__syncthreads();
	}
}

int main()
{
	unsigned long long *out;
	unsigned *value;

	CU(cudaMallocManaged(&out, (2u << DEPTH) * sizeof *out));
	CU(cudaMallocManaged(&value, 2 * BLOCKS * 32 * sizeof *value));
	memset(value, 0, 2 * BLOCKS * 32 * sizeof *value);
	sum<<<1, 1>>>(out, 1, 100000, 0);
	CU(cudaDeviceSynchronize());
	printf("sum: %llu\n", *out);
	blocks<<<BLOCKS, 32>>>(value, value + BLOCKS * 32);
	CU(cudaDeviceSynchronize());
	for (unsigned i = 0; i < BLOCKS * 32; i++)
		OK(value[BLOCKS * 32 + i] == 5500 + i / 32 * 10);
	printf("blocks: right\n");
	return 0;
}
