/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Stream priorities: the range, clamping, a stream's attributes, and work on streams of all
 * priorities.
 */
#include "check.h"

__global__ void add_one(int *counter)
{
	atomicAdd(counter, 1);
}

int main()
{
	int least = 99, greatest = 99, got = 0, *counter, launches = 0;

	CU(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	OK(least == 0 && greatest <= 0);
	CU(cudaMalloc(&counter, sizeof(int)));
	CU(cudaMemset(counter, 0, sizeof(int)));
	CU(cudaDeviceSynchronize());
	for (int priority = greatest - 2; priority <= least + 2; priority++) {
		cudaStream_t stream;
		int told = 99,
		    clamped = priority < greatest ? greatest
			: priority > least        ? least
						  : priority;
		unsigned flags = 99;

		CU(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
		CU(cudaStreamGetPriority(stream, &told));
		CU(cudaStreamGetFlags(stream, &flags));
		OK(told == clamped && flags == cudaStreamNonBlocking);
		add_one<<<2, 64, 0, stream>>>(counter);
		launches++;
		CU(cudaStreamSynchronize(stream));
		CU(cudaStreamDestroy(stream));
	}
	int told = 99;
	CU(cudaStreamGetPriority(0, &told));
	OK(told == 0);
	CU(cudaMemcpy(&got, counter, sizeof(int), cudaMemcpyDeviceToHost));
	OK(got == launches * 128);
	return verdict("stream_priorities");
}
