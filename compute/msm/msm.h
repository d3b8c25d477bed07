/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Multi-scalar multiplication on the CPU: sum of s_i P_i over G1 of BLS12-381. The caller owns
 * bases and passes a pool for threads (NULL: its own thread only). Bases are read-only once made:
 * any number of threads may run products on them at once, each call taking turns on its pool. The
 * result is the group element in affine form, so it is the same bit for bit whatever method,
 * window, thread count or device computed it. Scalars are any 256-bit numbers; those at or above r
 * count as the integers they are. Infinity among the bases contributes nothing.
 */
#ifndef OBK_MSM_H
#define OBK_MSM_H

#include "compute/curve/g1.h"
#include "compute/pool/pool.h"

#define OBK_MSM_MAX_POINTS ((size_t)1 << 26)
#define OBK_MSM_MAX_BATCH  65536
#define OBK_MSM_MAX_WINDOW 22
/*
 * points of a product that are worked on together: what bounds its working memory, to about a
 * gigabyte
 */
#define OBK_MSM_RANGE      ((size_t)1 << 23)
#define OBK_SCALAR_BYTES   32
#define OBK_MSM_FEW        8

enum obk_point_format {
	OBK_POINT_AFFINE,       /* struct obk_g1_affine, coordinates in Montgomery form below p */
	OBK_POINT_COMPRESSED,   /* 48 bytes */
	OBK_POINT_UNCOMPRESSED, /* 96 bytes */
};

enum obk_scalar_format {
	OBK_SCALAR_LE,   /* 32 bytes, the lowest first */
	OBK_SCALAR_BE,   /* 32 bytes, the highest first */
	OBK_SCALAR_MONT, /* struct obk_fr */
};

/*
 * What is known of the bases. The halves of the endomorphism need points of G1, so OBK_TRUST_CURVE
 * forgoes them.
 */
enum obk_trust {
	OBK_TRUST_NOTHING, /* check the curve and the subgroup of every point */
	/*
	 * points are on the curve (compressed and uncompressed ones are checked anyway), perhaps
	 * outside G1: right, a little slower
	 */
	OBK_TRUST_CURVE,
	OBK_TRUST_SUBGROUP, /* points are in G1; the caller's word */
};

struct obk_msm_bases_args {
	const void *points;
	size_t count;  /* 0..OBK_MSM_MAX_POINTS */
	size_t stride; /* bytes from one point to the next; 0: packed */
	enum obk_point_format format;
	enum obk_trust trust;
	/* what the first point counts as in sentences and items of errors */
	size_t first;
	/*
	 * memory allowed for shifted copies of the bases (fixed-base tables) beyond one copy; 0:
	 * none
	 */
	size_t table_bytes;
	struct obk_pool *pool;
};

struct obk_msm_bases;

struct obk_msm_bases_info {
	size_t count, bytes; /* points; memory held */
	unsigned shifts;     /* copies of the bases, 1 without a table */
	unsigned window;     /* bits of a window if there is a table, else 0: chosen by size */
	bool endomorphism;   /* scalars are split in halves */
	const char *lanes;   /* how points are added: "scalar", "avx512" or "ifma" */
};

/* OB_ERR_ARGUMENT names the first bad point in fault->item; OB_ERR_NO_MEMORY; OB_ERR_LIMIT. */
enum ob_err obk_msm_bases_new(const struct obk_msm_bases_args *args,
	struct obk_msm_bases **ret_bases, struct obk_fault *fault);
void obk_msm_bases_free(struct obk_msm_bases *bases);
void obk_msm_bases_info(const struct obk_msm_bases *bases, struct obk_msm_bases_info *ret_info);

struct obk_msm_job {
	size_t offset, count; /* bases [offset, offset + count); count 0: the result is infinity */
	const void *scalars;  /* batch x count of them, one product after the other */
	enum obk_scalar_format format;
	bool canonical; /* refuse scalars at or above r */
	size_t batch;   /* products, 1..OBK_MSM_MAX_BATCH */
	/*
	 * 0: chosen by size; else bits, 2..OBK_MSM_MAX_WINDOW; ignored where the bases have a table
	 */
	unsigned window;
	struct obk_pool *pool;
	/* or NULL; from any of the pool's threads, never two at once, done rises from 0 to 1 */
	void (*progress)(void *arg, double done);
	void *progress_arg;
	struct obk_stop stop; /* asked every few thousand additions */
	/* 0: OBK_MSM_RANGE; larger products are sums of products of so many points */
	size_t range;
};

/*
 * ret_points[batch] is written only on success. Errors as above; fault->item is the index of the
 * scalar among batch x count. OB_ERR_CANCELLED: job->stop said so. Beside the bases it takes 32
 * bytes a point of a range, 4 bytes an entry and 128 a bucket of the windows that are worked on
 * together.
 */
enum ob_err obk_msm_run(const struct obk_msm_bases *bases, const struct obk_msm_job *job,
	struct obk_g1_affine *ret_points, struct obk_fault *fault);
/*
 * Products with bases given for this call only. Where one product uses all of more than a range of
 * them and wants no table, they are read range by range, so that the memory beside the caller's
 * does not grow with their number.
 */
enum ob_err obk_msm_once(const struct obk_msm_bases_args *args, const struct obk_msm_job *job,
	struct obk_g1_affine *ret_points, struct obk_fault *fault);

/*
 * The sum of scalars[i] points[i], n <= OBK_MSM_FEW points of G1, by the caller's thread, without
 * memory of its own: faster than the above for so few.
 */
void obk_msm_few(struct obk_g1_affine *ret, const struct obk_g1_affine *points,
	const struct obk_fr *scalars, size_t n);

#endif
