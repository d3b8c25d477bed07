/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/device_times.h"

#include <pthread.h>

#include "base/check.h"
#include "base/clock.h"
#include "protocol/obs_driver.h"
#include "server/worker/context.h"
#include "server/worker/device_streams.h"
#include "server/worker/timeline.h"

static bool on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* this and all of device_streams.h */

void obs_device_thread(const struct obs_exec *x)
{
	obs_device_exec = x;
}

/* Counts work of this stream; returns the works so far of those it waits for. */
static uint64_t order_count(
	struct obs_device_pool *pool, const struct obs_device_stream *stream, bool works)
{
	bool legacy = stream == &pool->legacy;

	*(legacy ? &pool->legacy_works : &pool->stream_works) += works;
	return legacy ? pool->stream_works : pool->legacy_works;
}

/* ---- around a call ---- */

/* Anchors are taken without the lock: see the header. */
static void clock_renew(struct obs_device_pool *pool, uint64_t now)
{
	bool taken;

	if (pool->renewing || !obs_device_clock_due(&pool->clock, now))
		return;
	pool->renewing = true;
	pthread_mutex_unlock(&lock);
	taken = obs_device_clock_take(&pool->clock, obs_device_driver());
	pthread_mutex_lock(&lock);
	pool->renewing = false;
	obs_device_clock_settle(&pool->clock, obs_device_driver(), taken);
}

