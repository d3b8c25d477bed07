/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The smallest program of NVIDIA's runtime: starts it, launches once, resets. Run on the fake
 * libcuda.so.1 beside it.
 */
#include <cstdio>

__global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

#define TRY(call)                                                                              \
	do {                                                                                   \
		cudaError_t error_ = (call);                                                   \
		if (error_ != cudaSuccess) {                                                   \
			printf("%s: %s (%d)\n", #call, cudaGetErrorName(error_), (int)error_); \
			return 1;                                                              \
		}                                                                              \
	} while (0)

static int once(void)
{
	const int n = 1000;
	float a[n], b[n], c[n], *da, *db, *dc;

	for (int i = 0; i < n; i++) {
		a[i] = (float)i;
		b[i] = 2.0f * (float)i;
		c[i] = 0;
	}
	TRY(cudaMalloc(&da, sizeof a));
	TRY(cudaMalloc(&db, sizeof b));
	TRY(cudaMalloc(&dc, sizeof c));
	TRY(cudaMemset(dc, 0, sizeof c));
	TRY(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
	TRY(cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice));
	add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
	TRY(cudaGetLastError());
	TRY(cudaDeviceSynchronize());
	TRY(cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		if (c[i] != 3.0f * (float)i) {
			printf("c[%d] is %g\n", i, c[i]);
			return 1;
		}
	TRY(cudaFree(da));
	TRY(cudaFree(db));
	TRY(cudaFree(dc));
	return 0;
}

static int attributes(void)
{
	int x = 0, blocks = 0;
	float *d;
	cudaPointerAttributes of;
	cudaFuncAttributes function;

	TRY(cudaMalloc(&d, 1024));
	TRY(cudaPointerGetAttributes(&of, d + 3));
	if (of.type != cudaMemoryTypeDevice || of.devicePointer != d + 3 || of.device != 0) {
		printf("a device pointer is not known as one\n");
		return 1;
	}
	TRY(cudaPointerGetAttributes(&of, &x));
	if (of.type != cudaMemoryTypeUnregistered) {
		printf("a stack variable is of type %d\n", (int)of.type);
		return 1;
	}
	TRY(cudaFuncGetAttributes(&function, add));
	TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
	if (function.maxThreadsPerBlock != 1024 || function.numRegs != 32 || blocks != 8) {
		printf("threads %d registers %d blocks %d\n", function.maxThreadsPerBlock,
			function.numRegs, blocks);
		return 1;
	}
	TRY(cudaFree(d));
	return 0;
}

int main(void)
{
	cudaDeviceProp prop;
	int count = 0, before;
	cudaError_t error;

	TRY(cudaGetDeviceCount(&count));
	TRY(cudaGetDeviceProperties(&prop, 1));
	if (once() || attributes())
		return 1;
	/* What a program does wrong shows at the call that is wrong. */
	add<<<0, 256>>>(nullptr, nullptr, nullptr, 0);
	error = cudaGetLastError();
	add<<<1, 2048>>>(nullptr, nullptr, nullptr, 0);
	if (error != cudaErrorInvalidValue || cudaGetLastError() != cudaErrorInvalidValue) {
		printf("a bad configuration gave %d\n", (int)error);
		return 1;
	}
	TRY(cudaDeviceReset());
	before = once();
	TRY(cudaSetDevice(1));
	if (before || once())
		return 1;
	printf("%s, %d devices: right\n", prop.name, count);
	return 0;
}
