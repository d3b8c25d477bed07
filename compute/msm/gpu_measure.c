/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Some weights are measured directly, the others are derived from the times of products of different
 * shapes.
 */
#include "compute/msm/gpu_measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "compute/msm/gpu_bases_inside.h"
#include "compute/msm/gpu_inside.h"
#include "compute/msm/gpu_kernels.h"
#include "compute/msm/gpu_tune.h"

#define POINTS           ((size_t)4096)
#define SCALARS          ((size_t)1 << 18)
#define MULTIPLES_POINTS ((size_t)64)
#define MULTIPLES_BITS   4
/* this many of the smallest product take about as long as making the table of multiples */
#define TABLE_PRODUCTS   20
#define LAUNCHES         64
#define RUNS             3
#define MOST_PRODUCTS    (SCALARS / MULTIPLES_POINTS)
#define UPLOAD_BYTES     (SCALARS / 4 * OBK_SCALAR_BYTES)
#define ROWS             64
/* a group is large enough if its rate is within this factor of the best */
#define WITHIN           1.02
#define NOISE            32 /* a window must be faster by more than a 32nd to be chosen */

struct probe {
	uint16_t n, products;
	uint8_t window;
	bool multiples;
};

/*
 * Ordered by increasing size. The products of one size and window, in steps of four, also show how
 * many are worth processing together.
 */
static const struct probe probes[] = {
	{ 16, 1, 4, false },
	{ 16, 1, 7, false },
	{ 16, 1, MULTIPLES_BITS, true },
	{ 64, 1, MULTIPLES_BITS, true },
	{ 64, 1, 3, false },
	{ 64, 2, 6, false },
	{ 256, 1, 6, false },
	{ 256, 1, 10, false },
	{ POINTS, 1, 8, false },
	{ POINTS, 1, 12, false },
	{ POINTS, 4, 12, false },
	{ POINTS, 16, 12, false },
	{ MULTIPLES_POINTS, MOST_PRODUCTS, MULTIPLES_BITS, true },
	{ POINTS, 64, 12, false },
	{ 1024, 64, 6, false },
	{ POINTS, 64, 16, false },
};
#define GROUP_POINTS POINTS
#define GROUP_WINDOW 12

struct measuring {
	struct obk_gpu *gpu;
	struct obk_pool *pool;
	struct obk_msm_gpu_tuning tuning;
	struct obk_msm_gpu_bases *bases, *multiples;
	struct obk_g1_affine *points;
	uint64_t (*scalars)[4];
	struct obk_g1_affine sums[MOST_PRODUCTS];
	struct obk_msm_gpu_sample samples[ob_count(probes)];
	size_t count;
	uint64_t until;
	/* time of the last sample relative to the estimate; 0: there is none */
	double pace;
	struct obk_fault *fault;
};

static double seconds_since(uint64_t from)
{
	return (double)(ob_clock_ns() - from) / 1e9;
}

static double seconds_left(const struct measuring *m)
{
	uint64_t now = ob_clock_ns();

	return now < m->until ? (double)(m->until - now) / 1e9 : 0;
}

static void some_scalars(uint64_t (*scalars)[4], size_t n)
{
	uint64_t state = 1;

	for (size_t i = 0; i < n; i++)
		for (unsigned j = 0; j < 4; j++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			scalars[i][j] = state ^ state >> 29;
		}
}

static enum ob_err make_input(struct measuring *m)
{
	struct obk_g1 *sums = malloc(POINTS * sizeof(*sums)), run;
	struct obk_fp *scratch = malloc(2 * POINTS * sizeof(*scratch));
	bool fine;

	m->points = malloc(POINTS * sizeof(*m->points));
	m->scalars = malloc(SCALARS * sizeof(*m->scalars));
	fine = sums && scratch && m->points && m->scalars;
	obk_g1_from_affine(&run, &obk_g1_generator);
	for (size_t i = 0; i < POINTS && fine; i++) {
		obk_g1_add_affine(&run, &run, &obk_g1_generator);
		sums[i] = run;
	}
	if (fine) {
		obk_g1_to_affine_batch(m->points, sums, POINTS, scratch);
		some_scalars(m->scalars, SCALARS);
	}
	free(scratch);
	free(sums);
	return fine ? OB_ERR_NONE
		    : obk_fault_set(m->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			      "no memory to measure a GPU with");
}

/* ---- direct measurements ---- */

