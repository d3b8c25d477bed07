/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures devices: first what a GPU's choice of MSM method depends on, then each operation at
 * increasing sizes until its share of the time is used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "compute/engine/engine.h"
#include "compute/engine/rqa.h"

#define SECONDS_USUAL 10
#define LOG_LEAST     8
#define LOG_MOST      20
#define LOG_STEP      2
/* KZG: up to 2^6 blobs, measured as products of the 4096 points of a blob */
#define LOG_BLOBS     6
#define LOG_BLOB      12

struct trial {
	struct outboard *context;
	unsigned device;
	uint32_t operation;
	double seconds; /* for this device and operation */
	struct obv_curve *curve;
	struct outboard_bases *bases;
	uint64_t *words; /* scalars and elements */
};

/* Makes different points by repeated addition of the generator. */
static struct obk_g1_affine *some_points(size_t n)
{
	struct obk_g1_affine *points = malloc(n * sizeof(*points));
	struct obk_g1 *sums = malloc(n * sizeof(*sums)), run;
	struct obk_fp *scratch = malloc(2 * n * sizeof(*scratch));
	bool ok = points && sums && scratch;

	obk_g1_from_affine(&run, &obk_g1_generator);
	for (size_t i = 0; ok && i < n; i++) {
		sums[i] = run;
		obk_g1_add_affine(&run, &run, &obk_g1_generator);
	}
	if (ok)
		obk_g1_to_affine_batch(points, sums, n, scratch);
	free(sums);
	free(scratch);
	if (!ok) {
		free(points);
		points = NULL;
	}
	return points;
}

/* Makes 256-bit numbers; those with a small top byte are below r. */
static void some_scalars(uint64_t *words, size_t n)
{
	uint64_t x = 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < 4 * n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		words[i] = i % 4 == 3 ? x >> 2 : x;
	}
}

/*
 * Runs one operation on one device, on the device's own thread, and waits. The result is in
 * seconds; negative: it failed.
 */
struct measure_job {
	struct obv_job job;
	const struct obv_msm_work *msm;
	const struct obv_ntt_work *ntt;
	/* for these bases, measure what the choice of MSM method depends on, for `seconds` */
	struct outboard_bases *tuned;
	double seconds;
	struct obk_g1_affine sums[1 << LOG_BLOBS];
	uint64_t took;
};

static int measure_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	struct measure_job *m = (struct measure_job *)job;
	uint64_t start = ob_clock_ns();
	int status;

	(void)piece;
	if (m->tuned)
		status = device->backend.ops->tune(
			device->backend.self, m->tuned, m->seconds, error);
	else if (m->msm)
		status = device->backend.ops->msm(device->backend.self, m->msm, m->sums, error);
	else
		status = device->backend.ops->ntt(device->backend.self, m->ntt, error);
	m->took = ob_clock_ns() - start;
	return status;
}

struct outcome {
	double seconds;
};

static int measure_finish(struct obv_job *job, struct outboard_error *error)
{
	const struct measure_job *m = (struct measure_job *)job;

	(void)error;
	((struct outcome *)job->call.arg)->seconds = (double)m->took / 1e9;
	return OUTBOARD_OK;
}

static const struct obv_job_ops measure_ops = { .run = measure_run, .finish = measure_finish };

/*
 * Measures a product or a transform; if neither is given, what the choice of MSM method depends on,
 * within `seconds`.
 */
static double measure(const struct trial *t, const struct obv_msm_work *msm,
	const struct obv_ntt_work *ntt, double seconds)
{
	struct outcome outcome = { -1 };
	struct outboard_call call = { .arg = &outcome };
	struct measure_job *m =
		obv_job_new(t->context, sizeof(*m), &measure_ops, t->operation, &call, NULL);

	if (!m)
		return -1;
	m->msm = msm;
	m->ntt = ntt;
	m->tuned = msm || ntt ? NULL : t->bases;
	m->seconds = seconds;
	m->job.allowed = (uint64_t)1 << t->device;
	if (!obv_job_pieces(&m->job, 1)) {
		obv_job_unref(&m->job);
		return -1;
	}
	m->job.pieces[0].count = 1;
	m->job.pieces[0].size = m->job.pieces[0].times = 1;
	m->job.pieces[0].device = t->device;
	obv_job_submit(&m->job, NULL);
	return outcome.seconds;
}

