/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/queue.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define FAILED_MAX 16u

/* ---- the order ---- */

static bool older(const struct obl_waiting *a, const struct obl_waiting *b)
{
	return a->since_ms != b->since_ms ? a->since_ms < b->since_ms : a->number < b->number;
}

/* By priority, then tenant, then age: the requests of a tenant lie together, the oldest first. */
static bool before(const struct obl_waiting *a, const struct obl_waiting *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->tenant != b->tenant)
		return a->tenant < b->tenant;
	return older(a, b);
}

/* Heapsort: at most n log n steps for any input, and no memory. */
static void sift(const struct obl_waiting *waiting, uint16_t *order, uint32_t at, uint32_t n)
{
	for (;;) {
		uint32_t child = 2 * at + 1;
		uint16_t last = order[at];

		if (child + 1 < n && before(&waiting[order[child]], &waiting[order[child + 1]]))
			child++;
		if (child >= n || !before(&waiting[last], &waiting[order[child]]))
			return;
		order[at] = order[child];
		order[child] = last;
		at = child;
	}
}

static void sort(const struct obl_waiting *waiting, uint16_t *order, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sift(waiting, order, i, n);
	for (uint32_t i = n; i-- > 1;) {
		uint16_t first = order[0];

		order[0] = order[i];
		order[i] = first;
		sift(waiting, order, 0, i);
	}
}

/* The requests of one tenant in one priority, and what the tenant uses with those before them. */
struct run {
	uint16_t next, end;
	uint32_t weight;
	uint64_t usage;
};

/* Whether the tenant of a is served before that of b: less usage for its weight, or an older one. */
static bool run_first(const struct obl_waiting *waiting, const uint16_t *sorted,
	const struct run *a, const struct run *b)
{
	/* usage is below 2^33, weights below 2^32 */
	__extension__ unsigned __int128 left = (unsigned __int128)a->usage * b->weight,
					right = (unsigned __int128)b->usage * a->weight;

	if (left != right)
		return left < right;
	return older(&waiting[sorted[a->next]], &waiting[sorted[b->next]]);
}

static uint32_t devices_of(const struct obl_waiting *waiting)
{
	return ob_max(waiting->request->gpus, 1u);
}

/*
 * One priority: the requests sorted[from..to) go to ret_order[from..to). used[]: devices that
 * requests of higher priority add to each tenant.
 */
static void merge(const struct obl_waiting *waiting, const uint16_t *sorted, uint32_t from,
	uint32_t to, const struct obl_queue_tenant *tenants, uint32_t *used, uint16_t *ret_order)
{
	struct run runs[OBL_QUEUE_MAX];
	uint32_t n = 0;

	for (uint32_t i = from; i < to; i++) {
		const struct obl_queue_tenant *tenant = &tenants[waiting[sorted[i]].tenant];

		if (i == from || waiting[sorted[i]].tenant != waiting[sorted[i - 1]].tenant)
			runs[n++] = (struct run){ .next = (uint16_t)i,
				.weight = ob_max(tenant->weight, 1u),
				.usage = (uint64_t)tenant->devices +
					used[waiting[sorted[i]].tenant] };
		runs[n - 1].end = (uint16_t)(i + 1);
	}
	for (uint32_t i = from; i < to; i++) {
		struct run *best = &runs[0];
		const struct obl_waiting *w;

		for (uint32_t r = 1; r < n; r++)
			if (run_first(waiting, sorted, &runs[r], best))
				best = &runs[r];
		ret_order[i] = sorted[best->next++];
		w = &waiting[ret_order[i]];
		best->usage += devices_of(w);
		used[w->tenant] += devices_of(w);
		if (best->next == best->end)
			*best = runs[--n];
	}
}

