/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/timeline_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "client-shim/session/timeline.h"
#include "client-shim/session/timeline_json.h"
#include "client-shim/session/timeline_server.h"
#include "compression/codec.h"
#include "protocol/obp_calls.h"

#define CALL_NS   100u /* drawn length of an event whose length was not measured, at most */
#define PID_BITS  22   /* the kernel's process ids are smaller */
#define FILE_ROOM (1u << 20)
#define STREAMS   256u /* tracks of the device, at most */

/* An end of an arrow: one event of a record. Sorted by number, then in the order of the steps. */
enum step { STEP_CALL, STEP_EXECUTED, STEP_DEVICE, STEP_ANSWERED, STEP_REPLY };

struct end {
	uint64_t number, at;
	uint32_t pid, tid;
	enum step step;
};

struct writer {
	struct obc_timeline_file file;
	uint64_t ended;                   /* ns */
	uint32_t client, server, devices; /* process ids in the file */
	struct obc_timeline_rows server_side;
	const struct obp_timeline_event **rows; /* in the order in which they are written */
	size_t n_rows;
	bool aligned;
	struct end *ends;
	size_t n_ends, max_ends;
	/* of the current track: the event that waits for the next one, which limits its length */
	bool held;
	unsigned held_track;
	struct obc_timeline_event event;
};

/* ---- pieces of events ---- */

static const char *op_name(uint16_t opcode)
{
	const struct obp_call_info *info = obp_call_info(opcode);

	return info ? info->name : "record";
}

static void end_add(
	struct writer *w, enum step step, uint64_t number, uint64_t at, uint32_t pid, uint32_t tid)
{
	if (w->n_ends < w->max_ends && number)
		w->ends[w->n_ends++] = (struct end){ number, at, pid, tid, step };
}

/* ---- the client ---- */

static void event_write(
	struct writer *w, unsigned track, const struct obc_timeline_event *event, uint64_t took)
{
	static const char *const names[] = { [OBC_EVENT_ROOM] = "wait for room in the ring",
		[OBC_EVENT_FRAME] = "frame",
		[OBC_EVENT_REPLY] = "reply",
		[OBC_EVENT_SLEEP] = "asleep",
		[OBC_EVENT_PING] = "ping" };
	const char *codec = obz_codec_name((enum obz_codec)event->codec);
	struct obc_slice slice = { names[event->kind], "wire", w->client, track + 1, event->at,
		took, event->number, "" };

	switch ((enum obc_timeline_kind)event->kind) {
	case OBC_EVENT_CALL:
	case OBC_EVENT_WAIT:
		slice.name = op_name(event->opcode);
		slice.category = event->kind == OBC_EVENT_WAIT ? "wait" : "call";
		snprintf(slice.more, sizeof slice.more, ",\"bytes\":%u", event->size);
		end_add(w, STEP_CALL, event->number, event->at, w->client, track + 1);
		break;
	case OBC_EVENT_FRAME:
		snprintf(slice.more, sizeof slice.more,
			",\"records\":%u,\"bytes\":%u,\"codec\":\"%s\",\"sent by\":\"%s\"",
			event->more, event->size, codec, event->by_sender ? "sender" : "caller");
		break;
	case OBC_EVENT_REPLY:
		snprintf(slice.more, sizeof slice.more, ",\"bytes\":%u,\"codec\":\"%s\"",
			event->size, codec);
		end_add(w, STEP_REPLY, event->number, event->at, w->client, track + 1);
		break;
	case OBC_EVENT_ROOM:
	case OBC_EVENT_SLEEP:
	case OBC_EVENT_PING:
		slice.category = "idle";
		break;
	}
	obc_timeline_slice(&w->file, &slice);
}

/* Writes the event that was held back. next: when the track's next event begins. */
static void held_write(struct writer *w, uint64_t next)
{
	uint64_t room = next - w->event.at;

	if (!w->held)
		return;
	w->held = false;
	event_write(w, w->held_track, &w->event,
		w->event.took ? w->event.took : ob_min(room, (uint64_t)CALL_NS));
}

