/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/simulate/skew.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "loadbalancer/rebalance.h"
#include "loadbalancer/simulate/world.h"

#define WARM_MS   (5 * OBL_LIFE_MS)
#define BEAT_MS   1000.0
#define HEAVY     7u  /* one session in so many is heavy */
#define HEAVY_USE 600 /* per mille of a GPU */
#define LIGHT_USE 30

struct skew {
	struct obl_world world;
	const struct obl_skew_terms *terms;
	uint32_t n; /* GPUs */
	struct obl_node *nodes;
	struct obl_movable *movables;
	uint32_t *movable_session, max_movables;
	struct obl_rebalance state;
	struct obl_samples use;
	uint64_t hot, looks, moved_once, moved_again;
	double work, late;
	uint32_t seen, refused;
};

static uint32_t node_of(const struct skew *s, const struct obl_session *session)
{
	const struct obl_part *part = &session->choice.parts[0];

	return part->server * s->world.n_gpus + part->devices[0];
}

static struct obl_device *device_of(const struct skew *s, uint32_t node)
{
	return &s->world.servers[node / s->world.n_gpus].devices[node % s->world.n_gpus];
}

static void arrive(struct skew *s, double now_ms, bool counted)
{
	struct obl_session session = { .kind = obl_world_kind(&s->world) };

	session.request.memory = obl_mix_gib[session.kind] * OBL_GIB;
	session.request.exclusive = s->terms->policy == OBL_EXCLUSIVE;
	session.load = obl_world_below(&s->world, HEAVY) == 0 ? HEAVY_USE : LIGHT_USE;
	session.number = obl_world_below(&s->world, 100) < s->terms->movable;
	session.ends_ms = now_ms + obl_world_exponential(&s->world, OBL_LIFE_MS);
	s->seen += counted;
	if (obl_place_try(s->world.servers, s->world.n_servers, &session.request, s->terms->policy,
		    &s->world.state, &session.choice))
		obl_world_start(&s->world, &session);
	else
		s->refused += counted;
}

/*
 * The last idle GPUs are no targets, as placement spares them for requests that need a whole one
 * (OBL_SHARERS_PREFERRED).
 */
static void idle_spare(struct skew *s)
{
	uint64_t idle = 0;

	for (uint32_t i = 0; i < s->n; i++)
		idle += device_of(s, i)->sharers == 0;
	for (uint32_t i = 0; i < s->n && idle * idle < s->n; i++)
		s->nodes[i].closed = device_of(s, i)->sharers == 0;
}

/* Measures the GPUs; what they report is what the policies see until the next time. */
static void beat(struct skew *s, bool counted)
{
	memset(s->nodes, 0, s->n * sizeof *s->nodes);
	for (uint32_t i = 0; i < s->world.max_sessions; i++)
		if (s->world.sessions[i].running)
			s->nodes[node_of(s, &s->world.sessions[i])].load +=
				s->world.sessions[i].load;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t load = s->nodes[i].load;

		device_of(s, i)->busy = (uint16_t)ob_min(load, 1000u);
		s->nodes[i].room = obl_device_free(device_of(s, i));
		if (!counted)
			continue;
		obl_samples_add(&s->use, load / 10.0);
		s->hot += load > OBL_REBALANCE_HOT;
		s->looks++;
		s->work += load;
		s->late += load > 1000 ? load - 1000 : 0;
	}
}

static void movables_list(struct skew *s, uint32_t *ret_n)
{
	uint32_t n = 0;

	if (s->max_movables < s->world.max_sessions) {
		s->max_movables = s->world.max_sessions;
		s->movables = realloc(s->movables, s->max_movables * sizeof *s->movables);
		s->movable_session =
			realloc(s->movable_session, s->max_movables * sizeof *s->movable_session);
		if (!s->movables || !s->movable_session)
			abort();
	}
	for (uint32_t i = 0; i < s->world.max_sessions; i++) {
		const struct obl_session *session = &s->world.sessions[i];

		if (!session->running || !session->number)
			continue;
		s->movables[n] = (struct obl_movable){ .node = node_of(s, session),
			.load = session->load,
			.memory = session->request.memory,
			.moved_ms = session->moved_ms };
		s->movable_session[n++] = i;
	}
	*ret_n = n;
}

static void rebalance(struct skew *s, double now_ms, bool counted)
{
	struct obl_move moves[OBL_REBALANCE_MOVES_MAX];
	uint32_t n_movables, n;

	movables_list(s, &n_movables);
	n = obl_rebalance(
		&s->state, s->nodes, s->n, s->movables, n_movables, (uint64_t)now_ms, moves);
	for (uint32_t i = 0; i < n; i++) {
		struct obl_session *session =
			&s->world.sessions[s->movable_session[moves[i].movable]];

		obl_give(s->world.servers, &session->request, &session->choice);
		session->choice.parts[0].server = moves[i].to / s->world.n_gpus;
		session->choice.parts[0].devices[0] = (uint8_t)(moves[i].to % s->world.n_gpus);
		obl_take(s->world.servers, &session->request, &session->choice);
		s->moved_once += counted && !session->moved_ms;
		s->moved_again += counted && session->moved_ms;
		session->moved_ms = (uint64_t)now_ms;
	}
	if (!counted)
		s->state.moves = 0;
}

static void run(struct skew *s)
{
	double end_ms = WARM_MS + s->terms->minutes * 60000.0;
	double gap_ms =
		OBL_LIFE_MS * obl_mix_mean() / ((double)s->n * OBL_GPU_GIB * s->terms->load / 100);
	double arrival_ms = 0;

	for (double now_ms = BEAT_MS; now_ms < end_ms; now_ms += BEAT_MS) {
		bool counted = now_ms > WARM_MS;

		while (arrival_ms <= now_ms) {
			while (obl_world_next_end(&s->world) <= arrival_ms)
				obl_world_end(&s->world);
			arrive(s, arrival_ms, counted);
			arrival_ms += obl_world_exponential(&s->world, gap_ms);
		}
		while (obl_world_next_end(&s->world) <= now_ms)
			obl_world_end(&s->world);
		beat(s, counted);
		if (s->terms->rebalance) {
			idle_spare(s);
			rebalance(s, now_ms, counted);
		}
	}
}

struct obl_skew obl_skew_run(const struct obl_skew_terms *terms)
{
	struct skew s = { .terms = terms, .n = terms->servers * terms->gpus };
	struct obl_skew ret;

	obl_world_init(&s.world, terms->servers, terms->gpus, terms->seed);
	s.nodes = calloc(s.n, sizeof *s.nodes);
	if (!s.nodes)
		abort();
	run(&s);
	ret = (struct obl_skew){ .p5 = obl_samples_at(&s.use, 50),
		.mean = obl_samples_mean(&s.use),
		.p95 = obl_samples_at(&s.use, 950),
		.hot = 100.0 * (double)s.hot / (double)ob_max(s.looks, 1u),
		.late = s.work > 0 ? 100 * s.late / s.work : 0,
		.moves = (double)s.state.moves / terms->minutes,
		.again = s.moved_once
			? 100.0 * (double)s.moved_again / (double)(s.moved_once + s.moved_again)
			: 0,
		.refused = s.seen ? 100.0 * s.refused / s.seen : 0 };
	obl_samples_fini(&s.use);
	free(s.nodes);
	free(s.movables);
	free(s.movable_session);
	obl_world_fini(&s.world);
	return ret;
}
