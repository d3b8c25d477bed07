/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/text.h"
#include "loadbalancer/dashboard/reply.h"

#define BLOCK      65536u
#define FIRST_KIND 1u /* "fleet" is all of the others in one */
#define ITEMS_MAX  (OBL_DOCUMENT_KINDS + 1)
#define HEAD_MAX   80u
#define ID_FORMAT  "%016" PRIx64 "-%" PRIu64 /* start, number of an event */
#define ID_START   17u                       /* bytes of the start and '-' */

/* One event or comment: head, the blob, an empty line. */
struct item {
	char head[HEAD_MAX];
	bool comment;
	struct obl_reader reader; /* of an event; without a blob it was taken away */
};

struct obl_stream {
	struct obl_streams *of;
	struct obl_stream *next, **link;
	struct MHD_Connection *connection;
	bool suspended, ended;
	struct obl_peer_key key;
	struct obl_caller caller;
	char token[OBL_TOKEN_MAX];
	uint64_t hash[OBL_DOCUMENT_KINDS]; /* of what was sent last */
	uint64_t last_event;
	bool greeted; /* it has got the events */
	uint64_t sent_ns, due_ns, checked_ns;
	struct item items[ITEMS_MAX]; /* that it has not read: n from `item`, `at` bytes read */
	unsigned n, item;
	size_t at;
};

void obl_streams_init(struct obl_streams *streams, const struct obl_source *source,
	struct obl_documents *documents)
{
	*streams = (struct obl_streams){ .source = source, .documents = documents };
	if (getrandom(&streams->start, sizeof streams->start, 0) != sizeof streams->start)
		streams->start = ob_clock_ns();
}

/* ---- reading ---- */

static bool item_taken(const struct item *item)
{
	return !item->comment && !item->reader.blob;
}

static size_t item_size(const struct item *item)
{
	return strlen(item->head) + (item->comment ? 0 : item->reader.blob->size) + 2;
}

/* Copies some bytes from position `at` of the item. */
static size_t item_read(const struct item *item, size_t at, char *to, size_t max)
{
	static const char end[] = "\n\n";
	size_t head = strlen(item->head), body = item->comment ? 0 : item->reader.blob->size;
	const char *from;
	size_t n;

	if (at < head) {
		from = item->head + at;
		n = head - at;
	} else if (at < head + body) {
		from = item->reader.blob->data + (at - head);
		n = head + body - at;
	} else {
		from = &end[at - head - body];
		n = head + body + 2 - at;
	}
	n = n < max ? n : max;
	memcpy(to, from, n);
	return n;
}

static ssize_t stream_read(void *user, uint64_t position, char *to, size_t max)
{
	struct obl_stream *stream = user;
	struct item *item;
	size_t n;

	(void)position;
	if (stream->ended || stream->of->closing)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (stream->item == stream->n) {
		stream->suspended = true;
		MHD_suspend_connection(stream->connection);
		return 0;
	}
	item = &stream->items[stream->item];
	if (item_taken(item)) {
		stream->ended = true;
		return MHD_CONTENT_READER_END_OF_STREAM;
	}
	n = item_read(item, stream->at, to, max);
	stream->at += n;
	if (stream->at == item_size(item)) {
		obl_reader_leave(&item->reader);
		stream->item++;
		stream->at = 0;
	}
	return (ssize_t)n;
}

static void stream_free(void *user)
{
	struct obl_stream *stream = user;

	for (unsigned i = stream->item; i < stream->n; i++)
		obl_reader_leave(&stream->items[i].reader);
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
	stream->of->n--;
	explicit_bzero(stream->token, sizeof stream->token);
	free(stream);
}

/* ---- filling ---- */

/* Takes over the reference. blob NULL: a comment. False: no memory. */
static bool item_add(struct obl_stream *stream, const char *head, struct obl_blob *blob)
{
	struct item *item = &stream->items[stream->n];

	*item = (struct item){ .comment = !blob };
	snprintf(item->head, sizeof item->head, "%s", head);
	if (blob &&
		!obl_reader_enter(
			&stream->of->documents->readers, &item->reader, &stream->key, blob))
		return false;
	stream->n++;
	return true;
}

static void document_add(struct obl_stream *stream, unsigned kind, uint64_t since, uint64_t now)
{
	struct obl_blob *blob =
		obl_documents_get(stream->of->documents, &stream->caller, kind, since, now);
	char head[HEAD_MAX];

	if (!blob)
		return; /* no memory: at the next tick */
	if (kind != OBL_DOCUMENT_EVENTS && blob->hash == stream->hash[kind]) {
		obl_blob_unref(blob);
		return;
	}
	if (kind == OBL_DOCUMENT_EVENTS)
		snprintf(head, sizeof head,
			"event: %s\nid: " ID_FORMAT "\ndata: ", obl_document_names[kind],
			stream->of->start, blob->last_event);
	else
		snprintf(head, sizeof head, "event: %s\ndata: ", obl_document_names[kind]);
	if (!item_add(stream, head, blob))
		return;
	stream->hash[kind] = blob->hash;
	if (kind == OBL_DOCUMENT_EVENTS) {
		stream->greeted = true;
		stream->last_event = blob->last_event;
	}
}