static void event_hold(void *user, unsigned track, const struct obc_timeline_event *event)
{
	struct writer *w = user;

	held_write(w, event->at);
	w->held = true;
	w->held_track = track;
	w->event = *event;
}

static void waiting_write(struct writer *w, unsigned lane)
{
	struct obc_timeline_event event;

	if (!obc_timeline_waiting(lane, &event))
		return;
	obc_timeline_slice(&w->file,
		&(struct obc_slice){ op_name(event.opcode), "wait", w->client, lane + 1, event.at,
			ob_max(w->ended, event.at) - event.at, event.number,
			",\"unfinished\":true" });
}

static void counter(void *user, unsigned track, const struct obc_timeline_event *event)
{
	(void)track;
	(void)event;
	++*(size_t *)user;
}

static size_t events_of(unsigned track)
{
	size_t n = 0;

	obc_timeline_each(track, counter, &n);
	return n;
}

static void client_write(struct writer *w)
{
	static const char *const names[] = { "sender", "wire: sent", "wire: received",
		"control connection" };
	char name[32];

	for (unsigned track = 0; track < OBC_TRACKS; track++) {
		struct obc_timeline_event waiting;
		bool lane = track < OBC_TRACK_SENDER;

		if (!events_of(track) && !(lane && obc_timeline_waiting(track, &waiting)))
			continue;
		snprintf(name, sizeof name, "thread, lane %u", track);
		obc_timeline_thread(&w->file, w->client, track + 1,
			lane ? name : names[track - OBC_TRACK_SENDER]);
		obc_timeline_each(track, event_hold, w);
		held_write(w, w->ended);
		if (lane)
			waiting_write(w, track);
	}
}

/* ---- the server ---- */

static uint32_t row_tid(const struct obp_timeline_event *row)
{
	return obp_timeline_thread(row) + 1;
}

