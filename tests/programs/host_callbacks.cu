/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cudaLaunchHostFunc and cudaStreamAddCallback: functions run in stream order and see the memory
 * that earlier copies have written.
 */
#include "check.h"
#include <atomic>

enum { ROUNDS = 12, LENGTH = 64 };

struct step {
	int number;
	unsigned *results; /* destination of the copy before this step */
	std::atomic<int> *order;
	int seen_order;
	unsigned seen_value;
};

__global__ void advance(unsigned *data, unsigned add)
{
	data[threadIdx.x] = data[threadIdx.x] * 7 + add;
}

static void on_host(void *argument)
{
	step *s = (step *)argument;

	s->seen_order = s->order->fetch_add(1);
	s->seen_value = s->results[LENGTH - 1];
}

static void on_callback(cudaStream_t, cudaError_t status, void *argument)
{
	OK(status == cudaSuccess);
	on_host(argument);
}

int main()
{
	static step steps[ROUNDS];
	std::atomic<int> order(0);
	unsigned *data, *results, want = 0;
	cudaStream_t stream;

	CU(cudaStreamCreate(&stream));
	CU(cudaMalloc(&data, LENGTH * 4));
	CU(cudaMallocHost(&results, ROUNDS * LENGTH * 4));
	CU(cudaMemsetAsync(data, 0, LENGTH * 4, stream));
	for (int i = 0; i < ROUNDS; i++) {
		steps[i] = { i, results + i * LENGTH, &order, -1, 0 };
		advance<<<1, LENGTH, 0, stream>>>(data, (unsigned)i + 1);
		CU(cudaMemcpyAsync(
			results + i * LENGTH, data, LENGTH * 4, cudaMemcpyDeviceToHost, stream));
		if (i % 3 == 2)
			CU(cudaStreamAddCallback(stream, on_callback, &steps[i], 0));
		else
			CU(cudaLaunchHostFunc(stream, on_host, &steps[i]));
	}
	CU(cudaStreamSynchronize(stream));
	OK(order == ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		want = want * 7 + (unsigned)i + 1;
		OK(steps[i].seen_order == i);
		OK(steps[i].seen_value == want);
		printf("step %d value %08x\n", steps[i].seen_order, steps[i].seen_value);
	}

	/*
	 * An event recorded after a host function is not complete before the function has returned,
	 * and neither is a stream that waits for the event.
	 */
	cudaStream_t other;
	cudaEvent_t event;
	CU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CU(cudaEventCreate(&event));
	steps[0].seen_order = -1;
	CU(cudaLaunchHostFunc(stream, on_host, &steps[0]));
	CU(cudaEventRecord(event, stream));
	CU(cudaStreamWaitEvent(other, event, 0));
	CU(cudaLaunchHostFunc(other, on_host, &steps[1]));
	CU(cudaStreamSynchronize(other));
	OK(steps[0].seen_order == ROUNDS && steps[1].seen_order == ROUNDS + 1);
	EXPECT(cudaErrorInvalidValue, cudaStreamAddCallback(stream, on_callback, nullptr, 1));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	CU(cudaFreeHost(results));
	CU(cudaFree(data));
	CU(cudaStreamDestroy(stream));
	CU(cudaStreamDestroy(other));
	return verdict("host_callbacks");
}
