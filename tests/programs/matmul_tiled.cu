/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Matrix product through 16 x 16 shared tiles, for sizes that are not multiples of the tile size;
 * 2-D grid and blocks.
 */
#include "check.h"
#include <cmath>
#include <vector>

enum { TILE = 16, ROWS = 75, INNER = 90, COLUMNS = 61 };

__global__ void matmul(const float *a, const float *b, float *c, int rows, int inner, int columns)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int k0 = 0; k0 < inner; k0 += TILE) {
		int ka = k0 + threadIdx.x, kb = k0 + threadIdx.y;

		tile_a[threadIdx.y][threadIdx.x] =
			row < rows && ka < inner ? a[row * inner + ka] : 0;
		tile_b[threadIdx.y][threadIdx.x] =
			kb < inner && column < columns ? b[kb * columns + column] : 0;
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum = fmaf(tile_a[threadIdx.y][k], tile_b[k][threadIdx.x], sum);
		__syncthreads();
	}
	if (row < rows && column < columns)
		c[row * columns + column] = sum;
}

int main()
{
	std::vector<float> a(ROWS * INNER), b(INNER * COLUMNS), c(ROWS * COLUMNS);
	float *device_a, *device_b, *device_c;
	uint32_t seed = 7;

	for (float &x : a)
		x = (float)(int32_t)random_next(&seed) / 2147483648.0f;
	for (float &x : b)
		x = (float)(int32_t)random_next(&seed) / 2147483648.0f;
	CU(cudaMalloc(&device_a, a.size() * 4));
	CU(cudaMalloc(&device_b, b.size() * 4));
	CU(cudaMalloc(&device_c, c.size() * 4));
	CU(cudaMemcpy(device_a, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(device_b, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
	dim3 grid((COLUMNS + TILE - 1) / TILE, (ROWS + TILE - 1) / TILE), block(TILE, TILE);
	matmul<<<grid, block>>>(device_a, device_b, device_c, ROWS, INNER, COLUMNS);
	CU(cudaGetLastError());
	CU(cudaMemcpy(c.data(), device_c, c.size() * 4, cudaMemcpyDeviceToHost));

	/* On the host, fused multiply-adds in the same order give the same bits. */
	int wrong = 0;
	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < COLUMNS; column++) {
			float sum = 0;
			for (int k = 0; k < INNER; k++)
				sum = fmaf(a[row * INNER + k], b[k * COLUMNS + column], sum);
			wrong += sum != c[row * COLUMNS + column];
		}
	OK(wrong == 0);
	printf("c[0][0] %.6f c[last] %.6f checksum %016llx\n", c[0], c.back(),
		(unsigned long long)checksum(c.data(), c.size() * 4));
	CU(cudaFree(device_a));
	CU(cudaFree(device_b));
	CU(cudaFree(device_c));
	return verdict("matmul_tiled");
}
