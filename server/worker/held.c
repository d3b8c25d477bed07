/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/obp_calls.h"
#include "server/layers/hold.h"
#include "server/worker/context.h"
#include "server/worker/end.h"

struct obs_held_record {
	struct obs_held_record *next;
	uint64_t call;
	struct obp_record record;
	uint32_t size;
	/*
	 * Held back behind a record that all later ones depend on: the lane's context is not known
	 * yet, because a ctx_use may be held back as well.
	 */
	bool late;
	struct obs_lane lane; /* stands for the lane, which may end or change its context */
	_Alignas(8) uint8_t body[];
};

_Static_assert(sizeof(struct obs_held_record) <= OBS_HELD_ENTRY, "as much as is counted");

/* What a record depends on, and what depends on it. */
enum kind {
	ALWAYS,     /* never waits: the end, and what is not about the device */
	NOTHING,    /* no stream, no event; makes only new things */
	STREAM,     /* work in a stream */
	STREAM_ASK, /* waits for a stream or asks for its state */
	CONTEXT_ASK,
	RECORD,    /* records an event in a stream */
	WAIT,      /* makes a stream wait for an event */
	EVENT_ASK, /* one or two events */
	EVENT_END,
	STREAM_NEW,
	EVENT_NEW,
	COPY, /* opens a copy in a stream */
	PART,
	EVERYTHING
};

struct touch {
	enum kind kind;
	uint64_t stream, event, other; /* ids; 0: none, for a stream the legacy one */
};

void obs_held_init(struct obs_session *session)
{
	session->held.last = &session->held.first;
	session->held.bytes_max = OBS_HELD_MAX + OBS_HELD_SPARE;
}

void obs_held_settle(struct obs_session *session, uint64_t client_ring)
{
	if (client_ring)
		session->held.bytes_max =
			ob_min(client_ring, (uint64_t)OBS_HELD_MAX) + OBS_HELD_SPARE;
}

/* ---- what a record depends on ---- */

#define BODY(name) ((const struct obp_##name##_req *)body)

static struct touch of_stream(enum kind kind, uint64_t stream)
{
	return (struct touch){ .kind = kind, .stream = stream };
}

static struct touch of_events(enum kind kind, uint64_t event, uint64_t other)
{
	return (struct touch){ .kind = kind, .event = event, .other = other };
}

/* Records that name a stream, and those of unknown kinds. */
static struct touch touch_of_stream(uint16_t opcode, const void *body)
{
	switch (opcode) {
	case OBP_OP_STREAM_CREATE:
		return of_stream(STREAM_NEW, BODY(stream_create)->stream);
	case OBP_OP_GREEN_STREAM:
		return of_stream(STREAM_NEW, BODY(green_stream)->stream);
	case OBP_OP_GRAPH_LAUNCH:
		return of_stream(STREAM, BODY(graph_launch)->stream);
	case OBP_OP_LAUNCH:
		return of_stream(STREAM, BODY(launch)->stream);
	case OBP_OP_LAUNCH_CHANGED:
		return of_stream(STREAM, BODY(launch_changed)->stream);
	case OBP_OP_MEMSET:
		return of_stream(STREAM, BODY(memset)->stream);
	case OBP_OP_WRITE:
		return of_stream(STREAM, BODY(write)->stream);
	case OBP_OP_WRITE_ROWS:
		return of_stream(STREAM, BODY(write_rows)->stream);
	case OBP_OP_WRITE_KEPT:
		return of_stream(STREAM, BODY(write_kept)->stream);
	case OBP_OP_READ:
		return of_stream(STREAM, BODY(read)->stream);
	case OBP_OP_READ_ROWS:
		return of_stream(STREAM, BODY(read_rows)->stream);
	case OBP_OP_ARRAY_WRITE:
		return of_stream(STREAM, BODY(array_write)->stream);
	case OBP_OP_ARRAY_READ:
		return of_stream(STREAM, BODY(array_read)->stream);
	case OBP_OP_COPY_D2D:
		/* Between contexts the driver also orders it with the other context's work. */
		if (BODY(copy_d2d)->dst_ctx != BODY(copy_d2d)->src_ctx)
			return (struct touch){ .kind = EVERYTHING };
		return of_stream(STREAM, BODY(copy_d2d)->stream);
	case OBP_OP_HOST_FUNC:
		return of_stream(STREAM, BODY(host_func)->stream);
	case OBP_OP_STREAM_DESTROY:
		return of_stream(STREAM, BODY(stream_destroy)->stream);
	case OBP_OP_STREAM_SYNCHRONIZE:
		return of_stream(STREAM_ASK, BODY(stream_synchronize)->stream);
	case OBP_OP_STREAM_QUERY:
		return of_stream(STREAM_ASK, BODY(stream_query)->stream);
	case OBP_OP_STREAM_WATCH:
		return of_stream(STREAM_ASK, BODY(stream_watch)->stream);
	case OBP_OP_UPLOAD_BEGIN:
		return of_stream(COPY, BODY(upload_begin)->stream);
	case OBP_OP_READ_LATER:
		return of_stream(COPY, BODY(read_later)->stream);
	default:
		return (struct touch){ .kind = EVERYTHING };
	}
}

