/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Barriers: with a thread count, numbered ones for parts of a block, arrival without waiting, and
 * with threads that have exited.
 */
#include "check.h"

enum { THREADS = 128, RESULTS = 6 };

__device__ void sync_part(int number, int threads)
{
	asm volatile("bar.sync %0, %1;" : : "r"(number), "r"(threads) : "memory");
}

__device__ void arrive_part(int number, int threads)
{
	asm volatile("bar.arrive %0, %1;" : : "r"(number), "r"(threads) : "memory");
}

__global__ void barriers(int *out)
{
	__shared__ volatile int ring[THREADS];
	__shared__ volatile int product;
	int i = threadIdx.x, *r = out + RESULTS * i;

	r[0] = __syncthreads_count(i % 3 == 0);
	r[1] = __syncthreads_and(i < THREADS) + 2 * __syncthreads_or(i == 77) +
		4 * __syncthreads_and(i != 5);
	/* Each half of the block uses a separate barrier a different number of times. */
	ring[i] = i;
	__syncthreads();
	int half = i / 64, base = half * 64;
	for (int round = 0; round < 3 + half * 4; round++) {
		int next = ring[base + (i + 1) % 64];
		sync_part(1 + half, 64);
		ring[i] = next * 3 + round;
		sync_part(1 + half, 64);
	}
	__syncthreads();
	r[2] = ring[i];

	/* Warp 0 waits for the others, which arrive and continue at once. */
	if (i == 0)
		product = 0;
	__syncthreads();
	if (i / 32 == 0) {
		sync_part(5, THREADS);
		r[3] = product;
	} else {
		atomicAdd((int *)&product, i);
		__threadfence_block();
		arrive_part(5, THREADS);
		r[3] = -1;
	}
	__syncthreads();

	/* Threads of one warp synchronise inside divergent code. */
	if (i & 1)
		__syncwarp(0xaaaaaaaau);
	else
		__syncwarp(0x55555555u);
	r[4] = i * 2;
	r[5] = 0;
	/* A third of the warps exits; the others still synchronise. */
	if (i >= 96)
		return;
	__syncthreads();
	ring[i] = i + 500;
	__syncthreads();
	r[5] = ring[(i + 40) % 96];
}

int main()
{
	static int got[THREADS][RESULTS];
	int *out, ring[2][THREADS], wrong = 0, sum = 0;

	CU(cudaMalloc(&out, sizeof(got)));
	barriers<<<1, THREADS>>>(out);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		ring[0][i] = i;
		sum += i >= 32 ? i : 0;
	}
	for (int round = 0; round < 7; round++) {
		for (int i = 0; i < THREADS; i++)
			ring[1][i] = i >= 64 || round < 3
				? ring[0][i / 64 * 64 + (i + 1) % 64] * 3 + round
				: ring[0][i];
		memcpy(ring[0], ring[1], sizeof(ring[0]));
	}
	for (int i = 0; i < THREADS; i++) {
		int want[RESULTS] = { 43, 1 + 2, ring[0][i], i < 32 ? sum : -1, 2 * i,
			i < 96 ? (i + 40) % 96 + 500 : 0 };
		for (int k = 0; k < RESULTS; k++)
			if (got[i][k] != want[k] && wrong++ < 10)
				fprintf(stderr, "thread %d result %d: %d, not %d\n", i, k,
					got[i][k], want[k]);
	}
	OK(wrong == 0);
	printf("checksum %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	return verdict("barriers");
}
