/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Cell proofs on a GPU, for many blobs at once: the sums of the columns from tables of multiples,
 * and the transforms of points, one level per launch. The roots of unity are known in advance, so
 * the host writes the multiplication by each root as a program of doublings and additions
 * (compute/kzg/program.c). SIMD lanes of one warp execute the same program. Between two levels of
 * one blob there are only 64 multiplications, each of them sequential, so four SIMD lanes share a
 * point.
 */
#include "compute/curve/g1_four.cuh"
#include "compute/kzg/gpu_shape.h"
#include "compute/msm/digits.cuh"

/* out[column][blob]. scalars[blob][column][term] as msm_prepare writes them. */
extern "C" __global__ void __launch_bounds__(OBK_FK20_THREADS, OBK_FK20_RESIDENT) fk20_sums(
	obk_fk20_sums shape, const obk_scalar *scalars, const obk_g1_affine *table, obk_g1 *out)
{
	__shared__ obk_g1 shared[OBK_FK20_THREADS];
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x, parts = shape.terms / shape.each,
		 sum = id / parts, part = id % parts, column = sum / shape.blobs,
		 blob = sum % shape.blobs, multiples = 1u << (shape.window - 1);
	size_t stride = (size_t)shape.columns * shape.terms;
	obk_g1 s = obk_g1_infinity();
	bool live = column < shape.columns;

	for (uint32_t t = 0; live && t < shape.each; t++) {
		uint32_t base = column * shape.terms + part * shape.each + t;
		const obk_scalar *k = scalars + blob * stride + base;

		for (uint32_t window = 0; window < shape.windows; window++) {
			int32_t digit = obk_scalar_digit_of(k, 1, window, shape.window);
			obk_g1_affine p;

			if (!digit)
				continue;
			p = table[(window * stride + base) * multiples + (uint32_t)abs(digit) - 1];
			if (digit < 0)
				p.y = obk_fp::zero() - p.y;
			s = obk_g1_add_affine(s, p);
		}
	}
	for (uint32_t width = parts / 2; width > 0; width /= 2) {
		shared[threadIdx.x] = s;
		__syncthreads();
		if (part < width)
			s = obk_g1_add(s, shared[threadIdx.x + width]);
		__syncthreads();
	}
	if (live && part == 0)
		out[sum] = s;
}

/*
 * One warp processes eight pairs of a block of the level, with four SIMD lanes each. slots:
 * OBK_FK20_SLOTS points for each pair of the level.
 */
extern "C" __global__ void __launch_bounds__(4 * OBK_FK20_QUADS)
	fk20_steps(obk_fk20_level level, const uint32_t *starts, const uint32_t *programs,
		obk_fp beta, obk_fp *points, obk_fp *slots)
{
	uint32_t q = threadIdx.x & 3, block = blockIdx.y, pairs = level.half * level.blobs,
		 pair = blockIdx.x * OBK_FK20_QUADS + threadIdx.x / 4, step;
	const uint32_t *program = programs + starts[level.first + block];
	bool live = pair < pairs;
	obk_fp *own = points + (size_t)(2 * block * pairs + pair) * 4 + q, acc = obk_fp::zero();

	slots += ((size_t)block * pairs + pair) * OBK_FK20_SLOTS * 4 + q;
	do {
		uint32_t load, add, store;

		step = *program++;
		load = step >> OBK_FK20_LOAD_SHIFT & OBK_FK20_SLOT_MASK;
		add = step >> OBK_FK20_ADD_SHIFT & OBK_FK20_SLOT_MASK;
		store = step >> OBK_FK20_STORE_SHIFT & OBK_FK20_SLOT_MASK;
		if (step & OBK_FK20_CLEAR)
			acc = obk_fp::zero();
		if (load && live)
			acc = load <= 2 ? own[(load - 1) * pairs * 4] : slots[(load - 3) * 4];
		for (uint32_t n = step >> OBK_FK20_DOUBLE_SHIFT & OBK_FK20_DOUBLE_MASK; n > 0; n--)
			acc = obk_four_twice(acc);
		if (add) {
			obk_fp w = obk_fp::zero();

			if (live)
				w = add <= 2 ? own[(add - 1) * pairs * 4] : slots[(add - 3) * 4];
			if (step & OBK_FK20_ENDO)
				w = obk_four_choose(q == 0, w * beta, w);
			if (step & OBK_FK20_NEGATIVE)
				w = obk_four_choose(q == 1, obk_fp::zero() - w, w);
			acc = obk_four_add(acc, w);
		}
		if (store && live)
			*(store <= 2 ? own + (store - 1) * pairs * 4 : slots + (store - 3) * 4) =
				acc;
	} while (!(step & OBK_FK20_LAST));
}