void obl_queue_order(const struct obl_waiting *waiting, uint32_t n,
	const struct obl_queue_tenant *tenants, uint32_t n_tenants, uint16_t *ret_order)
{
	uint32_t used[OBL_QUEUE_TENANTS_MAX], to;
	uint16_t sorted[OBL_QUEUE_MAX];

	n = ob_min(n, OBL_QUEUE_MAX);
	memset(used, 0, ob_min(n_tenants, OBL_QUEUE_TENANTS_MAX) * sizeof used[0]);
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = (uint16_t)i;
	sort(waiting, sorted, n);
	for (uint32_t from = 0; from < n; from = to) {
		to = from + 1;
		while (to < n && waiting[sorted[to]].priority == waiting[sorted[from]].priority)
			to++;
		merge(waiting, sorted, from, to, tenants, used, ret_order);
	}
}

/* ---- who may go ---- */

/* What one call of obl_queue_next works on. */
struct turn {
	const struct obl_waiting *waiting;
	const uint16_t *order; /* n indexes of `waiting` */
	const struct obl_server *servers;
	uint32_t n, n_servers;
	struct obl_state *state;
};

static bool fits(const struct turn *t, const struct obl_waiting *w, const struct obl_choice *kept,
	struct obl_choice *ret)
{
	struct obl_request request = *w->request;

	request.kept = kept;
	return obl_place_try(t->servers, t->n_servers, &request, w->policy, t->state, ret);
}

static const struct obl_choice *kept_from(
	const struct obl_queue_hold *hold, const struct obl_waiting *w)
{
	return hold->active && hold->number != w->number && w->priority <= hold->priority
		? &hold->claim
		: NULL;
}

/* Whether a comes before b as the request that holds back others. */
static bool holds_before(const struct obl_waiting *a, const struct obl_waiting *b)
{
	return a->priority != b->priority ? a->priority > b->priority : older(a, b);
}

/* Keeps the hold, or ends it. */
static void hold_review(const struct turn *t, struct obl_queue_hold *hold)
{
	for (uint32_t i = 0; hold->active && i < t->n; i++) {
		const struct obl_waiting *w = &t->waiting[t->order[i]];

		if (w->number == hold->number) {
			hold->active = !w->blocked &&
				obl_claim_holds(t->servers, t->n_servers, w->request, &hold->claim);
			return;
		}
	}
	hold->active = false;
}

/*
 * Finds the request that holds back others. One that holds already gives way to a higher priority
 * only. Requests are tried in the order of holds_before: each round looks for the best one behind
 * the last.
 */
static void hold_find(const struct turn *t, uint64_t now_ms, struct obl_queue_hold *hold)
{
	const struct obl_waiting *last = NULL;

	for (uint32_t round = 0; round < t->n; round++) {
		const struct obl_waiting *best = NULL;
		struct obl_choice choice, claim;

		for (uint32_t i = 0; i < t->n; i++) {
			const struct obl_waiting *w = &t->waiting[t->order[i]];

			if (w->blocked || now_ms < w->since_ms ||
				now_ms - w->since_ms <= OBL_QUEUE_PATIENCE_MS ||
				(hold->active && w->priority <= hold->priority) ||
				(last && !holds_before(last, w)))
				continue;
			if (!best || holds_before(w, best))
				best = w;
		}
		if (!best)
			return;
		if (!fits(t, best, NULL, &choice) &&
			obl_claim(t->servers, t->n_servers, best->request, &claim)) {
			*hold = (struct obl_queue_hold){ true, best->number, best->priority,
				claim };
			return;
		}
		last = best;
	}
}

/*
 * Requests that did not fit in this call. One that needs at least as much fits no better: so a long
 * queue of like requests costs little.
 */
struct failed {
	uint32_t n;
	const struct obl_waiting *waiting[FAILED_MAX];
	const struct obl_choice *kept[FAILED_MAX];
};

static bool alone(const struct obl_waiting *w)
{
	return w->request->exclusive || w->policy == OBL_EXCLUSIVE;
}

static bool needs_as_much(const struct obl_waiting *w, const struct obl_waiting *other)
{
	const struct obl_request *a = w->request, *b = other->request;

	return devices_of(w) >= devices_of(other) && a->memory >= b->memory &&
		a->share >= b->share && alone(w) >= alone(other) &&
		a->one_server >= b->one_server && a->cuda >= b->cuda &&
		a->min_units >= b->min_units && a->max_sharers == b->max_sharers &&
		a->where == b->where && a->apart == b->apart && strcmp(a->type, b->type) == 0;
}