/* An event recorded in it would become a part of the graph. */
static bool is_capturing(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult result = obs_device_driver()->cuStreamIsCapturing(stream, &status);

	return (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED) ||
		status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The work becomes a part of the one before, whose last mark moves behind it. */
static bool work_join(struct obs_device_work *work)
{
	work->again = true;
	work->end = work->stream->newest;
	return true;
}

/* The marks for a work; false: none is free. */
static bool work_marks(struct obs_device_work *work, bool follows)
{
	struct obs_device_stream *stream = work->stream;
	const struct obs_device_mark *newest = stream->newest;
	bool like = follows && newest == stream->tail &&
		newest->opcode == obs_device_exec->opcode && newest->works < UINT32_MAX;

	if (like && newest->number == obs_device_exec->call)
		return work_join(work);
	work->end = obs_device_mark_take(stream->pool);
	if (!work->end)
		return like && work_join(work);
	if (follows) {
		work->start = stream->tail;
		work->start->uses++;
		return true;
	}
	work->start = obs_device_mark_take(stream->pool);
	work->fresh = true;
	if (!work->start)
		obs_device_mark_drop(stream->pool, work->end);
	return work->start;
}

/* Under the lock. False: not measured. */
static bool work_open(struct obs_device_work *work, struct obs_device_stream *stream)
{
	struct obs_device_pool *pool = stream->pool;
	bool idle = obs_device_stream_idle(stream), follows;
	uint64_t others = order_count(pool, stream, true);

	work->began = ob_clock_ns();
	obs_device_stream_collect(stream, idle, OBS_DEVICE_PASSING, work->began);
	follows = stream->tail && !idle && stream->others == others;
	stream->others = others;
	if (!follows)
		obs_device_tail_drop(stream);
	work->stream = stream;
	work->pool = pool;
	work->turn = pool->turn;
	stream->open = work_marks(work, follows);
	if (!stream->open)
		obs_device_tail_drop(stream);
	if (!stream->open || work->again)
		obs_device_pool_look(pool, work->began);
	return stream->open;
}

void obs_device_begin(struct obs_device_work *work, CUstream handle)
{
	struct obs_device_stream *stream = NULL;
	struct obs_device_pool *pool = NULL;
	bool opened = false;

	*work = (struct obs_device_work){ .stream = NULL };
	if (!obs_device_exec || !obs_device_exec->context || is_capturing(handle))
		return;
	pthread_mutex_lock(&lock);
	if (on)
		pool = obs_device_pool_get();
	if (pool) {
		clock_renew(pool, ob_clock_ns());
		stream = obs_device_stream_get(pool, handle);
	}
	if (stream && !stream->open)
		opened = work_open(work, stream);
	if (!opened) {
		work->stream = NULL;
		if (on)
			obs_timeline_lose(1);
	}
	pthread_mutex_unlock(&lock);
	if (opened && work->fresh)
		work->failed = obs_device_driver()->cuEventRecord(work->start->event, handle) !=
			CUDA_SUCCESS;
}

/* Under the lock: the work is in the stream, and so is its mark. */
static void work_add(struct obs_device_work *work)
{
	struct obs_device_stream *stream = work->stream;
	struct obs_device_mark *mark = work->end;

	mark->start = work->start;
	mark->number = obs_device_exec->call;
	mark->opcode = obs_device_exec->opcode;
	mark->began = work->began;
	mark->works = 1;
	*(stream->newest ? &stream->newest->next : &stream->first) = mark;
	stream->newest = mark;
	obs_device_tail_drop(stream);
	stream->tail = mark;
	mark->uses++;
}

void obs_device_end(struct obs_device_work *work, CUresult result)
{
	struct obs_device_stream *stream = work->stream;
	bool marked;

	if (!stream || work->pool->turn != work->turn)
		return;
	marked = result == CUDA_SUCCESS && !work->failed &&
		obs_device_driver()->cuEventRecord(work->end->event, stream->handle) ==
			CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (work->pool->turn == work->turn) {
		stream->open = false;
		if (marked && work->again) {
			work->end->works++;
		} else if (marked) {
			work_add(work);
		} else {
			obs_device_tail_drop(stream);
			if (!work->again) {
				obs_device_mark_drop(work->pool, work->start);
				obs_device_mark_drop(work->pool, work->end);
			}
			obs_timeline_lose(result == CUDA_SUCCESS);
		}
		obs_device_stream_tidy(stream);
	}
	pthread_mutex_unlock(&lock);
}

static struct obs_device_stream *stream_known(CUstream handle)
{
	struct obs_device_pool *pool = obs_device_exec && obs_device_exec->context
		? obs_device_pool_find(obs_device_exec->context)
		: NULL;

	return pool ? obs_device_stream_find(pool, handle) : NULL;
}

void obs_device_interrupted(CUstream handle)
{
	struct obs_device_stream *stream;

	pthread_mutex_lock(&lock);
	stream = stream_known(handle);
	if (stream) {
		order_count(stream->pool, stream, true);
		obs_device_tail_drop(stream);
	}
	pthread_mutex_unlock(&lock);
}

void obs_device_stream_ends(CUstream handle)
{
	struct obs_device_stream *stream;

	pthread_mutex_lock(&lock);
	stream = stream_known(handle);
	if (stream && stream != &stream->pool->legacy) {
		/* Most programs have waited for it. */
		obs_device_stream_collect(
			stream, obs_device_stream_idle(stream), UINT32_MAX, ob_clock_ns());
		obs_device_tail_drop(stream);
		stream->gone = true;
		obs_device_stream_tidy(stream);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- for the operations ---- */

void obs_device_switch(bool now_on)
{
	pthread_mutex_lock(&lock);
	on = now_on;
	for (uint32_t i = 0; i < OBS_DEVICE_CONTEXTS; i++)
		if (obs_device_pool_at(i)->context)
			obs_device_pool_reset(obs_device_pool_at(i));
	pthread_mutex_unlock(&lock);
}

/* The pool's context is current. */
static void pool_collect(struct obs_device_pool *pool)
{
	pthread_mutex_lock(&lock);
	clock_renew(pool, ob_clock_ns());
	obs_device_pool_collect(pool, ob_clock_ns());
	pthread_mutex_unlock(&lock);
}

void obs_device_collect(struct obs_exec *x)
{
	for (uint32_t i = 0; i < OBS_DEVICE_CONTEXTS; i++) {
		struct obs_device_pool *pool = obs_device_pool_at(i);
		struct obs_context *context;

		/* It cannot go meanwhile: only the executor ends contexts. */
		pthread_mutex_lock(&lock);
		context = pool->context;
		pthread_mutex_unlock(&lock);
		if (context && obs_context_enter(x, context) == CUDA_SUCCESS)
			pool_collect(pool);
	}
}

void obs_device_forget(struct obs_exec *x, struct obs_context *context)
{
	struct obs_device_pool *pool;
	bool measures;

	pthread_mutex_lock(&lock);
	pool = obs_device_pool_find(context);
	measures = on;
	pthread_mutex_unlock(&lock);
	if (!pool)
		return;
	if (measures && obs_context_enter(x, context) == CUDA_SUCCESS)
		pool_collect(pool);
	pthread_mutex_lock(&lock);
	obs_device_pool_reset(pool);
	for (uint32_t i = 0; i < pool->made; i++)
		obs_device_driver()->cuEventDestroy_v2(pool->marks[i].event);
	obs_device_clock_fini(&pool->clock, obs_device_driver());
	pool->context = NULL;
	pthread_mutex_unlock(&lock);
}
