/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/device_times.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/check.h"
#include "base/clock.h"
#include "protocol/obs_driver.h"
#include "server/worker/context.h"
#include "server/worker/device_clock.h"
#include "server/worker/timeline.h"

#define PASSING 4u /* works looked at when another one begins */

struct obs_device_pool;

/* Used as the end of a work, as the start of the next one, as the stream's tail: counted in uses. */
struct obs_device_mark {
	CUevent event;
	struct obs_device_mark *next; /* free, or the stream's next work */
	unsigned uses;
	uint64_t at;    /* ns, server's clock; 0: not known yet */
	unsigned clock; /* count of the anchor by which it is known */
	bool far;
	/* of the work that ends here */
	struct obs_device_mark *start;
	uint64_t number, began;
	uint32_t works;
	uint16_t opcode;
};

struct obs_device_stream {
	struct obs_device_pool *pool; /* NULL: free */
	CUstream handle;
	uint32_t number;
	bool gone; /* destroyed; some of its works are not complete */
	bool open; /* a work is between begin and end */
	/* works that are not reported, oldest first */
	struct obs_device_mark *first, *newest;
	struct obs_device_mark *tail; /* the next work may begin here; NULL: it may not */
	/* pool's count of works that this stream waits for, when its last work began */
	uint64_t others;
	uint64_t ended; /* ns, of the last reported work */
};

/* What a context has. Never moves; a free one has no context. */
struct obs_device_pool {
	struct obs_context *context;
	_Atomic uint64_t turn; /* works that began in an earlier turn are forgotten */
	struct obs_device_clock clock;
	bool renewing;
	struct obs_device_mark marks[OBS_DEVICE_MARKS], *free;
	uint32_t made;
	struct obs_device_stream legacy;
	uint64_t legacy_works, stream_works;
	uint32_t look; /* the stream looked at next when no mark is free */
};

/* Untouched memory of a program takes no room. */
static struct obs_device_pool pools[OBS_DEVICE_CONTEXTS];
static struct obs_device_stream streams[OBS_DEVICE_STREAMS];
static uint32_t n_streams; /* entries ever used */
static bool on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of these */
static _Thread_local const struct obs_exec *this_exec;

void obs_device_thread(const struct obs_exec *x)
{
	this_exec = x;
}

/* The driver without this file's calls around it. */
static const struct obs_driver *driver(void)
{
	return &this_exec->session->lib.table;
}

/* ---- marks ---- */

static struct obs_device_mark *mark_take(struct obs_device_pool *pool)
{
	struct obs_device_mark *mark = pool->free;

