/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernels that wait for a word of pinned memory which the program writes while they run, as the
 * autotuners of frameworks have them: each kind of wait of the program lets the kernel go on.
 */
#include "check.h"

/* Both sides wait at most this long, in ns. */
#define PATIENCE (8ull * 1000 * 1000 * 1000)

static __global__ void wait_for(const volatile int *word, int want, int *ret_seen)
{
	unsigned long long begun, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
		*ret_seen = *word;
	} while (*ret_seen != want && now - begun < PATIENCE);
}

enum way { STREAM, EVENT, CONTEXT, STREAM_QUERY, EVENT_QUERY, WAYS };

static const char *const names[WAYS] = { "stream", "event", "context", "stream, asked",
	"event, asked" };

static void wait_by(enum way way, cudaStream_t stream, cudaEvent_t event)
{
	switch (way) {
	case STREAM:
		CU(cudaStreamSynchronize(stream));
		break;
	case EVENT:
		CU(cudaEventSynchronize(event));
		break;
	case STREAM_QUERY:
		while (cudaStreamQuery(stream) == cudaErrorNotReady)
			;
		break;
	case EVENT_QUERY:
		while (cudaEventQuery(event) == cudaErrorNotReady)
			;
		break;
	default:
		CU(cudaDeviceSynchronize());
	}
}

static void released(enum way way, int *word, int *seen, cudaStream_t stream, cudaEvent_t event)
{
	int got = -1, want = (int)way + 1;

	wait_for<<<1, 1, 0, stream>>>(word, want, seen);
	CU(cudaGetLastError());
	CU(cudaEventRecord(event, stream));
	*(volatile int *)word = want;
	wait_by(way, stream, event);
	CU(cudaMemcpy(&got, seen, sizeof got, cudaMemcpyDeviceToHost));
	OK(got == want);
	printf("%s: %s\n", names[way], got == want ? "released" : "waited in vain");
}

int main()
{
	cudaStream_t stream;
	cudaEvent_t event;
	int *word, *seen;

	CU(cudaHostAlloc(&word, 64, cudaHostAllocPortable));
	CU(cudaMalloc(&seen, sizeof *seen));
	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaEventCreate(&event));
	*word = 0;
	for (int way = 0; way < WAYS; way++)
		released((enum way)way, word, seen, stream, event);
	CU(cudaFreeHost(word));
	CU(cudaFree(seen));
	return verdict("released_by_host");
}