/* Times `launches` of a kernel without work, and a read of the result. */
static enum ob_err time_launches(struct measuring *m, CUfunction kernel, CUstream stream,
	CUdeviceptr at, unsigned launches, double *ret)
{
	uint32_t none = 0, back;

	*ret = 0;
	for (unsigned r = 0; r <= RUNS; r++) {
		uint64_t from = ob_clock_ns();
		enum ob_err err = OB_ERR_NONE;
		double took;

		for (unsigned i = 0; i < launches && !err; i++)
			err = obk_gpu_launch(m->gpu, stream, kernel, 1, 1, OBK_MSM_SCAN_THREADS, 0,
				(void *[]){ &none, &at }, m->fault);
		err = err ? err : obk_gpu_read(m->gpu, stream, &back, at, sizeof(back), m->fault);
		if (err)
			return err;
		took = seconds_since(from);
		*ret = r <= 1 || took < *ret ? took : *ret; /* the first run is a warm-up */
	}
	return OB_ERR_NONE;
}

static enum ob_err nothing(void *arg, size_t first, size_t bytes)
{
	(void)arg;
	(void)first;
	(void)bytes;
	return OB_ERR_NONE;
}

static enum ob_err time_upload(struct measuring *m, CUstream stream, CUdeviceptr to, double *ret)
{
	for (unsigned r = 0; r < 2; r++) {
		uint64_t from = ob_clock_ns();
		enum ob_err err = obk_gpu_upload(
			m->gpu, stream, to, m->scalars, UPLOAD_BYTES, nothing, NULL, m->fault);

		err = err ? err : obk_gpu_wait(m->gpu, stream, m->fault);
		if (err)
			return err;
		*ret = seconds_since(from);
	}
	return OB_ERR_NONE;
}

static double time_row(void)
{
	uint64_t from = ob_clock_ns();
	struct obk_g1 sum, p;

	obk_g1_from_affine(&p, &obk_g1_generator);
	obk_g1_double(&sum, &p);
	for (unsigned i = 0; i < ROWS; i++) {
		obk_g1_double(&sum, &sum);
		obk_g1_add(&sum, &sum, &p);
	}
	/* the result is used so that the compiler does not remove the sum */
	return obk_g1_is_infinity(&sum) ? 0 : seconds_since(from) / ROWS;
}

static enum ob_err measure_basics(struct measuring *m, const CUfunction *kernels, CUstream stream)
{
	struct obk_gpu_buffer buffer;
	double one, many, upload = 0, row = time_row(), *weight = m->tuning.weights.of;
	enum ob_err err = obk_gpu_take(m->gpu, UPLOAD_BYTES, &buffer, m->fault);

	if (err)
		return err;
	err = time_launches(m, kernels[OBK_MSM_SCAN_TILES], stream, buffer.at, 1, &one);
	err = err
		? err
		: time_launches(m, kernels[OBK_MSM_SCAN_TILES], stream, buffer.at, LAUNCHES, &many);
	err = err ? err : time_upload(m, stream, buffer.at, &upload);
	if (!err) {
		weight[OBK_MSM_TRIP] = one;
		weight[OBK_MSM_LAUNCH] =
			many > one ? (many - one) / (LAUNCHES - 1) : one / LAUNCHES;
		weight[OBK_MSM_BYTE] = upload / UPLOAD_BYTES;
		weight[OBK_MSM_ROW] = row;
	}
	obk_gpu_give(m->gpu, &buffer);
	return err;
}

/* ---- products ---- */

static enum ob_err time_product(
	struct measuring *m, const struct probe *p, unsigned runs, double *ret)
{
	const struct obk_msm_gpu_bases *bases = p->multiples ? m->multiples : m->bases;
	struct obk_msm_job job = { .count = p->n,
		.scalars = m->scalars,
		.batch = p->products,
		.window = p->multiples ? 0 : p->window,
		.pool = m->pool };

	for (unsigned r = 0; r < runs; r++) {
		uint64_t from = ob_clock_ns();
		enum ob_err err = obk_msm_gpu_run_by(bases, &job, &m->tuning, 0, m->sums, m->fault);
		double took = seconds_since(from);

		if (err)
			return err;
		*ret = r == 0 || took < *ret ? took : *ret;
	}
	return OB_ERR_NONE;
}

static enum ob_err make_bases(struct measuring *m, const struct probe *p)
{
	const size_t row = sizeof(struct obk_g1_affine);
	struct obk_msm_gpu_choice plain = { .copies = 1, .bytes = POINTS * row },
				  multiples = { .multiples = true,
					  .window = MULTIPLES_BITS,
					  .shift = MULTIPLES_BITS,
					  .copies = 1,
					  .bytes = MULTIPLES_POINTS *
						  obk_msm_gpu_multiples_bytes(MULTIPLES_BITS) };
	struct obk_msm_bases_args args = { .points = m->points,
		.count = p->multiples ? MULTIPLES_POINTS : POINTS,
		.trust = OBK_TRUST_SUBGROUP,
		.table_bytes = p->multiples ? multiples.bytes : 0,
		.pool = m->pool };

