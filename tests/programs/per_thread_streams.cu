/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The per-thread default stream (built with --default-stream per-thread, or passed explicitly): the
 * calls of one thread keep their order. The legacy stream, passed explicitly, still waits for all
 * of them.
 */
#include "check.h"
#include <thread>
#include <vector>

enum { THREADS = 6, ROUNDS = 40, LENGTH = 96 };

__global__ void step(unsigned *data, unsigned factor, unsigned add)
{
	data[threadIdx.x] = data[threadIdx.x] * factor + add;
}

static void work(unsigned me, unsigned *data, unsigned *result)
{
	unsigned start[LENGTH];

	for (unsigned i = 0; i < LENGTH; i++)
		start[i] = me * 1000 + i;
	CU(cudaMemcpyAsync(
		data, start, sizeof(start), cudaMemcpyHostToDevice, cudaStreamPerThread));
	for (unsigned round = 0; round < ROUNDS; round++)
		if (round % 2)
			step<<<1, LENGTH, 0, cudaStreamPerThread>>>(data, me * 2 + 3, round);
		else
			step<<<1, LENGTH>>>(data, me * 2 + 3, round);
	CU(cudaGetLastError());
	CU(cudaMemcpyAsync(
		result, data, sizeof(start), cudaMemcpyDeviceToHost, cudaStreamPerThread));
	CU(cudaStreamSynchronize(cudaStreamPerThread));
	/* A thread's stream ends with the thread; the next thread gets a new one. */
}

int main()
{
	std::vector<unsigned> results(THREADS * LENGTH);
	unsigned *data, got[LENGTH];

	CU(cudaMalloc(&data, THREADS * LENGTH * 4));
	for (int wave = 0; wave < 2; wave++) {
		std::vector<std::thread> threads;
		for (unsigned t = 0; t < THREADS; t++)
			threads.emplace_back(
				work, t, data + t * LENGTH, results.data() + t * LENGTH);
		for (std::thread &t : threads)
			t.join();
		for (unsigned t = 0; t < THREADS; t++)
			for (unsigned i = 0; i < LENGTH; i++) {
				unsigned x = t * 1000 + i;
				for (unsigned round = 0; round < ROUNDS; round++)
					x = x * (t * 2 + 3) + round;
				OK(results[t * LENGTH + i] == x);
			}
		printf("wave %d %016llx\n", wave,
			(unsigned long long)checksum(results.data(), results.size() * 4));
	}

	/* The legacy stream and the thread's stream wait for each other. */
	CU(cudaMemsetAsync(data, 0, sizeof(got), cudaStreamPerThread));
	for (unsigned i = 1; i <= 30; i++)
		step<<<1, LENGTH, 0, i % 2 ? cudaStreamPerThread : cudaStreamLegacy>>>(data, 5, i);
	CU(cudaGetLastError());
	CU(cudaMemcpyAsync(got, data, sizeof(got), cudaMemcpyDeviceToHost, cudaStreamPerThread));
	CU(cudaStreamSynchronize(cudaStreamPerThread));
	unsigned want = 0;
	for (unsigned i = 1; i <= 30; i++)
		want = want * 5 + i;
	OK(got[0] == want && got[LENGTH - 1] == want);
	printf("legacy %08x\n", got[0]);
	return verdict("per_thread_streams");
}
