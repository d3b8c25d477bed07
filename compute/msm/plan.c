/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/msm/plan.h"
#include "compute/msm/tune.h"

unsigned obk_plan_bits(unsigned halves, bool order_r)
{
	return halves == 2 ? OBK_HALF_BITS + 1 : order_r ? 256 : 257;
}

struct obk_plan obk_plan_shape(unsigned window, unsigned bits, unsigned copies)
{
	struct obk_plan plan = { .window = window,
		.windows = (bits + window - 1) / window,
		.copies = copies,
		.buckets = (uint32_t)1 << (window - 1) };

	plan.sets = (plan.windows + copies - 1) / copies;
	return plan;
}

/*
 * An entry costs one addition. A bucket costs two, minus the one that its first entry saves, plus
 * its share of the end of a segment. A set also costs its doublings. The weights were measured with
 * the AVX-512 implementation; they fit the plain one well enough.
 */
double obk_plan_cost(const struct obk_plan *plan, size_t n, unsigned halves)
{
	return (double)n * halves * plan->windows +
		plan->sets * (2.2 * plan->buckets + 2.0 * plan->window + 30);
}

void obk_plan_make(
	struct obk_plan *plan, const struct obk_msm_bases *bases, size_t n, unsigned window)
{
	unsigned bits = obk_plan_bits(bases->halves, bases->order_r);
	double best = 0;

	if (bases->copies > 1)
		window = bases->window;
	if (!window)
		window = obk_tune_window(bases->halves, n);
	if (window) {
		*plan = obk_plan_shape(window, bits, bases->copies);
		return;
	}
	for (unsigned c = 2; c <= OBK_MSM_MAX_WINDOW; c++) {
		struct obk_plan p = obk_plan_shape(c, bits, 1);
		double cost = obk_plan_cost(&p, n, bases->halves);

		if (c == 2 || cost < best) {
			best = cost;
			*plan = p;
		}
	}
}
