/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Prepares the approximate test for recurrent cells with the Euclidean norm: t = limit - |x|^2 -
 * |y|^2 + 2 x y takes one fused operation per sample in single precision.
 *
 * Samples are shifted to be centred at 0 and rounded to x', with |x'| <= M. A vector has D samples;
 * u = 2^-24. t may differ from limit - d^2, where d^2 is what the CPU computes for x and y, by the
 * sum of:
 *
 *     8 D M^2 u                  samples are shifted and rounded: each difference changes by at
 *                                most 2 M u, and no difference is above 2 M
 *     2 D M^2 u                  |x'|^2 and |y'|^2, summed in double precision, are rounded
 *     (3 limit + 3 D M^2) u      limit is rounded, and so are the first two subtractions
 *     D (4 D M^2 + limit) u      each of the D sums is rounded; none is above 4 D M^2 + limit
 *     2 (D + 2) limit u          d^2 is rounded where it is near the limit: a difference, a square
 *                                and D sums
 *
 * slack is this sum plus a twentieth for terms of u^2. If |t| > slack, the sign of t is that of
 * limit - d^2.
 */
#include <float.h>
#include <math.h>

#include "compute/rqa/gpu.h"

/* of the limit: with a larger slack too many cells would be computed twice */
#define SLACK_MOST 0.125

static double sample(const struct obk_rqa_plot *plot, uint32_t channel, uint64_t at)
{
	return plot->f64 ? ((const double *)plot->x.channel[channel])[at]
			 : (double)((const float *)plot->x.channel[channel])[at];
}

/*
 * Vectors with a gap are ignored. In the planes a gap is 0, which is far from the samples of a
 * series with an offset.
 */
static bool counts(const struct obk_rqa_plot *plot, uint64_t vector)
{
	return !plot->x.valid || plot->x.valid[vector / 64] >> (vector & 63) & 1;
}

/*
 * Writes the channel's samples of all vectors without gaps, shifted by the middle between their
 * minimum and maximum. Samples in no such vector stay 0. Returns the largest magnitude; INFINITY if
 * a sample is not finite.
 */
static double channel_move(const struct obk_rqa_plot *plot, uint32_t channel, float *to)
{
	double low = INFINITY, high = -INFINITY, middle, most = 0;

	for (uint64_t i = 0; i < plot->x.n; i++)
		for (uint32_t l = 0; counts(plot, i) && l < plot->m; l++) {
			double v = sample(plot, channel, i + l * plot->tau);

			if (!isfinite(v))
				return INFINITY;
			low = v < low ? v : low;
			high = v > high ? v : high;
		}
	middle = low / 2 + high / 2;
	for (uint64_t i = 0; i < plot->x.n; i++)
		for (uint32_t l = 0; counts(plot, i) && l < plot->m; l++) {
			uint64_t t = i + l * plot->tau;

			to[t] = (float)(sample(plot, channel, t) - middle);
			most = fmax(most, fabs((double)to[t]));
		}
	return most;
}

bool obk_rqa_gpu_near(
	const struct obk_rqa_plot *plot, float *planes, uint64_t stride, float *ret_slack)
{
	double most = 0, d = (double)plot->m * plot->channels, limit = plot->limit, slack;

	for (uint32_t c = 0; c < plot->channels; c++)
		most = fmax(most, channel_move(plot, c, planes + c * stride));
	most *= most * d;
	slack = (4 * d * most + 13 * most + (3 * d + 7) * limit) * 1.05 * 0x1p-24;
	/*
	 * Not if the limit is 0, negative, NaN, infinite or too small for the slack, or if floats
	 * cannot represent its terms.
	 */
	if (!(limit > FLT_MIN * 0x1p30 && slack < SLACK_MOST * limit &&
		    4 * most + limit < FLT_MAX / 4))
		return false;
	for (uint64_t i = 0; i < plot->x.n; i++) {
		double sum = 0;

		for (uint32_t c = 0; c < plot->channels; c++)
			for (uint32_t l = 0; l < plot->m; l++) {
				double v = (double)planes[c * stride + i + l * plot->tau];

				sum += v * v;
			}
		planes[plot->channels * stride + i] = (float)sum;
	}
	*ret_slack = nextafterf((float)slack, INFINITY);
	return true;
}
