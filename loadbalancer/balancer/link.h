/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A connection to the balancer, of a client, a tool or a server: preface, TLS if the address has
 * it, then messages of protocol/pool.h in both directions. Nothing blocks. A peer that sends too
 * fast is read more slowly; one that does not read, is silent or breaks the protocol is closed.
 *
 *   PREFACE ──► MESSAGES ──► FLUSHING ──► LINGERING ──► closed
 *                            the last     the peer can read what was sent
 *                            bytes        before the end
 *
 * Owner: the gate (gate.h), which frees it in the close callback. Loop's thread only.
 */
#ifndef OBL_LINK_H
#define OBL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "loadbalancer/balancer/address.h"
#include "protocol/pool.h"
#include "transport/stream.h"
#include "transport/tls.h"

#define OBL_RETRY_MS         1000u   /* when a refused client should try again */
#define OBL_LINK_FIRST_MS    10000u  /* until the first message is complete, and each later one */
#define OBL_LINK_IDLE_MS     120000u /* a client without a request */
#define OBL_LINK_MEMBER_MS   15000u  /* a server without a heartbeat: it connects again */
#define OBL_LINK_SEND_MS     30000u  /* a peer that takes no byte of what waits for it */
#define OBL_LINK_DRAIN_MS    120000u /* until nothing waits for it, however slowly it reads */
#define OBL_LINK_LINGER_MS   1000u
#define OBL_LINK_FRAME_MAX   8192u /* bytes of a message before the peer is known as a server */
#define OBL_LINK_OUT_MAX     (16u << 20)  /* bytes that wait for one peer */
#define OBL_LINKS_OUT_MAX    (128u << 20) /* for all; the peer with the most is closed */
#define OBL_LINK_RATE        20u          /* messages a second, and how many may come at once */
#define OBL_LINK_BURST       40u
#define OBL_LINK_MEMBER_RATE 400u /* of a server: each order is answered */

enum obl_link_state {
	OBL_LINK_PREFACE,
	OBL_LINK_MESSAGES,
	OBL_LINK_FLUSHING,
	OBL_LINK_LINGERING,
	OBL_LINK_CLOSED
};

struct obl_link;

/* What is common to all links. Set up by the gate. */
struct obl_links {
	uv_loop_t *loop;
	struct obt_tls_server *tls; /* NULL: no tls:// addresses */
	struct obl_addresses addresses;
	struct obl_link *first;
	uint32_t n;
	size_t out; /* bytes that wait, of all links */
	void *user;
	/* A message; the link may be ended inside. The receiver does not free it. */
	void (*message)(void *user, struct obl_link *link, struct obp_pool_message *message);
	/* Called once, when the link carries no more messages and before it is freed. */
	void (*ended)(void *user, struct obl_link *link);
	/* Called when a link was freed. */
	void (*freed)(void *user);
};

struct obl_link {
	struct obl_links *links;
	struct obl_link *next, *previous;
	struct obl_address *address;
	uv_poll_t poll;
	int events; /* that are polled */
	int fd;
	struct obt_stream stream;
	bool secure;
	enum obl_link_state state;
	uint64_t deadline;                      /* ob_clock_ns */
	uint64_t send_deadline, drain_deadline; /* while something waits */
	uint8_t preface[sizeof(struct obp_preface)];
	struct obp_frame head;
	uint8_t *body; /* NULL while the header is received */
	size_t got;    /* bytes of the preface, the header or the body */
	struct ob_buf out;
	uint32_t credit; /* messages that may be read now */
	uint64_t credit_ns;
	size_t thrown_away;
	bool broken; /* nothing more can be sent: closed at the next sweep */
	/* ---- of the receiver of messages ---- */
	bool member;  /* a server: longer messages, heartbeats instead of the idle time-out */
	bool patient; /* it waits for an answer: no idle time-out */
	bool follows; /* it waits for news of a reservation: it gives way when there is no room */
	void *user;   /* the member, or the request that waits */
	bool granted; /* a client: the reservation `id` was granted on this connection */
	uint8_t id[OBP_RESERVATION_BYTES];
};

/* A new connection; takes over the socket. NULL: no memory; it was closed. */
struct obl_link *obl_link_new(struct obl_links *links, int fd, bool secure);
/*
 * False: the link has ended, or is broken (the peer is gone, or does not read) and will end at the
 * next sweep. Never ends the link itself.
 */
bool obl_link_send(struct obl_link *link, const struct obp_pool_message *message);
/* Sends REFUSED. retry_ms: 0: not known. */
void obl_link_refuse(
	struct obl_link *link, enum obp_pool_refusal code, uint64_t retry_ms, const char *text);
/* No more messages; closes once everything was sent. */
void obl_link_end(struct obl_link *link);
/* It waits for nothing any more: the idle time-out begins. */
void obl_link_rest(struct obl_link *link);
/* Closes it at once: there is no room for it. */
void obl_link_evict(struct obl_link *link);
/* Marks the link as a server's. */
void obl_link_trust(struct obl_link *link);
/* Looks at time-outs, and reads from those that were too fast. */
void obl_links_sweep(struct obl_links *links, uint64_t now_ns);
/* Ends all links. */
void obl_links_end_all(struct obl_links *links);

#endif