/* Records that name events; the others as touch_of_stream. */
static struct touch touch_of_event(uint16_t opcode, const void *body)
{
	switch (opcode) {
	case OBP_OP_EVENT_CREATE:
		return of_events(EVENT_NEW, BODY(event_create)->event, 0);
	case OBP_OP_EVENT_RECORD:
		return (struct touch){ RECORD, BODY(event_record)->stream,
			BODY(event_record)->event, 0 };
	case OBP_OP_STREAM_WAIT:
		return (struct touch){ WAIT, BODY(stream_wait)->stream, BODY(stream_wait)->event,
			0 };
	case OBP_OP_EVENT_SYNCHRONIZE:
		return of_events(EVENT_ASK, BODY(event_synchronize)->event, 0);
	case OBP_OP_EVENT_QUERY:
		return of_events(EVENT_ASK, BODY(event_query)->event, 0);
	case OBP_OP_EVENT_WATCH:
		return of_events(EVENT_ASK, BODY(event_watch)->event, 0);
	case OBP_OP_EVENT_ELAPSED:
		return of_events(EVENT_ASK, BODY(event_elapsed)->start, BODY(event_elapsed)->end);
	case OBP_OP_EVENT_SYNCHRONIZE_SINCE:
		return of_events(EVENT_ASK, BODY(event_synchronize_since)->event,
			BODY(event_synchronize_since)->start);
	case OBP_OP_EVENT_DESTROY:
		return of_events(EVENT_END, BODY(event_destroy)->event, 0);
	default:
		return touch_of_stream(opcode, body);
	}
}

static struct touch touch_of(uint16_t opcode, const void *body)
{
	switch (opcode) {
	case OBP_OP_PING:
	case OBP_OP_BYE:
	case OBP_OP_BYE_LINK:
	case OBP_OP_TIMES_SWITCH:
	case OBP_OP_TIMES_READ:
	case OBP_OP_TIMELINE_SWITCH:
	case OBP_OP_TIMELINE_READ:
	case OBP_OP_HELD_BYTES:
		return (struct touch){ .kind = ALWAYS };
	case OBP_OP_CTX_USE:
	case OBP_OP_LANE_END:
	case OBP_OP_MEM_INFO:
	case OBP_OP_MEM_ALLOC:
	case OBP_OP_MEM_GROW:
	case OBP_OP_MEM_ALLOC_PLAIN:
	case OBP_OP_MEM_SLAB:
	case OBP_OP_CACHE_ASK:
	case OBP_OP_MODULE_LOAD:
	case OBP_OP_MODULE_LOAD_CHECKED:
	case OBP_OP_MODULE_LOAD_NOW:
	case OBP_OP_IMAGE_QUERY:
	case OBP_OP_IMAGE_PUT:
	case OBP_OP_MODULE_USE:
	case OBP_OP_FUNC_GET:
	case OBP_OP_FUNC_ATTRS:
	case OBP_OP_FUNC_LOAD:
	case OBP_OP_GLOBAL_GET:
		return (struct touch){ .kind = NOTHING };
	case OBP_OP_CTX_SYNCHRONIZE:
		return (struct touch){ .kind = CONTEXT_ASK };
	case OBP_OP_UPLOAD_PART:
		return (struct touch){ PART, BODY(upload_part)->upload, 0, 0 };
	default:
		return touch_of_event(opcode, body);
	}
}

