/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The number-theoretic transform over the scalar field Fr of BLS12-381, on the CPU, in place: X_k =
 * sum of x_j (g w^k)^j with w = obk_fr_root(log n); g is the shift of the coset (1 without a
 * coset). The inverse computes x from X, with the factor 1/n. The caller owns the data and passes a
 * pool of threads (NULL: only the calling thread works). Any number of threads may run transforms
 * at once on different data. Roots of unity are computed once per process and kept: up to 32 MiB,
 * one table for all sizes and both directions.
 */
#ifndef OBK_NTT_H
#define OBK_NTT_H

#include "compute/field/fault.h"
#include "compute/field/fr.h"
#include "compute/pool/pool.h"

#define OBK_NTT_MAX_LOG_N 26
#define OBK_NTT_MAX_BATCH ((size_t)1 << 26)

enum obk_ntt_direction { OBK_NTT_FORWARD, OBK_NTT_INVERSE };

/* Order of input and output: N natural, R bit-reversed. NR and RN need no reordering. */
enum obk_ntt_order { OBK_NTT_NN, OBK_NTT_NR, OBK_NTT_RN, OBK_NTT_RR };

struct obk_ntt_job {
	unsigned log_n; /* 0..OBK_NTT_MAX_LOG_N */
	enum obk_ntt_direction direction;
	enum obk_ntt_order order;
	/*
	 * number of transforms, one after the other in memory; 0: does nothing; batch x n <=
	 * OBK_NTT_MAX_BATCH
	 */
	size_t batch;
	const struct obk_fr *coset; /* the shift g, not 0; NULL: none */
	struct obk_pool *pool;
	struct obk_stop stop; /* polled every few thousand elements */
};

/*
 * OB_ERR_ARGUMENT, OB_ERR_LIMIT, OB_ERR_NO_MEMORY (for the roots): the data is unchanged.
 * OB_ERR_CANCELLED: stop returned true; the data is partly transformed.
 */
enum ob_err obk_ntt_run(
	const struct obk_ntt_job *job, struct obk_fr *data, struct obk_fault *fault);

/*
 * Refuses what no device can transform: OB_ERR_ARGUMENT, OB_ERR_LIMIT. data: there is some.
 * max_log_n and max_elements are the limits of the device.
 */
enum ob_err obk_ntt_check(const struct obk_ntt_job *job, bool data, unsigned max_log_n,
	size_t max_elements, struct obk_fault *fault);

#endif
