/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The part of lazy_ptx.cu that cannot be loaded. */
#include <cuda_runtime.h>

__global__ void broken(int *out)
{
	int value;

	asm volatile("no_such_instruction.u32 %0, 1;" : "=r"(value));
	out[threadIdx.x] = value;
}

cudaError_t broken_launch(int *out)
{
	void *args[] = { &out };

	return cudaLaunchKernel((const void *)broken, dim3(1), dim3(32), args, 0, 0);
}

cudaError_t broken_attributes(cudaFuncAttributes *ret)
{
	return cudaFuncGetAttributes(ret, (const void *)broken);
}
