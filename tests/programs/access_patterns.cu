/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Loads and stores whose SIMD lanes access memory in many patterns and under many masks, compared
 * with the same accesses on the host; operations among tiles of a warp; counters in shared and
 * global memory; large local arrays. Last, an access beyond all memory in one lane is reported.
 */
#include <cstring>

#include "check.h"

constexpr unsigned CELLS = 256, LANES = 32;

/* The cell that a lane accesses. */
__host__ __device__ unsigned cell_of(unsigned pattern, unsigned lane)
{
	switch (pattern) {
	case 0:
		return lane; /* a row */
	case 1:
		return 17; /* one cell */
	case 2:
		return 5 + lane % 16; /* two equal rows */
	case 3:
		return 3 + lane / 16 * 40; /* one cell for each half */
	case 4:
		return lane < 16 ? 100 + lane : 9; /* a row and a cell */
	case 5:
		return 4 * lane; /* every fourth cell */
	case 6:
		return lane * 37 % CELLS; /* scattered */
	case 7:
		return CELLS - 1 - lane; /* backwards */
	case 8:
		return lane == 30 ? 0 : lane + 60; /* a row with a gap */
	default:
		return CELLS - LANES + lane; /* the last row */
	}
}
constexpr unsigned PATTERNS = 10;

__host__ __device__ unsigned mask_of(unsigned k)
{
	const unsigned masks[] = { 0xffffffff, 1, 0x80000000, 0x55555555, 0xffff0000, 0x0000ffff,
		0x7fffffff, 0x00100400 };

	return masks[k];
}
constexpr unsigned MASKS = 8;

template <typename T>
__global__ void access(const T *in, T *out, T *stored, unsigned pattern, unsigned mask, bool shared)
{
	__shared__ T cells[CELLS];
	unsigned lane = threadIdx.x;
	T v = (T)(lane + 1000);

	for (unsigned i = lane; i < CELLS; i += LANES)
		cells[i] = in[i];
	__syncwarp();
	if (mask >> lane & 1) {
		unsigned at = cell_of(pattern, lane);

		v = shared ? cells[at] : in[at];
		__syncwarp(mask);
		if (shared)
			cells[at] = (T)(v + 1);
		else
			stored[at] = (T)(v + 1);
	}
	out[lane] = v;
	__syncwarp();
	if (shared)
		for (unsigned i = lane; i < CELLS; i += LANES)
			stored[i] = cells[i];
}

