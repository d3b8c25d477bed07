/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Kernels for test_gpu.c, the test of compute/gpu. */

extern "C" __global__ void base_add(unsigned n, unsigned *a, unsigned value)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		a[i] += value;
}

extern "C" __global__ void base_fault(unsigned *nowhere)
{
	*nowhere = 1;
}
