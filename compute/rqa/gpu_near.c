/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a device needs to tell recurrent cells of the Euclidean norm by t = limit - |x|^2 - |y|^2 +
 * 2 x y, one fused operation a sample, in single precision.
 *
 * Samples are moved to around zero and rounded to x', all of them at most M; a vector has D of
 * them; u = 2^-24. How far t may be from limit - d^2, d^2 being what the CPU computes for x and y:
 *
 *     8 D M^2 u                            samples were moved and rounded: each difference by 2 M
 *                                          u, and no difference is above 2 M
 *     2 D M^2 u                            |x'|^2 and |y'|^2, summed in double precision, were rounded
 *     (3 limit + 3 D M^2) u                limit was, and the first two subtractions were
 *     D (4 D M^2 + limit) u                so was each of the D sums, none of which is above 4 D
 *                                          M^2 + limit
 *     2 (D + 2) limit u                    and so was d^2 where it is near the limit: a difference,
 *                                          a square and D sums
 *
 * Beyond the slack, which is this and a twentieth more for terms of u^2, the sign of t is that of
 * limit - d^2.
 */
#include <float.h>
#include <math.h>

#include "compute/rqa/gpu.h"

#define SLACK_MOST 0.125 /* of the limit: with more, too many cells would be done twice */

static double sample(const struct obk_rqa_plot *plot, uint32_t channel, uint64_t at)
{
	return plot->f64 ? ((const double *)plot->x.channel[channel])[at]
			 : (double)((const float *)plot->x.channel[channel])[at];
}

/*
 * Vectors with a gap decide nothing, and in the planes a gap is a 0, far from a series with an
 * offset.
 */
static bool counts(const struct obk_rqa_plot *plot, uint64_t vector)
{
	return !plot->x.valid || plot->x.valid[vector / 64] >> (vector & 63) & 1;
}

/*
 * Writes the channel's samples of all vectors without gaps, moved to around the middle between
 * their ends; what is in none stays 0. Returns the largest magnitude; INFINITY where a sample is
 * not finite.
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
	 * Not where the limit, 0 or less, NaN or infinite, has no room for it, or floats have none
	 * for its terms.
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
