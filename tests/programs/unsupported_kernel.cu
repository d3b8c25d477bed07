/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Valid code that the software device does not implement: every launch of the kernel that uses it
 * is refused; other kernels of the module run. On a GPU all of them run.
 */
#include "check.h"
#include <mma.h>

using namespace nvcuda;

__global__ void unsupported(const half *a, float *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;

	wmma::fill_fragment(fc, 0.f);
	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, a, 16);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__global__ void plain(int *out)
{
	out[threadIdx.x] = threadIdx.x;
}

int main()
{
	int *out, got[32];
	half *a;
	float *c;

	CU(cudaMalloc(&out, sizeof(got)));
	CU(cudaMalloc(&a, 512));
	CU(cudaMalloc(&c, 1024));
	CU(cudaMemset(a, 0, 512));
	for (int i = 0; i < 2; i++) {
		unsupported<<<1, 32>>>(a, c);
		EXPECT(cudaErrorInvalidPtx, cudaGetLastError());
		EXPECT(cudaSuccess, cudaDeviceSynchronize());
		plain<<<1, 32>>>(out);
		EXPECT(cudaSuccess, cudaGetLastError());
		EXPECT(cudaSuccess, cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
		OK(got[31] == 31);
	}
	return verdict("unsupported_kernel");
}
