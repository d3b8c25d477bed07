/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Three streams share the work: while one copies a piece to the device, another computes, and a
 * third copies results back. Copies overlap with kernels because the memory is pinned. Events at
 * the start and the end measure the duration.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                            \
	do {                                                                                   \
		cudaError_t status = (call);                                                   \
		if (status != cudaSuccess) {                                                   \
			fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(status)); \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

enum { STREAMS = 3, PIECES = 12, PIECE = 1 << 16 };

__global__ void root(const float *in, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = sqrtf(in[i]);
}

int main()
{
	const size_t bytes = PIECE * sizeof(float);
	float *in, *out, *device_in[STREAMS], *device_out[STREAMS], ms;
	cudaStream_t stream[STREAMS];
	cudaEvent_t begin, done[STREAMS], end;

	CHECK(cudaMallocHost(&in, PIECES * bytes));
	CHECK(cudaMallocHost(&out, PIECES * bytes));
	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	for (int s = 0; s < STREAMS; s++) {
		CHECK(cudaStreamCreate(&stream[s]));
		CHECK(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
		CHECK(cudaMalloc(&device_in[s], bytes));
		CHECK(cudaMalloc(&device_out[s], bytes));
	}
	for (int i = 0; i < PIECES * PIECE; i++)
		in[i] = (float)i;

	CHECK(cudaEventRecord(begin, stream[0]));
	for (int piece = 0; piece < PIECES; piece++) {
		int s = piece % STREAMS;
		CHECK(cudaMemcpyAsync(device_in[s], in + piece * PIECE, bytes,
			cudaMemcpyHostToDevice, stream[s]));
		root<<<PIECE / 256, 256, 0, stream[s]>>>(device_in[s], device_out[s]);
		CHECK(cudaGetLastError());
		CHECK(cudaMemcpyAsync(out + piece * PIECE, device_out[s], bytes,
			cudaMemcpyDeviceToHost, stream[s]));
	}
	/*
	 * The first stream waits for the others, so that its last event marks the end of all
	 * streams.
	 */
	for (int s = 1; s < STREAMS; s++) {
		CHECK(cudaEventRecord(done[s], stream[s]));
		CHECK(cudaStreamWaitEvent(stream[0], done[s]));
	}
	CHECK(cudaEventRecord(end, stream[0]));
	CHECK(cudaEventSynchronize(end));
	CHECK(cudaEventElapsedTime(&ms, begin, end));

	for (int i = 0; i < PIECES * PIECE; i++)
		if (fabsf(out[i] * out[i] - in[i]) > 1e-6f * in[i]) {
			fprintf(stderr, "wrong at %d: %g\n", i, out[i]);
			return 1;
		}
	printf("%d square roots, all right: sqrt(144) = %g\n", PIECES * PIECE, out[144]);
	fprintf(stderr, "%.2f ms, %.0f MB/s in and out together\n", ms,
		2e-3 * PIECES * (double)bytes / ms);

	for (int s = 0; s < STREAMS; s++) {
		CHECK(cudaStreamDestroy(stream[s]));
		CHECK(cudaEventDestroy(done[s]));
		CHECK(cudaFree(device_in[s]));
		CHECK(cudaFree(device_out[s]));
	}
	CHECK(cudaEventDestroy(begin));
	CHECK(cudaEventDestroy(end));
	CHECK(cudaFreeHost(in));
	CHECK(cudaFreeHost(out));
	return 0;
}
