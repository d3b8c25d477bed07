/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Stable radix sort of keys and values, 4 bits per pass. Ballots give the rank inside a warp. */
#include "check.h"
#include <algorithm>
#include <utility>
#include <vector>

enum {
	LENGTH = 16384,
	THREADS = 128,
	BLOCKS = LENGTH / THREADS,
	DIGITS = 16,
	WARPS = THREADS / 32
};

__global__ void count_digits(const unsigned *keys, unsigned *counts, int shift)
{
	__shared__ unsigned local[DIGITS];

	if (threadIdx.x < DIGITS)
		local[threadIdx.x] = 0;
	__syncthreads();
	atomicAdd(&local[(keys[blockIdx.x * THREADS + threadIdx.x] >> shift) % DIGITS], 1u);
	__syncthreads();
	if (threadIdx.x < DIGITS)
		counts[threadIdx.x * BLOCKS + blockIdx.x] = local[threadIdx.x];
}

/*
 * One block: exclusive scan over all counts, digit-major, so that equal digits keep the order of
 * their blocks.
 */
__global__ void scan_counts(unsigned *counts)
{
	__shared__ unsigned sum[1024];
	const int each = DIGITS * BLOCKS / 1024;
	unsigned mine = 0;

	for (int i = 0; i < each; i++)
		mine += counts[threadIdx.x * each + i];
	sum[threadIdx.x] = mine;
	for (int step = 1; step < 1024; step *= 2) {
		__syncthreads();
		unsigned other = threadIdx.x >= step ? sum[threadIdx.x - step] : 0;
		__syncthreads();
		sum[threadIdx.x] += other;
	}
	__syncthreads();
	unsigned before = sum[threadIdx.x] - mine;
	for (int i = 0; i < each; i++) {
		unsigned count = counts[threadIdx.x * each + i];
		counts[threadIdx.x * each + i] = before;
		before += count;
	}
}

__global__ void scatter(const unsigned *keys, const unsigned *values, unsigned *out_keys,
	unsigned *out_values, const unsigned *offsets, int shift)
{
	__shared__ unsigned warp_count[WARPS][DIGITS];
	int i = blockIdx.x * THREADS + threadIdx.x;
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	unsigned key = keys[i], digit = (key >> shift) % DIGITS, peers = 0xffffffffu;

	for (int bit = 0; bit < 4; bit++) {
		unsigned vote = __ballot_sync(0xffffffffu, digit >> bit & 1);
		peers &= digit >> bit & 1 ? vote : ~vote;
	}
	unsigned rank = __popc(peers & ((1u << lane) - 1));
	if (lane < DIGITS)
		warp_count[warp][lane] = 0;
	__syncwarp();
	if (rank == 0)
		warp_count[warp][digit] = __popc(peers);
	__syncthreads();
	for (unsigned w = 0; w < warp; w++)
		rank += warp_count[w][digit];
	unsigned to = offsets[digit * BLOCKS + blockIdx.x] + rank;
	out_keys[to] = key;
	out_values[to] = values[i];
}

int main()
{
	std::vector<unsigned> keys(LENGTH), values(LENGTH);
	std::vector<std::pair<unsigned, unsigned>> want(LENGTH);
	unsigned *key[2], *value[2], *counts;
	uint32_t seed = 42;
	int wrong = 0;

	for (unsigned i = 0; i < LENGTH; i++) {
		keys[i] = random_next(&seed) % 60000;
		values[i] = i;
		want[i] = { keys[i], i };
	}
	std::stable_sort(want.begin(), want.end(),
		[](const std::pair<unsigned, unsigned> &a, const std::pair<unsigned, unsigned> &b) {
			return a.first < b.first;
		});
	for (int i = 0; i < 2; i++) {
		CU(cudaMalloc(&key[i], LENGTH * 4));
		CU(cudaMalloc(&value[i], LENGTH * 4));
	}
	CU(cudaMalloc(&counts, DIGITS * BLOCKS * 4));
	CU(cudaMemcpy(key[0], keys.data(), LENGTH * 4, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(value[0], values.data(), LENGTH * 4, cudaMemcpyHostToDevice));
	for (int pass = 0; pass < 4; pass++) {
		int from = pass % 2, to = 1 - from;
		count_digits<<<BLOCKS, THREADS>>>(key[from], counts, 4 * pass);
		scan_counts<<<1, 1024>>>(counts);
		scatter<<<BLOCKS, THREADS>>>(
			key[from], value[from], key[to], value[to], counts, 4 * pass);
	}
	CU(cudaGetLastError());
	CU(cudaMemcpy(keys.data(), key[0], LENGTH * 4, cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(values.data(), value[0], LENGTH * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < LENGTH; i++)
		wrong += keys[i] != want[i].first || values[i] != want[i].second;
	OK(wrong == 0);
	printf("keys %016llx values %016llx\n",
		(unsigned long long)checksum(keys.data(), LENGTH * 4),
		(unsigned long long)checksum(values.data(), LENGTH * 4));
	return verdict("radix_sort");
}
