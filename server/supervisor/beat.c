/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/beat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/supervisor/sense.h"
#include "server/supervisor/status.h"

/* Why the server should get no new sessions; false: it is well. */
static bool unhealthy(
	const struct obs_super *super, const struct obp_load *load, char *ret, size_t size)
{
	for (uint32_t i = 0; i < load->n_devices; i++) {
		uint32_t xid = obs_sense_xid(super, load->devices[i].uuid);
		uint64_t degrees;

		if (xid) {
			snprintf(ret, size,
				"device %u has reported Xid %u; repair it, then restart the server",
				i, xid);
			return true;
		}

		if (!obp_fact_get(&load->devices[i].facts, OBP_FACT_TEMPERATURE, &degrees) ||
			degrees <= OBS_BEAT_HOT_C)
			continue;
		snprintf(ret, size, "device %u is hotter than %u C: %llu C", i, OBS_BEAT_HOT_C,
			(unsigned long long)degrees);
		return true;
	}
	if (!super->retrying && super->start_deaths == 0)
		return false;
	snprintf(ret, size, "workers do not start: %s",
		super->start_error[0] ? super->start_error : "they die while the driver loads");
	return true;
}

static uint64_t used_by(const struct obs_super *super, const struct obs_reservation *reservation)
{
	uint64_t used = 0;

	for (const struct obs_proc *p = super->procs; p; p = p->next)
		for (uint32_t i = 0; p->reservation == reservation && i < p->place.n_devices; i++)
			used += obs_stats_page_read(&p->page->used[i]);
	return used;
}

/* Throttle if one of the sessions is kept so, which is what an operator wants to know; else any. */
static uint32_t share_by(const struct obs_super *super, const struct obs_reservation *reservation)
{
	uint32_t found = OBP_SHARE_BY_NONE, by;

	for (const struct obs_proc *p = super->procs; p; p = p->next) {
		if (p->reservation != reservation ||
			!atomic_load_explicit(&p->page->introduced, memory_order_acquire))
			continue;
		by = ob_min(obs_stats_page_read_word(&p->page->share_by),
			(uint32_t)OBP_SHARE_BY_COUNT - 1);
		if (by == OBP_SHARE_BY_THROTTLE)
			return by;
		found = ob_max(found, by);
	}
	return found;
}

static void held_fill(const struct obs_super *super, struct obp_pool_beat *beat)
{
	const struct obs_reservations *table = &super->membership.reservations;

	for (const struct obs_reservation *r = table->first; r && beat->n_held < OBP_POOL_BEAT_MAX;
		r = r->next) {
		struct obp_pool_held *to = &beat->held[beat->n_held];

		if (r->credited)
			continue;
		*to = (struct obp_pool_held){ .fence = r->fence,
			.state = r->state,
			.sessions = r->sessions,
			.used = used_by(super, r),
			.share_by = share_by(super, r),
			.busy = obs_status_busy(super, r) };
		memcpy(to->id, r->id, sizeof to->id);
		beat->n_held++;
	}
}

bool obs_beat_fill(struct obs_super *super, struct obp_pool_message *ret)
{
	struct obp_pool_beat *beat = &ret->u.beat;

	ret->type = OBP_POOL_BEAT;
	*beat = (struct obp_pool_beat){ .number = 1 };
	beat->held = calloc(OBP_POOL_BEAT_MAX, sizeof *beat->held);
	if (!beat->held)
		return false;
	obs_status_fill(super, OBP_LOAD_WANT_SESSIONS | OBP_LOAD_WANT_FACTS, NULL, &beat->load);
	beat->cordoned = super->membership.cordoned;
	beat->drained = super->membership.drain_ns || super->membership.drained;
	beat->as_of = super->membership.as_of;
	beat->healthy = !unhealthy(super, &beat->load, beat->health, sizeof beat->health);
	held_fill(super, beat);
	return true;
}

bool obs_beat_encode(struct obs_super *super, size_t most, struct ob_buf *frame)
{
	static struct obp_pool_message message;
	bool made = obs_beat_fill(super, &message);
	size_t frame_max = frame->max;
	uint32_t listed;

	if (!made)
		return false;
	made = obp_pool_encode(&message, frame);
	listed = message.u.beat.load.n_sessions;
	if (!made && listed) {
		/* a buffer that was full once takes nothing more */
		ob_buf_fini(frame);
		ob_buf_init(frame, frame_max);
		message.u.beat.load.n_sessions = 0;
		made = obp_pool_encode(&message, frame);
		message.u.beat.load.n_sessions = listed;
	}
	obp_pool_fini(&message);
	return made && frame->size <= most;
}