	if (p->multiples ? m->multiples != NULL : m->bases != NULL)
		return OB_ERR_NONE;
	return obk_msm_gpu_bases_make(m->gpu, &args, p->multiples ? &multiples : &plain,
		p->multiples ? &m->multiples : &m->bases, m->fault);
}

static enum ob_err take_sample(struct measuring *m, const struct probe *p)
{
	struct obk_msm_gpu_sample *s = &m->samples[m->count];
	double expected;
	enum ob_err err;

	*s = (struct obk_msm_gpu_sample){ .work = { .n = p->n,
						  .products = p->products,
						  .multiples = p->multiples,
						  .plan = p->multiples
							  ? obk_msm_gpu_multiples_plan(p->window)
							  : obk_plan_shape(p->window, 255, 1) } };
	expected = obk_msm_gpu_seconds(&m->tuning, &s->work);
	expected *= m->pace;
	if (p->multiples && !m->multiples)
		expected += TABLE_PRODUCTS * m->samples[0].seconds;
	if (m->count && expected > seconds_left(m))
		return OB_ERR_NONE;
	err = make_bases(m, p);
	/* the first product is a warm-up */
	if (!err && m->count == 0)
		err = time_product(m, p, 1, &s->seconds);
	err = err ? err
		  : time_product(
			    m, p, expected * 10 * RUNS > seconds_left(m) ? 1 : RUNS, &s->seconds);
	if (err)
		return err;
	m->pace = s->seconds / obk_msm_gpu_seconds(&m->tuning, &s->work);
	m->count++;
	return OB_ERR_NONE;
}

/*
 * Entries in the smallest group that is as fast per product as the fastest one, doubled as a
 * margin; 0 if the largest group measured was the fastest.
 */
static size_t best_group(const struct measuring *m)
{
	double best = 0;
	size_t group = 0, largest = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < m->count; i++) {
			const struct obk_msm_gpu_work *w = &m->samples[i].work;
			double each = m->samples[i].seconds / (double)w->products;

			if (w->multiples || w->n != GROUP_POINTS || w->plan.window != GROUP_WINDOW)
				continue;
			if (pass == 0) {
				best = best > 0 && best < each ? best : each;
				largest = w->products > largest ? w->products : largest;
			} else if (!group && each <= best * WITHIN) {
				group = w->products;
			}
		}
	return group == largest
		? 0
		: 2 * group * GROUP_POINTS * obk_plan_shape(GROUP_WINDOW, 255, 1).windows;
}

static enum ob_err measure(struct measuring *m, double seconds)
{
	const CUfunction *kernels;
	CUstream stream;
	enum ob_err err = make_input(m);

	err = err ? err : obk_gpu_load(m->gpu, &obk_msm_gpu_kernels, &kernels, m->fault);
	err = err ? err : obk_gpu_stream_take(m->gpu, &stream, m->fault);
	if (err)
		return err;
	m->until = ob_clock_ns() + (uint64_t)(seconds * 1e9);
	err = measure_basics(m, kernels, stream);
	obk_gpu_stream_give(m->gpu, stream);
	for (size_t i = 0; i < ob_count(probes) && !err; i++) {
		err = take_sample(m, &probes[i]);
		if (err == OB_ERR_NO_MEMORY && m->count > 0)
			/* larger products would not fit either; the measured ones are enough */
			return OB_ERR_NONE;
	}
	return err;
}

enum ob_err obk_msm_gpu_tune_measure(
	struct obk_gpu *gpu, struct obk_pool *pool, double seconds, struct obk_fault *fault)
{
	struct measuring *m;
	enum ob_err err;

