/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a product costs on a GPU, and the way to do it that costs least. Plain arithmetic on plain
 * structs: any thread, no device.
 *
 * The time of a group of products is a sum of counts times weights. Counts follow from the plan;
 * weights are the device's, measured (compute/msm/gpu_tune.h) or guessed from its multiprocessors
 * and clock:
 *
 *     trip      1                            a group is handed over and its result is back
 *     launch    kernels
 *     byte      32 a scalar                  uploaded
 *     entry     scalars x windows            a digit is sorted into its bucket and its base added, the device being full
 *     gather    scalars x windows            the same where all multiples are held, so that nothing is sorted
 *     bucket    products x sets x buckets    cleared, counted, and summed up with its weight
 *     step      dependent additions          what four lanes take for one, however little there is to do
 *     row       products x sets x window     partial sums that the host puts together
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

/* Seconds of one of each. */
struct obk_msm_gpu_weights {
	double of[OBK_MSM_WEIGHTS];
};

/* What is known of a device. */
struct obk_msm_gpu_tuning {
	struct obk_msm_gpu_weights weights;
	size_t threads; /* that keep it busy */
	/*
	 * entries of products that are worked on together, above which nothing is gained; 0: not
	 * known, the most there may be
	 */
	size_t group;
	/* the fastest that was timed at that size, without a table; 0: the model's */
	uint8_t window[OBK_TUNE_LOGS];
	bool measured; /* else guessed */
};

/* Some products of n points. */
struct obk_msm_gpu_work {
	size_t n, products;
	struct obk_plan plan;
	bool multiples; /* all multiples are held; plan: obk_msm_gpu_multiples_plan's */
	bool resident;  /* the scalars are on the device */
};

void obk_msm_gpu_counts(
	const struct obk_msm_gpu_work *work, size_t threads, double ret_counts[OBK_MSM_WEIGHTS]);
/* Seconds of the whole group. */
double obk_msm_gpu_seconds(
	const struct obk_msm_gpu_tuning *tuning, const struct obk_msm_gpu_work *work);

/*
 * By the device's multiprocessors and clock (unknown: 1.4 GHz), for a card in this machine. The
 * cycles are those that ptxas schedules; instructions and their issue rates are the same for
 * compute capabilities 8.0, 9.0 and 12.0 (docs/BENCHMARKS.md).
 */
void obk_msm_gpu_guess(const struct obk_gpu_info *info, struct obk_msm_gpu_tuning *ret_tuning);

struct obk_msm_gpu_sample {
	struct obk_msm_gpu_work work;
	double seconds;
};

/*
 * Weights by least squares of the relative errors of n samples, those with a bit in `fixed` (1 <<
 * OBK_MSM_...) being known. Of what the samples do not tell, the proportions of the weights that
 * were there before are kept: so one sample gives the device's speed, and six of different shapes
 * all weights.
 */
void obk_msm_gpu_fit(struct obk_msm_gpu_tuning *tuning, unsigned fixed,
	const struct obk_msm_gpu_sample *samples, size_t n);

/* How a handle's products are done. */
struct obk_msm_gpu_choice {
	bool multiples;
	/* window: of a digit with multiples; 0 with one copy: chosen by size */
	unsigned window, copies;
	unsigned shift; /* bits from one copy, or window of multiples, to the next */
	size_t bytes;   /* of device memory, the bases included */
	double seconds; /* expected of one product of all points */
};

/* Where all multiples that digits of `bits` bits ask for are held. */
struct obk_plan obk_msm_gpu_multiples_plan(unsigned bits);
/* Bytes of all multiples of a base. */
size_t obk_msm_gpu_multiples_bytes(unsigned bits);
/*
 * window = 0: what was timed to be the fastest for products of n points one at a time without a
 * table, else the cheapest for `products` at a time.
 */
void obk_msm_gpu_plan(const struct obk_msm_gpu_tuning *tuning, struct obk_plan *plan,
	unsigned copies, unsigned fixed_window, bool order_r, size_t n, size_t products);
/*
 * The fastest for n points with tables of up to table_bytes: multiples, shifted copies, or neither.
 * More memory is never slower by the model.
 */
void obk_msm_gpu_choose(const struct obk_msm_gpu_tuning *tuning, size_t n, bool order_r,
	size_t table_bytes, struct obk_msm_gpu_choice *ret_choice);
/*
 * Products of n points, `windows` entries each, that are worth working on together: at least 1;
 * memory may allow fewer.
 */
size_t obk_msm_gpu_group(
	const struct obk_msm_gpu_tuning *tuning, size_t n, unsigned windows, size_t batch);

#endif
