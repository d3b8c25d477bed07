/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernels for test_image.c, which has their parameter blocks, bounds, shared memory and variables
 * as constants.
 */
#include <cstdio>

struct __attribute__((aligned(8))) forty {
	char bytes[40];
};
struct large {
	char bytes[5000];
};

__device__ int counter;
__device__ float table[100] = { 1, 2 };
__constant__ int constants[4];
static __device__ int hidden;
__managed__ int managed;

extern "C" __global__ void mixed(char a, forty s, short b, float4 c, int *out)
{
	__shared__ int tile[77];

	tile[threadIdx.x] = a + b + s.bytes[3];
	__syncthreads();
	out[threadIdx.x] = tile[76 - threadIdx.x] + (int)c.x + counter + constants[2] + hidden;
	hidden = 3;
	table[3] = (float)out[2];
	managed = 4;
}

extern "C" __global__ void __launch_bounds__(128) bounded(int x, char y)
{
	if (x == y)
		printf("%d\n", x);
}

__device__ __noinline__ float helper(float x)
{
	__shared__ float slots[33];

	slots[threadIdx.x] = x;
	__syncthreads();
	return slots[3];
}

extern "C" __global__ void calls(float *p)
{
	*p = helper(p[3]);
}

extern "C" __global__ void nothing()
{
}

extern "C" __global__ void wide(large value, int *out)
{
	*out = value.bytes[4999];
}

/* exact block sizes exist from sm_90 on */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define EXACT __block_size__((32, 2, 1))
#else
#define EXACT
#endif

extern "C" __global__ void EXACT fixed(double d, char last)
{
	if (d == last)
		counter = 1;
}
