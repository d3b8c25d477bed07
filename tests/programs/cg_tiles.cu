/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Cooperative groups: tiles of every size, coalesced groups, labeled_partition and
 * binary_partition, reductions on tiles.
 */
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

enum { THREADS = 128, RESULTS = 10 };

template <int SIZE> __device__ int tile_sum(cg::thread_block block, int value)
{
	cg::thread_block_tile<SIZE> tile = cg::tiled_partition<SIZE>(block);

	for (int step = SIZE / 2; step; step /= 2)
		value += tile.shfl_down(value, step);
	return tile.shfl(value, 0);
}

__global__ void tiles(int *out)
{
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
	int id = (int)block.thread_rank(), *mine = out + RESULTS * id;

	mine[0] = tile_sum<4>(block, id);
	mine[1] = tile_sum<8>(block, id);
	mine[2] = tile_sum<16>(block, id);
	mine[3] = tile_sum<32>(block, id);
	mine[4] = cg::reduce(warp, id % 7, cg::greater<int>());
	mine[5] = cg::exclusive_scan(warp, id, cg::plus<int>());
	mine[6] = warp.any(id == 40) + 2 * warp.all(id < 64);
	mine[7] = 0;
	if (id % 3 == 0) {
		cg::coalesced_group group = cg::coalesced_threads();
		mine[7] = 100 * (int)group.size() + (int)group.thread_rank();
	}
	cg::coalesced_group odd = cg::binary_partition(warp, id & 1);
	mine[8] = (int)odd.size() + 1000 * (int)odd.thread_rank();
	cg::coalesced_group label = cg::labeled_partition(warp, id % 5);
	mine[9] = (int)label.size() + 1000 * (int)label.thread_rank();
	block.sync();
}

int main()
{
	int got[THREADS][RESULTS], *device, wrong = 0;

	CU(cudaMalloc(&device, sizeof(got)));
	tiles<<<1, THREADS>>>(device);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int id = 0; id < THREADS; id++) {
		int warp = id / 32 * 32, want[RESULTS] = {};
		for (int tile = 0, size = 4; size <= 32; size *= 2, tile++)
			for (int k = 0; k < size; k++)
				want[tile] += id / size * size + k;
		int thirds = 0, before = 0, fifths = 0, fifths_before = 0;
		for (int k = warp; k < warp + 32; k++) {
			want[4] = k % 7 > want[4] ? k % 7 : want[4];
			want[5] += k < id ? k : 0;
			thirds += k % 3 == 0;
			before += k % 3 == 0 && k < id;
			fifths += k % 5 == id % 5;
			fifths_before += k % 5 == id % 5 && k < id;
		}
		want[6] = (warp == 32) + 2 * (warp < 64);
		want[7] = id % 3 == 0 ? 100 * thirds + before : 0;
		want[8] = 16 + 1000 * (id % 32 / 2);
		want[9] = fifths + 1000 * fifths_before;
		for (int k = 0; k < RESULTS; k++)
			if (got[id][k] != want[k]) {
				fprintf(stderr, "thread %d result %d: %d, not %d\n", id, k,
					got[id][k], want[k]);
				wrong++;
			}
	}
	OK(wrong == 0);
	for (int k = 0; k < RESULTS; k++)
		printf("%d ", got[77][k]);
	printf("checksum %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	return verdict("cg_tiles");
}
