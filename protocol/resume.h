/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What resuming a session needs that does no I/O: how good the link is (obp_quality), when to try
 * again (obp_backoff), whether a data connection that looks alive moves nothing (obp_stall). Plain
 * structures of their owner; no locks; one thread at a time.
 */
#ifndef OBP_RESUME_H
#define OBP_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#define OBP_GRACE_DEFAULT_S  60u
#define OBP_GRACE_MAX_S      86400u
#define OBP_PING_BUSY_NS     1000000000ull /* between pings while calls are made */
#define OBP_PING_IDLE_NS     10000000000ull
/* no answer for less than this says nothing: a machine may be busy for so long */
#define OBP_SILENCE_MIN_NS   3000000000ull
/*
 * A client acknowledges at the latest after so many replies with bodies above OBP_RETRANSMIT_SMALL,
 * or so many bytes of others.
 */
#define OBP_ACK_BIG          4u
#define OBP_ACK_SMALL_BYTES  (128u << 10)
#define OBP_RETRANSMIT_SMALL 4096u

/* What a join is for: `code` of the message. */
enum obp_join_purpose {
	OBP_JOIN_CONTROL = 0,
	OBP_JOIN_DATA = 1,
	OBP_JOIN_STRIPE = 2,
	OBP_JOIN_PURPOSES
};

/* Round trips of pings, smoothed as TCP does it (RFC 6298), and the best rates seen lately. */
struct obp_quality {
	uint64_t samples;
	uint64_t rtt_ns, jitter_ns; /* smoothed; jitter is the mean deviation */
	uint64_t min_ns, max_ns;
	uint64_t at_ns, out_bytes, in_bytes; /* of the last rate sample */
	/* bytes a second; the highest of late: each quiet sample takes an eighth off */
	double out_rate, in_rate;
};

void obp_quality_rtt(struct obp_quality *quality, uint64_t rtt_ns);
/* Totals so far. */
void obp_quality_bytes(
	struct obp_quality *quality, uint64_t now_ns, uint64_t out_bytes, uint64_t in_bytes);
/*
 * How long a ping may stay unanswered: grows with round trip and jitter; from OBP_SILENCE_MIN_NS to
 * max_ns (which wins).
 */
uint64_t obp_quality_timeout(const struct obp_quality *quality, uint64_t max_ns);

/*
 * Waits between attempts: the first is short, each doubles, all are drawn at random between half
 * and the whole, so that many clients come one by one.
 */
struct obp_backoff {
	uint64_t random;
	uint32_t attempts;
};

#define OBP_BACKOFF_FIRST_NS 10000000ull /* 10 ms */
#define OBP_BACKOFF_MAX_NS   2000000000ull

void obp_backoff_init(struct obp_backoff *backoff, uint64_t seed);
/* ns to wait before the next attempt; 0 before the first. */
uint64_t obp_backoff_next(struct obp_backoff *backoff);

/* connections in a row that end as soon as they are made */
#define OBP_FUTILE_DEAD_MAX    20u
/* likewise, when they have gone on for as long as breaks are put up with */
#define OBP_FUTILE_DEAD_MIN    3u
/* connections in a row that carry bytes, and nothing whole */
#define OBP_FUTILE_PARTIAL_MAX 1000u
#define OBP_FUTILE_BYTES       (16u << 10)   /* that many */
#define OBP_FUTILE_QUICK_NS    5000000000ull /* "as soon as" */

/*
 * Connections that are made again and again and get nothing through: each by itself looks like
 * progress. All zeros: none yet.
 */
struct obp_futile {
	/* ns: of the first break in the row; of the last connection */
	uint64_t since, made;
	uint64_t items, bytes; /* totals at the last break */
	unsigned dead, partial;
};

void obp_futile_made(struct obp_futile *futile, uint64_t now_ns);
/*
 * It broke. items: records acknowledged and replies received in all; bytes: moved in all. True:
 * give up.
 */
bool obp_futile_broke(struct obp_futile *futile, uint64_t now_ns, uint64_t items, uint64_t bytes,
	uint64_t limit_ns);

/* `code` of a server's pong: what its executor is at. */
enum obp_peer {
	OBP_PEER_BUSY,
	OBP_PEER_IDLE /* waits for bytes */,
	OBP_PEER_CUT_OFF /* its data connection is gone: waits for the next */
};

/*
 * What both sides say of the data connection at one moment, to find one that is open and moves
 * nothing.
 */
struct obp_progress {
	uint64_t sent, received;      /* records or replies, of this side */
	uint64_t bytes_in, bytes_out; /* of this side */
	uint64_t peer_sent, peer_received, peer_bytes_in;
	bool waiting;   /* a thread of this side waits for a reply */
	bool peer_idle; /* the peer executes nothing and waits for bytes */
};

struct obp_stall {
	struct obp_progress last;
	/* ns; since when something has been under way without a byte moving; 0: it moves */
	uint64_t in_since, out_since;
};

/*
 * True: something has been under way in one direction for at least limit_ns and not a byte of it
 * came.
 */
bool obp_stall_check(struct obp_stall *stall, const struct obp_progress *now, uint64_t now_ns,
	uint64_t limit_ns);

#endif
