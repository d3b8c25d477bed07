/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Eight threads, each with its own stream. They pass a token that holds an event. The new holder
 * makes its stream wait for the event, works on the shared data, records the next event and passes
 * the token on, without waiting for the device. Buffers are allocated by one thread, used by a
 * second and freed by a third. At the same time each thread checks private data.
 */
#include "check.h"
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

enum { THREADS = 8, STEPS = 240, LENGTH = 128 };

__global__ void affine(unsigned *data, unsigned factor, unsigned add, int repeat)
{
	unsigned x = data[threadIdx.x];

	for (int i = 0; i < repeat; i++)
		x = x * factor + add;
	data[threadIdx.x] = x;
}

__global__ void fold(unsigned *data, const unsigned *buffer)
{
	data[threadIdx.x] = data[threadIdx.x] * 5 + buffer[threadIdx.x];
}

struct baton {
	std::mutex lock;
	std::condition_variable passed;
	int step = 0;
	cudaEvent_t ready = nullptr;
	unsigned *filled = nullptr; /* written by the previous step */
	unsigned *used = nullptr;   /* read by the previous step, to be freed */
};

static std::vector<int> owner(STEPS);
static unsigned *data;

static void enqueue(baton *token, cudaStream_t stream)
{
	unsigned number = (unsigned)token->step, *buffer;
	cudaEvent_t event;

	CU(cudaStreamWaitEvent(stream, token->ready, 0));
	affine<<<1, LENGTH, 0, stream>>>(data, 2 * number + 3, number, 1 + token->step % 50);
	CU(cudaGetLastError());
	if (token->filled) {
		fold<<<1, LENGTH, 0, stream>>>(data, token->filled);
		CU(cudaGetLastError());
	}
	if (token->used)
		CU(cudaFree(token->used));
	CU(cudaMalloc(&buffer, LENGTH * 4));
	CU(cudaMemsetAsync(buffer, token->step & 0x7f, LENGTH * 4, stream));
	CU(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CU(cudaEventRecord(event, stream));
	CU(cudaEventDestroy(token->ready));
	token->ready = event;
	token->used = token->filled;
	token->filled = buffer;
	token->step++;
}

static void work(int me, baton *token)
{
	cudaStream_t stream;
	unsigned *mine, got[LENGTH], want = (unsigned)me;
	int rounds = 0;

	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaMalloc(&mine, sizeof(got)));
	for (unsigned &x : got)
		x = (unsigned)me;
	CU(cudaMemcpyAsync(mine, got, sizeof(got), cudaMemcpyHostToDevice, stream));
	for (bool more = true; more;) {
		affine<<<1, LENGTH, 0, stream>>>(mine, 7, (unsigned)rounds, 3);
		CU(cudaGetLastError());
		for (int i = 0; i < 3; i++)
			want = want * 7 + (unsigned)rounds;
		if (++rounds % 8 == 0) {
			CU(cudaMemcpyAsync(got, mine, sizeof(got), cudaMemcpyDeviceToHost, stream));
			CU(cudaStreamSynchronize(stream));
			OK(got[0] == want && got[LENGTH - 1] == want);
		}
		std::unique_lock<std::mutex> hold(token->lock);
		while (token->step < STEPS && owner[token->step] != me)
			token->passed.wait(hold);
		more = token->step < STEPS;
		if (more)
			enqueue(token, stream);
		token->passed.notify_all();
	}
	CU(cudaStreamSynchronize(stream));
	CU(cudaFree(mine));
	CU(cudaStreamDestroy(stream));
}

int main()
{
	std::vector<std::thread> threads;
	unsigned got[LENGTH];
	uint32_t seed = 555;
	baton token;

	for (int &who : owner)
		who = (int)(random_next(&seed) % THREADS);
	for (unsigned i = 0; i < LENGTH; i++)
		got[i] = i * i;
	CU(cudaMalloc(&data, sizeof(got)));
	CU(cudaMemcpy(data, got, sizeof(got), cudaMemcpyHostToDevice));
	CU(cudaEventCreateWithFlags(&token.ready, cudaEventDisableTiming));
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(work, i, &token);
	for (std::thread &t : threads)
		t.join();
	CU(cudaEventSynchronize(token.ready));
	CU(cudaMemcpy(got, data, sizeof(got), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < LENGTH; i++) {
		unsigned x = i * i;
		for (unsigned step = 0; step < STEPS; step++) {
			for (unsigned k = 0; k < 1 + step % 50; k++)
				x = x * (2 * step + 3) + step;
			if (step > 0)
				x = x * 5 + ((step - 1) & 0x7f) * 0x01010101u;
		}
		OK(got[i] == x);
	}
	printf("checksum %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	return verdict("threads_many_streams");
}
