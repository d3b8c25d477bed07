/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Server-sent events (HTML standard, section 9.2): a response that does not end. Once a second each
 * stream gets those documents that have changed, as an event of the document's name, and the events
 * that are new; a comment if nothing has been sent for OBL_STREAM_BEAT_S. A reader gets the next
 * state only when it has read the last one; if that takes longer than OBL_STREAM_SLOW_S, or it was
 * taken away meanwhile (readers.h), it is disconnected. Large pools get fewer states: on average at
 * most OBL_STREAM_RATE bytes a second.
 * Owned by the HTTP server (web.h); the loop's thread.
 */
#ifndef OBL_DASHBOARD_STREAM_H
#define OBL_DASHBOARD_STREAM_H

#include <microhttpd.h>

#include "loadbalancer/dashboard/documents.h"

#define OBL_STREAMS_MAX     64u
#define OBL_STREAMS_ADDRESS 16u /* of one address of another machine */
#define OBL_STREAM_BEAT_S   15u
#define OBL_STREAM_SLOW_S   20u
#define OBL_STREAM_CHECK_S  15u /* how often its token is checked again */
#define OBL_STREAM_RATE     (2u << 20)
#define OBL_TOKEN_MAX       256u /* bytes of a token, NUL included */

struct obl_stream;

struct obl_streams {
	const struct obl_source *source;
	struct obl_documents *documents;
	struct obl_stream *first;
	unsigned n;
	bool closing;
	uint64_t
		start; /* random: ids of an earlier start, perhaps of another registry, are foreign */
	bool limits_local; /* OBL_STREAMS_ADDRESS holds for addresses of this machine too */
};

void obl_streams_init(struct obl_streams *streams, const struct obl_source *source,
	struct obl_documents *documents);
/*
 * Queues the response. token: "" if none was sent. last_id: the id of the last event that the
 * reader has; NULL, or one of another balancer or start: it gets all. Refuses with 503 beyond OBL_STREAMS_MAX, and OBL_STREAMS_ADDRESS of
 * one address.
 */
enum MHD_Result obl_stream_open(struct obl_streams *streams, struct MHD_Connection *connection,
	const struct obl_caller *caller, const char *token, const char *last_id);
/* Gives each stream what it should have; true: the library must run. */
bool obl_streams_tick(struct obl_streams *streams, uint64_t now_ns);
/* Ends all streams; they are freed when the library runs. */
void obl_streams_close(struct obl_streams *streams);

#endif
