/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "compute/rqa/internal.h"

/* most coordinates in a vector: with more, too many cells would be undecided */
#define COORDINATES_MAX 64u
/* most coarse units in the radius: its square stays below that of the largest difference */
#define SCALE_MOST      32000.0
#define SCALE_LEAST     16.0
/*
 * if the radius has fewer units than this, differences are doubled three times before they are
 * squared; with fewer than COARSEST, six times
 */
#define FINE            2000.0
#define COARSEST        250.0

static double plane_value(const struct obk_rqa_plot *plot, const void *plane, uint64_t t)
{
	return plot->f64 ? ((const double *)plane)[t] : (double)((const float *)plane)[t];
}

static void plane_range(const struct obk_rqa_plot *plot, const struct obk_rqa_planes *planes,
	uint32_t c, double *low, double *high)
{
	for (uint64_t t = 0; t < planes->length; t++) {
		double v = plane_value(plot, planes->channel[c], t);

		*low = v < *low ? v : *low;
		*high = v > *high ? v : *high;
	}
}

static int16_t *plane_make(const struct obk_rqa_plot *plot, const struct obk_rqa_planes *planes,
	uint32_t c, double middle, double scale)
{
	int16_t *plane = calloc(planes->length + 2 * OBK_RQA_SIEVE_PAD, sizeof *plane);

	for (uint64_t t = 0; plane && t < planes->length; t++) {
		double q = rint((plane_value(plot, planes->channel[c], t) - middle) * scale);

		plane[OBK_RQA_SIEVE_PAD + t] = (int16_t)(q > 32767 ? 32767
				: q < -32767                       ? -32767
								   : q);
	}
	return plane ? plane + OBK_RQA_SIEVE_PAD : NULL;
}

/*
 * Let u be the exact distance in coarse units and M the number of coordinates. Each rounded
 * difference has an error of at most 1. The error of the coarse distance is: for L1 at most M; for
 * Max at most 1; for L2 at most the root of M in the root of the sum of squares, and each upper
 * half that is summed loses less than 1. The exact walk itself has a relative rounding error of
 * `slack`.
 */
static bool bounds_set(struct obk_rqa_sieve *sieve, const struct obk_rqa_plot *plot, double radius)
{
	double number = (double)plot->m * plot->channels,
	       slack = (number + 8) * (plot->f64 ? 0x1p-51 : 0x1p-22);
	double off = (plot->norm == OBK_RQA_NORM_L1                  ? number
				     : plot->norm == OBK_RQA_NORM_L2 ? sqrt(number)
								     : 1) *
			1.001 +
		0.001;
	double near = radius * (1 - slack) - off, far = radius * (1 + slack) + off, above, below;

	if (near < 0)
		near = 0;
	if (plot->norm == OBK_RQA_NORM_L2) {
		double unit = ldexp(1, 2 * (int)sieve->shift - 16);

		above = floor(far * far * unit * (1 + 1e-12) + 1e-6);
		below = floor(near * near * unit * (1 - 1e-12) - number - 1e-6);
		if (above >= 16300)
			return false;
	} else {
		above = floor(far + 1e-6);
		below = floor(near - 1e-6);
		if (above >= 32600)
			return false;
	}
	if (below < -1)
		below = -1;
	if (above <= below)
		above = below + 1;
	if (above - below > 100) /* the range of undecided distances must fit into a byte */
		return false;
	sieve->bound = (int16_t)(below + 128);
	sieve->last = (int16_t)(above - below - 1);
	return true;
}

int obk_rqa_sieve_init(struct obk_rqa_sieve *sieve, const struct obk_rqa_plot *plot)
{
	double middle[OBK_RQA_MAX_CHANNELS],
		widest = 0,
		radius = plot->norm == OBK_RQA_NORM_L2 ? sqrt(plot->limit) : plot->limit, scale,
		most;

	memset(sieve, 0, sizeof *sieve);
	sieve->plot = plot;
	if (!ob_opt_on(OB_OPT_SIEVE) || !(radius > 1e-12) || !(radius < 1e12) ||
		(uint64_t)plot->m * plot->channels > COORDINATES_MAX ||
		(plot->m - 1) * plot->tau > OBK_RQA_SPAN)
		return OBK_RQA_OK;
	for (uint32_t c = 0; c < plot->channels; c++) {
		double low = INFINITY, high = -INFINITY;

		plane_range(plot, &plot->x, c, &low, &high);
		if (!plot->same)
			plane_range(plot, &plot->y, c, &low, &high);
		if (!(high < 1e12 && low > -1e12))
			return OBK_RQA_OK;
		middle[c] = low + (high - low) / 2;
		/* the middle is rounded, perhaps by half a unit in the last place of a sample */
		widest = fmax(widest, 2 * fmax(high - middle[c], middle[c] - low));
	}
	scale = SCALE_MOST / radius;
	/* For squares, differences may be saturated; other differences must fit. */
	most = plot->norm == OBK_RQA_NORM_L2 ? 65530 : 32700;
	if (widest > 0 && most / widest < scale)
		scale = most / widest;
	if (scale * radius < SCALE_LEAST)
		return OBK_RQA_OK;
	if (plot->norm == OBK_RQA_NORM_L2 && scale * radius < FINE)
		sieve->shift = scale * radius < COARSEST ? 6 : 3;
	if (!bounds_set(sieve, plot, radius * scale))
		return OBK_RQA_OK;
	for (uint32_t c = 0; c < plot->channels; c++) {
		sieve->x[c] = plane_make(plot, &plot->x, c, middle[c], scale);
		sieve->y[c] =
			plot->same ? sieve->x[c] : plane_make(plot, &plot->y, c, middle[c], scale);
		if (!sieve->x[c] || !sieve->y[c]) {
			obk_rqa_sieve_fini(sieve);
			return OBK_RQA_NO_MEMORY;
		}
	}
	sieve->on = true;
	return OBK_RQA_OK;
}

void obk_rqa_sieve_fini(struct obk_rqa_sieve *sieve)
{
	for (uint32_t c = 0; c < OBK_RQA_MAX_CHANNELS; c++) {
		if (sieve->y[c] && sieve->y[c] != sieve->x[c])
			free(sieve->y[c] - OBK_RQA_SIEVE_PAD);
		if (sieve->x[c])
			free(sieve->x[c] - OBK_RQA_SIEVE_PAD);
		sieve->x[c] = sieve->y[c] = NULL;
	}
	sieve->on = false;
}
