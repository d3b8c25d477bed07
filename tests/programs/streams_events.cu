/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Streams that wait for each other's events, timing, flags, queries, and refused calls. */
#include "check.h"
#include <vector>

enum { LENGTH = 1024, STREAMS = 4, ROUNDS = 6, SLOW = 3000 };

/* Slow, so that a stream that does not wait for it reads old values. */
__global__ void slow_step(unsigned *data, unsigned factor, unsigned add, int repeat)
{
	unsigned x = data[blockIdx.x * blockDim.x + threadIdx.x];

	for (int i = 0; i < repeat; i++)
		x = x * factor + add;
	data[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static unsigned host_step(unsigned x, unsigned factor, unsigned add, int repeat)
{
	for (int i = 0; i < repeat; i++)
		x = x * factor + add;
	return x;
}

static void chain_of_streams()
{
	std::vector<unsigned> start(LENGTH), got(LENGTH);
	cudaStream_t stream[STREAMS];
	cudaEvent_t done[STREAMS];
	unsigned *data;
	int wrong = 0;

	for (int i = 0; i < LENGTH; i++)
		start[i] = (unsigned)i;
	CU(cudaMalloc(&data, LENGTH * 4));
	for (int s = 0; s < STREAMS; s++) {
		CU(cudaStreamCreateWithFlags(
			&stream[s], s % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
		CU(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
	}
	CU(cudaMemcpyAsync(data, start.data(), LENGTH * 4, cudaMemcpyHostToDevice, stream[0]));
	CU(cudaEventRecord(done[STREAMS - 1], stream[0]));
	for (int round = 0; round < ROUNDS * STREAMS; round++) {
		int s = round % STREAMS;
		CU(cudaStreamWaitEvent(stream[s], done[(s + STREAMS - 1) % STREAMS], 0));
		slow_step<<<LENGTH / 128, 128, 0, stream[s]>>>(
			data, 5 + 2 * s, (unsigned)round, SLOW / 10);
		CU(cudaEventRecord(done[s], stream[s]));
	}
	CU(cudaMemcpyAsync(
		got.data(), data, LENGTH * 4, cudaMemcpyDeviceToHost, stream[STREAMS - 1]));
	CU(cudaStreamSynchronize(stream[STREAMS - 1]));
	for (int i = 0; i < LENGTH; i++) {
		unsigned x = start[i];
		for (int round = 0; round < ROUNDS * STREAMS; round++)
			x = host_step(x, 5 + 2 * (round % STREAMS), (unsigned)round, SLOW / 10);
		wrong += got[i] != x;
	}
	OK(wrong == 0);
	printf("chain %016llx\n", (unsigned long long)checksum(got.data(), LENGTH * 4));
	for (int s = 0; s < STREAMS; s++) {
		EXPECT(cudaSuccess, cudaStreamQuery(stream[s]));
		EXPECT(cudaSuccess, cudaEventQuery(done[s]));
		CU(cudaStreamDestroy(stream[s]));
		CU(cudaEventDestroy(done[s]));
	}
	CU(cudaFree(data));
}

/* The legacy default stream and blocking streams wait for each other without events. */
static void legacy_default_stream()
{
	cudaStream_t stream;
	unsigned *data, got = 0;

	CU(cudaMalloc(&data, 4));
	CU(cudaStreamCreate(&stream));
	CU(cudaMemset(data, 0, 4));
	unsigned want = 0;
	for (unsigned i = 1; i <= 6; i++) {
		slow_step<<<1, 1, 0, i % 2 ? stream : cudaStreamLegacy>>>(data, 3, i, SLOW);
		want = host_step(want, 3, i, SLOW);
	}
	CU(cudaMemcpyAsync(&got, data, 4, cudaMemcpyDeviceToHost, cudaStreamLegacy));
	CU(cudaStreamSynchronize(cudaStreamLegacy));
	OK(got == want);
	printf("legacy %08x\n", got);
	CU(cudaStreamDestroy(stream));
	CU(cudaFree(data));
}

static void timing()
{
	cudaEvent_t first, second, untimed, never;
	unsigned *data;
	float short_ms = -1, long_ms = -1, none = 0;

	CU(cudaMalloc(&data, 4 * 32));
	CU(cudaMemset(data, 1, 4 * 32));
	CU(cudaEventCreate(&first));
	CU(cudaEventCreateWithFlags(&second, cudaEventBlockingSync));
	CU(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	CU(cudaEventCreate(&never));
	CU(cudaEventRecord(first));
	CU(cudaEventRecord(second));
	CU(cudaEventSynchronize(second));
	CU(cudaEventElapsedTime(&short_ms, first, second));
	CU(cudaEventRecord(first));
	slow_step<<<1, 32>>>(data, 3, 1, SLOW * 40);
	CU(cudaEventRecord(second));
	CU(cudaEventSynchronize(second));
	CU(cudaEventElapsedTime(&long_ms, first, second));
	OK(short_ms >= 0 && long_ms > 0 && long_ms < 60000);
	CU(cudaEventRecord(untimed));
	CU(cudaEventSynchronize(untimed));
	EXPECT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&none, first, untimed));
	EXPECT(cudaErrorInvalidResourceHandle, cudaGetLastError());
	EXPECT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&none, first, never));
	EXPECT(cudaErrorInvalidResourceHandle, cudaGetLastError());
	EXPECT(cudaSuccess, cudaEventQuery(never));
	EXPECT(cudaSuccess, cudaEventSynchronize(never));
	EXPECT(cudaSuccess, cudaStreamWaitEvent(0, never, 0));

	/* A query of unfinished work returns an error that does not persist. */
	CU(cudaEventRecord(first));
	slow_step<<<1, 32>>>(data, 3, 1, SLOW * 100);
	CU(cudaEventRecord(second));
	cudaError_t status = cudaEventQuery(second);
	OK(status == cudaSuccess || status == cudaErrorNotReady);
	CU(cudaDeviceSynchronize());
	EXPECT(cudaSuccess, cudaEventQuery(second));
	cudaGetLastError();
	for (cudaEvent_t event : { first, second, untimed, never })
		CU(cudaEventDestroy(event));
	CU(cudaFree(data));
	puts("timing done");
}

static void flags()
{
	cudaStream_t stream;
	unsigned flags = 99;

	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaStreamGetFlags(stream, &flags));
	OK(flags == cudaStreamNonBlocking);
	CU(cudaStreamDestroy(stream));
	EXPECT(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 0x80));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
}

int main()
{
	chain_of_streams();
	legacy_default_stream();
	timing();
	flags();
	return verdict("streams_events");
}
