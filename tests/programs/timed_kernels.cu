/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernels in two streams and in the default stream that run for a known time, and say when. With
 * the argument "times" it prints a line for each kernel in the order of the launches: its stream,
 * and the device's clock at its begin and end, in ns; then how long all took on the program's
 * clock.
 */
#include "../waiting.h"
#include "check.h"
#include <ctime>

enum { KERNELS = 9, SPIN_NS = 20000000, PAUSE_US = 60000 };

__device__ static unsigned long long device_now()
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

__global__ void spin(unsigned long long *times, unsigned long long ns)
{
	times[0] = device_now();
	while (device_now() - times[0] < ns)
		;
	times[1] = device_now();
}

static unsigned long long now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

int main(int argc, char **argv)
{
	/* the last kernel begins long after the others have ended */
	const int order[KERNELS] = { 1, 1, 2, 1, 2, 0, 1, 2, 1 };
	unsigned long long *times, host[KERNELS][2], before;
	cudaStream_t streams[3] = {};
	bool print = argc > 1 && strcmp(argv[1], "times") == 0;

	CU(cudaStreamCreate(&streams[1]));
	CU(cudaStreamCreate(&streams[2]));
	CU(cudaMalloc(&times, sizeof host));
	CU(cudaMemset(times, 0, sizeof host));
	CU(cudaDeviceSynchronize());
	before = now();
	for (int i = 0; i < KERNELS; i++) {
		if (i == KERNELS - 1) {
			CU(cudaDeviceSynchronize());
			let_pass(PAUSE_US, "a test of the device's times");
		}
		spin<<<1, 1, 0, streams[order[i]]>>>(times + 2 * i, SPIN_NS);
		CU(cudaGetLastError());
	}
	CU(cudaDeviceSynchronize());
	before = now() - before;
	CU(cudaMemcpy(host, times, sizeof host, cudaMemcpyDeviceToHost));
	for (int i = 0; i < KERNELS; i++) {
		OK(host[i][1] - host[i][0] >= SPIN_NS);
		if (print)
			printf("%d %llu %llu\n", order[i], host[i][0], host[i][1]);
	}
	if (print)
		printf("all %llu\n", before);
	return verdict("timed_kernels");
}
