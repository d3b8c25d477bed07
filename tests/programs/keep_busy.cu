/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Launches kernels for the number of seconds in its first argument (default 0.3). Other tests kill
 * it, or run it at the same time as another program.
 */
#include "check.h"
#include <ctime>
#include <vector>

__global__ void churn(unsigned *data, int repeat)
{
	unsigned x = data[blockIdx.x * blockDim.x + threadIdx.x];

	for (int i = 0; i < repeat; i++)
		x = x * 1664525u + 1013904223u;
	data[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static double now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	enum { THREADS = 256, REPEAT = 500 };
	double end = now() + (argc > 1 ? atof(argv[1]) : 0.3);
	std::vector<unsigned> host(1 << 16), back(host.size());
	size_t bytes = host.size() * 4;

	do {
		unsigned *p, *q;
		cudaStream_t stream;

		CU(cudaStreamCreate(&stream));
		CU(cudaMalloc(&p, bytes));
		CU(cudaMallocAsync(&q, bytes, stream));
		for (size_t i = 0; i < host.size(); i++)
			host[i] = (unsigned)i;
		CU(cudaMemcpyAsync(p, host.data(), bytes, cudaMemcpyHostToDevice, stream));
		churn<<<8, THREADS, 0, stream>>>(p, REPEAT);
		CU(cudaMemcpyAsync(q, p, bytes, cudaMemcpyDeviceToDevice, stream));
		CU(cudaMemcpyAsync(back.data(), q, bytes, cudaMemcpyDeviceToHost, stream));
		CU(cudaFreeAsync(q, stream));
		CU(cudaStreamSynchronize(stream));
		unsigned x = 77;
		for (int i = 0; i < REPEAT; i++)
			x = x * 1664525u + 1013904223u;
		OK(back[77] == x && back[60000] == 60000);
		CU(cudaFree(p));
		CU(cudaStreamDestroy(stream));
	} while (now() < end && !check_failures);
	return verdict("keep_busy");
}
