/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Adds two vectors on the device. The simplest example. */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                            \
	do {                                                                                   \
		cudaError_t status = (call);                                                   \
		if (status != cudaSuccess) {                                                   \
			fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(status)); \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

__global__ void add(const float *a, const float *b, float *sum, int length)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < length)
		sum[i] = a[i] + b[i];
}

int main()
{
	const int length = 1 << 20;
	const size_t bytes = length * sizeof(float);
	std::vector<float> a(length), b(length), sum(length);
	float *device_a, *device_b, *device_sum;
	cudaDeviceProp device;

	for (int i = 0; i < length; i++) {
		a[i] = (float)i;
		b[i] = 2.0f * (float)i;
	}
	CHECK(cudaGetDeviceProperties(&device, 0));
	printf("device: %s\n", device.name);

	CHECK(cudaMalloc(&device_a, bytes));
	CHECK(cudaMalloc(&device_b, bytes));
	CHECK(cudaMalloc(&device_sum, bytes));
	CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
	add<<<(length + 255) / 256, 256>>>(device_a, device_b, device_sum, length);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(device_a));
	CHECK(cudaFree(device_b));
	CHECK(cudaFree(device_sum));

	for (int i = 0; i < length; i++)
		if (sum[i] != a[i] + b[i]) {
			fprintf(stderr, "wrong at %d: %g + %g = %g?\n", i, a[i], b[i], sum[i]);
			return 1;
		}
	printf("%d sums, all right: %g + %g = %g\n", length, a[12345], b[12345], sum[12345]);
	return 0;
}
