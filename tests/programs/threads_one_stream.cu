/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Eight threads, one stream. A token passes from thread to thread in random order. Its holder
 * enqueues a step that does not commute with the others and passes the token on without waiting for
 * the device. Reordered calls give a wrong final value.
 */
#include "check.h"
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

enum { THREADS = 8, STEPS = 600, LENGTH = 64 };

__global__ void affine(unsigned *data, unsigned factor, unsigned add)
{
	data[threadIdx.x] = data[threadIdx.x] * factor + add;
}

__global__ void add_buffer(unsigned *data, const unsigned *buffer)
{
	data[threadIdx.x] = data[threadIdx.x] * 3 + buffer[threadIdx.x];
}

struct baton {
	std::mutex lock;
	std::condition_variable passed;
	int step = 0;
};

static std::vector<int> owner(STEPS);
static unsigned *data, *scratch;
static cudaStream_t stream;

/* Enqueues one step on the device. host_step computes the same on the host. */
static void enqueue(int step)
{
	unsigned number = (unsigned)step;

	switch (step % 4) {
	case 0:
	case 1:
		affine<<<1, LENGTH, 0, stream>>>(data, 2 * number + 1, number * number);
		CU(cudaGetLastError());
		break;
	case 2: {
		/* Pageable memory that becomes invalid after the call. */
		std::vector<unsigned> local(LENGTH, number * 77);
		CU(cudaMemcpyAsync(
			scratch, local.data(), LENGTH * 4, cudaMemcpyHostToDevice, stream));
		add_buffer<<<1, LENGTH, 0, stream>>>(data, scratch);
		CU(cudaGetLastError());
		break;
	}
	default:
		CU(cudaMemsetAsync(scratch, step & 0xff, LENGTH * 4, stream));
		add_buffer<<<1, LENGTH, 0, stream>>>(data, scratch);
		CU(cudaGetLastError());
	}
}

static unsigned host_step(unsigned x, int step)
{
	unsigned number = (unsigned)step;

	switch (step % 4) {
	case 0:
	case 1:
		return x * (2 * number + 1) + number * number;
	case 2:
		return x * 3 + number * 77;
	default:
		return x * 3 + (number & 0xff) * 0x01010101u;
	}
}

static void work(int me, baton *token)
{
	CU(cudaSetDevice(0));
	std::unique_lock<std::mutex> hold(token->lock);
	while (token->step < STEPS) {
		if (owner[token->step] != me) {
			token->passed.wait(hold);
			continue;
		}
		enqueue(token->step);
		token->step++;
		token->passed.notify_all();
	}
}

int main()
{
	std::vector<std::thread> threads;
	unsigned start[LENGTH], got[LENGTH];
	uint32_t seed = 321;
	baton token;

	for (int &who : owner)
		who = (int)(random_next(&seed) % THREADS);
	for (unsigned i = 0; i < LENGTH; i++)
		start[i] = i;
	CU(cudaStreamCreate(&stream));
	CU(cudaMalloc(&data, sizeof(got)));
	CU(cudaMalloc(&scratch, sizeof(got)));
	CU(cudaMemcpy(data, start, sizeof(got), cudaMemcpyHostToDevice));
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(work, i, &token);
	for (std::thread &t : threads)
		t.join();
	CU(cudaMemcpyAsync(got, data, sizeof(got), cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	for (unsigned i = 0; i < LENGTH; i++) {
		unsigned x = i;
		for (int step = 0; step < STEPS; step++)
			x = host_step(x, step);
		OK(got[i] == x);
	}
	printf("checksum %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	CU(cudaStreamDestroy(stream));
	return verdict("threads_one_stream");
}
