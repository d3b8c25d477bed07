/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * G1 on the GPU: the same structs, formulas and special cases as g1.h, so that coordinates equal
 * those of the CPU limb for limb.
 */
#ifndef OBK_G1_CUH
#define OBK_G1_CUH

#include "compute/field/field.cuh"

struct obk_g1_affine {
	obk_fp x, y;

	__device__ __forceinline__ bool is_infinity() const
	{
		return x.is_zero() && y.is_zero();
	}
};

struct obk_g1 {
	obk_fp x, y, zz, zzz;

	__device__ __forceinline__ bool is_infinity() const
	{
		return zz.is_zero();
	}
};

OBK_DEVICE obk_g1 obk_g1_infinity()
{
	obk_g1 r;

	r.x = r.y = obk_fp::one();
	r.zz = r.zzz = obk_fp::zero();
	return r;
}

OBK_DEVICE obk_g1 obk_g1_from_affine(const obk_g1_affine &p)
{
	obk_g1 r;

	if (p.is_infinity())
		return obk_g1_infinity();
	r.x = p.x;
	r.y = p.y;
	r.zz = r.zzz = obk_fp::one();
	return r;
}

/* Not inlined: it is rare in a sum, and the hot loop should fit into the instruction cache. */
static __device__ __noinline__ obk_g1 obk_g1_double(const obk_g1 p)
{
	obk_fp u = p.y + p.y, v = obk_fp_square(u), w = u * v, s = p.x * v, t = obk_fp_square(p.x),
	       m = t + t + t;
	obk_g1 r;

	r.zz = v * p.zz;
	r.zzz = w * p.zzz;
	r.x = obk_fp_square(m) - s - s;
	r.y = obk_fp_sum_of_products(s - r.x, m, obk_fp::zero() - w, p.y);
	return r;
}

OBK_DEVICE obk_g1 obk_g1_add_tail(const obk_fp &u1, const obk_fp &s1, const obk_fp &p,
	const obk_fp &r, const obk_fp &zz, const obk_fp &zzz)
{
	obk_fp pp = obk_fp_square(p), ppp = p * pp, q = u1 * pp;
	obk_g1 sum;

	sum.zz = zz * pp;
	sum.zzz = zzz * ppp;
	sum.x = obk_fp_square(r) - ppp - q - q;
	sum.y = obk_fp_sum_of_products(q - sum.x, r, obk_fp::zero() - ppp, s1);
	return sum;
}

OBK_DEVICE obk_g1 obk_g1_add_affine(const obk_g1 &p, const obk_g1_affine &q)
{
	obk_fp u, s;

	if (q.is_infinity())
		return p;
	if (p.is_infinity())
		return obk_g1_from_affine(q);
	u = q.x * p.zz - p.x;
	s = q.y * p.zzz - p.y;
	if (u.is_zero())
		return s.is_zero() ? obk_g1_double(p) : obk_g1_infinity();
	return obk_g1_add_tail(p.x, p.y, u, s, p.zz, p.zzz);
}

OBK_DEVICE obk_g1 obk_g1_add(const obk_g1 &p, const obk_g1 &q)
{
	obk_fp u1, u2, s1, s2;

	if (p.is_infinity())
		return q;
	if (q.is_infinity())
		return p;
	u1 = p.x * q.zz;
	u2 = q.x * p.zz - u1;
	s1 = p.y * q.zzz;
	s2 = q.y * p.zzz - s1;
	if (u2.is_zero())
		return s2.is_zero() ? obk_g1_double(p) : obk_g1_infinity();
	return obk_g1_add_tail(u1, s1, u2, s2, p.zz * q.zz, p.zzz * q.zzz);
}

#endif
