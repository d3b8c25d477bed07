/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/event.h"

#include <pthread.h>
#include <string.h>

#include "base/opt.h"
#include "client-shim/session/log.h"
#include "client-shim/cuda/stream.h"
#include "client-shim/cuda/watch.h"
#include "protocol/obc_calls.h"

struct obc_event {
	struct obf_event base;
	struct obc_point at;       /* point of the last recording, whose number is in `recorded` */
	_Atomic uint64_t recorded; /* number of the last recording, written after `at` */
	_Atomic uint64_t done;     /* recordings up to this number are complete */
	/*
	 * The last elapsed time that was measured with this event as the end. Under elapsed_lock.
	 */
	uint64_t elapsed_start, elapsed_start_recorded, elapsed_recorded;
	float elapsed_ms;
	struct obc_watch watch;
};

const size_t obc_event_size = sizeof(struct obc_event);

static pthread_mutex_t elapsed_lock = PTHREAD_MUTEX_INITIALIZER;
/*
 * Above 0: the program asks for elapsed times, so a wait for an event also fetches the time since
 * the recording before it in the same stream. Each question adds to it, each fetched time takes
 * from it. Only compared, and updated without a lock.
 */
static _Atomic int elapsed_wanted;
#define ELAPSED_ASKED 2
#define ELAPSED_MAX   16

static struct obc_event *event_of(struct obf_event *event)
{
	return (struct obc_event *)event;
}

/* Acquire: a thread that sees the number also sees the point. */
static uint64_t recorded_at(const struct obc_event *event)
{
	return atomic_load_explicit(&event->recorded, memory_order_acquire);
}

/* Other processes may record it: only the server knows its state. */
static bool is_shared(const struct obc_event *event)
{
	return ob_unlikely(event->base.flags & CU_EVENT_INTERPROCESS);
}

/*
 * A call for a shared event takes effect before it returns, because the program may tell another
 * process about it then.
 */
static CUresult shared_settle(CUresult result)
{
	return result == CUDA_SUCCESS ? obc_call_op_share_settle() : result;
}

/* Whether recording `recorded` is known to be complete. */
static bool event_complete(const struct obc_event *event, uint64_t recorded)
{
	struct obc_point at = event->at;

	if (!ob_opt_on(OB_OPT_LOCAL) || is_shared(event))
		return false;
	at.number = recorded;
	return recorded <= obc_read(&event->done) || obc_point_passed(&at);
}

/*
 * The server has reported that the recording is complete, so all earlier work of its stream is
 * complete.
 */
static void event_completed(struct obc_event *event, uint64_t recorded)
{
	struct obc_point at = event->at;

	at.number = recorded;
	obc_raise(&event->done, recorded);
	obc_point_arrived(&at);
}

CUresult obc_event_open(struct obf_event *event)
{
	return obc_call_op_event_create(event->handle, event->flags);
}

CUresult obc_event_close(struct obf_event *event, bool ctx_ended)
{
	obc_watch_end(&event_of(event)->watch);
	/* On the server the events of a context are destroyed with it. */
	return ctx_ended ? CUDA_SUCCESS : obc_call_op_event_destroy(event->handle);
}

/* Notes a recording that elapsed times can be measured with. */
static void note_recording(
	struct obc_stream *stream, const struct obf_event *event, uint64_t number)
{
	struct obc_recording *newer = &stream->recordings[0], *older = &stream->recordings[1];

	if (event->flags & CU_EVENT_DISABLE_TIMING)
		return;
	if (obc_read(&newer->event) != event->handle) {
		atomic_store_explicit(&older->event, obc_read(&newer->event), memory_order_relaxed);
		atomic_store_explicit(
			&older->number, obc_read(&newer->number), memory_order_relaxed);
		atomic_store_explicit(&newer->event, event->handle, memory_order_relaxed);
	}
	atomic_store_explicit(&newer->number, number, memory_order_relaxed);
}

CUresult obc_event_record(struct obf_event *base, struct obf_stream *stream_base)
{
	struct obc_stream *stream = obc_stream_of(stream_base);
	struct obc_event *event = event_of(base);
	struct obp_event_record_req *req;
	struct obc_slot slot;
	CUresult result;

	req = obc_log_begin(&slot, OBP_OP_EVENT_RECORD, sizeof *req);
	if (!req)
		return obc_log_error();
	memset(req, 0, sizeof *req);
	req->event = base->handle;
	req->stream = stream_base->handle;
	event->at = obc_point_at(stream, slot.number);
	obc_stream_mark(stream, slot.number);
	note_recording(stream, base, slot.number);
	/* Release: see recorded_at. */
	atomic_store_explicit(&event->recorded, slot.number, memory_order_release);
	result = obc_log_commit(&slot);
	if (is_shared(event))
		return shared_settle(result);
	if (ob_unlikely(obc_watch_pays(&event->watch)) && result == CUDA_SUCCESS)
		obc_watch_begin(&event->watch, OBP_OP_EVENT_WATCH, base->handle, slot.number);
	return result;
}

/* Whether the recording is known to be complete, also from what the server has said since. */
static bool event_heard(struct obc_event *event, uint64_t recorded, CUresult *ret)
{
	uint64_t before;

	*ret = CUDA_SUCCESS;
	if (event_complete(event, recorded))
		return true;
	if (!obc_watch_look(&event->watch, recorded, ret, &before))
		return false;
	if (*ret == CUDA_SUCCESS)
		event_completed(event, recorded);
	return true;
}

