/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "compute/rqa/internal.h"

static const char *const preset_names[] = {
#define X(name, text, what) text,
	OBK_RQA_PRESET_LIST(X)
#undef X
};

static const char *const preset_whats[] = {
#define X(name, text, what) what,
	OBK_RQA_PRESET_LIST(X)
#undef X
};

static const char *const measure_names[] = {
#define X(name, text, what) text,
	OBK_RQA_MEASURE_LIST(X)
#undef X
};

static const char *const measure_whats[] = {
#define X(name, text, what) what,
	/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): long texts in several pieces */
	OBK_RQA_MEASURE_LIST(X)
#undef X
};

static const struct {
	const char *name, *what;
} statuses[OBK_RQA_STATUS_COUNT] = {
	[OBK_RQA_OK] = { "ok", "done" },
	[OBK_RQA_ARGUMENT] = { "argument", "an option is out of range" },
	[OBK_RQA_LIMIT] = { "limit", "a limit is exceeded" },
	[OBK_RQA_TOO_SHORT] = { "too-short", "the series is too short for this m and tau" },
	[OBK_RQA_NOT_FINITE] = { "not-finite", "the series holds NaN or infinity" },
	[OBK_RQA_CONSTANT] = { "constant", "the series is constant and its spread was asked for" },
	[OBK_RQA_NO_MEMORY] = { "no-memory", "out of memory" },
	[OBK_RQA_CANCELLED] = { "cancelled", "cancelled" },
	[OBK_RQA_UNSUPPORTED] = { "unsupported", "not available here" },
	[OBK_RQA_STATE] = { "state",
		"the file to resume from is damaged or belongs to other data" },
	[OBK_RQA_IO] = { "io", "the file to resume from cannot be written" },
	[OBK_RQA_SKIPPED] = { "skipped", "left out as asked" },
	[OBK_RQA_DEVICE] = { "device", "the GPU failed" },
};

const char *obk_rqa_preset_name(enum obk_rqa_preset preset)
{
	return (unsigned)preset < OBK_RQA_PRESET_COUNT ? preset_names[preset] : NULL;
}

const char *obk_rqa_preset_what(enum obk_rqa_preset preset)
{
	return (unsigned)preset < OBK_RQA_PRESET_COUNT ? preset_whats[preset] : NULL;
}

int obk_rqa_preset_find(const char *name)
{
	for (int p = 0; name && p < OBK_RQA_PRESET_COUNT; p++)
		if (strcasecmp(name, preset_names[p]) == 0)
			return p;
	return -1;
}

const char *obk_rqa_measure_name(unsigned id)
{
	return id < OBK_RQA_MEASURE_COUNT ? measure_names[id] : NULL;
}

const char *obk_rqa_measure_what(unsigned id)
{
	return id < OBK_RQA_MEASURE_COUNT ? measure_whats[id] : NULL;
}

int obk_rqa_measure_find(const char *name)
{
	/*
	 * Names that differ only in case ("T" and "t", "C" and "n") are distinguished by an exact
	 * match.
	 */
	for (int m = 0; name && m < OBK_RQA_MEASURE_COUNT; m++)
		if (strcmp(name, measure_names[m]) == 0)
			return m;
	for (int m = 0; name && m < OBK_RQA_MEASURE_COUNT; m++)
		if (strcasecmp(name, measure_names[m]) == 0)
			return m;
	return -1;
}

const char *obk_rqa_status_name(int status)
{
	return status >= 0 && status < OBK_RQA_STATUS_COUNT ? statuses[status].name : "unknown";
}

const char *obk_rqa_status_what(int status)
{
	return status >= 0 && status < OBK_RQA_STATUS_COUNT ? statuses[status].what
							    : "an unknown status";
}

uint32_t obk_rqa_range(
	double start, double stop, double step, unsigned decimals, double *ret_values, uint32_t max)
{
	double scale = pow(10, decimals > 15 ? 15 : decimals), count;

	if (!isfinite(start) || !isfinite(stop) || !(step > 0) || stop < start)
		return 0;
	count = floor((stop - start) / step + 1e-6) + 1;
	if (count > max)
		return 0;
	for (uint32_t i = 0; i < (uint32_t)count; i++)
		ret_values[i] = round((start + i * step) * scale) / scale;
	return (uint32_t)count;
}