/*
 * Whether, by the measurements just made of a GPU, this size would take longer than the time that
 * is left. Then these measurements are all that is known about this size.
 */
static bool too_long(const struct trial *t, unsigned log)
{
	const struct obv_backend *b = &t->context->device[t->device].backend;

	return b->ops->expect &&
		2 * b->ops->expect(b->self, t->operation, (double)(1u << log)) > t->seconds;
}

/*
 * Takes the faster of two runs at each size. The first run also uploads, warms up and makes tables.
 */
static void measure_sizes(const struct trial *t)
{
	bool blobs = t->operation == OUTBOARD_OP_KZG;
	unsigned least = blobs ? 0 : LOG_LEAST, most = blobs ? LOG_BLOBS : LOG_MOST;
	double spent = 0;

	for (unsigned log = least; log <= most && spent < t->seconds; log += LOG_STEP) {
		size_t points = (size_t)1 << (blobs ? LOG_BLOB : log);
		double best = 0;

		if ((t->operation != OUTBOARD_OP_NTT && points > outboard_bases_count(t->bases)) ||
			too_long(t, log))
			break;
		for (unsigned i = 0; i < 2; i++) {
			struct obv_msm_work msm = { .bases = t->bases,
				.job = { .count = points,
					.scalars = t->words,
					.format = OBK_SCALAR_LE,
					.batch = blobs ? (size_t)1 << log : 1 } };
			struct obv_ntt_work ntt = { .data = t->words,
				.job = { .log_n = log, .batch = 1, .order = OBK_NTT_NN } };
			bool transform = t->operation == OUTBOARD_OP_NTT;
			double s = measure(t, transform ? NULL : &msm, transform ? &ntt : NULL, 0);

			if (s < 0)
				return;
			best = i == 0 || s < best ? s : best;
			spent += s;
		}
		t->curve->seconds[log] = best > 0 ? best : 1e-9;
		/* The next size is expected to take about that much longer. */
		if (spent + 2 * best * (1 << LOG_STEP) > t->seconds)
			return;
	}
}

/* Measures single runs up to the size at which the next one would take too long. */
static void measure_recurrence(
	struct outboard *context, unsigned device, double seconds, struct obv_curve *curve)
{
	double spent = 0;

	memset(curve, 0, sizeof(*curve));
	for (unsigned log = LOG_LEAST; log <= LOG_MOST; log += LOG_STEP) {
		double first = obv_rqa_seconds(context, device, (uint64_t)1 << log), again = -1;

		if (first >= 0)
			again = obv_rqa_seconds(context, device, (uint64_t)1 << log);
		if (again < 0)
			return;
		curve->seconds[log] = again < first ? again : first;
		spent += first + again;
		if (spent + 2 * curve->seconds[log] * (1 << 2 * LOG_STEP) > seconds)
			return;
	}
}

static int measure_all(struct outboard *context, double seconds, struct obv_curves *curves,
	struct outboard_error *error)
{
	/* the transforms come last, because they overwrite the scalars */
	static const uint32_t operations[] = { OUTBOARD_OP_MSM, OUTBOARD_OP_KZG, OUTBOARD_OP_NTT };
	unsigned able = 0;
	size_t most = seconds < 4 ? (size_t)1 << 14
		: seconds < 60    ? (size_t)1 << 16
				  : (size_t)1 << 18;
	uint64_t *words = malloc(((size_t)1 << LOG_MOST) * OBK_SCALAR_BYTES);
	struct obk_g1_affine *affine = some_points(most);
	struct outboard_points points = { .points = affine,
		.count = most,
		.format = OUTBOARD_POINT_MONTGOMERY,
		.trust = OUTBOARD_TRUST_SUBGROUP };
	struct outboard_bases *bases = NULL;
	int status;

