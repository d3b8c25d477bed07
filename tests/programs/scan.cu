/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Exclusive prefix sum in three launches, and in one launch in which each block waits for the block
 * before it.
 */
#include "check.h"
#include <vector>

enum { LENGTH = 60001, THREADS = 256, BLOCKS = (LENGTH + THREADS - 1) / THREADS };

__device__ unsigned scan_block(unsigned value, unsigned *total)
{
	__shared__ unsigned warp_sum[THREADS / 32];
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = value;

	for (unsigned step = 1; step < 32; step *= 2) {
		unsigned other = __shfl_up_sync(0xffffffffu, sum, step);
		if (lane >= step)
			sum += other;
	}
	if (lane == 31)
		warp_sum[warp] = sum;
	__syncthreads();
	if (warp == 0) {
		unsigned part = lane < THREADS / 32 ? warp_sum[lane] : 0;
		for (unsigned step = 1; step < THREADS / 32; step *= 2) {
			unsigned other = __shfl_up_sync(0xffffffffu, part, step);
			if (lane >= step)
				part += other;
		}
		if (lane < THREADS / 32)
			warp_sum[lane] = part;
	}
	__syncthreads();
	*total = warp_sum[THREADS / 32 - 1];
	return sum - value + (warp ? warp_sum[warp - 1] : 0);
}

__global__ void scan_blocks(const unsigned *in, unsigned *out, unsigned *block_sum, int length)
{
	int i = blockIdx.x * THREADS + threadIdx.x;
	unsigned total, before = scan_block(i < length ? in[i] : 0, &total);

	if (i < length)
		out[i] = before;
	if (threadIdx.x == 0)
		block_sum[blockIdx.x] = total;
}

__global__ void add_offsets(unsigned *out, const unsigned *offset, int length)
{
	int i = blockIdx.x * THREADS + threadIdx.x;

	if (i < length)
		out[i] += offset[blockIdx.x];
}

/*
 * A block takes its number from an atomic counter, so the block that it waits for has started.
 */
__global__ void scan_chained(const unsigned *in, unsigned *out, unsigned *ticket,
	volatile unsigned *ready, volatile unsigned *running, int length)
{
	__shared__ unsigned number, before_block;

	if (threadIdx.x == 0)
		number = atomicAdd(ticket, 1);
	__syncthreads();
	int i = number * THREADS + threadIdx.x;
	unsigned total, before = scan_block(i < length ? in[i] : 0, &total);
	if (threadIdx.x == 0) {
		unsigned sum = 0;
		if (number > 0) {
			while (!ready[number - 1])
				;
			__threadfence();
			sum = running[number - 1];
		}
		before_block = sum;
		running[number] = sum + total;
		__threadfence();
		ready[number] = 1;
	}
	__syncthreads();
	if (i < length)
		out[i] = before_block + before;
}

int main()
{
	std::vector<unsigned> in(LENGTH), want(LENGTH), got(LENGTH);
	unsigned *device_in, *device_out, *sums, *offsets, *ticket, *ready, *running, sum = 0;
	uint32_t seed = 5;

	for (int i = 0; i < LENGTH; i++) {
		in[i] = random_next(&seed);
		want[i] = sum;
		sum += in[i];
	}
	CU(cudaMalloc(&device_in, LENGTH * 4));
	CU(cudaMalloc(&device_out, LENGTH * 4));
	CU(cudaMalloc(&sums, BLOCKS * 4));
	CU(cudaMalloc(&offsets, BLOCKS * 4));
	CU(cudaMalloc(&ticket, 4));
	CU(cudaMalloc(&ready, BLOCKS * 4));
	CU(cudaMalloc(&running, BLOCKS * 4));
	CU(cudaMemcpy(device_in, in.data(), LENGTH * 4, cudaMemcpyHostToDevice));
	CU(cudaMemset(ticket, 0, 4));
	CU(cudaMemset(ready, 0, BLOCKS * 4));

	scan_blocks<<<BLOCKS, THREADS>>>(device_in, device_out, sums, LENGTH);
	scan_blocks<<<1, THREADS>>>(sums, offsets, running, BLOCKS);
	add_offsets<<<BLOCKS, THREADS>>>(device_out, offsets, LENGTH);
	CU(cudaMemcpy(got.data(), device_out, LENGTH * 4, cudaMemcpyDeviceToHost));
	OK(got == want);
	printf("three launches %016llx\n", (unsigned long long)checksum(got.data(), LENGTH * 4));

	CU(cudaMemset(device_out, 0, LENGTH * 4));
	scan_chained<<<BLOCKS, THREADS>>>(device_in, device_out, ticket, ready, running, LENGTH);
	CU(cudaMemcpy(got.data(), device_out, LENGTH * 4, cudaMemcpyDeviceToHost));
	OK(got == want);
	printf("one launch     %016llx last %u\n",
		(unsigned long long)checksum(got.data(), LENGTH * 4), got[LENGTH - 1]);
	return verdict("scan");
}
