/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Dynamic shared memory: several arrays in one allocation, 60 KB after opting in, and sizes that
 * are refused.
 */
#include "check.h"
#include <vector>

enum { THREADS = 128, LARGE = 60 * 1024 };

extern __shared__ __align__(16) unsigned char arena[];

__global__ void reverse(const int *in, int *out, int count)
{
	int *values = (int *)arena;
	short *order = (short *)(values + count);

	for (int i = threadIdx.x; i < count; i += blockDim.x) {
		values[i] = in[i];
		order[i] = (short)(count - 1 - i);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		out[i] = values[order[i]];
}

/* Uses all of the large array: every word is written by one thread and read by another. */
__global__ void walk(unsigned *out, int words)
{
	__shared__ volatile unsigned seed;
	unsigned *all = (unsigned *)arena, sum = 0;

	if (threadIdx.x == 0)
		seed = 0x9e3779b9u;
	__syncthreads();
	for (int i = threadIdx.x; i < words; i += THREADS)
		all[i] = (unsigned)i * seed;
	__syncthreads();
	for (int i = threadIdx.x; i < words; i += THREADS)
		sum += all[words - 1 - i] ^ (unsigned)i;
	out[threadIdx.x] = sum;
}

int main()
{
	const int count = 1500, words = LARGE / 4;
	std::vector<int> in(count), got(count);
	unsigned sums[THREADS], *device_sums;
	int *device_in, *device_out, device, optin, normal;

	CU(cudaGetDevice(&device));
	CU(cudaDeviceGetAttribute(&normal, cudaDevAttrMaxSharedMemoryPerBlock, device));
	CU(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
	OK(normal == 48 * 1024 && optin > LARGE);
	for (int i = 0; i < count; i++)
		in[i] = i * i;
	CU(cudaMalloc(&device_in, count * 4));
	CU(cudaMalloc(&device_out, count * 4));
	CU(cudaMalloc(&device_sums, sizeof(sums)));
	CU(cudaMemcpy(device_in, in.data(), count * 4, cudaMemcpyHostToDevice));
	reverse<<<1, THREADS, count * 6>>>(device_in, device_out, count);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got.data(), device_out, count * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < count; i++)
		OK(got[i] == in[count - 1 - i]);
	printf("reversed %d %d %d\n", got[0], got[1], got[2]);

	/* Refused without cudaFuncSetAttribute. */
	walk<<<1, THREADS, LARGE>>>(device_sums, words);
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	EXPECT(cudaErrorInvalidValue,
		cudaFuncSetAttribute(walk, cudaFuncAttributeMaxDynamicSharedMemorySize, optin + 1));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	CU(cudaFuncSetAttribute(walk, cudaFuncAttributeMaxDynamicSharedMemorySize, LARGE));
	cudaFuncAttributes attributes;
	CU(cudaFuncGetAttributes(&attributes, walk));
	OK(attributes.maxDynamicSharedSizeBytes == LARGE);
	OK(attributes.sharedSizeBytes >= 4);
	walk<<<1, THREADS, LARGE>>>(device_sums, words);
	CU(cudaGetLastError());
	CU(cudaMemcpy(sums, device_sums, sizeof(sums), cudaMemcpyDeviceToHost));
	for (int t = 0; t < THREADS; t++) {
		unsigned sum = 0;
		for (int i = t; i < words; i += THREADS)
			sum += (unsigned)(words - 1 - i) * 0x9e3779b9u ^ (unsigned)i;
		OK(sums[t] == sum);
	}
	printf("60 KB %016llx\n", (unsigned long long)checksum(sums, sizeof(sums)));
	walk<<<1, THREADS, LARGE + 64>>>(device_sums, words);
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	EXPECT(cudaSuccess, cudaDeviceSynchronize());
	return verdict("dynamic_shared");
}
