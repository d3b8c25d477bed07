/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Proofs of cells on a GPU (compute/gpu), the same points as obk_fk20_prove's: all 128 sums of
 * fixed points by one table of multiples, then the two transforms of points, of many blobs
 * together. The caller owns the tables, which stay on the device that they were made for, and frees
 * them before it closes the device. Any number of threads may use them at once; each takes a stream
 * and buffers of its own. These functions enter the device themselves.
 */
#ifndef OBK_KZG_GPU_H
#define OBK_KZG_GPU_H

#include "compute/gpu/gpu.h"
#include "compute/kzg/fk20.h"

#define OBK_FK20_GPU_MAX_LOG_COLUMNS 12
#define OBK_FK20_GPU_MAX_TERMS       64
#define OBK_FK20_GPU_MAX_BLOBS       512 /* of a call */

struct obk_fk20_gpu;

struct obk_fk20_gpu_args {
	/* [column][term], known to be in G1, as obk_fk20_points gives them */
	const struct obk_g1_affine *points;
	unsigned log_columns, terms; /* 7 and 64 for blobs; terms a power of two */
	/*
	 * bits of a digit, 4..8: ceil(255 / window) 2^(window - 1) points of 96 bytes each of
	 * points; 0: by the memory
	 */
	unsigned window;
	/* for window 0: the widest digits whose table is not larger, 4 bits in any case */
	size_t table_bytes;
};

/*
 * If the device lacks memory for the table, digits are narrower. OB_ERR_NO_MEMORY if four bits are
 * too many; OB_ERR_ARGUMENT.
 */
enum ob_err obk_fk20_gpu_new(struct obk_gpu *gpu, const struct obk_fk20_gpu_args *args,
	struct obk_fk20_gpu **ret_fk, struct obk_fault *fault);
void obk_fk20_gpu_free(struct obk_fk20_gpu *fk);

struct obk_fk20_gpu_info {
	size_t bytes;    /* memory of the device held */
	unsigned window; /* bits of a digit */
	/*
	 * products of field elements that both transforms of one call wait for, one after the other
	 */
	unsigned depth;
};

void obk_fk20_gpu_info(const struct obk_fk20_gpu *fk, struct obk_fk20_gpu_info *ret_info);

/*
 * scalars[blob][column][term] as obk_fk20_scalars gives them -> ret_proofs[blob][column]. 1 <=
 * blobs <= OBK_FK20_GPU_MAX_BLOBS. pool: threads that make what was read affine; NULL: the
 * caller's. OB_ERR_NO_MEMORY if the device has no room even for one blob at a time.
 */
enum ob_err obk_fk20_gpu_prove(const struct obk_fk20_gpu *fk, const struct obk_fr *scalars,
	size_t blobs, struct obk_g1_affine *ret_proofs, struct obk_pool *pool,
	struct obk_fault *fault);

#endif
