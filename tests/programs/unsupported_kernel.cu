/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Valid code that the software device does not implement: every launch of the kernel that uses it
 * is refused; other kernels of the module run. On a GPU all of them run.
 */
#include "check.h"

/* A video instruction, in a function that is called. */
__device__ __noinline__ int video(int a, int b)
{
	int d;

	asm("vmad.s32.s32.s32.sat %0, %1.h0, %2.b1, %1;" : "=r"(d) : "r"(a), "r"(b));
	return d;
}

__global__ void unsupported(int *out)
{
	out[threadIdx.x] = video(out[threadIdx.x], threadIdx.x);
}

__global__ void plain(int *out)
{
	out[threadIdx.x] = threadIdx.x;
}

int main()
{
	int *out, got[32];

	CU(cudaMalloc(&out, sizeof(got)));
	for (int i = 0; i < 2; i++) {
		unsupported<<<1, 32>>>(out);
		EXPECT(cudaErrorInvalidPtx, cudaGetLastError());
		EXPECT(cudaSuccess, cudaDeviceSynchronize());
		plain<<<1, 32>>>(out);
		EXPECT(cudaSuccess, cudaGetLastError());
		EXPECT(cudaSuccess, cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
		OK(got[31] == 31);
	}
	return verdict("unsupported_kernel");
}