/*
 * A thread that is refused has no context whose legacy stream could be marked. Its launch fails, but
 * its changes of parameters must not come before those of launches that are held back.
 */
static struct touch touch_in(const struct obs_lane *lane, uint16_t opcode, const void *body)
{
	if (ob_unlikely(opcode == OBP_OP_LAUNCH_CHANGED && lane->refused))
		return (struct touch){ .kind = EVERYTHING };
	return touch_of(opcode, body);
}

/* ---- marks ---- */

/*
 * In the upper half of a handle's `extra`: the epoch, and below it one bit. A stream is marked when
 * a record for it, or an open copy, waits. An event is marked when a record that is held back names
 * it, with the bit if that record records it.
 */
#define MARK_SHIFT 32
#define EPOCH_MAX  0x7fffffffu

static void handle_mark(const struct obs_held *held, struct obs_handle *handle, bool bit)
{
	uint64_t mark = (uint64_t)held->epoch << 1 | bit;

	if (handle->extra >> (MARK_SHIFT + 1) == held->epoch)
		mark |= handle->extra >> MARK_SHIFT & 1;
	handle->extra = (uint32_t)handle->extra | mark << MARK_SHIFT;
}

static bool handle_marked(const struct obs_held *held, const struct obs_handle *handle, bool bit)
{
	uint64_t mark = handle->extra >> MARK_SHIFT;

	return mark >> 1 == held->epoch && (!bit || mark & 1);
}

static void marks_clear(struct obs_session *session)
{
	struct obs_held *held = &session->held;

	held->epoch = held->epoch < EPOCH_MAX ? held->epoch + 1 : 1;
	held->all = false;
	for (uint32_t i = 0; i < session->n_contexts; i++)
		session->contexts[i].legacy_held = session->contexts[i].blocking_held =
			session->contexts[i].any_held = false;
}

static void stream_mark(struct obs_session *session, struct obs_context *context, uint64_t id)
{
	struct obs_handle *stream;

	if (id <= 1) {
		if (context)
			context->legacy_held = context->any_held = true;
		return;
	}
	stream = obs_handles_find(&session->streams, id);
	if (!stream)
		return; /* held back itself: see stream_waits */
	handle_mark(&session->held, stream, true);
	if (!stream->context)
		return;
	stream->context->any_held = true;
	if (!(stream->extra & OBS_STREAM_APART))
		stream->context->blocking_held = true;
}

/* A stream or event that does not exist is made by a record that is held back. */
static bool stream_waits(
	struct obs_session *session, const struct obs_context *context, uint64_t id)
{
	const struct obs_handle *stream;

	if (id <= 1)
		return context && (context->legacy_held || context->blocking_held);
	stream = obs_handles_find(&session->streams, id);
	return !stream || handle_marked(&session->held, stream, true) ||
		(!(stream->extra & OBS_STREAM_APART) && stream->context &&
			stream->context->legacy_held);
}

/* recorded: only if a record that is held back records it. */
static bool event_waits(struct obs_session *session, uint64_t id, bool recorded)
{
	const struct obs_handle *event = obs_handles_find(&session->events, id);

	return !event || handle_marked(&session->held, event, recorded);
}

static void event_mark(struct obs_session *session, uint64_t id, bool recorded)
{
	struct obs_handle *event = id ? obs_handles_find(&session->events, id) : NULL;

	if (event)
		handle_mark(&session->held, event, recorded);
}

/* ---- open copies ---- */

