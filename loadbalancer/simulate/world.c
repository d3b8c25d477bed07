/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/simulate/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"

const uint32_t obl_mix_gib[OBL_MIX_COUNT] = { 2, 4, 8, 16, 40, 80 };
const uint32_t obl_mix_percent[OBL_MIX_COUNT] = { 35, 25, 20, 10, 6, 4 };

double obl_mix_mean(void)
{
	double sum = 0;

	for (unsigned i = 0; i < OBL_MIX_COUNT; i++)
		sum += obl_mix_gib[i] * obl_mix_percent[i] / 100.0;
	return sum;
}

static void *grow(void *memory, size_t size)
{
	void *larger = realloc(memory, size);

	if (!larger) {
		fprintf(stderr,
			"obl-simulate: no memory for the simulation: simulate a smaller pool\n");
		exit(1);
	}
	return larger;
}

void obl_world_init(struct obl_world *world, uint32_t n_servers, uint32_t n_gpus, uint64_t seed)
{
	*world = (struct obl_world){
		.n_servers = n_servers, .n_gpus = n_gpus, .seed = seed, .state = { 0, seed }
	};
	world->servers = grow(NULL, n_servers * sizeof *world->servers);
	memset(world->servers, 0, n_servers * sizeof *world->servers);
	for (uint32_t i = 0; i < n_servers; i++) {
		struct obl_server *server = &world->servers[i];

		server->alive = true;
		server->max_sessions = UINT32_MAX;
		server->n_devices = n_gpus;
		for (uint32_t d = 0; d < n_gpus; d++) {
			server->devices[d].total = OBL_GPU_GIB * OBL_GIB;
			server->devices[d].units = 132;
			server->devices[d].clock_mhz = 1980;
		}
		obl_server_score(server);
	}
}

void obl_world_fini(struct obl_world *world)
{
	free(world->servers);
	free(world->sessions);
	free(world->heap);
}

/* ---- random numbers: SplitMix64, as in place.c ---- */

static uint64_t next(struct obl_world *world)
{
	uint64_t z = world->seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

double obl_world_uniform(struct obl_world *world)
{
	return (double)(next(world) >> 11) / 9007199254740992.0;
}

uint32_t obl_world_below(struct obl_world *world, uint32_t n)
{
	return (uint32_t)((next(world) >> 32) * n >> 32);
}

double obl_world_exponential(struct obl_world *world, double mean)
{
	return -mean * log(1 - obl_world_uniform(world));
}

uint32_t obl_world_kind(struct obl_world *world)
{
	uint32_t at = obl_world_below(world, 100), kind = 0;

	while (at >= obl_mix_percent[kind])
		at -= obl_mix_percent[kind++];
	return kind;
}

uint64_t obl_work_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* ---- the sessions: a binary heap of their ends ---- */

static void sessions_grow(struct obl_world *world)
{
	uint32_t from = world->max_sessions, to = ob_max(2 * from, 1024u);

	world->sessions = grow(world->sessions, to * sizeof *world->sessions);
	world->heap = grow(world->heap, to * sizeof *world->heap);
	memset(world->sessions + from, 0, (to - from) * sizeof *world->sessions);
	for (uint32_t i = from; i < to; i++)
		world->heap[i].session = i;
	world->max_sessions = to;
}

void obl_world_start(struct obl_world *world, const struct obl_session *session)
{
	struct obl_ending ending;
	uint32_t at = world->n_sessions;

	if (at == world->max_sessions)
		sessions_grow(world);
	ending = (struct obl_ending){ session->ends_ms, world->heap[at].session };
	world->n_sessions++;
	world->sessions[ending.session] = *session;
	world->sessions[ending.session].running = true;
	obl_take(world->servers, &session->request, &session->choice);
	while (at && world->heap[(at - 1) / 2].ms > ending.ms) {
		world->heap[at] = world->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	world->heap[at] = ending;
}

double obl_world_next_end(const struct obl_world *world)
{
	return world->n_sessions ? world->heap[0].ms : (double)INFINITY;
}

const struct obl_session *obl_world_end(struct obl_world *world)
{
	struct obl_ending ended = world->heap[0], last = world->heap[--world->n_sessions];
	struct obl_session *session = &world->sessions[ended.session];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < world->n_sessions) {
		if (child + 1 < world->n_sessions &&
			world->heap[child + 1].ms < world->heap[child].ms)
			child++;
		if (last.ms <= world->heap[child].ms)
			break;
		world->heap[at] = world->heap[child];
		at = child;
	}
	world->heap[at] = last;
	world->heap[world->n_sessions] = ended;
	session->running = false;
	obl_give(world->servers, &session->request, &session->choice);
	return session;
}

/* ---- percentiles ---- */

void obl_samples_add(struct obl_samples *samples, double value)
{
	if (samples->n == OBL_SAMPLES_MAX)
		return;
	if (samples->n == samples->max) {
		samples->max = ob_max(2 * samples->max, 1024u);
		samples->values = grow(samples->values, samples->max * sizeof *samples->values);
	}
	samples->values[samples->n++] = (float)value;
	samples->sum += value;
	samples->sorted = false;
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

double obl_samples_at(struct obl_samples *samples, uint32_t per_mille)
{
	if (samples->n == 0)
		return 0;
	if (!samples->sorted)
		qsort(samples->values, samples->n, sizeof *samples->values, compare);
	samples->sorted = true;
	return (double)samples->values[(uint64_t)(samples->n - 1) * per_mille / 1000];
}

double obl_samples_mean(const struct obl_samples *samples)
{
	return samples->n ? samples->sum / samples->n : 0;
}

void obl_samples_fini(struct obl_samples *samples)
{
	free(samples->values);
}
