/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Invalid code in a program with valid code. The runtime loads the invalid code at its first use:
 * that call fails each time it is made, and no other call fails. lazy_ptx_broken.cu contains the
 * invalid code; only its PTX is embedded, so that no build step rejects it.
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
