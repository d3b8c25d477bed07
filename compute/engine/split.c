/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/engine/split.h"

#include <string.h>

/*
 * Speed of one multiprocessor relative to one CPU thread, from the 32-bit or 64-bit multiply-adds
 * per clock. A GPU with a slow link has a lower score, because of the overhead of each call.
 */
#define UNIT_GPU    8.0
#define CLOCK_USUAL 2.0
#define LINK_HALF   0.005

double obv_score(const struct obv_traits *t)
{
	double clock = t->clock > 0 ? t->clock / CLOCK_USUAL : 1, score = t->units * clock;

	if (t->kind == OUTBOARD_GPU) {
		double gib = (double)t->memory / (double)(1u << 30);

		score *= UNIT_GPU;
		score *= gib < 1 ? 0.5 + gib / 2 : 1;
	}
	return score / (1 + (t->link > 0 ? t->link / LINK_HALF : 0));
}

static void split_equal(uint64_t count, unsigned n, uint64_t *ret_parts)
{
	for (unsigned i = 0; i < n; i++)
		ret_parts[i] = count / n;
	ret_parts[0] += count % n;
}

void obv_split(uint32_t strategy, uint64_t count, unsigned n, const double *scores,
	const double *loads, uint64_t *ret_parts)
{
	double weight[OUTBOARD_MAX_DEVICES], rest[OUTBOARD_MAX_DEVICES], sum = 0;
	uint64_t given = 0;
	unsigned best = 0;

	for (unsigned i = 0; i < n; i++) {
		weight[i] = scores[i] > 0 ? scores[i] : 0;
		if (strategy != OUTBOARD_PROPORTIONAL)
			weight[i] *= loads[i] >= 1 ? 0 : 1 - loads[i];
		sum += weight[i];
		best = weight[i] > weight[best] ? i : best;
	}
	if (strategy == OUTBOARD_SINGLE || strategy == OUTBOARD_AUTO) {
		memset(ret_parts, 0, n * sizeof(*ret_parts));
		ret_parts[best] = count;
		return;
	}
	if (strategy == OUTBOARD_EQUAL || !(sum > 0)) {
		split_equal(count, n, ret_parts);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		double share = (double)count * (weight[i] / sum);

		ret_parts[i] = (uint64_t)share;
		if (ret_parts[i] > count - given)
			ret_parts[i] = count - given;
		rest[i] = weight[i] > 0 ? share - (double)ret_parts[i] : -1;
		given += ret_parts[i];
	}
	while (given < count) {
		unsigned next = 0;

		for (unsigned i = 1; i < n; i++)
			next = rest[i] > rest[next] ? i : next;
		ret_parts[next]++;
		rest[next] -= 1;
		given++;
	}
}

bool obv_hot_and_cold(
	unsigned n, const double *loads, const bool *usable, unsigned *ret_hot, unsigned *ret_cold)
{
	unsigned hot = n, cold = n;

	for (unsigned i = 0; i < n; i++) {
		if (loads[i] > OBV_LOAD_HOT && (hot == n || loads[i] > loads[hot]))
			hot = i;
		if (usable[i] && loads[i] < OBV_LOAD_COLD && (cold == n || loads[i] < loads[cold]))
			cold = i;
	}
	if (hot == n || cold == n)
		return false;
	*ret_hot = hot;
	*ret_cold = cold;
	return true;
}

double obv_load(double seconds, double horizon)
{
	double load = horizon > 0 ? seconds / horizon : 1;

	return load < 0 ? 0 : load > 1 ? 1 : load;
}
