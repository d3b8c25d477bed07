/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/msm/tune_measure.h"

#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opt.h"
#include "compute/msm/msm.h"
#include "compute/msm/plan.h"
#include "compute/msm/tune.h"

#define RUNS   3
#define HALVES OBK_TUNE_HALVES
/* Sizes that are measured. Other sizes use the nearest one. */
static const unsigned measured[] = { 6, 8, 10, 12, 14, 16 };
#define MEASURED (sizeof(measured) / sizeof(measured[0]))

struct measuring {
	struct obk_g1_affine *points;
	uint64_t (*scalars)[4];
	struct obk_pool *pool;
	void (*progress)(void *arg, double done);
	void *arg;
	double steps, in_all;
};

static bool make_input(struct measuring *m, size_t n)
{
	struct obk_g1 *sums = malloc(n * sizeof(*sums)), run;
	struct obk_fp *scratch = malloc(2 * n * sizeof(*scratch));
	uint64_t state = 1;
	bool fine;

	m->points = malloc(n * sizeof(*m->points));
	m->scalars = malloc(n * sizeof(*m->scalars));
	fine = sums && scratch && m->points && m->scalars;
	obk_g1_from_affine(&run, &obk_g1_generator);
	for (size_t i = 0; i < n && fine; i++) {
		obk_g1_add_affine(&run, &run, &obk_g1_generator);
		sums[i] = run;
		for (unsigned j = 0; j < 4; j++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			m->scalars[i][j] = state ^ state >> 29;
		}
	}
	if (fine)
		obk_g1_to_affine_batch(m->points, sums, n, scratch);
	free(scratch);
	free(sums);
	return fine;
}

/* Processor time of all threads, which other work on the machine affects less than elapsed time. */
static uint64_t processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * OB_SECOND + (uint64_t)t.tv_nsec;
}

/* The best of several runs in ns; UINT64_MAX: out of memory. */
static uint64_t time_of(
	struct measuring *m, const struct obk_msm_bases *bases, size_t n, unsigned window)
{
	struct obk_msm_job job = {
		.count = n, .scalars = m->scalars, .batch = 1, .window = window, .pool = m->pool
	};
	uint64_t best = UINT64_MAX;
	struct obk_g1_affine sum;

	for (unsigned r = 0; r < (n > 1024 ? RUNS : 3 * RUNS); r++) {
		uint64_t from = processor_ns(), took;

		if (obk_msm_run(bases, &job, &sum, NULL))
			return UINT64_MAX;
		took = processor_ns() - from;
		best = took < best ? took : best;
	}
	if (m->progress)
		m->progress(m->arg, m->steps / m->in_all);
	return best;
}

/* Descends from the model's window; for bases with one or two halves. */
static uint64_t best_window(
	struct measuring *m, const struct obk_msm_bases *bases, size_t n, int *ret_offset)
{
	struct obk_plan plan;
	unsigned start, best;
	uint64_t least, t;

	obk_plan_make(&plan, bases, n, 0);
	start = best = plan.window;
	least = time_of(m, bases, n, start);
	for (int way = -1; way <= 1; way += 2) {
		for (unsigned c = start + (unsigned)way; c >= 2 && c <= OBK_MSM_MAX_WINDOW;
			c += (unsigned)way) {
			t = time_of(m, bases, n, c);
			if (t >= least - least / 32) /* a smaller difference is noise */
				break;
			least = t;
			best = c;
		}
		if (best != start)
			break;
	}
	*ret_offset = (int)best - (int)start;
	return least;
}

/* The model's window plus the offset measured at the nearest size. */
static void fill_windows(
	unsigned halves, unsigned count, const int offset[MEASURED], uint8_t windows[OBK_TUNE_LOGS])
{
	struct obk_msm_bases bases = { .halves = halves, .order_r = true, .copies = 1 };

	/* the profile is empty: obk_plan_make uses the model */
	for (unsigned log_n = OBK_TUNE_LOGS; log_n-- > 0;) {
		struct obk_plan plan;
		unsigned near = 0;
		int c;

		for (unsigned i = 1; i < count; i++) {
			if (measured[i] <= log_n)
				near = i;
		}
		obk_plan_make(&plan, &bases, (size_t)1 << log_n, 0);
		c = (int)plan.window + offset[near];
		c = c < 2 ? 2 : c > OBK_MSM_MAX_WINDOW ? OBK_MSM_MAX_WINDOW : c;
		/* the window must not shrink when the number of points grows */
		if (log_n + 1 < OBK_TUNE_LOGS && c > windows[log_n + 1])
			c = windows[log_n + 1];
		windows[log_n] = (uint8_t)c;
	}
}

static enum ob_err measure_sizes(
	struct measuring *m, unsigned count, int offset[HALVES][MEASURED], unsigned *ret_limit)
{
	*ret_limit = OBK_PLAN_ENDOMORPHISM_LOG;
	for (unsigned i = 0; i < count; i++) {
		size_t n = (size_t)1 << measured[i];
		uint64_t least[HALVES];

		for (unsigned h = 0; h < HALVES; h++) {
			struct obk_msm_bases_args args = { .points = m->points,
				.count = n,
				.trust = OBK_TRUST_SUBGROUP,
				.pool = m->pool };
			bool glv = ob_opt_on(OB_OPT_GLV);
			struct obk_msm_bases *bases;
			enum ob_err err;

			ob_opt_set(OB_OPT_GLV, h == 1);
			err = obk_msm_bases_new(&args, &bases, NULL);
			ob_opt_set(OB_OPT_GLV, glv);
			if (err)
				return err;
			m->steps = m->in_all * (double)(n + h * n) /
				(double)(4u << measured[count - 1]);
			least[h] = best_window(m, bases, n, &offset[h][i]);
			obk_msm_bases_free(bases);
			if (least[h] == UINT64_MAX)
				return OB_ERR_NO_MEMORY;
		}
		/*
		 * only the largest sizes count: splitting scalars must be slower by more than the
		 * measurement error
		 */
		if (measured[i] >= 14 && least[0] + least[0] / 32 < least[1])
			*ret_limit = ob_min(*ret_limit, measured[i] - 1);
	}
	return OB_ERR_NONE;
}

enum ob_err obk_tune_measure(struct obk_pool *pool, unsigned largest,
	void (*progress)(void *arg, double done), void *arg, struct obk_fault *fault)
{
	struct measuring m = { .pool = pool, .progress = progress, .arg = arg, .in_all = 1 };
	enum ob_err err = OB_ERR_NO_MEMORY;
	uint8_t windows[HALVES][OBK_TUNE_LOGS];
	int offset[HALVES][MEASURED];
	unsigned limit, count = MEASURED;

	while (count > 1 && measured[count - 1] > largest)
		count--;
	obk_tune_clear();
	if (make_input(&m, (size_t)1 << measured[count - 1]))
		err = measure_sizes(&m, count, offset, &limit);
	if (!err) {
		for (unsigned h = 0; h < HALVES; h++)
			fill_windows(h + 1, count, offset[h], windows[h]);
		obk_tune_set(windows, limit);
	} else {
		obk_fault_set(fault, err, OBK_FAULT_NO_ITEM,
			"no memory to measure products of 2^%u points", measured[count - 1]);
	}
	free(m.points);
	free(m.scalars);
	return err;
}