static bool has_failed(
	const struct failed *failed, const struct obl_waiting *w, const struct obl_choice *kept)
{
	for (uint32_t i = 0; i < failed->n; i++)
		if ((!failed->kept[i] || failed->kept[i] == kept) &&
			needs_as_much(w, failed->waiting[i]))
			return true;
	return false;
}

bool obl_queue_next(const struct obl_waiting *waiting, const uint16_t *order, uint32_t n,
	const struct obl_server *servers, uint32_t n_servers, uint64_t now_ms,
	struct obl_queue_hold *hold, struct obl_state *state, uint32_t *ret_place,
	struct obl_choice *ret_choice)
{
	struct turn t = { waiting, order, servers, ob_min(n, OBL_QUEUE_MAX), n_servers, state };
	struct failed failed = { .n = 0 };

	hold_review(&t, hold);
	hold_find(&t, now_ms, hold);
	for (uint32_t i = 0; i < t.n; i++) {
		const struct obl_waiting *w = &waiting[order[i]];
		const struct obl_choice *kept = kept_from(hold, w);

		if (w->blocked || has_failed(&failed, w, kept))
			continue;
		if (fits(&t, w, kept, ret_choice)) {
			*ret_place = i;
			return true;
		}
		if (failed.n < FAILED_MAX) {
			failed.waiting[failed.n] = w;
			failed.kept[failed.n++] = kept;
		}
	}
	return false;
}

/* ---- the estimate ---- */

void obl_releases_add(struct obl_releases *releases, uint64_t now_ms, uint32_t devices)
{
	releases->list[releases->at].ms = now_ms;
	releases->list[releases->at].devices = devices;
	releases->at = (releases->at + 1) % OBL_RELEASES_MAX;
	releases->n = ob_min(releases->n + 1, OBL_RELEASES_MAX);
}

uint64_t obl_queue_estimate(const struct obl_waiting *waiting, const uint16_t *order,
	uint32_t place, const struct obl_releases *releases, uint64_t now_ms)
{
	uint32_t oldest = (releases->at + OBL_RELEASES_MAX - releases->n) % OBL_RELEASES_MAX;
	uint64_t needed = 0, released = 0, span;

	if (releases->n < 2 || now_ms <= releases->list[oldest].ms)
		return 0;
	span = now_ms - releases->list[oldest].ms;
	/* the oldest release is the beginning of the span, and not in it */
	for (uint32_t i = 1; i < releases->n; i++)
		released += releases->list[(oldest + i) % OBL_RELEASES_MAX].devices;
	for (uint32_t i = 0; i <= place; i++)
		needed += waiting[order[i]].blocked ? 0 : devices_of(&waiting[order[i]]);
	if (released == 0 || ob_mul_overflows(needed, span, &needed))
		return 0;
	return ob_max(needed / released, 1u);
}

void obl_queue_explain(const struct obl_waiting *waiting, const uint16_t *order, uint32_t place,
	const struct obl_server *servers, uint32_t n_servers, const struct obl_queue_hold *hold,
	char *ret_text, size_t size)
{
	const struct obl_waiting *w = &waiting[order[place]];
	struct obl_request request = *w->request;
	struct obl_state state = { 0, 0 };
	struct obl_choice choice;
	int at = snprintf(
		ret_text, size, "%u request%s before it", place, place == 1 ? " is" : "s are");

	request.kept = kept_from(hold, w);
	if (at < 0 || (size_t)at + 2 >= size)
		return;
	if (obl_place(servers, n_servers, &request, w->policy, &state, &choice)) {
		snprintf(ret_text + at, size - (size_t)at, "; it fits and will be placed");
		return;
	}
	memcpy(ret_text + at, "; ", 3);
	obl_explain(&choice, servers, w->request, ret_text + at + 2, size - (size_t)at - 2);
}
