/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The kernel of saxpy_driver.c: nvcc -ptx saxpy_kernel.cu */

extern "C" __global__ void saxpy(float a, const float *x, float *y, int length)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < length)
		y[i] = a * x[i] + y[i];
}