	if (mark) {
		pool->free = mark->next;
	} else {
		if (pool->made == OBS_DEVICE_MARKS)
			return NULL;
		mark = &pool->marks[pool->made];
		if (driver()->cuEventCreate(&mark->event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
			return NULL;
		pool->made++;
	}
	*mark = (struct obs_device_mark){ .event = mark->event, .uses = 1 };
	return mark;
}

static void mark_drop(struct obs_device_pool *pool, struct obs_device_mark *mark)
{
	if (!mark || --mark->uses)
		return;
	mark->next = pool->free;
	pool->free = mark;
}

static void tail_drop(struct obs_device_stream *stream)
{
	mark_drop(stream->pool, stream->tail);
	stream->tail = NULL;
}

static bool mark_time(struct obs_device_pool *pool, struct obs_device_mark *mark)
{
	if (mark->at)
		return true;
	mark->clock = pool->clock.count;
	return obs_device_clock_time(&pool->clock, driver(), mark->event, &mark->at, &mark->far);
}

/* ---- reporting ---- */

/* The oldest work leaves the list. */
static void work_remove(struct obs_device_stream *stream)
{
	struct obs_device_mark *work = stream->first;

	stream->first = work->next;
	if (!stream->first)
		stream->newest = NULL;
	mark_drop(stream->pool, work->start);
	mark_drop(stream->pool, work);
}

static bool work_took(const struct obs_device_mark *work, uint64_t *ret_ns)
{
	const struct obs_device_mark *start = work->start;
	float ms;

	*ret_ns = work->at > start->at ? work->at - start->at : 0;
	if (!start->far && !work->far && start->clock == work->clock)
		return true;
	if (driver()->cuEventElapsedTime_v2(&ms, start->event, work->event) != CUDA_SUCCESS ||
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
	/* The anchor is a little wrong: no work began before it was submitted or is not over yet. */
	took = ob_min(took, now - least);
	at = ob_min(ob_max(work->start->at, least), now - took);
	stream->ended = at + took;
	obs_timeline_add(&(struct obp_timeline_event){ .number = work->number,
		.at_ns = at,
		.took_ns = took,
		.more = obp_timeline_stream(context->device,
			(uint32_t)(context - this_exec->session->contexts), stream->number),
		.what = obp_timeline_what(OBP_TIMELINE_DEVICE, 0, work->opcode, work->works) });
}

/* Frees the entry of a destroyed stream once all of its works are reported. */
static void stream_tidy(struct obs_device_stream *stream)
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
	tail_drop(stream);
}

/* Reports works that are complete, at most `max`. all: it is known that all of them are. */
static void stream_collect(struct obs_device_stream *stream, bool all, uint32_t max, uint64_t now)
{
	for (; stream->first && !stream->open && max; max--) {
		CUresult result = all ? CUDA_SUCCESS : driver()->cuEventQuery(stream->first->event);

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

/* ---- contexts and streams ---- */

static struct obs_device_pool *pool_find(const struct obs_context *context)
{
	for (uint32_t i = 0; i < OBS_DEVICE_CONTEXTS; i++)
		if (pools[i].context == context)
			return &pools[i];
	return NULL;
}

/* The current context's. NULL: too many contexts, or the driver cannot. */
static struct obs_device_pool *pool_get(void)
{
	struct obs_device_pool *pool = pool_find(this_exec->context);

	if (pool)
		return pool;
	pool = pool_find(NULL);
	if (!pool || !obs_device_clock_init(&pool->clock, driver()))
		return NULL;
	pool->context = this_exec->context;
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
static void pool_reset(struct obs_device_pool *pool)
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

static struct obs_device_stream *stream_find(struct obs_device_pool *pool, CUstream handle)
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
			stream_collect(&streams[i], false, PASSING, ob_clock_ns());
			stream_tidy(&streams[i]);
		}
}

/* NULL: too many streams. */
static struct obs_device_stream *stream_get(struct obs_device_pool *pool, CUstream handle)
{
	struct obs_device_stream *stream = stream_find(pool, handle);
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

/* Counts work of this stream; returns the works so far of those it waits for. */
static uint64_t order_count(
	struct obs_device_pool *pool, const struct obs_device_stream *stream, bool works)
{
	bool legacy = stream == &pool->legacy;

	*(legacy ? &pool->legacy_works : &pool->stream_works) += works;
	return legacy ? pool->stream_works : pool->legacy_works;
}

/* Without a free mark: looks at another stream's works. */
static void pool_look(struct obs_device_pool *pool, uint64_t now)
{
	uint32_t i = pool->look++ % (n_streams + 1);

	if (i == n_streams)
		stream_collect(&pool->legacy, false, PASSING, now);
	else if (streams[i].pool == pool)
		stream_collect(&streams[i], false, PASSING, now);
	if (i < n_streams && streams[i].pool)
		stream_tidy(&streams[i]);
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
	taken = obs_device_clock_take(&pool->clock, driver());
	pthread_mutex_lock(&lock);
	pool->renewing = false;
	obs_device_clock_settle(&pool->clock, driver(), taken);
}

/* An event recorded in it would become a part of the graph. */
static bool is_capturing(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult result = driver()->cuStreamIsCapturing(stream, &status);

	return (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED) ||
		status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Whether all earlier works of the stream are complete. */
static bool stream_idle(struct obs_device_stream *stream)
{
	CUresult result =
		stream->newest ? driver()->cuEventQuery(stream->newest->event) : CUDA_SUCCESS;

	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		stream_abandon(stream);
	return result != CUDA_ERROR_NOT_READY;
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
	bool like = follows && newest == stream->tail && newest->opcode == this_exec->opcode &&
		newest->works < UINT32_MAX;

	if (like && newest->number == this_exec->call)
		return work_join(work);
	work->end = mark_take(stream->pool);
	if (!work->end)
		return like && work_join(work);
	if (follows) {
		work->start = stream->tail;
		work->start->uses++;
		return true;
	}
	work->start = mark_take(stream->pool);
	work->fresh = true;
	if (!work->start)
		mark_drop(stream->pool, work->end);
	return work->start;
}

/* Under the lock. False: not measured. */
static bool work_open(struct obs_device_work *work, struct obs_device_stream *stream)
{
	struct obs_device_pool *pool = stream->pool;
	bool idle = stream_idle(stream), follows;
	uint64_t others = order_count(pool, stream, true);

	work->began = ob_clock_ns();
	stream_collect(stream, idle, PASSING, work->began);
	follows = stream->tail && !idle && stream->others == others;
	stream->others = others;
	if (!follows)
		tail_drop(stream);
	work->stream = stream;
	work->pool = pool;
	work->turn = pool->turn;
	stream->open = work_marks(work, follows);
	if (!stream->open)
		tail_drop(stream);
	if (!stream->open || work->again)
		pool_look(pool, work->began);
	return stream->open;
}

void obs_device_begin(struct obs_device_work *work, CUstream handle)
{
	struct obs_device_stream *stream = NULL;
	struct obs_device_pool *pool = NULL;
	bool opened = false;

	*work = (struct obs_device_work){ .stream = NULL };
	if (!this_exec || !this_exec->context || is_capturing(handle))
		return;
	pthread_mutex_lock(&lock);
	if (on)
		pool = pool_get();
	if (pool) {
		clock_renew(pool, ob_clock_ns());
		stream = stream_get(pool, handle);
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
		work->failed = driver()->cuEventRecord(work->start->event, handle) != CUDA_SUCCESS;
}

/* Under the lock: the work is in the stream, and so is its mark. */
static void work_add(struct obs_device_work *work)
{
	struct obs_device_stream *stream = work->stream;
	struct obs_device_mark *mark = work->end;

	mark->start = work->start;
	mark->number = this_exec->call;
	mark->opcode = this_exec->opcode;
	mark->began = work->began;
	mark->works = 1;
	*(stream->newest ? &stream->newest->next : &stream->first) = mark;
	stream->newest = mark;
	tail_drop(stream);
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
		driver()->cuEventRecord(work->end->event, stream->handle) == CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (work->pool->turn == work->turn) {
		stream->open = false;
		if (marked && work->again) {
			work->end->works++;
		} else if (marked) {
			work_add(work);
		} else {
			tail_drop(stream);
			if (!work->again) {
				mark_drop(work->pool, work->start);
				mark_drop(work->pool, work->end);
			}
			obs_timeline_lose(result == CUDA_SUCCESS);
		}
		stream_tidy(stream);
	}
	pthread_mutex_unlock(&lock);
}

static struct obs_device_stream *stream_known(CUstream handle)
{
	struct obs_device_pool *pool =
		this_exec && this_exec->context ? pool_find(this_exec->context) : NULL;

	return pool ? stream_find(pool, handle) : NULL;
}

void obs_device_interrupted(CUstream handle)
{
	struct obs_device_stream *stream;

	pthread_mutex_lock(&lock);
	stream = stream_known(handle);
	if (stream) {
		order_count(stream->pool, stream, true);
		tail_drop(stream);
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
		stream_collect(stream, stream_idle(stream), UINT32_MAX, ob_clock_ns());
		tail_drop(stream);
		stream->gone = true;
		stream_tidy(stream);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- for the operations ---- */

void obs_device_switch(bool now_on)
{
	pthread_mutex_lock(&lock);
	on = now_on;
	for (uint32_t i = 0; i < OBS_DEVICE_CONTEXTS; i++)
		if (pools[i].context)
			pool_reset(&pools[i]);
	pthread_mutex_unlock(&lock);
}

/* The pool's context is current. */
static void pool_collect(struct obs_device_pool *pool)
{
	uint64_t now;

	pthread_mutex_lock(&lock);
	clock_renew(pool, ob_clock_ns());
	now = ob_clock_ns();
	stream_collect(&pool->legacy, false, UINT32_MAX, now);
	for (uint32_t i = 0; i < n_streams; i++)
		if (streams[i].pool == pool) {
			stream_collect(&streams[i], false, UINT32_MAX, now);
			stream_tidy(&streams[i]);
		}
	pthread_mutex_unlock(&lock);
}

void obs_device_collect(struct obs_exec *x)
{
	for (uint32_t i = 0; i < OBS_DEVICE_CONTEXTS; i++) {
		struct obs_context *context;

		/* It cannot go meanwhile: only the executor ends contexts. */
		pthread_mutex_lock(&lock);
		context = pools[i].context;
		pthread_mutex_unlock(&lock);
		if (context && obs_context_enter(x, context) == CUDA_SUCCESS)
			pool_collect(&pools[i]);
	}
}

void obs_device_forget(struct obs_exec *x, struct obs_context *context)
{
	struct obs_device_pool *pool;
	bool measures;

	pthread_mutex_lock(&lock);
	pool = pool_find(context);
	measures = on;
	pthread_mutex_unlock(&lock);
	if (!pool)
		return;
	if (measures && obs_context_enter(x, context) == CUDA_SUCCESS)
		pool_collect(pool);
	pthread_mutex_lock(&lock);
	pool_reset(pool);
	for (uint32_t i = 0; i < pool->made; i++)
		driver()->cuEventDestroy_v2(pool->marks[i].event);
	obs_device_clock_fini(&pool->clock, driver());
	pool->context = NULL;
	pthread_mutex_unlock(&lock);
}
