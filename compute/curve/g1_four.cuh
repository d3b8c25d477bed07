/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * G1 on the GPU with four neighbouring SIMD lanes per point, for sums that depend on one another.
 * SIMD lane 0 of the four holds x, 1 y, 2 zz, 3 zzz. The fourteen products of an addition are done
 * in four levels of at most four, one per SIMD lane, so the latency of a sum is four products
 * instead of thirteen. It takes sixteen product slots, so if there are enough points to keep the
 * multiplier busy, one SIMD lane per point (g1.cuh) is as fast. Coordinates are the same limb for
 * limb.
 *
 *     SIMD lane  0               1               2               3
 *     level 1    u1 = x1 zz2     s1 = y1 zzz2    u2 = zz1 x2     s2 = zzz1 y2
 *                p = u2 - u1, r = s2 - s1
 *     level 2    p p             r r             zz1 zz2         zzz1 zzz2
 *     level 3    q = u1 pp       ppp = p pp      zz3             ppp
 *                x3 = rr - ppp - 2 q
 *     level 4    r (q - x3)      s1 ppp                          zzz3
 *                y3 = r (q - x3) - s1 ppp
 *
 * All 32 SIMD lanes of a warp must call these functions together; those without work pass zeros,
 * which are infinity.
 */
#ifndef OBK_G1_FOUR_CUH
#define OBK_G1_FOUR_CUH

#include "compute/curve/g1.cuh"

#define OBK_WARP 0xffffffffu

/* The value that SIMD lane `from` of the four holds. */
OBK_DEVICE obk_fp obk_four_from(const obk_fp &a, unsigned from)
{
	obk_fp r;

#pragma unroll
	for (int i = 0; i < obk_fp::N; i++)
		r.l[i] = __shfl_sync(OBK_WARP, a.l[i], from, 4);
	return r;
}

/* The value of the SIMD lane whose number differs in the bits of `mask`. */
OBK_DEVICE obk_fp obk_four_across(const obk_fp &a, unsigned mask)
{
	obk_fp r;

#pragma unroll
	for (int i = 0; i < obk_fp::N; i++)
		r.l[i] = __shfl_xor_sync(OBK_WARP, a.l[i], mask, 4);
	return r;
}

OBK_DEVICE obk_fp obk_four_choose(bool first, const obk_fp &a, const obk_fp &b)
{
	obk_fp r;

#pragma unroll
	for (int i = 0; i < obk_fp::N; i++)
		r.l[i] = first ? a.l[i] : b.l[i];
	return r;
}

/* One bit for each of the four SIMD lanes: set if its value is zero. */
OBK_DEVICE unsigned obk_four_zeroes(const obk_fp &a)
{
	return __ballot_sync(OBK_WARP, a.is_zero()) >> (threadIdx.x & 28) & 15;
}

/*
 * 2 p with a latency of three products: v = (2 y)^2, w = 2 y v, s = x v, m = 3 x^2; x3 = m^2 - 2 s,
 * y3 = m (s - x3) - w y, zz3 = v zz, zzz3 = w zzz. The double of infinity is infinity.
 *
 *     SIMD lane  0               1               2               3
 *     level 1    x^2             v               v               v
 *     level 2    m^2             w               zz3             s
 *     level 3    m (s - x3)      w y                             zzz3
 */
OBK_DEVICE obk_fp obk_four_twice(const obk_fp &p)
{
	unsigned lane = threadIdx.x & 3;
	obk_fp x = obk_four_from(p, 0), u = obk_four_from(p, 1), v, m, t, s, d;

	u = u + u;
	v = obk_fp_square(obk_four_choose(lane == 0, x, u));
	m = v + v + v;
	t = obk_four_choose(
		    lane == 0, m, obk_four_choose(lane == 1, u, obk_four_choose(lane == 3, x, p))) *
		obk_four_choose(lane == 0, m, v);
	s = obk_four_from(t, 3);
	d = obk_four_from(t, 0) - s - s; /* x3 */
	u = obk_four_from(t, 1);
	m = obk_four_choose(lane == 0, m, u) * obk_four_choose(lane == 0, s - d, p);
	u = obk_four_from(m, 0) - m;
	return obk_four_choose(
		lane & 1, obk_four_choose(lane == 1, u, m), obk_four_choose(lane == 0, d, t));
}

/* Not inlined, for callers that need it rarely. */
static __device__ __noinline__ obk_fp obk_four_double(const obk_fp p)
{
	return obk_four_twice(p);
}

/* p + q, complete: handles infinity on either side, equal points and opposite points. */
OBK_DEVICE obk_fp obk_four_add(const obk_fp &p, const obk_fp &q)
{
	unsigned lane = threadIdx.x & 3, zeroes;
	bool high = lane & 2, odd = lane & 1, p_infinite = obk_four_zeroes(p) & 4,
	     q_infinite = obk_four_zeroes(q) & 4;
	obk_fp u, d, across, r, v, w, x, t;

	if (__all_sync(OBK_WARP, p_infinite || q_infinite))
		return obk_four_choose(p_infinite, q, p);
	u = p * obk_four_across(q, 2);
	t = obk_four_across(u, 2);
	d = obk_four_choose(high, u, t) - obk_four_choose(high, t, u); /* p, r, p, r */
	zeroes = obk_four_zeroes(d);
	across = obk_four_across(d, 1);                                /* r, p, r, p */
	r = obk_four_choose(high, p, d) * obk_four_choose(high, q, d); /* pp, rr, .. */
	/* q, ppp, zz3, ppp */
	v = obk_four_choose(odd, across, obk_four_choose(high, r, u)) * obk_four_from(r, 0);
	x = obk_four_from(r - v, 1) - v - v;
	w = obk_four_choose(lane == 0, across, obk_four_choose(high, r, u)) *
		obk_four_choose(lane == 0, v - x, v);
	t = obk_four_from(w, 0) - w;
	r = obk_four_choose(odd, obk_four_choose(high, w, t), obk_four_choose(high, v, x));
	/*
	 * x is equal: either p = -q, and the sum is infinity as in obk_g1_infinity, or p = q
	 * (below)
	 */
	if (zeroes & 1)
		r = obk_four_choose(high, obk_fp::zero(), obk_fp::one());
	r = obk_four_choose(q_infinite, p, obk_four_choose(p_infinite, q, r));
	zeroes = p_infinite || q_infinite ? 0 : zeroes;
	if (__any_sync(OBK_WARP, (zeroes & 3) == 3))
		r = obk_four_choose((zeroes & 3) == 3, obk_four_double(p), r);
	return r;
}

/* The SIMD lane's coordinate of a point in memory. */
OBK_DEVICE const obk_fp *obk_four_of(const obk_g1 *p)
{
	return (const obk_fp *)p + (threadIdx.x & 3);
}

OBK_DEVICE obk_fp *obk_four_of(obk_g1 *p)
{
	return (obk_fp *)p + (threadIdx.x & 3);
}

#endif