/* ---- presets ---- */

static void base_options(struct obk_rqa_options *o)
{
	memset(o, 0, sizeof *o);
	o->size = sizeof *o;
	o->m = o->tau = 1;
	o->norm = OBK_RQA_NORM_L2;
	o->norm_y = -1;
	o->radius = 0.1;
	o->radius_y = NAN;
	o->lmin = o->vmin = o->wmin = 2;
	o->percent = 1;
	o->trend_margin = 10;
	o->want = OBK_RQA_WANT_VERTICAL | OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES |
		OBK_RQA_WANT_TREND;
}

static void theiler(struct obk_rqa_options *o, uint32_t rr, uint32_t diag, uint32_t vert)
{
	o->theiler_rr = rr;
	o->theiler_diag = diag;
	o->theiler_vert = vert;
}

int obk_rqa_options_preset(enum obk_rqa_preset preset, struct obk_rqa_options *o)
{
	if (!o || (unsigned)preset >= OBK_RQA_PRESET_COUNT)
		return OBK_RQA_ARGUMENT;
	base_options(o);
	switch (preset) {
	case OBK_RQA_PRESET_GAZE:
		o->norm = OBK_RQA_NORM_GAZE;
		o->log_base = OBK_RQA_LOG2;
		o->want = 0;
		break;
	case OBK_RQA_PRESET_PYRQA:
		o->test = OBK_RQA_TEST_LT;
		theiler(o, 0, 1, 0);
		break;
	case OBK_RQA_PRESET_PYUNICORN_05:
	case OBK_RQA_PRESET_PYUNICORN:
		o->norm = OBK_RQA_NORM_MAX;
		o->test = OBK_RQA_TEST_LT;
		o->wmin = 1;
		theiler(o, 0, 1, 0);
		if (preset == OBK_RQA_PRESET_PYUNICORN_05)
			o->quirks = OBK_RQA_QUIRK_LAST_COLUMN;
		break;
	case OBK_RQA_PRESET_JULIA:
	case OBK_RQA_PRESET_JULIA_03:
		theiler(o, 1, 1, 1);
		o->theiler_white = 1;
		o->rr_denominator =
			preset == OBK_RQA_PRESET_JULIA ? OBK_RQA_RR_VALID : OBK_RQA_RR_FULL;
		o->times = OBK_RQA_TIMES_MIDPOINT;
		o->trend = OBK_RQA_TREND_WEIGHTED;
		break;
	case OBK_RQA_PRESET_ACCRQA:
		o->lmax_excludes_loi = 1;
		break;
	case OBK_RQA_PRESET_CRP:
		o->norm = OBK_RQA_NORM_MAX;
		theiler(o, 1, 1, 1);
		o->rr_denominator = OBK_RQA_RR_VALID;
		break;
	case OBK_RQA_PRESET_CRQA:
		theiler(o, 1, 1, 1);
		o->percent = 100;
		o->white = OBK_RQA_WHITE_INNER;
		break;
	case OBK_RQA_PRESET_RP:
		theiler(o, 1, 1, 1);
		o->rr_denominator = OBK_RQA_RR_VALID;
		o->entropy_all = 1;
		o->entropy_norm = OBK_RQA_ENTROPY_PER_LOG_N;
		o->white = OBK_RQA_WHITE_INNER;
		o->wmin = 1;
		o->transitivity = OBK_RQA_PATHS;
		break;
	case OBK_RQA_PRESET_NONLINEARTSERIES:
		o->norm = OBK_RQA_NORM_MAX;
		break;
	case OBK_RQA_PRESET_FIXATIONS:
		theiler(o, 1, 1, 1);
		o->triangle = OBK_RQA_UPPER;
		o->rr_denominator = OBK_RQA_RR_VALID;
		o->percent = 100;
		break;
	case OBK_RQA_PRESET_COUNT:
		break;
	}
	return OBK_RQA_OK;
}

/* ---- checks ---- */