static int by_place(const void *a, const void *b)
{
	const struct obp_timeline_event *x = *(const struct obp_timeline_event *const *)a,
					*y = *(const struct obp_timeline_event *const *)b;
	bool x_device = obp_timeline_kind(x) == OBP_TIMELINE_DEVICE,
	     y_device = obp_timeline_kind(y) == OBP_TIMELINE_DEVICE;

	if (x_device != y_device)
		return x_device - y_device;
	if (x_device && x->more != y->more)
		return x->more < y->more ? -1 : 1;
	if (!x_device && row_tid(x) != row_tid(y))
		return row_tid(x) < row_tid(y) ? -1 : 1;
	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/* The client's time, within the time of the timeline whatever the server claims. */
static uint64_t aligned(const struct writer *w, uint64_t server_ns)
{
	uint64_t at = obc_fit_client_time(&w->server_side.fit, server_ns);

	return (int64_t)(at - w->file.began) < 0 ? w->file.began : ob_min(at, w->ended);
}

/* When the row's slice begins and how long it is. */
static uint64_t row_place(
	const struct writer *w, const struct obp_timeline_event *row, uint64_t *ret_took)
{
	uint64_t at = aligned(w, row->at_ns), last = row->at_ns + row->took_ns,
		 end = aligned(w, last < row->at_ns ? UINT64_MAX : last);

	*ret_took = end > at ? end - at : 0;
	return at;
}

static void row_write(struct writer *w, const struct obp_timeline_event *row)
{
	unsigned kind = obp_timeline_kind(row);
	uint64_t took, at = row_place(w, row, &took);
	bool answer = kind == OBP_TIMELINE_ANSWERED;
	struct obc_slice slice = { answer ? "answer" : op_name(obp_timeline_opcode(row)), "server",
		w->server, row_tid(row), at, answer ? CALL_NS : took, row->number, "" };
	int n = 0;

	if (!answer)
		n = snprintf(slice.more, sizeof slice.more, ",\"queued us\":%s",
			obc_timeline_stamp(obp_timeline_queued(row)).text);
	if (!answer && row->more)
		snprintf(slice.more + n, sizeof slice.more - (size_t)n, ",\"replied after us\":%s",
			obc_timeline_stamp(row->more).text);
	obc_timeline_slice(&w->file, &slice);
	end_add(w, answer ? STEP_ANSWERED : STEP_EXECUTED, row->number, at, w->server,
		row_tid(row));
}

static void device_write(struct writer *w, const struct obp_timeline_event *row, uint32_t tid)
{
	uint64_t took, at = row_place(w, row, &took);
	struct obc_slice slice = { op_name(obp_timeline_opcode(row)), "device", w->devices, tid, at,
		took, row->number, "" };

	if (obp_timeline_works(row) > 1)
		snprintf(slice.more, sizeof slice.more, ",\"works\":%u", obp_timeline_works(row));
	obc_timeline_slice(&w->file, &slice);
	end_add(w, STEP_DEVICE, row->number, at, w->devices, tid);
}

static void stream_named(struct writer *w, uint64_t stream, uint32_t tid)
{
	unsigned device = (unsigned)(stream >> 32) & 0xffff, number = stream & 0xffff,
		 context = (unsigned)(stream >> 16) & 0xffff;
	char name[80];
	int n = snprintf(name, sizeof name, "device %u, ", device);

	/* The primary contexts of the devices come first. */
	if (context != device)
		n += snprintf(name + n, sizeof name - (size_t)n, "context %u, ", context);
	if (number)
		snprintf(name + n, sizeof name - (size_t)n, "stream %u", number);
	else
		snprintf(name + n, sizeof name - (size_t)n, "default stream");
	obc_timeline_thread(&w->file, w->devices, tid, name);
}

static void server_thread_named(struct writer *w, uint32_t tid)
{
	char name[48];

	snprintf(name, sizeof name, tid == 1 ? "executor" : "server thread %u", tid);
	obc_timeline_thread(&w->file, w->server, tid, name);
}

static bool is_device(const struct obp_timeline_event *row)
{
	return obp_timeline_kind(row) == OBP_TIMELINE_DEVICE;
}

static void rows_write(struct writer *w)
{
	const struct obp_timeline_event *last = NULL;
	uint32_t stream = 0;

	for (size_t i = 0; i < w->n_rows; i++) {
		const struct obp_timeline_event *row = w->rows[i];
		bool device = is_device(row);
		bool first = !last || device != is_device(last) ||
			(device ? row->more != last->more : row_tid(row) != row_tid(last));

		last = row;
		if (device && first)
			stream_named(w, row->more, ++stream);
		else if (first)
			server_thread_named(w, row_tid(row));
		if (device)
			device_write(w, row, stream);
		else
			row_write(w, row);
	}
}

/* Sorts what the server sent. Streams beyond the limit are left out and counted. */
static void rows_take(struct writer *w)
{
	struct obc_timeline_rows *all = &w->server_side;
	size_t n = 0, streams = 0;

	w->rows = malloc((all->n + 1) * sizeof *w->rows);
	if (!w->rows)
		return;
	for (size_t i = 0; i < all->n; i++)
		w->rows[i] = &all->rows[i];
	qsort(w->rows, all->n, sizeof *w->rows, by_place);
	for (; n < all->n; n++) {
		const struct obp_timeline_event *row = w->rows[n];

		streams += is_device(row) &&
			(!n || !is_device(w->rows[n - 1]) || row->more != w->rows[n - 1]->more);
		if (streams > STREAMS)
			break;
	}
	w->n_rows = n;
	all->dropped += all->n - n;
}

static void server_write(struct writer *w)
{
	char label[80];

	if (!w->aligned || !w->n_rows)
		return;
	obc_timeline_process(&w->file, w->server, 1, "server");
	snprintf(label, sizeof label, "clock aligned to within %.1f us",
		(double)obc_fit_error(&w->server_side.fit) / 1e3);
	obc_timeline_about(&w->file, "process_labels", w->server, 0, "labels", label);
	if (is_device(w->rows[w->n_rows - 1]))
		obc_timeline_process(&w->file, w->devices, 2, "device");
	rows_write(w);
}

/* ---- arrows ---- */

static int by_number(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* A record's events are drawn with an arrow if the call and one more of them were kept. */
static void flows_write(struct writer *w)
{
	size_t next;

	qsort(w->ends, w->n_ends, sizeof *w->ends, by_number);
	for (size_t i = 0; i < w->n_ends; i = next) {
		for (next = i + 1; next < w->n_ends && w->ends[next].number == w->ends[i].number;)
			next++;
		if (w->ends[i].step != STEP_CALL || next - i < 2)
			continue;
		for (size_t k = i; k < next; k++)
			obc_timeline_flow(&w->file,
				k == i                  ? "s"
					: k + 1 == next ? "f"
							: "t",
				w->ends[k].pid, w->ends[k].tid, w->ends[k].at, w->ends[k].number);
	}
}

/* ---- the file ---- */

static void about_write(struct writer *w)
{
	uint64_t calls = 0, others = 0, error = obc_fit_error(&w->server_side.fit);

	for (unsigned track = 0; track < OBC_TRACKS; track++)
		*(track < OBC_TRACK_SENDER ? &calls : &others) += obc_timeline_dropped(track);
	ob_json_object(&w->file.json, "otherData");
	ob_json_text(&w->file.json, "version", OB_VERSION);
	ob_json_uint(&w->file.json, "limit of events", obc_timeline_limit());
	ob_json_uint(&w->file.json, "dropped calls", calls);
	ob_json_uint(&w->file.json, "dropped wire and thread events", others);
	ob_json_uint(&w->file.json, "dropped server events", w->server_side.dropped);
	ob_json_uint(&w->file.json, "clock exchanges", w->server_side.fit.exchanges);
	if (w->aligned)
		ob_json_fixed(&w->file.json, "clock error us", (double)error / 1e3, 3);
	else
		ob_json_null(&w->file.json, "clock error us");
	ob_json_end(&w->file.json);
}

static void all_write(struct writer *w, FILE *file)
{
	ob_json_begin(&w->file.json, file, OB_JSON_COMPACT);
	ob_json_object(&w->file.json, NULL);
	ob_json_text(&w->file.json, "displayTimeUnit", "ns");
	about_write(w);
	ob_json_array(&w->file.json, "traceEvents");
	obc_timeline_process(&w->file, w->client, 0, program_invocation_short_name);
	client_write(w);
	server_write(w);
	flows_write(w);
	ob_json_end(&w->file.json);
	ob_json_end(&w->file.json);
	fputc('\n', file);
}

void obc_timeline_write(void)
{
	struct writer w = { .file.began = obc_timeline_began(), .ended = ob_clock_ns() };
	FILE *file;
	bool failed;

	if (!obc_timeline_on)
		return;
	obc_timeline_stop();
	file = fopen(obc_timeline_path(), "we");
	if (!file) {
		ob_warn("the timeline is not written: cannot open %s: %s", obc_timeline_path(),
			strerror(errno));
		return;
	}
	setvbuf(file, NULL, _IOFBF, FILE_ROOM);
	w.client = (uint32_t)getpid();
	w.server = w.client | 1u << PID_BITS;
	w.devices = w.client | 2u << PID_BITS;
	obc_timeline_server_rows(&w.server_side);
	w.aligned = obc_fit_error(&w.server_side.fit) != UINT64_MAX;
	rows_take(&w);
	w.max_ends = obc_timeline_limit() + w.n_rows;
	w.ends = malloc(w.max_ends * sizeof *w.ends);
	if (!w.ends)
		w.max_ends = 0;
	all_write(&w, file);
	free(w.ends);
	free(w.rows);
	failed = ferror(file) != 0;
	if (fclose(file) || failed)
		ob_warn("the timeline is not complete: cannot write %s: %s", obc_timeline_path(),
			strerror(errno));
}
