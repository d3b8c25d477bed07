/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Each thread repeats one operation. gpu_bench.c measures the rates of the arithmetic with them. */
#include "compute/curve/g1.cuh"

template <class T> static __device__ void products(unsigned n, T *data)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	T x = data[i], y = x;

#pragma unroll 1
	for (unsigned k = 0; k < n; k++)
		x = x * y;
	data[i] = x;
}

extern "C" __global__ void __launch_bounds__(128) micro_fp(unsigned n, obk_fp *data)
{
	products(n, data);
}

extern "C" __global__ void __launch_bounds__(128) micro_fr(unsigned n, obk_fr *data)
{
	products(n, data);
}

/* Each thread adds points out of 256 in turn; data has room for the sum of every thread. */
extern "C" __global__ void __launch_bounds__(128, 3)
	micro_add(unsigned n, const obk_g1_affine *points, obk_g1 *data)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	obk_g1 sum = data[i];

#pragma unroll 1
	for (unsigned k = 0; k < n; k++)
		sum = obk_g1_add_affine(sum, points[(i + 37 * k) & 255]);
	data[i] = sum;
}

/* Multiplies 32 x 32 -> 64 bits, in eight independent chains per thread. */
extern "C" __global__ void __launch_bounds__(128) micro_wide(unsigned n, uint64_t *data)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t x[8];
	uint32_t y = (uint32_t)data[i] | 1;

	for (unsigned j = 0; j < 8; j++)
		x[j] = data[i] + j;
#pragma unroll 1
	for (unsigned k = 0; k < n; k++) {
#pragma unroll
		for (unsigned j = 0; j < 8; j++)
			asm volatile("mad.wide.u32 %0, %1, %2, %0;"
				     : "+l"(x[j])
				     : "r"((uint32_t)x[j]), "r"(y));
	}
	for (unsigned j = 1; j < 8; j++)
		x[0] ^= x[j];
	data[i] = x[0];
}
