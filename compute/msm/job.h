/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the caller of a multi-scalar multiplication describes, on the CPU (compute/msm/msm.h) and on
 * a GPU (compute/msm/gpu.h): bases, products, and the limits of both. Plain structs.
 */
#ifndef OBK_MSM_JOB_H
#define OBK_MSM_JOB_H

#include "compute/curve/g1.h"
#include "compute/pool/pool.h"

#define OBK_MSM_MAX_POINTS               ((size_t)1 << 26)
#define OBK_MSM_MAX_BATCH                65536
#define OBK_MSM_MAX_WINDOW               22
#define OBK_MSM_GPU_MAX_WINDOW           24
/* most points of a product that are processed together; limits its working memory to about 1 GB */
#define OBK_MSM_RANGE                    ((size_t)1 << 23)
#define OBK_SCALAR_BYTES                 32
#define OBK_MSM_FEW                      8
/* tables of all multiples on a GPU (compute/msm/gpu.h) */
#define OBK_MSM_GPU_MULTIPLES_MAX_POINTS ((size_t)1 << 14)
#define OBK_MSM_GPU_MULTIPLES_MIN_BITS   4
#define OBK_MSM_GPU_MULTIPLES_MAX_BITS   8

enum obk_point_format {
	OBK_POINT_AFFINE,       /* struct obk_g1_affine, coordinates in Montgomery form below p */
	OBK_POINT_COMPRESSED,   /* 48 bytes */
	OBK_POINT_UNCOMPRESSED, /* 96 bytes */
};

enum obk_scalar_format {
	OBK_SCALAR_LE,   /* 32 bytes in little-endian order */
	OBK_SCALAR_BE,   /* 32 bytes in big-endian order */
	OBK_SCALAR_MONT, /* struct obk_fr */
};

/*
 * What the caller guarantees about the bases. The endomorphism is valid only for points of G1, so
 * OBK_TRUST_CURVE does not use it.
 */
enum obk_trust {
	OBK_TRUST_NOTHING, /* check for every point that it is on the curve and in the subgroup */
	/*
	 * points are on the curve (compressed and uncompressed ones are checked anyway), perhaps
	 * outside G1: correct, a little slower
	 */
	OBK_TRUST_CURVE,
	OBK_TRUST_SUBGROUP, /* the caller guarantees points of G1 */
};

struct obk_msm_bases_args {
	const void *points;
	size_t count;  /* 0..OBK_MSM_MAX_POINTS */
	size_t stride; /* bytes from one point to the next; 0: packed */
	enum obk_point_format format;
	enum obk_trust trust;
	/* index of the first point in error texts and in fault->item */
	size_t first;
	/*
	 * memory that shifted copies of the bases (fixed-base tables) may take besides the bases;
	 * 0: none
	 */
	size_t table_bytes;
	struct obk_pool *pool;
};

struct obk_msm_job {
	size_t offset, count; /* bases [offset, offset + count); count 0: the result is infinity */
	const void *scalars;  /* batch x count scalars, one product after the other */
	enum obk_scalar_format format;
	bool canonical; /* refuse scalars at or above r */
	size_t batch;   /* number of products, 1..OBK_MSM_MAX_BATCH */
	/*
	 * window in bits, 2..OBK_MSM_MAX_WINDOW; 0: chosen by size. Ignored if the bases have a
	 * table
	 */
	unsigned window;
	struct obk_pool *pool;
	/*
	 * NULL is allowed. Called from any of the pool's threads, one call at a time; `done` rises
	 * from 0 to 1
	 */
	void (*progress)(void *arg, double done);
	void *progress_arg;
	struct obk_stop stop; /* polled every few thousand additions */
	/*
	 * 0: OBK_MSM_RANGE. A product of more points is computed as a sum of products of this many
	 */
	size_t range;
};

#endif
