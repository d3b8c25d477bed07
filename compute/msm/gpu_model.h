/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Cost model of a product on a GPU, and the choice of the cheapest method. Plain arithmetic on
 * plain structs; any thread, no device.
 *
 * The time of a group of products is a sum of counts times weights. The counts follow from the
 * plan. The weights belong to the device: measured (compute/msm/gpu_tune.h) or estimated from its
 * multiprocessors and clock:
 *
 *     trip      1                          submit a group and read its result
 *     launch    kernels
 *     byte      32 per scalar              upload
 *     entry     scalars x windows          sort a digit into its bucket and add its base, on a busy
 *                                          device
 *     gather    scalars x windows          the same with all multiples: nothing is sorted
 *     bucket    products x sets x buckets  clear, count, and sum up with its weight
 *     step      dependent additions        latency of one addition by four SIMD lanes, however
 *                                          few there are
 *     row       products x sets x window   partial sums that the host adds up
 */
#ifndef OBK_MSM_GPU_MODEL_H
#define OBK_MSM_GPU_MODEL_H

#include "compute/msm/plan.h"
#include "compute/msm/tune.h"

struct obk_gpu_info;

enum {
	OBK_MSM_TRIP,
	OBK_MSM_LAUNCH,
	OBK_MSM_BYTE,
	OBK_MSM_ENTRY,
	OBK_MSM_GATHER,
	OBK_MSM_BUCKET,
	OBK_MSM_STEP,
	OBK_MSM_ROW,
	OBK_MSM_WEIGHTS,
};

extern const char *const obk_msm_gpu_weight_names[OBK_MSM_WEIGHTS];

/* Seconds for one of each. */
struct obk_msm_gpu_weights {
	double of[OBK_MSM_WEIGHTS];
};

/* What is known about a device. */
struct obk_msm_gpu_tuning {
	struct obk_msm_gpu_weights weights;
	size_t threads; /* number of threads that keep it busy */
	/* most entries of products worth processing together; 0: unknown, as many as possible */
	size_t group;
	/* the fastest measured window for that size without a table; 0: use the model */
	uint8_t window[OBK_TUNE_LOGS];
	bool measured; /* false: estimated */
};

/* Several products of n points each. */
struct obk_msm_gpu_work {
	size_t n, products;
	struct obk_plan plan;
	bool multiples; /* the table holds all multiples; plan is from obk_msm_gpu_multiples_plan */
	bool resident;  /* the scalars are on the device */
};

void obk_msm_gpu_counts(
	const struct obk_msm_gpu_work *work, size_t threads, double ret_counts[OBK_MSM_WEIGHTS]);
/* Expected seconds for the whole group. */
double obk_msm_gpu_seconds(
	const struct obk_msm_gpu_tuning *tuning, const struct obk_msm_gpu_work *work);

/*
 * Estimates a tuning from the device's multiprocessors and clock (unknown: 1.4 GHz), for a card in
 * this machine. The cycle counts are those of the schedules that ptxas makes; instructions and
 * issue rates are the same for compute capabilities 8.0, 9.0 and 12.0 (docs/BENCHMARKS.md).
 */
void obk_msm_gpu_guess(const struct obk_gpu_info *info, struct obk_msm_gpu_tuning *ret_tuning);

struct obk_msm_gpu_sample {
	struct obk_msm_gpu_work work;
	double seconds;
};

/*
 * Fits weights to n samples by least squares of the relative errors. Weights with a bit in `fixed`
 * (1 << OBK_MSM_...) are known and do not change. Where the samples do not determine a weight, the
 * previous proportions of the weights are kept. So one sample determines the device's speed, and
 * six samples of different shapes determine all weights.
 */
void obk_msm_gpu_fit(struct obk_msm_gpu_tuning *tuning, unsigned fixed,
	const struct obk_msm_gpu_sample *samples, size_t n);

/* How the products of a handle are computed. */
struct obk_msm_gpu_choice {
	bool multiples;
	/* window: bits in a digit with multiples; 0 with one copy: chosen by size */
	unsigned window, copies;
	unsigned shift; /* bits from one copy, or window of multiples, to the next */
	size_t bytes;   /* device memory, including the bases */
	double seconds; /* expected for one product of all points */
};

/* The plan for a table of all multiples with digits of `bits` bits. */
struct obk_plan obk_msm_gpu_multiples_plan(unsigned bits);
/* Bytes of all multiples of one base. */
size_t obk_msm_gpu_multiples_bytes(unsigned bits);
/*
 * window = 0: the window that was measured to be the fastest for single products of n points
 * without a table; if there is none, the one with the lowest cost for `products` at a time.
 */
void obk_msm_gpu_plan(const struct obk_msm_gpu_tuning *tuning, struct obk_plan *plan,
	unsigned copies, unsigned fixed_window, bool order_r, size_t n, size_t products);
/*
 * The fastest method for n points with a table of up to table_bytes: multiples, shifted copies, or
 * no table. In the model, more memory is never slower.
 */
void obk_msm_gpu_choose(const struct obk_msm_gpu_tuning *tuning, size_t n, bool order_r,
	size_t table_bytes, struct obk_msm_gpu_choice *ret_choice);
/*
 * The number of products of n points, `windows` entries per scalar, that are worth processing
 * together: at least 1. Memory may allow fewer.
 */
size_t obk_msm_gpu_group(
	const struct obk_msm_gpu_tuning *tuning, size_t n, unsigned windows, size_t batch);

#endif
