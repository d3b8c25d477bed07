/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Bases on a GPU: checks points, and makes shifted copies and tables of multiples. This runs once
 * per set of bases, so it is not tuned much.
 */
#include "compute/curve/g1.cuh"
#include "compute/msm/gpu_shape.h"

static __device__ __forceinline__ uint32_t thread_id()
{
	return blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __noinline__ obk_fp product(const obk_fp a, const obk_fp b)
{
	return a * b;
}

static __device__ bool is_canonical(const obk_fp &a)
{
	uint32_t d[12], p[12];

	obk_fp::modulus(p);
	for (int i = 0; i < 12; i++)
		d[i] = a.l[i];
	return obk_words_sub(d, p) != 0;
}

/* y^2 = x^3 + 4 */
static __device__ bool on_curve(const obk_g1_affine &p)
{
	obk_fp two = obk_fp::one() + obk_fp::one(),
	       right = product(product(p.x, p.x), p.x) + two + two;

	return p.is_infinity() || (product(p.y, p.y) - right).is_zero();
}

/*
 * Checks lambda p = (x^2 - 1) p = (beta x, y), as obk_g1_in_subgroup. The point is read again for
 * every addition, to save registers.
 */
static __device__ bool in_subgroup(const obk_g1_affine *point, const obk_fp &beta)
{
	const uint32_t square[4] = { 0x00000000, 0x00000001, 0x0001a402, 0xac45a401 }; /* x^2 */
	obk_g1_affine p = *point;
	obk_g1 r = obk_g1_from_affine(p);

	if (p.is_infinity())
		return true;
#pragma unroll 1
	for (int bit = 126; bit >= -1; bit--) {
		if (bit >= 0)
			r = obk_g1_double(r);
		p = *point;
		if (bit < 0)
			p.y = obk_fp::zero() - p.y;
		if (bit < 0 || square[bit / 32] >> bit % 32 & 1)
			r = obk_g1_add_affine(r, p);
	}
	p = *point;
	return !r.is_infinity() && (product(product(beta, p.x), r.zz) - r.x).is_zero() &&
		(product(p.y, r.zzz) - r.y).is_zero();
}

/* bad: the lowest index of a point that is refused. */
extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS)
	msm_check(uint32_t n, const obk_g1_affine *points, uint32_t curve, uint32_t subgroup,
		obk_fp beta, unsigned long long first, unsigned long long *bad)
{
	uint32_t i = thread_id();
	obk_g1_affine p;

	if (i >= n)
		return;
	p = points[i];
	if (!is_canonical(p.x) || !is_canonical(p.y) || (curve && !on_curve(p)) ||
		(subgroup && !in_subgroup(points + i, beta)))
		atomicMin(bad, first + i);
}

/* out = 2^shift in */
extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS)
	msm_shift(uint32_t n, uint32_t shift, const obk_g1_affine *in, obk_g1 *out)
{
	uint32_t i = thread_id();
	obk_g1 p;

	if (i >= n)
		return;
	p = obk_g1_from_affine(in[i]);
	if (p.is_infinity())
		shift = 0;
	for (uint32_t k = 0; k < shift; k++)
		p = obk_g1_double(p);
	out[i] = p;
}

/* out[i][k] = (k + 1) in[i], for k below `multiples` */
extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS)
	msm_multiples(uint32_t n, uint32_t multiples, const obk_g1_affine *in, obk_g1 *out)
{
	uint32_t i = thread_id();
	obk_g1 sum;

	if (i >= n)
		return;
	sum = obk_g1_from_affine(in[i]);
	out += (size_t)i * multiples;
	out[0] = sum;
	for (uint32_t k = 1; k < multiples; k++) {
		sum = obk_g1_add_affine(sum, in[i]);
		out[k] = sum;
	}
}

/* a^(p - 2) */
static __device__ obk_fp inverse(const obk_fp &a)
{
	obk_fp r = obk_fp::one();

#pragma unroll 1
	for (int bit = 380; bit >= 0; bit--) {
		uint32_t word = obk_fp_modulus_words[bit / 32] - (bit < 32 ? 2 : 0);

		r = obk_fp_square(r);
		if (word >> bit % 32 & 1)
			r = product(r, a);
	}
	return r;
}

/*
 * Converts to affine form with one inversion per thread; the points of a thread are `threads`
 * apart. First, out[].x holds the product of the preceding denominators.
 */
extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS)
	msm_normalise(uint32_t n, uint32_t threads, const obk_g1 *in, obk_g1_affine *out)
{
	uint32_t t = thread_id(), last = t;
	obk_fp all = obk_fp::one();

	if (t >= threads || t >= n)
		return;
	for (uint32_t i = t; i < n; i += threads) {
		last = i;
		out[i].x = all;
		if (!in[i].is_infinity())
			all = product(all, in[i].zzz);
	}
	all = inverse(all);
	for (uint32_t i = last + threads; i > t;) {
		obk_g1_affine r;
		obk_fp zzz, z;

		i -= threads;
		r.x = r.y = obk_fp::zero();
		if (!in[i].is_infinity()) {
			zzz = product(all, out[i].x); /* 1 / zzz */
			all = product(all, in[i].zzz);
			z = product(zzz, in[i].zz); /* 1 / z */
			r.x = product(in[i].x, product(z, z));
			r.y = product(in[i].y, zzz);
		}
		out[i] = r;
	}
}
