// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// For dry runs (tests/e2e/dryrun.py): machine code without PTX. What a dry run does truly (memory,
// copies, order, initial values, checks of launches) and what it does not (kernels).
#include <cstdio>
#include <cstring>

__device__ int answer = 42;
__device__ int zeros[4];
__constant__ float table[3] = { 1.5f, 2.5f, 3.5f };

__global__ void change(int *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = answer + (int)table[i % 3];
	answer = 0;
}

#define TRY(call)                                                           \
	do {                                                                \
		cudaError_t error = call;                                   \
		if (error)                                                  \
			printf("%s: %s\n", #call, cudaGetErrorName(error)); \
	} while (0)

static void CUDART_CB note(void *user)
{
	*(int *)user = 7;
}

int main(void)
{
	const int n = 1 << 20;
	int *p, noted = 0, first = 0, z[4] = { 1, 1, 1, 1 };
	float t[3] = { 0 };
	cudaFuncAttributes attributes;
	cudaDeviceProp properties = {};
	static int host[1 << 20];

	TRY(cudaGetDeviceProperties(&properties, 0));
	printf("%s, %d.%d, %d multiprocessors\n", properties.name, properties.major,
		properties.minor, properties.multiProcessorCount);
	TRY(cudaMalloc(&p, sizeof host));
	for (int i = 0; i < n; i++)
		host[i] = i;
	TRY(cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice));
	TRY(cudaMemset(p + 10, 0xff, 40));
	change<<<n / 256, 256>>>(p, n);
	TRY(cudaGetLastError());
	TRY(cudaLaunchHostFunc(0, note, &noted));
	memset(host, 0, sizeof host);
	TRY(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
	printf("copied: %d %d %d %d, noted %d\n", host[9], host[10], host[19], host[n - 1], noted);
	TRY(cudaMemcpyFromSymbol(&first, answer, sizeof first));
	TRY(cudaMemcpyFromSymbol(z, zeros, sizeof z));
	TRY(cudaMemcpyFromSymbol(t, table, sizeof t));
	printf("variables: %d, %d %d, %.1f %.1f %.1f\n", first, z[0], z[3], t[0], t[1], t[2]);
	TRY(cudaFuncGetAttributes(&attributes, change));
	printf("kernel: %d threads at most, registers %s\n", attributes.maxThreadsPerBlock,
		attributes.numRegs > 0 ? "known" : "unknown");
	change<<<1, 2048>>>(p, n);
	printf("a block too large: %s\n", cudaGetErrorName(cudaGetLastError()));
	TRY(cudaFree(p));
	return 0;
}
