/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cudaLaunchKernelEx: without attributes, cooperative, with priority, with programmatic
 * serialisation; and launches by cudaLaunchKernel.
 */
#include "check.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void typed(char a, double b, int *out, short c)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] =
		a * 1000000 + (int)(b * 1000) + c * 10 + (int)blockIdx.x;
}

__global__ void together(int *out)
{
	cg::grid_group grid = cg::this_grid();

	if (threadIdx.x == 0)
		atomicAdd(&out[0], 1);
	grid.sync();
	out[1 + grid.thread_rank()] = *(volatile int *)&out[0];
}

int main()
{
	enum { BLOCKS = 4, THREADS = 33, COUNT = BLOCKS * THREADS };
	int got[COUNT + 1], *out, least, greatest;
	cudaStream_t stream;

	CU(cudaMalloc(&out, sizeof(got)));
	CU(cudaStreamCreate(&stream));
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute[2] = {};
	config.gridDim = dim3(BLOCKS);
	config.blockDim = dim3(THREADS);
	config.stream = stream;
	CU(cudaLaunchKernelEx(&config, typed, (char)-2, 1.25, out, (short)7));
	CU(cudaMemcpyAsync(got, out, COUNT * 4, cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++)
		OK(got[i] == -2000000 + 1250 + 70 + i / THREADS);
	printf("plain %d %d\n", got[0], got[COUNT - 1]);

	CU(cudaMemsetAsync(out, 0, sizeof(got), stream));
	attribute[0].id = cudaLaunchAttributeCooperative;
	attribute[0].val.cooperative = 1;
	config.attrs = attribute;
	config.numAttrs = 1;
	CU(cudaLaunchKernelEx(&config, together, out));
	CU(cudaMemcpyAsync(got, out, sizeof(got), cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	for (int i = 0; i <= COUNT; i++)
		OK(got[i] == BLOCKS);
	printf("cooperative %d\n", got[COUNT]);

	CU(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	attribute[0].id = cudaLaunchAttributePriority;
	attribute[0].val.priority = greatest;
	CU(cudaLaunchKernelEx(&config, typed, (char)3, 0.5, out, (short)-1));
	CU(cudaStreamSynchronize(stream));
	CU(cudaMemcpy(got, out, COUNT * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		OK(got[i] == 3000000 + 500 - 10 + i / THREADS);
	printf("priority %d\n", got[0]);

	/* The same function by its address, with its arguments in an array. */
	char a = 1;
	double b = 2;
	short c = 3;
	void *args[] = { &a, &b, &out, &c };
	CU(cudaLaunchKernel((const void *)typed, dim3(2), dim3(8), args, 0, stream));
	CU(cudaStreamSynchronize(stream));
	CU(cudaMemcpy(got, out, COUNT * 4, cudaMemcpyDeviceToHost));
	OK(got[0] == 1002030 && got[15] == 1002031 && got[16] == 3000490);
	config.numAttrs = 0;
	config.gridDim = dim3(0);
	EXPECT(cudaErrorInvalidValue, cudaLaunchKernelEx(&config, typed, a, b, out, c));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	CU(cudaStreamDestroy(stream));
	return verdict("launch_ex");
}
