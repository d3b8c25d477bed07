/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Pi and a normal distribution with cuRAND's header-only device generators. Equal seeds give equal
 * sequences on every device.
 */
#include "check.h"
#include <curand_kernel.h>
#include <cmath>

enum { THREADS = 128, BLOCKS = 8, DRAWS = 48, NUMBERS = 4 };

template <typename State> __global__ void throw_darts(unsigned long long *inside, unsigned *first)
{
	int id = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned hits = 0;
	State state;

	curand_init(1234, id, 0, &state);
	for (int i = 0; i < DRAWS; i++) {
		/* 16-bit integers: the count does not depend on rounding. */
		unsigned draw = curand(&state), x = draw >> 16, y = draw & 0xffff;
		if (id == 0 && i < NUMBERS)
			first[i] = draw;
		hits += (unsigned long long)x * x + (unsigned long long)y * y < 4294967296ull;
	}
	for (int step = 16; step; step /= 2)
		hits += __shfl_down_sync(0xffffffffu, hits, step);
	if (threadIdx.x % 32 == 0)
		atomicAdd(inside, hits);
}

__global__ void normals(double *sum)
{
	int id = blockIdx.x * blockDim.x + threadIdx.x;
	curandStatePhilox4_32_10_t state;
	double mine = 0, squares = 0;

	curand_init(99, id, 0, &state);
	for (int i = 0; i < DRAWS / 4; i++) {
		float4 n = curand_normal4(&state);
		mine += n.x + n.y + n.z + n.w;
		squares += n.x * n.x + n.y * n.y + n.z * n.z + n.w * n.w;
	}
	atomicAdd(&sum[0], mine);
	atomicAdd(&sum[1], squares);
}

template <typename State> static void pi(const char *generator)
{
	unsigned long long inside, *device_inside;
	unsigned first[NUMBERS], *device_first;

	CU(cudaMalloc(&device_inside, sizeof(inside)));
	CU(cudaMalloc(&device_first, sizeof(first)));
	CU(cudaMemset(device_inside, 0, sizeof(inside)));
	throw_darts<State><<<BLOCKS, THREADS>>>(device_inside, device_first);
	CU(cudaGetLastError());
	CU(cudaMemcpy(&inside, device_inside, sizeof(inside), cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(first, device_first, sizeof(first), cudaMemcpyDeviceToHost));
	double estimate = 4.0 * (double)inside / (BLOCKS * THREADS * DRAWS);
	OK(fabs(estimate - 3.14159265) < 0.04);
	printf("%s inside %llu first %u %u %u %u\n", generator, inside, first[0], first[1],
		first[2], first[3]);
	CU(cudaFree(device_inside));
	CU(cudaFree(device_first));
}

int main()
{
	const double count = BLOCKS * THREADS * DRAWS;
	double sum[2], *device_sum;

	pi<curandStateXORWOW_t>("xorwow");
	pi<curandStatePhilox4_32_10_t>("philox");
	pi<curandStateMRG32k3a_t>("mrg32k");
	CU(cudaMalloc(&device_sum, sizeof(sum)));
	CU(cudaMemset(device_sum, 0, sizeof(sum)));
	normals<<<BLOCKS, THREADS>>>(device_sum);
	CU(cudaGetLastError());
	CU(cudaMemcpy(sum, device_sum, sizeof(sum), cudaMemcpyDeviceToHost));
	OK(fabs(sum[0] / count) < 0.02);
	OK(fabs(sum[1] / count - 1) < 0.03);
	printf("mean %.3f variance %.3f\n", sum[0] / count, sum[1] / count);
	return verdict("montecarlo_curand");
}
