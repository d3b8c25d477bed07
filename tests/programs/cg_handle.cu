/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Barriers of the grid by the functions of libcudadevrt, as Numba and toolkits before CUDA 11 use
 * them: blocks exchange values across them. Without a cooperative launch there is no grid barrier.
 */
#include "check.h"
#include <vector>

enum { THREADS = 96, BLOCKS = 5, COUNT = THREADS * BLOCKS, ROUNDS = 4 };

__global__ void rotate(unsigned *cell, unsigned *next)
{
	unsigned long long grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
	unsigned id = blockIdx.x * THREADS + threadIdx.x;

	for (unsigned round = 0; round < ROUNDS; round++) {
		next[id] = cell[(id + THREADS) % COUNT] * 3 + round;
		if (cudaCGSynchronize(grid, 0) != cudaSuccess)
			return;
		cell[id] = next[id] ^ (next[(id + COUNT - 1) % COUNT] >> 7);
		if (cudaCGSynchronizeGrid(grid, 0) != cudaSuccess)
			return;
	}
}

/* Whether there is a handle, of the grid and of the scope that is reserved. */
__global__ void handles(unsigned *out)
{
	out[0] = cudaCGGetIntrinsicHandle(cudaCGScopeGrid) != 0;
	out[1] = cudaCGGetIntrinsicHandle(cudaCGScopeReserved) != 0;
	out[2] = cudaCGSynchronize(cudaCGGetIntrinsicHandle(cudaCGScopeReserved), 0) == cudaSuccess;
}

static void show_handles(const char *launch, const unsigned *device)
{
	unsigned got[3];

	CU(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
	printf("%s: grid %u, reserved %u, synchronised %u\n", launch, got[0], got[1], got[2]);
}

int main()
{
	std::vector<unsigned> now(COUNT), later(COUNT), got(COUNT);
	unsigned *cell, *next;

	for (unsigned i = 0; i < COUNT; i++)
		now[i] = i * 2654435761u;
	CU(cudaMalloc(&cell, COUNT * 4));
	CU(cudaMalloc(&next, COUNT * 4));
	CU(cudaMemcpy(cell, now.data(), COUNT * 4, cudaMemcpyHostToDevice));
	void *both[] = { &cell, &next }, *one[] = { &next };
	CU(cudaLaunchCooperativeKernel((void *)rotate, dim3(BLOCKS), dim3(THREADS), both, 0, 0));
	CU(cudaMemcpy(got.data(), cell, COUNT * 4, cudaMemcpyDeviceToHost));
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < COUNT; i++)
			later[i] = now[(i + THREADS) % COUNT] * 3 + round;
		for (unsigned i = 0; i < COUNT; i++)
			now[i] = later[i] ^ (later[(i + COUNT - 1) % COUNT] >> 7);
	}
	OK(got == now);
	printf("%016llx\n", (unsigned long long)checksum(got.data(), COUNT * 4));
	CU(cudaLaunchCooperativeKernel((void *)handles, dim3(1), dim3(1), one, 0, 0));
	show_handles("cooperative", next);
	handles<<<1, 1>>>(next);
	show_handles("not cooperative", next);
	CU(cudaFree(cell));
	CU(cudaFree(next));
	return verdict("cg_handle");
}
