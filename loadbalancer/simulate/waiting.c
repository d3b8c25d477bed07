/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/simulate/waiting.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "loadbalancer/queue.h"
#include "loadbalancer/simulate/world.h"

#define GREEDY_PERCENT 90u
#define SEVERAL        3u /* kinds of requests for several GPUs: 2, 4, 8 */

struct queue {
	struct obl_world world;
	const struct obl_waiting_terms *terms;
	struct obl_waiting waiting[OBL_QUEUE_MAX];
	struct obl_request requests[OBL_QUEUE_MAX]; /* of waiting[i] */
	double lives_ms[OBL_QUEUE_MAX], since_ms[OBL_QUEUE_MAX];
	uint32_t n, length;
	uint64_t number;
	struct obl_queue_tenant tenants[2];
	struct obl_queue_hold hold;
	struct obl_samples small, whole, several, greedy, modest, used, ns;
};

const char *obl_rule_name(enum obl_rule rule)
{
	static const char *const names[OBL_RULES] = { "first come", "backfill", "claims" };

	return (unsigned)rule < OBL_RULES ? names[rule] : "?";
}

/* GiB that a request of this simulation has on average. */
static double mean_gib(uint32_t large)
{
	double several = 0;

	for (unsigned i = 0; i < SEVERAL; i++)
		several += (2u << i) * OBL_GPU_GIB * large / 1000.0;
	return obl_mix_mean() * (1000 - SEVERAL * large) / 1000 + several;
}

static void arrive(struct queue *q, double now_ms)
{
	uint32_t large = q->terms->large, at = obl_world_below(&q->world, 1000), i = q->n;
	struct obl_request *request = &q->requests[i];

	if (q->n == OBL_QUEUE_MAX)
		return;
	q->n++;
	*request = (struct obl_request){ .gpus = 1 };
	if (at < SEVERAL * large) {
		request->gpus = 2u << at / large;
		request->memory = OBL_GPU_GIB * OBL_GIB;
	} else {
		request->memory = obl_mix_gib[obl_world_kind(&q->world)] * OBL_GIB;
	}
	q->waiting[i] = (struct obl_waiting){ .priority = OBL_NORMAL,
		.tenant = obl_world_below(&q->world, 100) >= GREEDY_PERCENT,
		.since_ms = (uint64_t)now_ms,
		.number = ++q->number,
		.policy = q->terms->policy };
	q->since_ms[i] = now_ms;
	q->lives_ms[i] = obl_world_exponential(&q->world, OBL_LIFE_MS);
	q->length = ob_max(q->length, q->n);
}

static void note(struct queue *q, uint32_t i, double now_ms)
{
	double seconds = (now_ms - q->since_ms[i]) / 1000;
	const struct obl_request *request = &q->requests[i];

	obl_samples_add(request->gpus > 1                          ? &q->several
			: request->memory == OBL_GPU_GIB * OBL_GIB ? &q->whole
								   : &q->small,
		seconds);
	obl_samples_add(q->waiting[i].tenant ? &q->modest : &q->greedy, seconds);
}

/* Starts waiting[i] and takes it out of the queue. */
static void start(struct queue *q, uint32_t i, const struct obl_choice *choice, double now_ms)
{
	struct obl_session session = { .ends_ms = now_ms + q->lives_ms[i],
		.number = q->waiting[i].tenant,
		.request = q->requests[i],
		.choice = *choice };

	note(q, i, now_ms);
	q->tenants[session.number].devices += session.request.gpus;
	obl_world_start(&q->world, &session);
	q->n--;
	q->waiting[i] = q->waiting[q->n];
	q->requests[i] = q->requests[q->n];
	q->lives_ms[i] = q->lives_ms[q->n];
	q->since_ms[i] = q->since_ms[q->n];
}

