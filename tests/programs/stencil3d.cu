/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * 7-point heat stencil in three dimensions with 3-D grid and blocks. Planes along z are kept in
 * registers. Integer arithmetic makes the results exact.
 */
#include "check.h"
#include <vector>

enum { NX = 37, NY = 29, NZ = 23, STEPS = 4 };

static __host__ __device__ size_t at(int x, int y, int z)
{
	return ((size_t)z * NY + y) * NX + x;
}

__global__ void by_point(const int *in, int *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
	    z = blockIdx.z * blockDim.z + threadIdx.z;

	if (x >= NX || y >= NY || z >= NZ)
		return;
	if (x == 0 || y == 0 || z == 0 || x == NX - 1 || y == NY - 1 || z == NZ - 1) {
		out[at(x, y, z)] = in[at(x, y, z)];
		return;
	}
	out[at(x, y, z)] = (2 * in[at(x, y, z)] + in[at(x - 1, y, z)] + in[at(x + 1, y, z)] +
				   in[at(x, y - 1, z)] + in[at(x, y + 1, z)] + in[at(x, y, z - 1)] +
				   in[at(x, y, z + 1)]) >>
		3;
}

__global__ void by_column(const int *in, int *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x >= NX || y >= NY)
		return;
	int below, here = in[at(x, y, 0)], above = in[at(x, y, 1)];
	bool edge = x == 0 || y == 0 || x == NX - 1 || y == NY - 1;
	out[at(x, y, 0)] = here;
	for (int z = 1; z < NZ - 1; z++) {
		below = here;
		here = above;
		above = in[at(x, y, z + 1)];
		out[at(x, y, z)] = edge
			? here
			: (2 * here + in[at(x - 1, y, z)] + in[at(x + 1, y, z)] +
				  in[at(x, y - 1, z)] + in[at(x, y + 1, z)] + below + above) >>
				3;
	}
	out[at(x, y, NZ - 1)] = above;
}

int main()
{
	std::vector<int> start(NX * NY * NZ), want, got(start.size());
	size_t bytes = start.size() * sizeof(int);
	int *device[2];
	uint32_t seed = 77;

	for (int &x : start)
		x = (int)(random_next(&seed) % 200000) - 100000;
	want = start;
	for (int s = 0; s < STEPS; s++) {
		std::vector<int> next = want;
		for (int z = 1; z < NZ - 1; z++)
			for (int y = 1; y < NY - 1; y++)
				for (int x = 1; x < NX - 1; x++)
					next[at(x, y, z)] =
						(2 * want[at(x, y, z)] + want[at(x - 1, y, z)] +
							want[at(x + 1, y, z)] +
							want[at(x, y - 1, z)] +
							want[at(x, y + 1, z)] +
							want[at(x, y, z - 1)] +
							want[at(x, y, z + 1)]) >>
						3;
		want = next;
	}
	for (int *&d : device)
		CU(cudaMalloc(&d, bytes));
	for (int way = 0; way < 2; way++) {
		CU(cudaMemcpy(device[0], start.data(), bytes, cudaMemcpyHostToDevice));
		for (int s = 0; s < STEPS; s++)
			if (way == 0)
				by_point<<<dim3((NX + 7) / 8, (NY + 7) / 8, (NZ + 3) / 4),
					dim3(8, 8, 4)>>>(device[s % 2], device[1 - s % 2]);
			else
				by_column<<<dim3((NX + 15) / 16, (NY + 7) / 8), dim3(16, 8)>>>(
					device[s % 2], device[1 - s % 2]);
		CU(cudaGetLastError());
		CU(cudaMemcpy(got.data(), device[STEPS % 2], bytes, cudaMemcpyDeviceToHost));
		OK(got == want);
		printf("%016llx\n", (unsigned long long)checksum(got.data(), bytes));
	}
	return verdict("stencil3d");
}
