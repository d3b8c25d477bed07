/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernels for the programs that use the driver API; the build compiles this file to PTX and
 * fatbins.
 */

extern "C" {

__device__ int counter = 41;
__constant__ float coefficient[4] = { 0.5f, 1.5f, 2.5f, 3.5f };

__global__ void saxpy(float a, const float *x, float *y, int length)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < length)
		y[i] = a * x[i] + y[i];
}

__global__ void parameters(char a, short b, const float *x, char c, double d, float *y, int length)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < length)
		y[i] = x[i] + (float)a + (float)b * 2 + (float)c * 3 + (float)d * 4;
}

__global__ void count(int *out)
{
	out[threadIdx.x] = atomicAdd(&counter, 1) >= 0;
}

__global__ void polynomial(const float *x, float *y)
{
	float v = x[threadIdx.x];

	y[threadIdx.x] =
		coefficient[0] + v * (coefficient[1] + v * (coefficient[2] + v * coefficient[3]));
}

__global__ void shared_reverse(int *data)
{
	extern __shared__ int words[];

	words[threadIdx.x] = data[threadIdx.x];
	__syncthreads();
	data[threadIdx.x] = words[blockDim.x - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(128) bounded(int *data)
{
	data[threadIdx.x] += 1;
}
}
