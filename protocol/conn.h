/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obp_conn: one direction of a connection, without I/O. Bytes go in, items come out; whoever owns
 * the socket moves the bytes.
 *
 *     for (;;) {
 *         switch (obp_conn_next(conn, &item)) {
 *         case OBP_NEED:   obp_conn_space(conn, &p, &n);  n = recv(fd, p, n);  obp_conn_fed(conn,
 *                          n);  break;
 *         case OBP_RECORD: item.record, item.body, item.size ...                 valid until the next call
 *         case OBP_BIG:    item.body holds the first item.have of item.size body bytes; the rest is
 *                          taken with
 *                          obp_conn_body_buffered / obp_conn_body_direct, straight from the socket if one likes
 *         case OBP_BROKEN: conn->error, conn->why
 *         }
 *     }
 *
 * A connection that broke is followed by another, on which the peer starts again at or before the
 * first item that did not come whole: obp_conn_restart forgets the half-received rest, and what has
 * been shown already is passed over. So every item comes out exactly once.
 *
 * Nothing from the peer is believed: magic, version, type, sizes, counts and sequence numbers are
 * checked before an item comes out, and after the first violation every further call says
 * OBP_BROKEN. One owner at a time; no locks.
 */
#ifndef OBP_CONN_H
#define OBP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/format.h"
#include "protocol/pack.h"

#define OBP_CONN_BUFFER   (256u << 10) /* bytes; stays in a core's second-level cache */
/* a record or reply above this comes out as OBP_BIG, its body not whole in the buffer */
#define OBP_CONN_BIG      (32u << 10)
/* body bytes that an OBP_BIG item has buffered at least (or all of them) */
#define OBP_CONN_BIG_HEAD 512u

enum obp_event { OBP_NEED, OBP_RECORD, OBP_REPLY, OBP_CONTROL, OBP_ACK, OBP_BIG, OBP_BROKEN };

enum obp_accept {
	OBP_ACCEPT_CALLS = 1,
	OBP_ACCEPT_REPLIES = 2,
	OBP_ACCEPT_CONTROL = 4,
};

struct obp_item {
	bool is_reply;
	struct obp_record record; /* OBP_RECORD, OBP_BIG */
	struct obp_reply reply;   /* OBP_REPLY, OBP_BIG */
	uint64_t number;          /* the record's or reply's sequence number */
	const uint8_t *body;      /* 8-byte aligned */
	/* body bytes: padded for records, exact for replies and control maps */
	size_t size;
	size_t have;      /* of those, buffered at body; == size but for OBP_BIG */
	uint64_t time_ns; /* the frame's time stamp */
};

struct obp_conn {
	unsigned accept; /* enum obp_accept */
	/* set of codecs that frames may be packed with; 0 until both sides have agreed */
	unsigned codecs;
	enum ob_err error;
	const char *why;        /* what the peer did wrong; NULL while all is well */
	uint64_t expect;        /* number of the next record or reply */
	uint64_t peer_ack;      /* highest number the peer has acknowledged */
	uint64_t bytes, frames; /* received so far */
	/* inside: */
	/* view: where items come from, buffer or the unpacked payload */
	uint8_t *buffer, *view;
	struct obp_unpacker unpacker;
	size_t kept_begin, kept_end; /* of the buffer, while the view is elsewhere */
	size_t begin, end, used;     /* buffered bytes; used: of the item shown last */
	/* number of the next item in the stream; below expect only after a restart */
	uint64_t arriving;
	size_t skip_left;  /* bytes of an item seen before, still to come */
	bool restarted;    /* the next frame of items may begin before expect */
	size_t frame_left; /* payload bytes of the current frame not yet shown */
	uint32_t records_left;
	size_t big_left; /* bytes of an OBP_BIG item not yet taken, padding included */
	uint64_t frame_time;
	uint8_t frame_type;
};

/* OB_ERR_NO_MEMORY. accept: which frame types may come. */
enum ob_err obp_conn_init(struct obp_conn *conn, unsigned accept);
void obp_conn_fini(struct obp_conn *conn);

/*
 * A new connection of the same session. An OBP_BIG item whose body was not taken to its end counts
 * as not received.
 */
void obp_conn_restart(struct obp_conn *conn);

enum obp_event obp_conn_next(struct obp_conn *conn, struct obp_item *ret_item);
/* Where the next bytes belong; *ret_size is never 0 after OBP_NEED. */
void obp_conn_space(struct obp_conn *conn, void **ret_data, size_t *ret_size);
void obp_conn_fed(struct obp_conn *conn, size_t size);

/* True while a packed payload comes in: obp_conn_space then asks for exactly its rest. */
static inline bool obp_conn_gathers(const struct obp_conn *conn)
{
	return conn->unpacker.size != 0;
}

/* After OBP_BIG: copies up to n body bytes out of the buffer; returns how many. */
size_t obp_conn_body_buffered(struct obp_conn *conn, void *dst, size_t n);
/* After OBP_BIG, with nothing buffered any more: n bytes were received elsewhere by the caller. */
void obp_conn_body_direct(struct obp_conn *conn, size_t n);
/*
 * Body and padding bytes still to come for the OBP_BIG item. All must be taken before the next
 * obp_conn_next.
 */
size_t obp_conn_body_left(const struct obp_conn *conn);

/* A frame header ready to send. size must be a multiple of 8 and at most OBP_FRAME_PAYLOAD_MAX. */
void obp_frame_fill(struct obp_frame *ret, enum obp_frame_type type, uint32_t size, uint32_t count,
	uint64_t sequence, uint64_t ack);
/* Why a preface cannot be served; OB_ERR_NONE when it can. */
enum ob_err obp_preface_check(const struct obp_preface *preface);

#endif
