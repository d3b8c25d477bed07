/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Proofs of cells on a GPU (compute/gpu), the same points as those of obk_fk20_prove: all 128 sums
 * of products with fixed points from one table of multiples, then two transforms of points, for
 * many blobs together. The caller owns the tables, which stay on the device they were made for, and
 * frees them before it closes the device. Any number of threads may use them at once; each call
 * uses its own stream and buffers. These functions call obk_gpu_enter themselves.
 */
#ifndef OBK_KZG_GPU_H
#define OBK_KZG_GPU_H

#include "compute/gpu/gpu.h"
#include "compute/kzg/fk20.h"

#define OBK_FK20_GPU_MAX_LOG_COLUMNS 12
#define OBK_FK20_GPU_MAX_TERMS       64
#define OBK_FK20_GPU_MAX_BLOBS       512 /* in one call */

struct obk_fk20_gpu;

struct obk_fk20_gpu_args {
	/* [column][term]; points of G1 (not checked), as obk_fk20_points returns them */
	const struct obk_g1_affine *points;
	unsigned log_columns, terms; /* 7 and 64 for blobs; terms is a power of two */
	/*
	 * bits in a digit, 4..8: the table has ceil(255 / window) 2^(window - 1) points of 96 bytes
	 * for each of points; 0: chosen by memory
	 */
	unsigned window;
	/*
	 * for window 0: the widest digits whose table is not larger than this, but at least 4 bits
	 */
	size_t table_bytes;
};

/*
 * If the device lacks memory for the table, narrower digits are used. OB_ERR_NO_MEMORY if there is
 * not enough for 4 bits; OB_ERR_ARGUMENT.
 */
enum ob_err obk_fk20_gpu_new(struct obk_gpu *gpu, const struct obk_fk20_gpu_args *args,
	struct obk_fk20_gpu **ret_fk, struct obk_fault *fault);
void obk_fk20_gpu_free(struct obk_fk20_gpu *fk);

struct obk_fk20_gpu_info {
	size_t bytes;    /* device memory held */
	unsigned window; /* bits in a digit */
	/* length of the critical path of both transforms, in multiplications of field elements */
	unsigned depth;
};

void obk_fk20_gpu_info(const struct obk_fk20_gpu *fk, struct obk_fk20_gpu_info *ret_info);

/*
 * scalars[blob][column][term] as obk_fk20_scalars returns them -> ret_proofs[blob][column]. 1 <=
 * blobs <= OBK_FK20_GPU_MAX_BLOBS. pool: threads that convert the results to affine form; NULL: the
 * calling thread. OB_ERR_NO_MEMORY if the device has no room even for one blob at a time.
 */
enum ob_err obk_fk20_gpu_prove(const struct obk_fk20_gpu *fk, const struct obk_fr *scalars,
	size_t blobs, struct obk_g1_affine *ret_proofs, struct obk_pool *pool,
	struct obk_fault *fault);

#endif
