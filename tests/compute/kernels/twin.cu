/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * One operation per thread, so that the test can compare each with the CPU; and kernels with a
 * single operation, for counting instructions.
 */
#include "compute/curve/g1_four.cuh"

template <class T> __device__ void operate(unsigned op, unsigned n, const T *a, const T *b, T *r)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	r[i] = op == 0 ? a[i] + b[i] : op == 1 ? a[i] - b[i] : a[i] * b[i];
}

/* Operations 0 to 2 are those of operate(); 3: a^2; 4: a b + (a + b) a. */
extern "C" __global__ void twin_fp(
	unsigned op, unsigned n, const obk_fp *a, const obk_fp *b, obk_fp *r)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (op < 3)
		operate(op, n, a, b, r);
	else if (i < n)
		r[i] = op == 3 ? obk_fp_square(a[i])
			       : obk_fp_sum_of_products(a[i], b[i], a[i] + b[i], a[i]);
}

extern "C" __global__ void twin_fr(
	unsigned op, unsigned n, const obk_fr *a, const obk_fr *b, obk_fr *r)
{
	operate(op, n, a, b, r);
}

extern "C" __global__ void twin_g1(unsigned op, unsigned n, const obk_g1 *p, const obk_g1 *q,
	const obk_g1_affine *a, obk_g1 *r)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	r[i] = op == 0    ? obk_g1_double(p[i])
		: op == 1 ? obk_g1_add(p[i], q[i])
			  : obk_g1_add_affine(p[i], a[i]);
}

/*
 * r[i] = p[i] + q[i] with four threads per point. Threads without a point take part with infinity.
 */
extern "C" __global__ void twin_g1_four(
	unsigned op, unsigned n, const obk_g1 *p, const obk_g1 *q, obk_g1 *r)
{
	unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) / 4;
	obk_fp a = obk_fp::zero(), b = a;

	if (i < n) {
		a = *obk_four_of(p + i);
		b = *obk_four_of(q + i);
	}
	a = op == 0 ? obk_four_double(a) : obk_four_add(a, b);
	if (i < n)
		*obk_four_of(r + i) = a;
}

extern "C" __global__ void product_fp(const obk_fp *a, obk_fp *r)
{
	r[threadIdx.x] = a[threadIdx.x] * r[threadIdx.x];
}

extern "C" __global__ void square_fp(obk_fp *r)
{
	r[threadIdx.x] = obk_fp_square(r[threadIdx.x]);
}

extern "C" __global__ void sum_of_products_fp(
	const obk_fp *a, const obk_fp *b, const obk_fp *c, obk_fp *r)
{
	r[threadIdx.x] = obk_fp_sum_of_products(
		a[threadIdx.x], b[threadIdx.x], c[threadIdx.x], r[threadIdx.x]);
}

extern "C" __global__ void product_fr(const obk_fr *a, obk_fr *r)
{
	r[threadIdx.x] = a[threadIdx.x] * r[threadIdx.x];
}

extern "C" __global__ void mixed_addition(const obk_g1_affine *a, obk_g1 *r)
{
	r[threadIdx.x] = obk_g1_add_affine(r[threadIdx.x], a[threadIdx.x]);
}

extern "C" __global__ void full_addition(const obk_g1 *a, obk_g1 *r)
{
	r[threadIdx.x] = obk_g1_add(r[threadIdx.x], a[threadIdx.x]);
}

extern "C" __global__ void full_addition_four(const obk_fp *a, obk_fp *r)
{
	r[threadIdx.x] = obk_four_add(r[threadIdx.x], a[threadIdx.x]);
}
