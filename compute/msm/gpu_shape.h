/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the host and the kernels of a multi-scalar product agree on. Plain numbers, passed by value.
 */
#ifndef OBK_MSM_GPU_SHAPE_H
#define OBK_MSM_GPU_SHAPE_H

#include <stdint.h>

/*
 * Some products of one size that are worked on together. As in plan.h: a product has `sets` sets of
 * buckets, and window w of a scalar goes to set w % sets with copy w / sets of the bases. A
 * bucket's key counts through all sets of all products.
 */
struct obk_msm_shape {
	uint32_t count, products; /* scalars of a product; products */
	uint32_t window, windows, sets;
	/* of a set: 2^(window - 1); where all multiples are held, as many of a base and window */
	uint32_t buckets;
	/* scalars may be reduced modulo r, and halved with a sign: bit 255 */
	uint32_t order_r;
};

#define OBK_MSM_NONE         0xffffffffu
#define OBK_MSM_THREADS      128 /* of a block that adds points */
/*
 * such blocks of a processor: two warps a scheduler keep its multiplier busy, and no register is
 * spilled
 */
#define OBK_MSM_RESIDENT     2
#define OBK_MSM_REST_THREADS 256 /* of the block that folds what is left with four lanes a point */
#define OBK_MSM_SCAN_THREADS 256
#define OBK_MSM_SCAN_TILE    2048 /* counts that a block sums up */
#define OBK_MSM_TREE         256  /* points that a block of a tree makes one */

/* A point with a bucket: base (and copy) with the digit's sign in bit 31, and the bucket's key. */
struct obk_msm_entry {
	uint32_t ref, key;
};

#endif