static void stream_fill(struct obl_stream *stream, uint64_t now)
{
	const struct obl_source *source = stream->of->source;
	uint64_t last = source->last_event(source->user), bytes = 0, pause;

	stream->n = stream->item = 0;
	stream->at = 0;
	for (unsigned kind = FIRST_KIND; kind < OBL_DOCUMENT_EVENTS; kind++)
		document_add(stream, kind, 0, now);
	if (!stream->greeted || last != stream->last_event)
		document_add(stream, OBL_DOCUMENT_EVENTS, stream->last_event, now);
	for (unsigned i = 0; i < stream->n; i++)
		bytes += item_taken(&stream->items[i]) ? 0 : item_size(&stream->items[i]);
	pause = bytes * OB_SECOND / OBL_STREAM_RATE;
	stream->due_ns = now + (pause > OB_SECOND ? pause : OB_SECOND) - 50 * OB_MS;
}

/* A token may expire, be removed, or lose its scope. */
static bool still_allowed(struct obl_stream *stream, uint64_t now)
{
	const struct obl_source *source = stream->of->source;
	const char *token = stream->token[0] ? stream->token : NULL;
	struct ob_cause cause;

	if (now - stream->checked_ns < OBL_STREAM_CHECK_S * OB_SECOND)
		return true;
	stream->checked_ns = now;
	return source->caller(source->user, -1, token, &stream->caller, &cause) == OB_ERR_NONE;
}

static bool stream_resume(struct obl_stream *stream)
{
	if (!stream->suspended)
		return false;
	stream->suspended = false;
	MHD_resume_connection(stream->connection);
	return true;
}

/* Ends a connection that does not read: the library notices in its next turn. */
static void stream_cut(struct obl_stream *stream)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(stream->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	stream->ended = true;
	if (info)
		shutdown(info->connect_fd, SHUT_RDWR);
}

/* Whether some of what it has not read yet was taken away. */
static bool stream_taken(const struct obl_stream *stream)
{
	unsigned i = stream->item;

	while (i < stream->n && !item_taken(&stream->items[i]))
		i++;
	return i < stream->n;
}

static bool stream_tick(struct obl_stream *stream, uint64_t now)
{
	if (stream->ended)
		return false;
	if (!still_allowed(stream, now)) {
		stream->ended = true;
		return stream_resume(stream);
	}
	if (stream->item < stream->n) { /* it has not read all */
		if (now - stream->sent_ns > OBL_STREAM_SLOW_S * OB_SECOND || stream_taken(stream))
			stream_cut(stream);
		return true;
	}
	if (now < stream->due_ns)
		return false;
	stream_fill(stream, now);
	if (!stream->n && now - stream->sent_ns > OBL_STREAM_BEAT_S * OB_SECOND)
		item_add(stream, ": beat", NULL);
	if (!stream->n)
		return false;
	stream->sent_ns = now;
	return stream_resume(stream);
}

bool obl_streams_tick(struct obl_streams *streams, uint64_t now_ns)
{
	bool run = false;

	for (struct obl_stream *stream = streams->first; stream; stream = stream->next)
		run |= stream_tick(stream, now_ns);
	return run;
}

void obl_streams_close(struct obl_streams *streams)
{
	streams->closing = true;
	for (struct obl_stream *stream = streams->first; stream; stream = stream->next)
		stream_resume(stream);
}

/* ---- opening ---- */

/* The number of the event; 0: the id is not of this start. */
static uint64_t id_read(const struct obl_streams *streams, const char *id)
{
	char own[ID_START + 1];
	uint64_t number;

	snprintf(own, sizeof own, "%016" PRIx64 "-", streams->start);
	if (!id || strncmp(id, own, ID_START) != 0 ||
		!ob_text_parse_number(id + ID_START, 0,
			streams->source->last_event(streams->source->user), &number))
		return 0;
	return number;
}

static bool address_full(const struct obl_streams *streams, const struct obl_peer_key *key)
{
	unsigned n = 0;

	for (const struct obl_stream *stream = streams->first; stream; stream = stream->next)
		n += obl_peer_key_same(&stream->key, key);
	return n >= OBL_STREAMS_ADDRESS && (!key->local || streams->limits_local);
}

enum MHD_Result obl_stream_open(struct obl_streams *streams, struct MHD_Connection *connection,
	const struct obl_caller *caller, const char *token, const char *last_id)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct obl_peer_key key = obl_peer_key_of(info ? info->connect_fd : -1);
	struct MHD_Response *response;
	struct obl_stream *stream;

	if (streams->n >= OBL_STREAMS_MAX || streams->closing || address_full(streams, &key))
		return obl_reply_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			streams->n >= OBL_STREAMS_MAX
				? "too many streams are open"
				: "too many streams are open from this address",
			"close other dashboards, or ask for single documents", NULL);
	stream = calloc(1, sizeof *stream);
	if (!stream)
		return MHD_NO;
	stream->of = streams;
	stream->connection = connection;
	stream->key = key;
	stream->caller = *caller;
	stream->last_event = id_read(streams, last_id);
	snprintf(stream->token, sizeof stream->token, "%s", token);
	stream->checked_ns = stream->sent_ns = ob_clock_ns();
	stream->next = streams->first;
	stream->link = &streams->first;
	if (stream->next)
		stream->next->link = &stream->next;
	streams->first = stream;
	streams->n++;
	stream_fill(stream, stream->sent_ns);
	response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK, stream_read, stream, stream_free);
	if (!response) {
		stream_free(stream);
		return MHD_NO;
	}
	MHD_add_response_header(response, "Content-Type", "text/event-stream; charset=utf-8");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Accel-Buffering", "no"); /* proxies */
	return obl_reply_send(connection, MHD_HTTP_OK, response);
}