struct obs_open *obs_open_begin(
	struct obs_exec *x, uint64_t upload, uint64_t stream, CUstream driver, CUresult refused)
{
	struct obs_held *held = &x->session->held;
	struct obs_open *open = held->open;

	while (open->used)
		open++; /* there is a free one, see waits */
	if (!held->busy)
		marks_clear(x->session);
	open->used = true;
	open->upload = upload;
	open->stream = stream;
	open->driver = driver;
	open->refused = refused;
	open->context = x->context;
	atomic_store_explicit(&open->over, false, memory_order_relaxed);
	held->n_open++;
	held->busy++;
	stream_mark(x->session, x->context, stream);
	return open;
}

struct obs_open *obs_open_upload(struct obs_session *session, uint64_t upload)
{
	struct obs_held *held = &session->held;

	for (uint32_t i = 0; held->n_open && upload && i < OBS_OPEN_MAX; i++)
		if (held->open[i].used && held->open[i].upload == upload &&
			!atomic_load_explicit(&held->open[i].over, memory_order_relaxed))
			return &held->open[i];
	return NULL;
}

void obs_open_over(struct obs_session *session, struct obs_open *open)
{
	atomic_store_explicit(&open->over, true, memory_order_relaxed);
	atomic_store_explicit(&session->held.changed, true, memory_order_release);
}

bool obs_held_reads(const struct obs_session *session)
{
	for (uint32_t i = 0; session->held.n_open && i < OBS_OPEN_MAX; i++)
		if (session->held.open[i].used && !session->held.open[i].upload)
			return true;
	return false;
}

/* Frees the entries of copies that have ended and marks the streams of the others. */
static void open_renew(struct obs_session *session)
{
	struct obs_held *held = &session->held;

	for (uint32_t i = 0; i < OBS_OPEN_MAX; i++) {
		struct obs_open *open = &held->open[i];

		if (!open->used)
			continue;
		if (atomic_load_explicit(&open->over, memory_order_relaxed)) {
			open->used = false;
			held->n_open--;
			held->busy--;
		} else {
			stream_mark(session, open->context, open->stream);
		}
	}
}

/* ---- holding back ---- */

/* before: records before this one are held back. */
static bool waits(struct obs_session *session, const struct obs_context *context,
	const struct touch *t, bool before)
{
	const struct obs_held *held = &session->held;

	/* Also what names an unknown stream is executed in the end, which ends the session. */
	if (t->kind == ALWAYS || (!held->n_open && !before))
		return false;
	/* Which events are recorded by records that are held back is known in any case. */
	if (held->all && (t->kind != EVENT_ASK || !context))
		return t->kind != PART || !obs_open_upload(session, t->stream);
	switch (t->kind) {
	case ALWAYS:
	case NOTHING:
		return false;
	case CONTEXT_ASK:
		return context && context->any_held;
	case STREAM:
	case STREAM_ASK:
		return stream_waits(session, context, t->stream);
	case COPY:
		return held->n_open == OBS_OPEN_MAX || stream_waits(session, context, t->stream);
	case RECORD:
		return stream_waits(session, context, t->stream) ||
			event_waits(session, t->event, false);
	case WAIT:
		return stream_waits(session, context, t->stream) ||
			event_waits(session, t->event, true);
	case EVENT_ASK:
		return event_waits(session, t->event, true) ||
			(t->other && event_waits(session, t->other, true));
	case EVENT_END:
		return event_waits(session, t->event, false);
	case STREAM_NEW:
		return t->stream > 1 && !obs_handles_vacant(&session->streams, t->stream);
	case EVENT_NEW:
		return !obs_handles_vacant(&session->events, t->event);
	case PART:
		return !obs_open_upload(session, t->stream);
	case EVERYTHING:
		break;
	}
	return before || held->n_open;
}

/* The record is held back: marks what depends on it. */
static void leave_marks(
	struct obs_session *session, struct obs_context *context, const struct touch *t)
{
	switch (t->kind) {
	case STREAM:
	case COPY:
		stream_mark(session, context, t->stream);
		break;
	case RECORD:
	case WAIT:
		stream_mark(session, context, t->stream);
		event_mark(session, t->event, t->kind == RECORD);
		break;
	case EVENT_ASK:
		event_mark(session, t->event, false);
		event_mark(session, t->other, false);
		break;
	case EVERYTHING:
		session->held.all = true;
		break;
	default:
		break;
	}
}

