/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The two networks of ntt.c on a GPU: each pass does some levels of a network, tile by tile in
 * shared memory.
 */
#include "compute/field/field.cuh"
#include "compute/ntt/gpu_shape.h"

/*
 * Sixteen bytes of each element are in one half, sixteen in the other, so that neighbours are in
 * different banks.
 */
struct tile {
	uint4 low[1 << OBK_NTT_TILE_LOG], high[1 << OBK_NTT_TILE_LOG];
};

static __device__ __forceinline__ obk_fr get(const tile &t, uint32_t i)
{
	uint4 a = t.low[i], b = t.high[i];
	obk_fr r;

	r.l[0] = a.x, r.l[1] = a.y, r.l[2] = a.z, r.l[3] = a.w;
	r.l[4] = b.x, r.l[5] = b.y, r.l[6] = b.z, r.l[7] = b.w;
	return r;
}

static __device__ __forceinline__ void put(tile &t, uint32_t i, const obk_fr &a)
{
	t.low[i] = make_uint4(a.l[0], a.l[1], a.l[2], a.l[3]);
	t.high[i] = make_uint4(a.l[4], a.l[5], a.l[6], a.l[7]);
}

/*
 * Entry i of the table of roots.h, or minus its inverse. An entry beyond the table is the product
 * of two.
 */
static __device__ __forceinline__ obk_fr root_at(
	const obk_ntt_pass &pass, const obk_fr *roots, const obk_fr *far_roots, uint32_t i)
{
	uint32_t beyond;
	obk_fr r;

	if (pass.inverse)
		i ^= (1u << (31 - __clz(i))) - 1; /* i is not 0 */
	beyond = i >> pass.roots_log;
	r = roots[i & ((1u << pass.roots_log) - 1)];
	return beyond ? r * far_roots[beyond] : r;
}

/*
 * powers: three tables, of shift^k, shift^(2^10 k) and shift^(2^20 k). The entries of the first one
 * include the common factor.
 */
static __device__ __forceinline__ obk_fr scaled(
	obk_fr x, uint32_t mode, uint32_t log_n, const obk_fr *powers, uint32_t j)
{
	const uint32_t size = 1u << OBK_NTT_POWERS_LOG;

	if (mode == OBK_NTT_SCALE_NONE)
		return x;
	if (mode == OBK_NTT_SCALE_CONSTANT)
		return x * powers[0];
	if (mode == OBK_NTT_SCALE_REVERSED)
		j = log_n ? __brev(j) >> (32 - log_n) : 0;
	x = x * powers[j & (size - 1)];
	if (log_n > OBK_NTT_POWERS_LOG)
		x = x * powers[size + (j >> OBK_NTT_POWERS_LOG & (size - 1))];
	if (log_n > 2 * OBK_NTT_POWERS_LOG)
		x = x * powers[2 * size + (j >> 2 * OBK_NTT_POWERS_LOG)];
	return x;
}

static __device__ __forceinline__ void butterfly(tile &t, uint32_t at, uint32_t other,
	const obk_ntt_pass &pass, const obk_fr *roots, const obk_fr *far_roots, uint32_t block)
{
	obk_fr a = get(t, at), b = get(t, other), w;
	bool turned = pass.inverse && block;

	if (block)
		w = root_at(pass, roots, far_roots, block);
	if (pass.gather) {
		obk_fr d = turned ? b - a : a - b;

		put(t, at, a + b);
		put(t, other, block ? d * w : d);
		return;
	}
	if (block)
		b = b * w;
	put(t, at, turned ? a - b : a + b);
	put(t, other, turned ? a + b : a - b);
}

/* One tile per block; the blocks of the grid cover the tiles of one transform after the other. */
extern "C" __global__ void __launch_bounds__(OBK_NTT_THREADS, 4) ntt_pass(obk_ntt_pass pass,
	obk_fr *data, const obk_fr *roots, const obk_fr *far_roots, const obk_fr *powers)
{
	__shared__ tile t;
	uint32_t tile_log = pass.levels + pass.low_log, tiles_log = pass.log_n - tile_log,
		 rest_log = pass.log_n - pass.level - pass.levels;
	uint32_t number = blockIdx.x & ((1u << tiles_log) - 1), lows_log = rest_log - pass.low_log,
		 block = number >> lows_log;
	uint32_t base = (block << (pass.log_n - pass.level)) |
		(number & ((1u << lows_log) - 1)) << pass.low_log;
	uint32_t low_mask = (1u << pass.low_log) - 1;

	data += (size_t)(blockIdx.x >> tiles_log) << pass.log_n;
	for (uint32_t e = threadIdx.x; e < 1u << tile_log; e += blockDim.x) {
		uint32_t at = base | (e >> pass.low_log) << rest_log | (e & low_mask);

		put(t, e, scaled(data[at], pass.scale_in, pass.log_n, powers, at));
	}
	__syncthreads();
	for (uint32_t step = 0; step < pass.levels; step++) {
		uint32_t l = pass.gather ? pass.levels - 1 - step : step,
			 half = pass.levels - 1 - l;

		for (uint32_t e = threadIdx.x; e < 1u << (tile_log - 1); e += blockDim.x) {
			uint32_t m = e >> pass.low_log, upper = m >> half,
				 at = (upper << (half + 1)) | (m & ((1u << half) - 1));

			butterfly(t, at << pass.low_log | (e & low_mask),
				(at | 1u << half) << pass.low_log | (e & low_mask), pass, roots,
				far_roots, block << l | upper);
		}
		__syncthreads();
	}
	for (uint32_t e = threadIdx.x; e < 1u << tile_log; e += blockDim.x) {
		uint32_t at = base | (e >> pass.low_log) << rest_log | (e & low_mask);

		data[at] = scaled(get(t, e), pass.scale_out, pass.log_n, powers, at);
	}
}

/* Bit reversal in place; blockIdx.y is the index of the transform. */
extern "C" __global__ void ntt_reverse(uint32_t log_n, obk_fr *data)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x,
		 j = log_n ? __brev(i) >> (32 - log_n) : 0;

	data += (size_t)blockIdx.y << log_n;
	if (i >= 1u << log_n || i >= j)
		return;
	obk_fr a = data[i], b = data[j];

	data[i] = b;
	data[j] = a;
}

/* Computes the second 2^log entries of the table of roots from the first. */
extern "C" __global__ void ntt_more_roots(uint32_t log, obk_fr *roots, obk_fr w)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < 1u << log)
		roots[(1u << log) + i] = roots[i] * w;
}
