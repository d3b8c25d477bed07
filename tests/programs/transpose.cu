/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Matrix transpose through a padded shared tile, for three element types. */
#include "check.h"
#include <vector>

enum { TILE = 32, LINES = 8, WIDTH = 203, HEIGHT = 131 };

template <typename T> __global__ void transpose(const T *in, T *out, int width, int height)
{
	__shared__ T tile[TILE][TILE + 1];
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

	for (int j = 0; j < TILE; j += LINES)
		if (x < width && y + j < height)
			tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
	__syncthreads();
	x = blockIdx.y * TILE + threadIdx.x;
	y = blockIdx.x * TILE + threadIdx.y;
	for (int j = 0; j < TILE; j += LINES)
		if (x < height && y + j < width)
			out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

template <typename T> static void run(const char *type)
{
	std::vector<T> in(WIDTH * HEIGHT), out(WIDTH * HEIGHT);
	size_t bytes = in.size() * sizeof(T);
	T *device_in, *device_out;
	int wrong = 0;

	for (size_t i = 0; i < in.size(); i++)
		in[i] = (T)(i * 2654435761u + i / 7);
	CU(cudaMalloc(&device_in, bytes));
	CU(cudaMalloc(&device_out, bytes));
	CU(cudaMemcpy(device_in, in.data(), bytes, cudaMemcpyHostToDevice));
	transpose<<<dim3((WIDTH + TILE - 1) / TILE, (HEIGHT + TILE - 1) / TILE),
		dim3(TILE, LINES)>>>(device_in, device_out, WIDTH, HEIGHT);
	CU(cudaGetLastError());
	CU(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			wrong += in[y * WIDTH + x] != out[x * HEIGHT + y];
	OK(wrong == 0);
	printf("%s %016llx\n", type, (unsigned long long)checksum(out.data(), bytes));
	CU(cudaFree(device_in));
	CU(cudaFree(device_out));
}

int main()
{
	run<unsigned char>("byte  ");
	run<float>("float ");
	run<double>("double");
	return verdict("transpose");
}