static void keep(struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size)
{
	struct obs_held *held = &x->session->held;
	struct obs_held_record *entry;

	held->bytes += OBS_HELD_ENTRY + size;
	if (held->bytes > held->bytes_max)
		obs_session_fatal(x->session, OB_ERR_PROTOCOL,
			"more than %llu bytes of calls wait for copies that are not complete",
			(unsigned long long)held->bytes_max);
	entry = malloc(sizeof *entry + size);
	if (!entry)
		obs_session_fatal(
			x->session, OB_ERR_NO_MEMORY, "no memory for calls that wait for copies");
	obs_hold_add(OBS_HOLD_TRANSPORT, OBS_HELD_ENTRY + size);
	*entry = (struct obs_held_record){ .call = x->call,
		.record = *rec,
		.size = size,
		.late = held->all,
		.lane = { .context = x->lane->context, .refused = x->lane->refused } };
	if (size)
		memcpy(entry->body, body, size);
	*held->last = entry;
	held->last = &entry->next;
	held->n++;
	held->busy++;
}

static bool is_query(uint16_t opcode)
{
	return opcode == OBP_OP_STREAM_QUERY || opcode == OBP_OP_EVENT_QUERY ||
		opcode == OBP_OP_EVENT_ELAPSED;
}

bool obs_held_take(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size)
{
	struct obs_session *session = x->session;
	struct touch t;

	/* What does not have this form ends the session when it is executed. */
	if (rec->opcode >= OBP_OPCODE_END || !obp_check_req(rec->opcode, body, size))
		return false;
	t = touch_in(x->lane, rec->opcode, body);
	if (!waits(session, x->lane->context, &t, session->held.n > 0))
		return false;
	/* What it asks for is behind an open copy. */
	if (is_query(rec->opcode)) {
		obs_reply(x, rec, CUDA_ERROR_NOT_READY, NULL, 0);
		return true;
	}
	keep(x, rec, body, size);
	leave_marks(session, x->lane->context, &t);
	return true;
}

/* ---- going on ---- */

static void entry_run(struct obs_exec *x, struct obs_held_record *entry, obs_held_execute *execute)
{
	struct obs_held *held = &x->session->held;

	held->n--;
	held->busy--;
	held->bytes -= OBS_HELD_ENTRY + entry->size;
	obs_hold_give(OBS_HOLD_TRANSPORT, OBS_HELD_ENTRY + entry->size);
	execute(x, entry->call, &entry->record, entry->body, entry->size,
		entry->late ? NULL : &entry->lane);
	free(entry);
}

/* One pass. False: a copy has ended meanwhile. */
static bool pass(struct obs_exec *x, obs_held_execute *execute)
{
	struct obs_session *session = x->session;
	struct obs_held *held = &session->held;
	struct obs_held_record **at = &held->first, *entry;

	atomic_exchange_explicit(&held->changed, false, memory_order_acquire);
	marks_clear(session);
	open_renew(session);
	while ((entry = *at)) {
		struct touch t;

		if (entry->late && !held->all) {
			const struct obs_lane *lane = session->lanes[entry->record.lane];

			entry->lane.context = lane ? lane->context : NULL;
			entry->lane.refused = lane && lane->refused;
		}
		t = touch_in(&entry->lane, entry->record.opcode, entry->body);
		if (waits(session, entry->lane.context, &t, held->first != entry)) {
			entry->late = entry->late && held->all;
			leave_marks(session, entry->lane.context, &t);
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		if (!*at)
			held->last = at;
		entry_run(x, entry, execute);
		if (obs_held_changed(session))
			return false;
	}
	return true;
}

void obs_held_run(struct obs_exec *x, obs_held_execute *execute)
{
	while (obs_held_changed(x->session) && !pass(x, execute))
		;
}
