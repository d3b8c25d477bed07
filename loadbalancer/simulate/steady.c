/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/simulate/steady.h"

#include "base/check.h"
#include "loadbalancer/simulate/world.h"

#define WARM_LIVES 5 /* mean durations before counting begins: all but 0.7 % of the start is gone */
#define LOOKS      200 /* times at which the memory in use is looked at */

struct tally {
	uint32_t seen, refused, whole, refused_whole;
	struct obl_samples sharers, ns, used, idle;
};

static void look(const struct obl_world *world, struct tally *tally)
{
	uint64_t reserved = 0, total = 0;
	uint32_t idle = 0, n = 0;

	for (uint32_t i = 0; i < world->n_servers; i++)
		for (uint32_t d = 0; d < world->n_gpus; d++) {
			const struct obl_device *device = &world->servers[i].devices[d];

			reserved += device->reserved >> 20;
			total += device->total >> 20;
			idle += device->sharers == 0;
			n++;
		}
	obl_samples_add(&tally->used, 100.0 * (double)reserved / (double)total);
	obl_samples_add(&tally->idle, 100.0 * idle / n);
}

/* The load of a GPU that the policies see: as much as its sessions' memory. */
static void busy_set(struct obl_world *world, const struct obl_choice *choice)
{
	struct obl_device *device =
		&world->servers[choice->parts[0].server].devices[choice->parts[0].devices[0]];

	device->busy = (uint16_t)(device->reserved * 1000 / device->total);
}

static void arrive(struct obl_world *world, enum obl_policy policy, double now_ms,
	struct tally *tally, bool counted)
{
	struct obl_session session = { .kind = obl_world_kind(world) };
	bool whole = session.kind == OBL_MIX_WHOLE, placed;
	uint64_t began;

	session.request.memory = obl_mix_gib[session.kind] * OBL_GIB;
	session.request.exclusive = policy == OBL_EXCLUSIVE;
	session.ends_ms = now_ms + obl_world_exponential(world, OBL_LIFE_MS);
	began = obl_work_ns();
	placed = obl_place_try(world->servers, world->n_servers, &session.request, policy,
		&world->state, &session.choice);
	began = obl_work_ns() - began;
	if (placed) {
		obl_world_start(world, &session);
		busy_set(world, &session.choice);
	}
	if (!counted)
		return;
	obl_samples_add(&tally->ns, (double)began);
	tally->seen++;
	tally->whole += whole;
	tally->refused += !placed;
	tally->refused_whole += whole && !placed;
	if (placed) {
		const struct obl_part *part = &session.choice.parts[0];

		obl_samples_add(&tally->sharers,
			world->servers[part->server].devices[part->devices[0]].sharers);
	}
}

struct obl_steady obl_steady_run(const struct obl_steady_terms *terms)
{
	double gpus = (double)terms->servers * terms->gpus, now_ms = 0, gap_ms;
	struct tally tally = { .seen = 0 };
	struct obl_world world;
	struct obl_steady ret;

	obl_world_init(&world, terms->servers, terms->gpus, terms->seed);
	gap_ms = OBL_LIFE_MS * obl_mix_mean() / (gpus * OBL_GPU_GIB * terms->load / 100);
	while (tally.seen < terms->sessions) {
		bool counted = now_ms > WARM_LIVES * OBL_LIFE_MS;

		now_ms += obl_world_exponential(&world, gap_ms);
		while (obl_world_next_end(&world) <= now_ms)
			busy_set(&world, &obl_world_end(&world)->choice);
		arrive(&world, terms->policy, now_ms, &tally, counted);
		if (counted && tally.seen % ob_max(terms->sessions / LOOKS, 1u) == 0)
			look(&world, &tally);
	}
	ret = (struct obl_steady){ .refused = 100.0 * tally.refused / tally.seen,
		.refused_whole = tally.whole ? 100.0 * tally.refused_whole / tally.whole : 0,
		.sharers_mean = obl_samples_mean(&tally.sharers),
		.sharers_p99 = obl_samples_at(&tally.sharers, 990),
		.ns_p50 = obl_samples_at(&tally.ns, 500),
		.ns_p99 = obl_samples_at(&tally.ns, 990),
		.used = obl_samples_mean(&tally.used),
		.idle = obl_samples_mean(&tally.idle) };
	obl_samples_fini(&tally.sharers);
	obl_samples_fini(&tally.ns);
	obl_samples_fini(&tally.used);
	obl_samples_fini(&tally.idle);
	obl_world_fini(&world);
	return ret;
}
