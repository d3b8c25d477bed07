/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Vector addition, with a length that is not a multiple of the block size. */
#include "check.h"

static const int LENGTH = 50021;

__global__ void vector_add(const float *a, const float *b, float *sum, int length)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < length)
		sum[i] = a[i] + b[i];
}

int main()
{
	size_t bytes = LENGTH * sizeof(float);
	float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes),
	      *sum = (float *)malloc(bytes);
	float *device_a, *device_b, *device_sum;

	for (int i = 0; i < LENGTH; i++) {
		a[i] = 0.5f * (float)i;
		b[i] = (float)(LENGTH - i) / 3.0f;
	}
	CU(cudaMalloc(&device_a, bytes));
	CU(cudaMalloc(&device_b, bytes));
	CU(cudaMalloc(&device_sum, bytes));
	CU(cudaMemcpy(device_a, a, bytes, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(device_b, b, bytes, cudaMemcpyHostToDevice));
	vector_add<<<(LENGTH + 255) / 256, 256>>>(device_a, device_b, device_sum, LENGTH);
	CU(cudaGetLastError());
	CU(cudaMemcpy(sum, device_sum, bytes, cudaMemcpyDeviceToHost));

	int wrong = 0;
	for (int i = 0; i < LENGTH; i++)
		wrong += sum[i] != a[i] + b[i];
	OK(wrong == 0);
	printf("first %.3f last %.3f checksum %016llx\n", sum[0], sum[LENGTH - 1],
		(unsigned long long)checksum(sum, bytes));
	CU(cudaFree(device_a));
	CU(cudaFree(device_b));
	CU(cudaFree(device_sum));
	free(a);
	free(b);
	free(sum);
	return verdict("vector_add");
}