/* Orders the queue by the rule. First come: by age alone. */
static uint32_t order_make(struct queue *q, double now_ms, uint16_t *order)
{
	for (uint32_t i = 0; i < q->n; i++) {
		q->waiting[i].request = &q->requests[i];
		q->waiting[i].since_ms = q->terms->rule == OBL_RULE_CLAIMS
			? (uint64_t)q->since_ms[i]
			: (uint64_t)now_ms; /* nobody has waited for long */
	}
	if (q->terms->rule != OBL_RULE_FIRST) {
		obl_queue_order(q->waiting, q->n, q->tenants, 2, order);
		return q->n;
	}
	for (uint32_t i = 0; i < q->n; i++)
		if (i == 0 || q->waiting[i].number < q->waiting[order[0]].number)
			order[0] = (uint16_t)i;
	return ob_min(q->n, 1u);
}

static void serve(struct queue *q, double now_ms)
{
	for (;;) {
		struct obl_choice choice;
		uint16_t order[OBL_QUEUE_MAX];
		uint32_t n = order_make(q, now_ms, order), place;
		uint64_t began = obl_work_ns();
		bool any;

		if (n == 0)
			return;
		any = obl_queue_next(q->waiting, order, n, q->world.servers, q->world.n_servers,
			(uint64_t)now_ms, &q->hold, &q->world.state, &place, &choice);
		obl_samples_add(&q->ns, (double)(obl_work_ns() - began));
		if (!any)
			return;
		start(q, order[place], &choice, now_ms);
	}
}

static void look(struct queue *q)
{
	uint64_t reserved = 0;

	for (uint32_t i = 0; i < q->world.n_servers; i++)
		for (uint32_t d = 0; d < q->world.n_gpus; d++)
			reserved += q->world.servers[i].devices[d].reserved >> 20;
	obl_samples_add(&q->used,
		100.0 * (double)reserved /
			((double)q->world.n_servers * q->world.n_gpus * OBL_GPU_GIB * 1024));
}

static void end_one(struct queue *q)
{
	const struct obl_session *ended = obl_world_end(&q->world);

	q->tenants[ended->number].devices -= ended->request.gpus;
}

static struct obl_wait_times times(struct obl_samples *samples)
{
	struct obl_wait_times ret = { obl_samples_mean(samples), obl_samples_at(samples, 990),
		obl_samples_at(samples, 1000) };

	obl_samples_fini(samples);
	return ret;
}

struct obl_waits obl_waits_run(const struct obl_waiting_terms *terms)
{
	static struct queue q;
	struct obl_waits ret;
	double arrival_ms = 0, gap_ms;

	memset(&q, 0, sizeof q);
	q.terms = terms;
	obl_world_init(&q.world, terms->servers, terms->gpus, terms->seed);
	gap_ms = OBL_LIFE_MS * mean_gib(terms->large) /
		((double)terms->servers * terms->gpus * OBL_GPU_GIB * terms->load / 100);
	for (uint32_t i = 0; i < terms->sessions; i++) {
		while (obl_world_next_end(&q.world) <= arrival_ms) {
			double now_ms = obl_world_next_end(&q.world);

			end_one(&q);
			serve(&q, now_ms);
		}
		arrive(&q, arrival_ms);
		serve(&q, arrival_ms);
		look(&q);
		arrival_ms += obl_world_exponential(&q.world, gap_ms);
	}
	ret.unserved = q.n;
	for (uint32_t i = 0; i < q.n; i++)
		note(&q, i, arrival_ms); /* those that still wait have waited for so long */
	ret.length = q.length;
	ret.used = obl_samples_mean(&q.used);
	ret.ns_p50 = obl_samples_at(&q.ns, 500);
	ret.ns_p99 = obl_samples_at(&q.ns, 990);
	ret.small = times(&q.small);
	ret.whole = times(&q.whole);
	ret.several = times(&q.several);
	ret.greedy = times(&q.greedy);
	ret.modest = times(&q.modest);
	obl_samples_fini(&q.used);
	obl_samples_fini(&q.ns);
	obl_world_fini(&q.world);
	return ret;
}
