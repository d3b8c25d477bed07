/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * From buckets to the sum of a set: sum over b of b B_b. Buckets are cut into segments of length L.
 * On the way down a segment, `run` is the sum of the buckets so far and `acc` the sum of the runs.
 * All segments of a batch make a step at the same time, so that the additions share inversions. At
 * the end, where s numbers the segments of a set,
 *     sum = sum of acc_s + L sum of s run_s.
 */
#include "compute/msm/plan.h"

/*
 * Each segment has three slots: acc, and two between which run alternates, because acc still reads
 * the old run while the new one is written.
 */
static inline uint32_t own_slot(const struct obk_group *g, size_t segment, unsigned which)
{
	return OBK_REF_SCRATCH | (uint32_t)(g->sets * g->plan->buckets + 3 * segment + which);
}

/*
 * One step of one segment: acc += run, then run += the next bucket. Both use the old value of run.
 */
static size_t step(struct obk_group *g, size_t segment, uint32_t bucket, struct obk_pair *pairs)
{
	uint32_t run = g->run[segment], acc = g->acc[segment];
	size_t n = 0;

	if (run != OBK_EMPTY) {
		if (acc == OBK_EMPTY) {
			/* the run is a single bucket: its slot, or the base, does not change */
			g->acc[segment] = run;
		} else {
			g->acc[segment] = own_slot(g, segment, 0);
			pairs[n++] = (struct obk_pair){
				.a = acc, .b = run, .out = own_slot(g, segment, 0) & OBK_REF_INDEX
			};
		}
	}
	if (bucket == OBK_EMPTY)
		return n;
	if (run == OBK_EMPTY) {
		g->run[segment] = bucket;
	} else {
		uint32_t out = own_slot(g, segment, run == own_slot(g, segment, 1) ? 2 : 1);

		pairs[n++] = (struct obk_pair){ .a = run, .b = bucket, .out = out & OBK_REF_INDEX };
		g->run[segment] = out;
	}
	return n;
}

static void read_sum(const struct obk_group *g, uint32_t ref, struct obk_g1_affine *p)
{
	const struct obk_lanes *lanes = g->bases->lanes;

	if (ref == OBK_EMPTY) {
		*p = (struct obk_g1_affine){ .x = obk_fp_zero, .y = obk_fp_zero };
		return;
	}
	lanes->store(p,
		(const char *)(ref & OBK_REF_SCRATCH ? g->points : g->bases->slots) +
			(ref & OBK_REF_INDEX) * lanes->slot_bytes,
		1);
	if (ref & OBK_REF_NEGATIVE)
		obk_g1_affine_neg(p, p);
}

void obk_group_run_sums(struct obk_group *g, size_t batch, unsigned thread)
{
	size_t first = batch * g->segment_batch,
	       end = first + g->segment_batch < g->segments ? first + g->segment_batch
							    : g->segments;
	struct obk_worker *w = &g->workers[thread];

	for (size_t s = first; s < end; s++)
		g->run[s] = g->acc[s] = OBK_EMPTY;
	for (uint32_t k = g->segment + 1; k-- > 0;) {
		size_t pairs = 0;

		for (size_t s = first; s < end; s++)
			pairs += step(g, s, k ? g->bucket[s * g->segment + k - 1] : OBK_EMPTY,
				w->pairs + pairs);
		if (pairs)
			g->bases->lanes->add(
				g->bases->slots, g->points, w->pairs, pairs, w->workspace);
	}
	for (size_t s = first; s < end; s++) {
		read_sum(g, g->run[s], &g->run_sum[s]);
		read_sum(g, g->acc[s], &g->acc_sum[s]);
	}
}

void obk_group_finish_set(struct obk_group *g, size_t set)
{
	size_t segments = g->plan->buckets / g->segment, first = set * segments;
	struct obk_g1 run, weighted, sum;

	obk_g1_set_infinity(&run);
	obk_g1_set_infinity(&weighted);
	obk_g1_set_infinity(&sum);
	for (size_t s = segments; s-- > 0;) {
		obk_g1_add_affine(&sum, &sum, &g->acc_sum[first + s]);
		if (s == 0)
			break;
		obk_g1_add_affine(&run, &run, &g->run_sum[first + s]);
		obk_g1_add(&weighted, &weighted, &run);
	}
	for (uint32_t l = g->segment; l > 1; l /= 2)
		obk_g1_double(&weighted, &weighted);
	obk_g1_add(&g->sum[set], &sum, &weighted);
}
