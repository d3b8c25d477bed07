/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/device_streams.h"

#include <stddef.h>

#include "base/check.h"
#include "base/clock.h"
#include "protocol/obs_driver.h"
#include "server/worker/session.h"
#include "server/worker/timeline.h"

/* Untouched memory of a program takes no room. */
static struct obs_device_pool pools[OBS_DEVICE_CONTEXTS];
static struct obs_device_stream streams[OBS_DEVICE_STREAMS];
static uint32_t n_streams; /* entries ever used */

_Thread_local const struct obs_exec *obs_device_exec;

const struct obs_driver *obs_device_driver(void)
{
	return &obs_device_exec->session->lib.table;
}

/* ---- marks ---- */

struct obs_device_mark *obs_device_mark_take(struct obs_device_pool *pool)
{
	struct obs_device_mark *mark = pool->free;

	if (mark) {
		pool->free = mark->next;
	} else {
		if (pool->made == OBS_DEVICE_MARKS)
			return NULL;
		mark = &pool->marks[pool->made];
		if (obs_device_driver()->cuEventCreate(&mark->event, CU_EVENT_DEFAULT) !=
			CUDA_SUCCESS)
			return NULL;
		pool->made++;
	}
	*mark = (struct obs_device_mark){ .event = mark->event, .uses = 1 };
	return mark;
}

void obs_device_mark_drop(struct obs_device_pool *pool, struct obs_device_mark *mark)
{
	if (!mark || --mark->uses)
		return;
	mark->next = pool->free;
	pool->free = mark;
}

void obs_device_tail_drop(struct obs_device_stream *stream)
{
	obs_device_mark_drop(stream->pool, stream->tail);
	stream->tail = NULL;
}

static bool mark_time(struct obs_device_pool *pool, struct obs_device_mark *mark)
{
	if (mark->at)
		return true;
	mark->clock = pool->clock.count;
	return obs_device_clock_time(
		&pool->clock, obs_device_driver(), mark->event, &mark->at, &mark->far);
}

/* ---- reporting ---- */

/* The oldest work leaves the list. */
static void work_remove(struct obs_device_stream *stream)
{
	struct obs_device_mark *work = stream->first;

	stream->first = work->next;
	if (!stream->first)
		stream->newest = NULL;
	obs_device_mark_drop(stream->pool, work->start);
	obs_device_mark_drop(stream->pool, work);
}

static bool work_took(const struct obs_device_mark *work, uint64_t *ret_ns)
{
	const struct obs_device_mark *start = work->start;
	float ms;

	*ret_ns = work->at > start->at ? work->at - start->at : 0;
	if (!start->far && !work->far && start->clock == work->clock)
		return true;
	if (obs_device_driver()->cuEventElapsedTime_v2(&ms, start->event, work->event) !=
			CUDA_SUCCESS ||
		!(ms >= 0 && ms < 1e10f))
		return false;
	*ret_ns = (uint64_t)((double)ms * 1e6);
	return true;
}

static void work_report(struct obs_device_stream *stream, uint64_t now)
{
	struct obs_device_pool *pool = stream->pool;
	struct obs_device_mark *work = stream->first;
	const struct obs_context *context = pool->context;
	uint64_t at, took, least = ob_max(work->began, stream->ended);

	if (!mark_time(pool, work->start) || !mark_time(pool, work) || !work_took(work, &took)) {
		obs_timeline_lose(1);
		return;
	}
	/* The clocks differ a little: no work began before it was submitted or ends later than now. */
	took = ob_min(took, now - least);
	at = ob_min(ob_max(work->start->at, least), now - took);
	stream->ended = at + took;
	obs_timeline_add(&(struct obp_timeline_event){ .number = work->number,
		.at_ns = at,
		.took_ns = took,
		.more = obp_timeline_stream(context->device,
			(uint32_t)(context - obs_device_exec->session->contexts), stream->number),
		.what = obp_timeline_what(OBP_TIMELINE_DEVICE, 0, work->opcode, work->works) });
}

/* Frees the entry of a destroyed stream once all of its works are reported. */
void obs_device_stream_tidy(struct obs_device_stream *stream)
{
	if (stream->gone && !stream->first && !stream->open)
		stream->pool = NULL;
}

/* The driver reports an error: the works cannot be measured. */
static void stream_abandon(struct obs_device_stream *stream)
{
	while (stream->first) {
		work_remove(stream);
		obs_timeline_lose(1);
	}
	obs_device_tail_drop(stream);
}

/* Reports works that are complete, at most `max`. all: it is known that all of them are. */
void obs_device_stream_collect(
	struct obs_device_stream *stream, bool all, uint32_t max, uint64_t now)
{
	for (; stream->first && !stream->open && max; max--) {
		CUresult result = all ? CUDA_SUCCESS
				      : obs_device_driver()->cuEventQuery(stream->first->event);

		if (result == CUDA_ERROR_NOT_READY)
			return;
		if (result != CUDA_SUCCESS) {
			stream_abandon(stream);
			return;
		}
		work_report(stream, now);
		work_remove(stream);
	}
}

