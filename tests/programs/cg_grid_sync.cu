/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Cooperative launch with up to as many blocks as the device can hold: blocks exchange values
 * across grid barriers.
 */
#include "check.h"
#include <cooperative_groups.h>
#include <vector>

namespace cg = cooperative_groups;

enum { THREADS = 64, ROUNDS = 6, MAX_BLOCKS = 12 };

/*
 * In every round each thread reads the value of its neighbour in the next block. Without the
 * barrier it would read old values.
 */
__global__ void rotate(unsigned *cell, unsigned *next)
{
	cg::grid_group grid = cg::this_grid();
	unsigned id = (unsigned)grid.thread_rank(), count = (unsigned)grid.size();

	for (int round = 0; round < ROUNDS; round++) {
		next[id] = cell[(id + THREADS) % count] * 3 + round;
		grid.sync();
		cell[id] = next[id] ^ (next[(id + count - 1) % count] >> 7);
		grid.sync();
	}
}

__global__ void too_late(unsigned *out)
{
	cg::this_grid().sync();
	out[0] = 1;
}

int main()
{
	int device, per_sm, sms, supported;

	CU(cudaGetDevice(&device));
	CU(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device));
	OK(supported == 1);
	CU(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
	CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, rotate, THREADS, 0));
	OK(per_sm >= 1);
	for (int blocks = 1; blocks <= MAX_BLOCKS; blocks = blocks * 2 + 2) {
		if (blocks > per_sm * sms)
			break;
		unsigned count = (unsigned)(blocks * THREADS), *cell, *next;
		std::vector<unsigned> now(count), later(count), got(count);
		for (unsigned i = 0; i < count; i++)
			now[i] = i * 2654435761u;
		CU(cudaMalloc(&cell, count * 4));
		CU(cudaMalloc(&next, count * 4));
		CU(cudaMemcpy(cell, now.data(), count * 4, cudaMemcpyHostToDevice));
		void *args[] = { &cell, &next };
		CU(cudaLaunchCooperativeKernel(
			(void *)rotate, dim3(blocks), dim3(THREADS), args, 0, 0));
		CU(cudaMemcpy(got.data(), cell, count * 4, cudaMemcpyDeviceToHost));
		for (int round = 0; round < ROUNDS; round++) {
			for (unsigned i = 0; i < count; i++)
				later[i] = now[(i + THREADS) % count] * 3 + round;
			for (unsigned i = 0; i < count; i++)
				now[i] = later[i] ^ (later[(i + count - 1) % count] >> 7);
		}
		OK(got == now);
		printf("%2d blocks %016llx\n", blocks,
			(unsigned long long)checksum(got.data(), count * 4));
		CU(cudaFree(cell));
		CU(cudaFree(next));
	}

	/* A launch of more blocks than fit on the device at once is refused. */
	unsigned *out;
	CU(cudaMalloc(&out, 4));
	CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, too_late, THREADS, 0));
	void *args[] = { &out };
	EXPECT(cudaErrorCooperativeLaunchTooLarge,
		cudaLaunchCooperativeKernel(
			(void *)too_late, dim3(per_sm * sms + 1), dim3(THREADS), args, 0, 0));
	EXPECT(cudaErrorCooperativeLaunchTooLarge, cudaGetLastError());
	EXPECT(cudaSuccess, cudaDeviceSynchronize());
	return verdict("cg_grid_sync");
}
