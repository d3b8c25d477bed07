/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The second file of the test separate.cu. */
#include "separate.h"

__device__ int shared_counter;
__constant__ int shared_table[4] = { 10, 20, 30, 40 };

__device__ int elsewhere(int x)
{
	return 3 * twice(x) + 1;
}

__global__ void there(int *out, int add)
{
	out[threadIdx.x] = twice((int)threadIdx.x + add) + shared_counter;
}