static int range_check(
	const char *name, int64_t value, int64_t low, int64_t high, struct obk_rqa_error *ret_error)
{
	if (value >= low && value <= high)
		return OBK_RQA_OK;
	return obk_rqa_fail(ret_error, value > high && high > 16 ? OBK_RQA_LIMIT : OBK_RQA_ARGUMENT,
		0, 0, "the option `%s` is %lld: %lld to %lld are possible", name, (long long)value,
		(long long)low, (long long)high);
}

int obk_rqa_options_check(const struct obk_rqa_options *o, struct obk_rqa_error *ret_error)
{
	int status = OBK_RQA_OK;

	if (!o || o->size != sizeof *o)
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"the options were not filled by obk_rqa_options_preset");
#define RANGE(field, low, high)   \
	if (status == OBK_RQA_OK) \
	status = range_check(#field, (int64_t)o->field, low, high, ret_error)
	RANGE(kind, 0, OBK_RQA_JOINT);
	RANGE(m, 1, OBK_RQA_MAX_M);
	RANGE(tau, 1, OBK_RQA_MAX_TAU);
	RANGE(norm, 0, OBK_RQA_NORM_GAZE);
	RANGE(norm_y, -1, OBK_RQA_NORM_GAZE);
	RANGE(test, 0, 1);
	RANGE(precision, 0, OBK_RQA_PRECISION_F32);
	RANGE(radius_kind, 0, OBK_RQA_RADIUS_RATE);
	RANGE(scale, 0, OBK_RQA_SCALE_UNIT);
	RANGE(categorical, 0, 1);
	RANGE(missing, 0, 1);
	RANGE(want, 0, OBK_RQA_WANT_ALL);
	RANGE(theiler_rr, 0, OBK_RQA_MAX_LENGTH);
	RANGE(theiler_diag, 0, OBK_RQA_MAX_LENGTH);
	RANGE(theiler_vert, 0, OBK_RQA_MAX_LENGTH);
	RANGE(theiler_white, 0, OBK_RQA_MAX_LENGTH);
	RANGE(triangle, 0, OBK_RQA_LOWER);
	RANGE(lmin, 1, OBK_RQA_MAX_LENGTH);
	RANGE(vmin, 1, OBK_RQA_MAX_LENGTH);
	RANGE(wmin, 1, OBK_RQA_MAX_LENGTH);
	RANGE(rr_denominator, 0, 1);
	RANGE(det_denominator, 0, 1);
	RANGE(lam_denominator, 0, 1);
	RANGE(lmax_excludes_loi, 0, 1);
	RANGE(log_base, 0, 1);
	RANGE(entropy_norm, 0, OBK_RQA_ENTROPY_PER_LOG_BINS);
	RANGE(entropy_all, 0, 1);
	RANGE(white, 0, 1);
	RANGE(border, 0, OBK_RQA_BORDER_KELO);
	RANGE(border_semi, 0, 1);
	RANGE(times, 0, OBK_RQA_TIMES_MIDPOINT);
	RANGE(trend, 0, 1);
	RANGE(trend_margin, 0, OBK_RQA_MAX_LENGTH);
	RANGE(transitivity, 0, 1);
	RANGE(quirks, 0, OBK_RQA_QUIRK_LAST_COLUMN | OBK_RQA_QUIRK_RR_VERTICAL);
#undef RANGE
	if (status != OBK_RQA_OK)
		return status;
	for (unsigned i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
		if (o->reserved[i])
			return obk_rqa_fail(
				ret_error, OBK_RQA_ARGUMENT, 0, 0, "a reserved option is not 0");
	if (isnan(o->radius) || o->radius < 0 || o->radius_y < 0)
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"the option `radius` is %g: it must be 0 or more",
			isnan(o->radius) || o->radius < 0 ? o->radius : o->radius_y);
	if (o->radius_kind == OBK_RQA_RADIUS_RATE && (o->radius > 1 || o->radius_y > 1))
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"a recurrence rate of %g was asked for: 0 to 1 is possible", o->radius);
	if (!(o->percent > 0) || isinf(o->percent))
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"the option `percent` is %g: 1 or 100 is meant", o->percent);
	return OBK_RQA_OK;
}
