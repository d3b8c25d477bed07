/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Warp operations under divergence: votes, ballots, shuffles of all kinds and widths, match, active
 * masks, reductions.
 */
#include "check.h"

enum { THREADS = 64, RESULTS = 12 };

__global__ void operations(unsigned *out)
{
	unsigned id = threadIdx.x, lane = id % 32, all = 0xffffffffu, *r = out + RESULTS * id;

	r[0] = __ballot_sync(all, (lane * 7) % 3 == 0);
	r[1] = (unsigned)(__any_sync(all, id == 40) + 2 * __all_sync(all, id < 32) +
		4 * __all_sync(all, lane < 32));
	r[2] = __shfl_sync(all, id * 10, (int)lane + 5);
	r[3] = __shfl_up_sync(all, id * 10, 3, 8);
	r[4] = __shfl_down_sync(all, id * 10, 2, 16);
	r[5] = __shfl_xor_sync(all, id * 10, 9);
	r[6] = __match_any_sync(all, lane % 5);
	int same = 0;
	r[7] = __match_all_sync(all, id / 32, &same) + (unsigned)same;
	double d = __shfl_sync(all, (double)id * 1.5, 31 - (int)lane);
	r[8] = (unsigned)(d * 2);

	/* Even and odd SIMD lanes diverge and exchange values only within their half of the warp. */
	if (lane & 1) {
		r[9] = __ballot_sync(0xaaaaaaaau, lane > 15);
		r[10] = __shfl_sync(0xaaaaaaaau, id, 31);
	} else {
		r[9] = __ballot_sync(0x55555555u, lane < 8);
		r[10] = __shfl_xor_sync(0x55555555u, id, 2);
	}
	/* SIMD lanes exit one after another; the remaining ones are active. */
	unsigned rounds = 0, last = 0;
	for (unsigned i = 0; i < lane; i++) {
		last = __activemask();
		rounds += (last >> lane) & 1;
	}
	__syncwarp();
	r[11] = rounds;
}

int main()
{
	unsigned got[THREADS][RESULTS], *device;
	int wrong = 0;

	CU(cudaMalloc(&device, sizeof(got)));
	operations<<<1, THREADS>>>(device);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (unsigned id = 0; id < THREADS; id++) {
		unsigned lane = id % 32, base = id - lane, want[RESULTS] = {};
		for (unsigned l = 0; l < 32; l++) {
			want[0] |= (unsigned)((l * 7) % 3 == 0) << l;
			want[6] |= (unsigned)(l % 5 == lane % 5) << l;
		}
		want[1] = (unsigned)((base == 32) + 2 * (base == 0) + 4);
		want[2] = (base + (lane + 5) % 32) * 10;
		want[3] = (lane % 8 < 3 ? id : id - 3) * 10;
		want[4] = (lane % 16 > 13 ? id : id + 2) * 10;
		want[5] = (base + (lane ^ 9)) * 10;
		want[7] = 0xffffffffu + 1;
		want[8] = (base + 31 - lane) * 3;
		want[9] = lane & 1 ? 0xaaaa0000u : 0x55u;
		want[10] = lane & 1 ? base + 31 : id ^ 2;
		want[11] = lane;
		for (int k = 0; k < RESULTS; k++)
			if (got[id][k] != want[k]) {
				fprintf(stderr, "thread %u result %d: %x, not %x\n", id, k,
					got[id][k], want[k]);
				wrong++;
			}
	}
	OK(wrong == 0);
	printf("checksum %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	return verdict("warp_operations");
}