/* Query and wait differ only in the operation. */
static CUresult event_ask(struct obc_event *event, uint64_t recorded, uint16_t opcode)
{
	struct obp_event_query_req *req;
	struct obc_slot slot;
	CUresult result;

	_Static_assert(
		sizeof(struct obp_event_query_req) == sizeof(struct obp_event_synchronize_req),
		"both records name an event");
	req = obc_log_begin(&slot, opcode, sizeof *req);
	if (!req)
		return obc_log_error();
	req->event = event->base.handle;
	result = obc_log_call(&slot, NULL, 0, NULL);
	if (result == CUDA_SUCCESS)
		event_completed(event, recorded);
	return result;
}

CUresult obc_event_query(struct obf_event *base)
{
	struct obc_event *event = event_of(base);
	uint64_t recorded = recorded_at(event);
	CUresult result;

	if (is_shared(event))
		return obc_call_op_event_query(base->handle);
	if (event_complete(event, recorded))
		return CUDA_SUCCESS;
	obc_watch_polled(&event->watch);
	if (event_heard(event, recorded, &result))
		return result;
	result = event_ask(event, recorded, OBP_OP_EVENT_QUERY);
	if (result == CUDA_ERROR_NOT_READY)
		obc_watch_begin(&event->watch, OBP_OP_EVENT_WATCH, base->handle, recorded);
	return result;
}

static void elapsed_keep(
	struct obc_event *end, uint64_t to, uint64_t start, uint64_t from, float ms)
{
	pthread_mutex_lock(&elapsed_lock);
	end->elapsed_start = start;
	end->elapsed_start_recorded = from;
	end->elapsed_recorded = to;
	end->elapsed_ms = ms;
	pthread_mutex_unlock(&elapsed_lock);
}

static void elapsed_count(int n)
{
	int now = atomic_load_explicit(&elapsed_wanted, memory_order_relaxed) + n;

	atomic_store_explicit(
		&elapsed_wanted, ob_min(ob_max(now, 0), ELAPSED_MAX), memory_order_relaxed);
}

/*
 * The recording whose distance from this one the program will probably ask for. The fields are read
 * before the record is begun, so they are not newer than what the server measures.
 */
static bool elapsed_start(
	const struct obc_event *event, uint64_t recorded, uint64_t *ret_start, uint64_t *ret_from)
{
	const struct obc_stream *stream = event->at.stream;

	if (atomic_load_explicit(&elapsed_wanted, memory_order_relaxed) <= 0 ||
		!ob_opt_on(OB_OPT_LOCAL) || obc_lines_known < OBP_LINE_event_synchronize_since ||
		obc_read(&stream->recordings[0].number) != recorded)
		return false;
	*ret_from = obc_read(&stream->recordings[1].number);
	*ret_start = obc_read(&stream->recordings[1].event);
	return *ret_start != 0;
}

/* Waits, and fetches the time since another recording in the same round trip. */
static CUresult wait_since(
	struct obc_event *event, uint64_t recorded, uint64_t start, uint64_t from)
{
	uint32_t timed = 0;
	float ms = 0;
	CUresult result =
		obc_call_op_event_synchronize_since(event->base.handle, start, &timed, &ms);

	elapsed_count(-1);
	if (result != CUDA_SUCCESS)
		return result;
	event_completed(event, recorded);
	if (timed)
		elapsed_keep(event, recorded, start, from, ms);
	return CUDA_SUCCESS;
}

CUresult obc_event_wait(struct obf_event *base)
{
	struct obc_event *event = event_of(base);
	uint64_t recorded = recorded_at(event), start, from;
	CUresult result;

	if (is_shared(event))
		return obc_call_op_event_synchronize(base->handle);
	if (event_heard(event, recorded, &result) && result != CUDA_ERROR_NOT_READY)
		return result;
	return elapsed_start(event, recorded, &start, &from)
		? wait_since(event, recorded, start, from)
		: event_ask(event, recorded, OBP_OP_EVENT_SYNCHRONIZE);
}

CUresult obc_stream_wait_event(struct obf_stream *stream, struct obf_event *event)
{
	struct obp_stream_wait_req *req;
	struct obc_slot slot;
	CUresult result;

	if (event_complete(event_of(event), recorded_at(event_of(event))))
		return CUDA_SUCCESS;
	req = obc_log_begin(&slot, OBP_OP_STREAM_WAIT, sizeof *req);
	if (!req)
		return obc_log_error();
	memset(req, 0, sizeof *req);
	req->stream = stream->handle;
	req->event = event->handle;
	obc_stream_mark(obc_stream_of(stream), slot.number);
	result = obc_log_commit(&slot);
	return is_shared(event_of(event)) ? shared_settle(result) : result;
}

/* Whether this pair of recordings has been measured before. */
static bool elapsed_known(const struct obc_event *start, uint64_t from, const struct obc_event *end,
	uint64_t to, float *ret)
{
	bool known;

	pthread_mutex_lock(&elapsed_lock);
	known = end->elapsed_start == start->base.handle && end->elapsed_start_recorded == from &&
		end->elapsed_recorded == to;
	if (known)
		*ret = end->elapsed_ms;
	pthread_mutex_unlock(&elapsed_lock);
	return known;
}

CUresult obc_event_elapsed(struct obf_event *start_base, struct obf_event *end_base, float *ret)
{
	struct obc_event *start = event_of(start_base), *end = event_of(end_base);
	uint64_t from = recorded_at(start), to = recorded_at(end);
	CUresult result;
	float ms = 0;

	elapsed_count(ELAPSED_ASKED);
	if (ob_opt_on(OB_OPT_LOCAL) && elapsed_known(start, from, end, to, ret))
		return CUDA_SUCCESS;
	result = obc_call_op_event_elapsed(start_base->handle, end_base->handle, &ms);
	if (result != CUDA_SUCCESS)
		return result;
	event_completed(start, from);
	event_completed(end, to);
	elapsed_keep(end, to, start_base->handle, from, ms);
	*ret = ms;
	return CUDA_SUCCESS;
}
