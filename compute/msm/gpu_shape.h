/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Constants and structs that the host and the MSM kernels share. The structs are passed by value.
 */
#ifndef OBK_MSM_GPU_SHAPE_H
#define OBK_MSM_GPU_SHAPE_H

#include <stdint.h>

/*
 * Several products of one size that are processed together. As in plan.h, a product has `sets` sets
 * of buckets, and window w of a scalar goes to set w % sets with copy w / sets of the bases. Bucket
 * keys are numbered consecutively over all sets of all products.
 */
struct obk_msm_shape {
	uint32_t count, products; /* scalars in a product; number of products */
	uint32_t window, windows, sets;
	/*
	 * in a set: 2^(window - 1); with a table of all multiples, the multiples per base and
	 * window
	 */
	uint32_t buckets;
	/* scalars may be reduced modulo r, and replaced by their negative with a sign in bit 255 */
	uint32_t order_r;
};

#define OBK_MSM_NONE         0xffffffffu
#define OBK_MSM_THREADS      128 /* threads in a block that adds points */
/*
 * resident blocks per multiprocessor: two warps per scheduler keep its multiplier busy, and no
 * register is spilled
 */
#define OBK_MSM_RESIDENT     2
/* threads in the block that folds the remaining sums, four SIMD lanes per point */
#define OBK_MSM_REST_THREADS 256
#define OBK_MSM_SCAN_THREADS 256
#define OBK_MSM_SCAN_TILE    2048 /* counts that one block sums up */
#define OBK_MSM_TREE         256  /* points that one block of a reduction tree adds to one */

/*
 * A point with its bucket. ref: index of the base (and copy), with the digit's sign in bit 31. key:
 * the bucket.
 */
struct obk_msm_entry {
	uint32_t ref, key;
};

#endif
