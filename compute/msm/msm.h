/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Multi-scalar multiplication on the CPU: the sum of s_i P_i over G1 of BLS12-381. The caller owns
 * the bases and passes a pool of threads (NULL: only the calling thread works). Bases are read-only
 * once made: any number of threads may run products on them at once; calls with the same pool take
 * turns. The result is in affine form, so it is the same bit for bit for every method, window,
 * number of threads and device. Scalars are any 256-bit numbers; those at or above r are used as
 * integers. Infinity among the bases adds nothing.
 */
#ifndef OBK_MSM_H
#define OBK_MSM_H

#include "compute/curve/g1.h"
#include "compute/pool/pool.h"

#define OBK_MSM_MAX_POINTS ((size_t)1 << 26)
#define OBK_MSM_MAX_BATCH  65536
#define OBK_MSM_MAX_WINDOW 22
/* most points of a product that are processed together; limits its working memory to about 1 GB */
#define OBK_MSM_RANGE      ((size_t)1 << 23)
#define OBK_SCALAR_BYTES   32
#define OBK_MSM_FEW        8

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

struct obk_msm_bases;

struct obk_msm_bases_info {
	size_t count, bytes; /* points; bytes of memory held */
	unsigned shifts;     /* copies of the bases; 1: no table */
	unsigned window;     /* bits in a window if there is a table, else 0: chosen by size */
	bool endomorphism;   /* scalars are split into halves by the endomorphism */
	const char *lanes;   /* implementation of point addition: "scalar", "avx512" or "ifma" */
};

/*
 * OB_ERR_ARGUMENT: fault->item is the index of the first bad point; OB_ERR_NO_MEMORY; OB_ERR_LIMIT.
 */
enum ob_err obk_msm_bases_new(const struct obk_msm_bases_args *args,
	struct obk_msm_bases **ret_bases, struct obk_fault *fault);
void obk_msm_bases_free(struct obk_msm_bases *bases);
void obk_msm_bases_info(const struct obk_msm_bases *bases, struct obk_msm_bases_info *ret_info);

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

/*
 * ret_points[batch] is written only on success. Errors as for obk_msm_bases_new, but fault->item is
 * the index of the scalar among batch x count. OB_ERR_CANCELLED: job->stop returned true. Working
 * memory: 32 bytes per point of a range, 4 bytes per entry and 128 bytes per bucket of the windows
 * that are processed together.
 */
enum ob_err obk_msm_run(const struct obk_msm_bases *bases, const struct obk_msm_job *job,
	struct obk_g1_affine *ret_points, struct obk_fault *fault);
/*
 * Products with bases that are used for this call only. If there is one product, it uses more
 * points than a range holds and no table is wanted, the points are read range by range, so that the
 * memory used does not grow with their number.
 */
enum ob_err obk_msm_once(const struct obk_msm_bases_args *args, const struct obk_msm_job *job,
	struct obk_g1_affine *ret_points, struct obk_fault *fault);

/*
 * The sum of scalars[i] points[i] for n <= OBK_MSM_FEW points of G1, computed by the calling thread
 * without allocating memory. Faster than the functions above for so few points.
 */
void obk_msm_few(struct obk_g1_affine *ret, const struct obk_g1_affine *points,
	const struct obk_fr *scalars, size_t n);

#endif
