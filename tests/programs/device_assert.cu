/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * assert on the device: the message, and error 710 at the next synchronisation and at every later
 * call.
 */
#undef NDEBUG
#include "check.h"
#include <cassert>

__global__ void checked(int *out, int limit)
{
	int i = threadIdx.x;

	assert(i < limit);
	out[i] = i;
}

int main()
{
	int *out, got[32];
	void *more;

	CU(cudaMalloc(&out, sizeof(got)));
	checked<<<1, 32>>>(out, 32);
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		OK(got[i] == i);
	checked<<<1, 32>>>(out, 31);
	EXPECT(cudaErrorAssert, cudaDeviceSynchronize());
	EXPECT(cudaErrorAssert, cudaGetLastError());
	EXPECT(cudaErrorAssert, cudaMalloc(&more, 64));
	EXPECT(cudaErrorAssert, cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	checked<<<1, 32>>>(out, 32);
	EXPECT(cudaErrorAssert, cudaGetLastError());
	EXPECT(cudaErrorAssert, cudaDeviceSynchronize());
	return verdict("device_assert");
}
