/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Separable compilation: device functions, variables and a kernel in another file, linked by nvcc
 * -rdc=true.
 */
#include "check.h"
#include "separate.h"

__device__ int base = 1000;

__device__ int twice(int x)
{
	return 2 * x + base;
}

__global__ void here(int *out)
{
	int i = threadIdx.x;

	out[i] = elsewhere(i) + shared_table[i % 4];
	if (i == 0)
		shared_counter += 5;
}

int main()
{
	int *out, got[64], counter = 0;

	CU(cudaMalloc(&out, sizeof(got)));
	here<<<1, 64>>>(out);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		OK(got[i] == (2 * i + 1000) * 3 + 1 + 10 * (i % 4 + 1));
	printf("here  %d %d\n", got[0], got[63]);
	there<<<1, 64>>>(out, 7);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		OK(got[i] == 2 * (i + 7) + 1000 + 5);
	printf("there %d %d\n", got[0], got[63]);
	CU(cudaMemcpyFromSymbol(&counter, shared_counter, sizeof(counter)));
	OK(counter == 5);
	return verdict("separate");
}
