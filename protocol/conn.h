/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obp_conn: decodes the bytes of one direction of a connection. It does no I/O: the owner of the
 * socket passes received bytes in and takes items out.
 *
 *     for (;;) {
 *         switch (obp_conn_next(conn, &item)) {
 *         case OBP_NEED:
 *             obp_conn_space(conn, &p, &n);
 *             n = recv(fd, p, n);
 *             obp_conn_fed(conn, n);
 *             break;
 *         case OBP_RECORD:  item.record, item.body, item.size ...; valid until the next call
 *         case OBP_BIG:     item.body holds the first item.have of item.size body bytes; take the
 *                           rest with obp_conn_body_buffered, or receive it from the socket
 *                           directly and report it with obp_conn_body_direct
 *         case OBP_BROKEN:  conn->cause
 *         }
 *     }
 *
 * When a connection breaks, a new one replaces it, on which the peer starts again at or before the
 * first item that was not received completely. obp_conn_restart discards the partial item, and
 * items that were already returned are skipped. Each item is therefore returned exactly once.
 *
 * All input is validated: magic, version, type, sizes, counts and sequence numbers are checked
 * before an item is returned. After the first violation every further call returns OBP_BROKEN. One
 * owner at a time; no locks.
 */
#ifndef OBP_CONN_H
#define OBP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "base/check.h"
#include "protocol/format.h"
#include "protocol/pack.h"

#define OBP_CONN_BUFFER     (256u << 10) /* bytes; stays in a core's second-level cache */
/* a larger record or reply is returned as OBP_BIG, before its whole body is in the buffer */
#define OBP_CONN_BIG        (32u << 10)
/* minimum of body bytes in the buffer when an OBP_BIG item is returned (or the whole body) */
#define OBP_CONN_BIG_HEAD   512u
/*
 * A receiver that expects an OBP_BIG item reads at most this into the buffer: the headers and
 * OBP_CONN_BIG_HEAD. It receives the rest in place. It should expect one if one was returned before
 * the last OBP_CONN_BIG_RECENT reads.
 */
#define OBP_CONN_BIG_FRAME  (sizeof(struct obp_frame) + OBP_ITEM_HEAD_MAX + OBP_CONN_BIG_HEAD)
#define OBP_CONN_BIG_RECENT 3u
#define OBP_ITEM_HEAD_MAX   ob_max(sizeof(struct obp_record), sizeof(struct obp_reply))

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
	/* body bytes, including padding for records, without it for replies and control maps */
	size_t size;
	size_t have;      /* bytes available at body; == size except for OBP_BIG */
	uint64_t time_ns; /* the frame's time stamp */
};

struct obp_conn {
	unsigned accept; /* enum obp_accept */
	/* set of codecs permitted in packed frames; 0 until both sides have agreed */
	unsigned codecs;
	struct ob_cause cause;  /* the violation; code OB_ERR_NONE: none yet */
	uint64_t expect;        /* number of the next record or reply */
	uint64_t peer_ack;      /* highest number the peer has acknowledged */
	uint64_t bytes, frames; /* received so far */
	/* ---- private ---- */
	/* view: the data that items are decoded from: buffer, or the unpacked payload */
	uint8_t *buffer, *view;
	struct obp_unpacker unpacker;
	size_t kept_begin, kept_end; /* range of buffer while view is the unpacked payload */
	size_t begin, end, used;     /* buffered bytes; used: size of the item returned last */
	/* number of the next item in the stream; less than expect only after a restart */
	uint64_t arriving;
	size_t skip_left;  /* bytes still to be skipped of an item that was already returned */
	bool restarted;    /* the next frame with items may start before expect */
	size_t frame_left; /* payload bytes of the current frame not yet returned */
	uint32_t records_left;
	size_t big_left; /* bytes of an OBP_BIG item not yet taken, padding included */
	uint64_t frame_time;
	uint8_t frame_type;
};

/* OB_ERR_NO_MEMORY. accept: the permitted frame types. */
enum ob_err obp_conn_init(struct obp_conn *conn, unsigned accept);
void obp_conn_fini(struct obp_conn *conn);

/*
 * Prepares for a new connection of the same session. An OBP_BIG item whose body was not taken
 * completely counts as not received.
 */
void obp_conn_restart(struct obp_conn *conn);

/*
 * Between two items: gives the memory of the buffers back to the system, as far as they hold no
 * received bytes. They grow again when needed.
 */
void obp_conn_release(struct obp_conn *conn);

enum obp_event obp_conn_next(struct obp_conn *conn, struct obp_item *ret_item);
/* Returns the space for the next received bytes; *ret_size is never 0 after OBP_NEED. */
void obp_conn_space(struct obp_conn *conn, void **ret_data, size_t *ret_size);
void obp_conn_fed(struct obp_conn *conn, size_t size);

/*
 * True while a packed payload is being received: obp_conn_space then returns space for exactly the
 * rest of it.
 */
static inline bool obp_conn_gathers(const struct obp_conn *conn)
{
	return conn->unpacker.size != 0;
}

/* After OBP_BIG: copies up to n body bytes from the buffer to dst; returns their number. */
size_t obp_conn_body_buffered(struct obp_conn *conn, void *dst, size_t n);
/* After OBP_BIG, with no bytes left in the buffer: the caller has received n bytes itself. */
void obp_conn_body_direct(struct obp_conn *conn, size_t n);
/*
 * Body and padding bytes of the OBP_BIG item that have not been taken. The caller must take all of
 * them before the next obp_conn_next.
 */
size_t obp_conn_body_left(const struct obp_conn *conn);

/* Fills in a frame header. size must be a multiple of 8 and at most OBP_FRAME_PAYLOAD_MAX. */
void obp_frame_fill(struct obp_frame *ret, enum obp_frame_type type, uint32_t size, uint32_t count,
	uint64_t sequence, uint64_t ack);
/* Checks a preface. OB_ERR_NONE: it can be served; otherwise the reason for the refusal. */
enum ob_err obp_preface_check(const struct obp_preface *preface);

#endif
