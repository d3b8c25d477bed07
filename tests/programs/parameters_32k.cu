/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernel parameters of 32,764 bytes: the limit since CUDA 12.1, for compute capability 7.0 and
 * newer.
 */
#include "check.h"

enum { BYTES = 32764 - 12, WORDS = BYTES / 4 };

struct huge {
	int word[WORDS];
};

__global__ void gather(const __grid_constant__ huge in, long long *out, int stride)
{
	long long sum = 0;

	for (int i = threadIdx.x; i < WORDS; i += stride)
		sum += in.word[i] * (long long)(i % 7 + 1);
	out[threadIdx.x] = sum;
}

int main()
{
	static huge in;
	long long got[96], *out;
	uint32_t seed = 12;

	for (int &x : in.word)
		x = (int)random_next(&seed);
	CU(cudaMalloc(&out, sizeof(got)));
	gather<<<1, 96>>>(in, out, 96);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int t = 0; t < 96; t++) {
		long long sum = 0;
		for (int i = t; i < WORDS; i += 96)
			sum += in.word[i] * (long long)(i % 7 + 1);
		OK(got[t] == sum);
	}
	printf("thread 0 %lld checksum %016llx\n", got[0],
		(unsigned long long)checksum(got, sizeof(got)));
	return verdict("parameters_32k");
}
