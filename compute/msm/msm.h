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

#include "compute/msm/job.h"

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