	if (!words || !affine) {
		free(words);
		free(affine);
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory to measure devices with");
	}
	some_scalars(words, (size_t)1 << LOG_MOST);
	status = outboard_bases_new(context, &points, &bases, error);
	for (unsigned i = 0; i < context->count; i++)
		able += context->device[i].backend.operations &
				(1u << OUTBOARD_OP_MSM | 1u << OUTBOARD_OP_NTT)
			? 1
			: 0;
	for (unsigned i = 0; status == OUTBOARD_OK && i < context->count; i++) {
		const struct obv_backend *b = &context->device[i].backend;
		struct trial t = {
			.context = context, .device = i, .bases = bases, .words = words
		};

		/*
		 * an eighth is for recurrence, and an eighth for the choice of MSM method on GPUs
		 */
		t.seconds = seconds * 6 / 8 / (ob_count(operations) * able);
		if (b->ops->tune && b->operations >> OUTBOARD_OP_MSM & 1)
			measure(&t, NULL, NULL, seconds / 8 / context->count);
		for (unsigned k = 0; k < ob_count(operations); k++) {
			t.operation = operations[k];
			t.curve = &curves[i].op[t.operation];
			memset(t.curve, 0, sizeof(*t.curve));
			if ((t.operation == OUTBOARD_OP_NTT ? b->ops->ntt != NULL
							    : b->ops->msm != NULL) &&
				b->operations >> t.operation & 1)
				measure_sizes(&t);
		}
		if (b->operations >> OUTBOARD_OP_RQA & 1)
			measure_recurrence(context, i, seconds / (8 * context->count),
				&curves[i].op[OUTBOARD_OP_RQA]);
		curves[i].measured = true;
	}
	outboard_bases_free(bases);
	free(words);
	free(affine);
	return status;
}

/*
 * If nothing was measured for an operation, the estimate or the device's own expectation stays. If
 * something was, only the measurement is used.
 */
static void adopt(struct outboard *context, const struct obv_curves *curves)
{
	obv_context_expect(context);
	pthread_mutex_lock(&context->lock);
	for (unsigned i = 0; i < context->count; i++)
		for (unsigned op = 0; op < OUTBOARD_OP_COUNT; op++) {
			bool any = false;

			for (unsigned log = 0; log < OBV_PROFILE_LOGS; log++)
				any |= curves[i].op[op].seconds[log] > 0;
			if (any)
				context->device[i].curves.op[op] = curves[i].op[op];
			context->device[i].curves.measured = true;
		}
	pthread_mutex_unlock(&context->lock);
}

int outboard_calibrate(struct outboard *context, double seconds, struct outboard_error *error)
{
	struct obv_curves *curves;
	struct outboard *c;
	int status;

	if (!(seconds >= 0) || seconds > 3600)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"outboard_calibrate for %g seconds: 0 to 3600 are possible", seconds);
	status = obv_context_get(context, &c, error);
	if (status != OUTBOARD_OK)
		return status;
	curves = calloc(c->count, sizeof(*curves));
	for (unsigned i = 0; curves && i < c->count; i++)
		memcpy(curves[i].key, c->device[i].curves.key, sizeof(curves[i].key));
	status = curves ? measure_all(c, seconds > 0 ? seconds : SECONDS_USUAL, curves, error)
			: obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
				  "no memory to measure devices with");
	if (status == OUTBOARD_OK) {
		adopt(c, curves);
		if (c->profile[0] && !obv_profile_write(c->profile, c->machine, curves, c->count))
			status = obv_fail(error, OUTBOARD_IO, OUTBOARD_NO_ITEM,
				"the profile %.300s cannot be written: %s; it is used until this "
				"context is closed",
				c->profile, strerror(errno));
	}
	free(curves);
	obv_context_unref(c);
	return status;
}
