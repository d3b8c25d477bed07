/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/common/stats_page.h"
#include "server/layers/throttle.h"
#include "server/worker/record.h"

static struct obs_lane refused_lane = { .refused = true };

/*
 * The lane stays refused until the client's thread has ended, because its context changes are not
 * tracked.
 */
static struct obs_lane *lane_refuse(struct obs_session *session, uint16_t index)
{
	static bool told;

	obs_throttle_refused("threads");
	if (!told)
		ob_warn("session %016llx: limit of %u threads that use CUDA at once reached "
			"(--max-lanes): calls of further threads fail",
			(unsigned long long)session->id,
			ob_min(session->n_lanes, obs_limits_now.lanes));
	told = true;
	refused_lane.session = session;
	refused_lane.context = &session->refused;
	session->lanes[index] = &refused_lane;
	return &refused_lane;
}

struct obs_lane *obs_lane_new(struct obs_session *session, uint16_t index)
{
	struct obs_lane *lane =
		session->n_lanes < obs_limits_now.lanes ? calloc(1, sizeof *lane) : NULL;

	if (!lane)
		return lane_refuse(session, index);
	lane->index = index;
	lane->session = session;
	pthread_mutex_init(&lane->lock, NULL);
	pthread_cond_init(&lane->changed, NULL);
	session->lanes[index] = lane;
	session->n_lanes++;
	return lane;
}

static void lane_free(struct obs_lane *lane)
{
	pthread_cond_destroy(&lane->changed);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

static void *lane_main(void *argument)
{
	struct obs_lane *lane = argument;
	struct obs_exec x = { .session = lane->session,
		.drv = lane->session->drv,
		.lane = lane,
		.lane_index = lane->index };

	pthread_mutex_lock(&lane->lock);
	for (;;) {
		/*
		 * No time-out: an idle lane lives as long as the client's thread; all end with the
		 * process.
		 */
		while (!lane->busy && !lane->ending)
			pthread_cond_wait(&lane->changed, &lane->lock);
		if (!lane->busy)
			break;
		pthread_mutex_unlock(&lane->lock);
		x.call = lane->call;
		x.opcode = lane->record.opcode;
		obs_exec_record(&x, &lane->record, lane->body, lane->size);
		atomic_fetch_sub_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
		pthread_mutex_lock(&lane->lock);
		lane->busy = false;
		pthread_cond_broadcast(&lane->changed);
	}
	pthread_mutex_unlock(&lane->lock);
	lane_free(lane);
	return NULL;
}

bool obs_lane_run(struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size)
{
	struct obs_lane *lane = x->lane;

	if (size > sizeof lane->body || lane->refused)
		return false;
	if (!lane->threaded) {
		if (!ob_thread_start(lane_main, lane, OBS_LANE_STACK, NULL))
			return false;
		lane->threaded = true;
	}
	pthread_mutex_lock(&lane->lock);
	while (lane->busy)
		pthread_cond_wait(&lane->changed, &lane->lock);
	lane->record = *rec;
	lane->call = x->call;
	lane->size = size;
	memcpy(lane->body, body, size);
	lane->busy = true;
	atomic_fetch_add_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
	pthread_cond_broadcast(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
	return true;
}

void obs_lane_wait(struct obs_lane *lane)
{
	if (!lane->threaded)
		return;
	pthread_mutex_lock(&lane->lock);
	while (lane->busy)
		pthread_cond_wait(&lane->changed, &lane->lock);
	pthread_mutex_unlock(&lane->lock);
}

void obs_lane_end(struct obs_session *session, uint16_t index)
{
	struct obs_lane *lane = session->lanes[index];

	session->lanes[index] = NULL;
	if (lane->refused)
		return;
	session->n_lanes--;
	if (!lane->threaded) {
		lane_free(lane);
		return;
	}
	pthread_mutex_lock(&lane->lock);
	lane->ending = true;
	pthread_cond_broadcast(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}