	if (!obk_msm_gpu_tune_begin(gpu))
		return OB_ERR_NONE;
	m = calloc(1, sizeof(*m));
	if (!m) {
		obk_msm_gpu_tune_end(gpu);
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory to measure a GPU with");
	}
	m->gpu = gpu;
	m->pool = pool;
	m->fault = fault;
	obk_msm_gpu_guess(obk_gpu_info(gpu), &m->tuning);
	err = obk_gpu_enter(gpu, fault);
	if (!err) {
		err = measure(m, seconds);
		obk_msm_gpu_bases_free(m->bases);
		obk_msm_gpu_bases_free(m->multiples);
		obk_gpu_leave(gpu);
	}
	if (!err) {
		obk_msm_gpu_fit(&m->tuning,
			1u << OBK_MSM_TRIP | 1u << OBK_MSM_LAUNCH | 1u << OBK_MSM_BYTE |
				1u << OBK_MSM_ROW,
			m->samples, m->count);
		m->tuning.group = best_group(m);
		err = obk_msm_gpu_tuning_set_weights(gpu, &m->tuning, fault);
	}
	obk_msm_gpu_tune_end(gpu);
	free(m->points);
	free(m->scalars);
	free(m);
	return err;
}

/* ---- windows ---- */

struct timing {
	const struct obk_msm_gpu_bases *bases;
	struct obk_msm_job job;
	const struct obk_msm_gpu_tuning *tuning;
	uint64_t until;
	struct obk_fault *fault;
};

static enum ob_err time_window(struct timing *t, unsigned window, double *ret)
{
	struct obk_g1_affine sum;

	t->job.window = window;
	for (unsigned r = 0; r < RUNS && (r == 0 || ob_clock_ns() < t->until); r++) {
		uint64_t from = ob_clock_ns();
		enum ob_err err =
			obk_msm_gpu_run_by(t->bases, &t->job, t->tuning, 0, &sum, t->fault);
		double took = seconds_since(from);

		if (err)
			return err;
		*ret = r <= 1 || took < *ret ? took : *ret;
	}
	return OB_ERR_NONE;
}

/* Descends from `start`, the window that the model chooses, while there is time. */
static enum ob_err best_window(struct timing *t, unsigned start, unsigned *ret_window)
{
	double least, took;
	enum ob_err err = time_window(t, start, &least);

	*ret_window = start;
	for (int way = -1; way <= 1 && !err && *ret_window == start; way += 2) {
		for (unsigned c = start + (unsigned)way;
			c >= 3 && c <= OBK_MSM_GPU_MAX_WINDOW && ob_clock_ns() < t->until;
			c += (unsigned)way) {
			err = time_window(t, c, &took);
			if (err == OB_ERR_NO_MEMORY) {
				err = OB_ERR_NONE; /* there is no window to choose */
				break;
			}
			if (err || took >= least - least / NOISE)
				break;
			least = took;
			*ret_window = c;
		}
	}
	return err;
}

#define WINDOWS_TIMED 4 /* typical number: the model's window, its neighbours, one more */

static enum ob_err tune_window(struct timing *t, unsigned start, unsigned *ret_window)
{
	size_t n = t->job.count;
	uint64_t(*scalars)[4] = malloc(n * sizeof(*scalars));
	enum ob_err err;

	if (!scalars)
		return obk_fault_set(t->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for %zu scalars to measure with", n);
	some_scalars(scalars, n);
	t->job.scalars = scalars;
	err = best_window(t, start, ret_window);
	free(scalars);
	return err;
}

enum ob_err obk_msm_gpu_tune_window(const struct obk_msm_gpu_bases *bases, size_t n,
	struct obk_pool *pool, double seconds, bool again, bool *ret_done, struct obk_fault *fault)
{
	struct obk_msm_gpu_tuning tuning;
	struct obk_msm_gpu_work work = { .n = n, .products = 1 };
	struct timing t = { .bases = bases,
		.job = { .count = n, .batch = 1, .pool = pool },
		.tuning = &tuning,
		.fault = fault,
		.until = ob_clock_ns() + (uint64_t)(seconds > 0 ? seconds * 1e9 : 0) };
	unsigned log = obk_tune_log(n), best = 0;
	enum ob_err err;

	*ret_done = false;
	obk_msm_gpu_tuning_get(bases->gpu, &tuning);
	if (!n || bases->copies > 1 || bases->multiples || !tuning.measured ||
		(tuning.window[log] && !again))
		return OB_ERR_NONE;
	tuning.window[log] = 0;
	obk_msm_gpu_plan(&tuning, &work.plan, 1, 0, bases->order_r, n, 1);
	if (obk_msm_gpu_seconds(&tuning, &work) * RUNS * WINDOWS_TIMED > seconds ||
		!obk_msm_gpu_tune_begin(bases->gpu))
		return OB_ERR_NONE;
	err = tune_window(&t, work.plan.window, &best);
	if (!err) {
		obk_msm_gpu_tuning_set_window(bases->gpu, log, best);
		*ret_done = true;
	}
	obk_msm_gpu_tune_end(bases->gpu);
	return err;
}
