/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Spin locks for which the threads of one warp compete; this needs independent progress of threads.
 * Also a queue between blocks: producers and consumers in one launch.
 */
#include "check.h"

enum { THREADS = 64, BLOCKS = 3, ITEMS = 40 };

__device__ int lock;
__device__ volatile int guarded;
__device__ volatile int mailbox;

__global__ void locked(int *order)
{
	bool done = false;

	while (!done) {
		if (atomicCAS(&lock, 0, 1) == 0) {
			__threadfence();
			int number = guarded;
			guarded = number + 1;
			order[number] = (int)(blockIdx.x * THREADS + threadIdx.x);
			__threadfence();
			atomicExch(&lock, 0);
			done = true;
		}
	}
}

/* Lane 0 produces, lane 1 of the same warp consumes. */
__global__ void handshake(long long *sum)
{
	if (threadIdx.x == 0)
		for (int i = 1; i <= ITEMS; i++) {
			while (mailbox)
				;
			__threadfence();
			mailbox = i * i;
		}
	else if (threadIdx.x == 1)
		for (int i = 1; i <= ITEMS; i++) {
			int item;
			while (!(item = mailbox))
				;
			*sum = *sum * 3 + item;
			__threadfence();
			mailbox = 0;
		}
}

int main()
{
	int order[THREADS * BLOCKS], *device_order, seen[THREADS * BLOCKS] = {}, total = 0;
	long long sum, *device_sum, want = 0;

	CU(cudaMalloc(&device_order, sizeof(order)));
	CU(cudaMalloc(&device_sum, sizeof(sum)));
	CU(cudaMemset(device_sum, 0, sizeof(sum)));
	locked<<<BLOCKS, THREADS>>>(device_order);
	CU(cudaMemcpy(order, device_order, sizeof(order), cudaMemcpyDeviceToHost));
	for (int who : order)
		if (who >= 0 && who < THREADS * BLOCKS)
			total += !seen[who]++;
	OK(total == THREADS * BLOCKS);
	handshake<<<1, 32>>>(device_sum);
	CU(cudaMemcpy(&sum, device_sum, sizeof(sum), cudaMemcpyDeviceToHost));
	for (int i = 1; i <= ITEMS; i++)
		want = want * 3 + i * i;
	OK(sum == want);
	printf("took the lock %d times, passed %lld\n", total, sum);
	return verdict("spin_locks");
}