bool obs_device_stream_idle(struct obs_device_stream *stream)
{
	CUresult result = stream->newest ? obs_device_driver()->cuEventQuery(stream->newest->event)
					 : CUDA_SUCCESS;

	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		stream_abandon(stream);
	return result != CUDA_ERROR_NOT_READY;
}

/* ---- contexts and streams ---- */

struct obs_device_pool *obs_device_pool_find(const struct obs_context *context)
{
	for (uint32_t i = 0; i < OBS_DEVICE_CONTEXTS; i++)
		if (pools[i].context == context)
			return &pools[i];
	return NULL;
}

/* The current context's. NULL: too many contexts, or the driver cannot. */
struct obs_device_pool *obs_device_pool_get(void)
{
	struct obs_device_pool *pool = obs_device_pool_find(obs_device_exec->context);

	if (pool)
		return pool;
	pool = obs_device_pool_find(NULL);
	if (!pool || !obs_device_clock_init(&pool->clock, obs_device_driver()))
		return NULL;
	pool->context = obs_device_exec->context;
	pool->made = pool->look = 0;
	pool->free = NULL;
	pool->legacy = (struct obs_device_stream){ .pool = pool };
	return pool;
}

static uint64_t works_of(const struct obs_device_stream *stream)
{
	uint64_t n = 0;

	for (const struct obs_device_mark *work = stream->first; work; work = work->next)
		n++;
	return n;
}

/* All works of the context are lost, and all marks are free. */
void obs_device_pool_reset(struct obs_device_pool *pool)
{
	uint64_t lost = works_of(&pool->legacy);

	for (uint32_t i = 0; i < n_streams; i++) {
		if (streams[i].pool != pool)
			continue;
		lost += works_of(&streams[i]);
		streams[i] = (struct obs_device_stream){ .pool = NULL };
	}
	obs_timeline_lose(lost);
	pool->legacy = (struct obs_device_stream){ .pool = pool };
	pool->turn++;
	pool->free = NULL;
	for (uint32_t i = 0; i < pool->made; i++) {
		pool->marks[i].next = pool->free;
		pool->free = &pool->marks[i];
	}
}

static bool is_legacy(CUstream handle)
{
	return !handle || handle == CU_STREAM_LEGACY;
}

struct obs_device_stream *obs_device_stream_find(struct obs_device_pool *pool, CUstream handle)
{
	if (is_legacy(handle))
		return &pool->legacy;
	for (uint32_t i = 0; i < n_streams; i++)
		if (streams[i].handle == handle && streams[i].pool == pool && !streams[i].gone)
			return &streams[i];
	return NULL;
}

/* Looks at the works of the context's destroyed streams. */
static void streams_tidy(struct obs_device_pool *pool)
{
	for (uint32_t i = 0; i < n_streams; i++)
		if (streams[i].pool == pool && streams[i].gone) {
			obs_device_stream_collect(
				&streams[i], false, OBS_DEVICE_PASSING, ob_clock_ns());
			obs_device_stream_tidy(&streams[i]);
		}
}

/* NULL: too many streams. */
struct obs_device_stream *obs_device_stream_get(struct obs_device_pool *pool, CUstream handle)
{
	struct obs_device_stream *stream = obs_device_stream_find(pool, handle);
	uint32_t i = 0;

	if (stream)
		return stream;
	streams_tidy(pool);
	while (i < n_streams && streams[i].pool)
		i++;
	if (i == OBS_DEVICE_STREAMS)
		return NULL;
	n_streams = ob_max(n_streams, i + 1);
	streams[i] = (struct obs_device_stream){
		.pool = pool, .handle = handle, .number = i + 1, .ended = streams[i].ended
	};
	return &streams[i];
}

struct obs_device_pool *obs_device_pool_at(uint32_t i)
{
	return &pools[i];
}

/* Without a free mark: looks at another stream's works. */
void obs_device_pool_look(struct obs_device_pool *pool, uint64_t now)
{
	uint32_t i = pool->look++ % (n_streams + 1);

	if (i == n_streams)
		obs_device_stream_collect(&pool->legacy, false, OBS_DEVICE_PASSING, now);
	else if (streams[i].pool == pool)
		obs_device_stream_collect(&streams[i], false, OBS_DEVICE_PASSING, now);
	if (i < n_streams && streams[i].pool)
		obs_device_stream_tidy(&streams[i]);
}

void obs_device_pool_collect(struct obs_device_pool *pool, uint64_t now)
{
	obs_device_stream_collect(&pool->legacy, false, UINT32_MAX, now);
	for (uint32_t i = 0; i < n_streams; i++)
		if (streams[i].pool == pool) {
			obs_device_stream_collect(&streams[i], false, UINT32_MAX, now);
			obs_device_stream_tidy(&streams[i]);
		}
}