template <typename T> static unsigned check(const char *name)
{
	T in[CELLS], out[LANES], stored[CELLS], *din, *dout, *dstored;
	unsigned wrong = 0;

	CU(cudaMalloc(&din, sizeof(in)));
	CU(cudaMalloc(&dout, sizeof(out)));
	CU(cudaMalloc(&dstored, sizeof(stored)));
	for (unsigned i = 0; i < CELLS; i++)
		in[i] = (T)(i * 2654435761u + 12345);
	CU(cudaMemcpy(din, in, sizeof(in), cudaMemcpyHostToDevice));
	for (unsigned k = 0; k < PATTERNS * MASKS * 2; k++) {
		unsigned pattern = k / 2 % PATTERNS, mask = mask_of(k / 2 / PATTERNS);
		T expected[CELLS];

		CU(cudaMemcpy(dstored, in, sizeof(in), cudaMemcpyHostToDevice));
		access<T><<<1, LANES>>>(din, dout, dstored, pattern, mask, k % 2);
		CU(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
		CU(cudaMemcpy(stored, dstored, sizeof(stored), cudaMemcpyDeviceToHost));
		memcpy(expected, in, sizeof(in));
		for (unsigned i = 0; i < LANES; i++) {
			unsigned at = cell_of(pattern, i);

			wrong += out[i] != (mask >> i & 1 ? in[at] : (T)(i + 1000));
			if (mask >> i & 1)
				expected[at] = (T)(in[at] + 1);
		}
		wrong += memcmp(expected, stored, sizeof(stored)) != 0;
	}
	printf("%s: %u wrong\n", name, wrong);
	cudaFree(din);
	cudaFree(dout);
	cudaFree(dstored);
	return wrong;
}

/* Vectors of four words: in a row, backwards, from one place, under a mask. */
__global__ void quads(const uint4 *in, uint4 *out, unsigned mode)
{
	unsigned lane = threadIdx.x;
	uint4 v = make_uint4(lane, 1, 2, 3);

	if (mode != 3 || lane % 3)
		v = in[mode == 0 ? lane : mode == 1 ? LANES - 1 - lane : mode == 2 ? 7 : lane];
	v.x += lane;
	out[mode == 1 ? lane : LANES - 1 - lane] = v;
}

static unsigned check_quads()
{
	uint4 in[LANES], out[LANES], *din, *dout;
	unsigned wrong = 0;

	CU(cudaMalloc(&din, sizeof(in)));
	CU(cudaMalloc(&dout, sizeof(out)));
	for (unsigned i = 0; i < LANES; i++)
		in[i] = make_uint4(i * 5, i * 7 + 1, ~i, i << 20);
	CU(cudaMemcpy(din, in, sizeof(in), cudaMemcpyHostToDevice));
	for (unsigned mode = 0; mode < 4; mode++) {
		quads<<<1, LANES>>>(din, dout, mode);
		CU(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
		for (unsigned i = 0; i < LANES; i++) {
			uint4 v = make_uint4(i, 1, 2, 3);

			if (mode != 3 || i % 3)
				v = in[mode == 1 ? LANES - 1 - i : mode == 2 ? 7 : i];
			v.x += i;
			wrong += memcmp(&v, &out[mode == 1 ? i : LANES - 1 - i], sizeof(v)) != 0;
		}
	}
	printf("vectors of four: %u wrong\n", wrong);
	return wrong;
}

/* Tiles of a warp with member masks of their own, in one instruction. */
__global__ void tiles(unsigned *out, unsigned width)
{
	unsigned lane = threadIdx.x, first = lane & ~(width - 1);
	unsigned members = (width == 32 ? ~0u : (1u << width) - 1) << first, v = lane * lane + 3;

	out[lane] = __shfl_xor_sync(members, v, width / 2, width);
	out[LANES + lane] = __ballot_sync(members, v & 4);
	out[2 * LANES + lane] =
		__all_sync(members, lane != 9) + 2 * __any_sync(members, lane == 17);
	out[3 * LANES + lane] = __shfl_down_sync(members, v, 1, width);
	out[4 * LANES + lane] = __shfl_up_sync(members, v, 2, width);
	out[5 * LANES + lane] = __shfl_sync(members, v, lane + 3, width);
}

static unsigned check_tiles()
{
	unsigned out[6 * LANES], *dout, wrong = 0;

	CU(cudaMalloc(&dout, sizeof(out)));
	for (unsigned width = 2; width <= LANES; width *= 2) {
		tiles<<<1, LANES>>>(dout, width);
		CU(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
		for (unsigned i = 0; i < LANES; i++) {
			unsigned first = i & ~(width - 1), last = first + width - 1, ballot = 0,
				 x = i ^ width / 2;
			unsigned down = i + 1 <= last ? i + 1 : i, up = i >= first + 2 ? i - 2 : i;
			unsigned to = first + ((i + 3) & (width - 1));
			bool all = true, any = false;

			for (unsigned k = first; k <= last; k++) {
				ballot |= (k * k + 3) & 4 ? 1u << k : 0;
				all = all && k != 9;
				any = any || k == 17;
			}
			wrong += out[i] != x * x + 3;
			wrong += out[LANES + i] != ballot;
			wrong += out[2 * LANES + i] != all + 2u * any;
			wrong += out[3 * LANES + i] != down * down + 3;
			wrong += out[4 * LANES + i] != up * up + 3;
			wrong += out[5 * LANES + i] != to * to + 3;
		}
	}
	printf("tiles: %u wrong\n", wrong);
	return wrong;
}

/* Each thread takes a ticket and marks it; every ticket must have been given once. */
__global__ void tickets(
	unsigned *counter, unsigned long long *sum, unsigned *seen, unsigned *totals)
{
	__shared__ unsigned count, most, bins[4];
	unsigned t = threadIdx.x;

	if (t < 4)
		bins[t] = 0;
	if (t == 0)
		count = most = 0;
	__syncthreads();
	unsigned local = atomicAdd(&count, 1), ticket = atomicAdd(counter, 1);

	atomicMax(&most, local);
	atomicAdd(&bins[t & 3], t);
	atomicAdd(&seen[ticket], 1);
	if (t % 5 == 0)
		atomicAdd(sum, 1ull << 32);
	__syncthreads();
	if (t == 0) {
		atomicAdd(&totals[0], count);
		atomicAdd(&totals[1], most);
	}
	if (t < 4)
		atomicAdd(&totals[2 + t], bins[t]);
}

static unsigned check_tickets()
{
	constexpr unsigned BLOCKS = 20, THREADS = 100, N = BLOCKS * THREADS;
	static unsigned seen[N];
	unsigned totals[6], wrong = 0, *d;
	unsigned long long sum, *dsum;

	CU(cudaMalloc(&d, (N + 7) * sizeof(unsigned)));
	CU(cudaMalloc(&dsum, sizeof(sum)));
	CU(cudaMemset(d, 0, (N + 7) * sizeof(unsigned)));
	CU(cudaMemset(dsum, 0, sizeof(sum)));
	tickets<<<BLOCKS, THREADS>>>(d, dsum, d + 7, d + 1);
	CU(cudaMemcpy(seen, d + 7, sizeof(seen), cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(totals, d + 1, sizeof(totals), cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(&sum, dsum, sizeof(sum), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < N; i++)
		wrong += seen[i] != 1;
	wrong += totals[0] != N || totals[1] != BLOCKS * (THREADS - 1);
	for (unsigned k = 0; k < 4; k++) {
		unsigned expected = 0;

		for (unsigned t = k; t < THREADS; t += 4)
			expected += t;
		wrong += totals[2 + k] != BLOCKS * expected;
	}
	wrong += sum != (unsigned long long)(N / 5) << 32;
	printf("tickets: %u wrong\n", wrong);
	return wrong;
}

__device__ __noinline__ unsigned long long take(unsigned char *p, unsigned at)
{
	return p[at];
}

/* 4 KiB of local memory, as words, through a pointer, and as bytes. */
__global__ void local(unsigned *out, unsigned step)
{
	unsigned a[1024];
	unsigned v = 0;

	for (unsigned i = 0; i < 1024; i++)
		a[i] = i * step + threadIdx.x + blockIdx.x * blockDim.x;
	for (unsigned i = 0; i < 2048; i++)
		v += a[(i * step + threadIdx.x) & 1023] ^ i;
	v += (unsigned)take((unsigned char *)a, (step * 77 + threadIdx.x) & 4095);
	out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

static unsigned check_local()
{
	constexpr unsigned N = 3 * 70;
	unsigned out[N], *dout, wrong = 0, a[1024];

	CU(cudaMalloc(&dout, sizeof(out)));
	local<<<3, 70>>>(dout, 5);
	CU(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
	for (unsigned t = 0; t < N; t++) {
		unsigned v = 0;

		for (unsigned i = 0; i < 1024; i++)
			a[i] = i * 5 + t;
		for (unsigned i = 0; i < 2048; i++)
			v += a[(i * 5 + t % 70) & 1023] ^ i;
		v += ((unsigned char *)a)[(5 * 77 + t % 70) & 4095];
		wrong += out[t] != v;
	}
	printf("local memory: %u wrong\n", wrong);
	return wrong;
}

__global__ void beyond(unsigned *p, unsigned long long far, unsigned mask, bool write)
{
	unsigned lane = threadIdx.x;

	if (mask >> lane & 1) {
		unsigned *at = p + lane + (lane == 20 ? far : 0);

		if (write)
			*at = lane;
		else
			p[lane] = *at + 1;
	}
}

int main()
{
	unsigned wrong = check<unsigned char>("bytes") + check<unsigned short>("halves") +
		check<unsigned>("words") + check<unsigned long long>("doubles");
	unsigned *p;

	wrong += check_quads() + check_tiles() + check_tickets() + check_local();
	CU(cudaMalloc(&p, 4096));
	beyond<<<1, LANES>>>(p, 1ull << 50, 0x000ff0f0, false); /* without lane 20 */
	CU(cudaDeviceSynchronize());
	beyond<<<1, LANES>>>(p, 1ull << 50, 0x0ff0f0f0, true);
	printf("a lane beyond all memory: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
	return wrong != 0;
}
