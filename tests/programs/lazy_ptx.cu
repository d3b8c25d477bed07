/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Code that no compiler takes, beside code that is good: the runtime loads it at its first use, and
 * that call fails, each time; nothing else does. lazy_ptx_broken.cu holds the bad code; only its
 * PTX is embedded, so nobody has looked at it before.
 */
#include "check.h"

cudaError_t broken_launch(int *out);
cudaError_t broken_attributes(cudaFuncAttributes *ret);

__global__ void good(int *out)
{
	out[threadIdx.x] += 1;
}

int main()
{
	cudaFuncAttributes attributes;
	int *out, got[32];

	CU(cudaMalloc(&out, sizeof(got)));
	CU(cudaMemset(out, 0, sizeof(got)));
	for (int i = 1; i <= 3; i++) {
		EXPECT(cudaErrorInvalidPtx, broken_launch(out));
		EXPECT(cudaErrorInvalidPtx, cudaGetLastError());
		EXPECT(cudaSuccess, cudaGetLastError());
		good<<<1, 32>>>(out);
		EXPECT(cudaSuccess, cudaGetLastError());
		EXPECT(cudaErrorInvalidPtx, broken_attributes(&attributes));
		cudaGetLastError();
		EXPECT(cudaSuccess, cudaDeviceSynchronize());
		EXPECT(cudaSuccess, cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
		OK(got[0] == i && got[31] == i);
	}
	puts("the bad code is refused where it is used, each time");
	EXPECT(cudaSuccess, cudaFree(out));
	return verdict("lazy_ptx");
}
