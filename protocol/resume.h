/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The parts of resuming a session that do no I/O: measuring the quality of the link (obp_quality),
 * the times of new attempts (obp_backoff), giving up on connections that transfer nothing
 * (obp_futile), and detecting an open data connection on which nothing moves (obp_stall). Embedded
 * structures; no locks; one thread at a time.
 */
#ifndef OBP_RESUME_H
#define OBP_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#define OBP_GRACE_DEFAULT_S  60u
#define OBP_GRACE_MAX_S      86400u
#define OBP_PING_BUSY_NS     1000000000ull /* between pings while calls are made */
#define OBP_PING_IDLE_NS     10000000000ull
/* lower bound of the time-out for an answer, because a busy machine may be this late */
#define OBP_SILENCE_MIN_NS   3000000000ull
/*
 * A client sends an acknowledgement at the latest after OBP_ACK_BIG replies with bodies above
 * OBP_RETRANSMIT_SMALL, or after OBP_ACK_SMALL_BYTES of other replies.
 */
#define OBP_ACK_BIG          12u
#define OBP_ACK_SMALL_BYTES  (128u << 10)
#define OBP_RETRANSMIT_SMALL 4096u

/* The purpose of a join: `code` of the message. */
enum obp_join_purpose {
	OBP_JOIN_CONTROL = 0,
	OBP_JOIN_DATA = 1,
	OBP_JOIN_STRIPE = 2,
	OBP_JOIN_PURPOSES
};

/* Round trips of pings, smoothed as in TCP (RFC 6298), and the highest recent rates. */
struct obp_quality {
	uint64_t samples;
	uint64_t rtt_ns, jitter_ns; /* smoothed; jitter is the mean deviation */
	uint64_t min_ns, max_ns;
	uint64_t at_ns, out_bytes, in_bytes; /* time and totals of the last rate sample */
	/*
	 * bytes/s; the highest recent rate: a lower sample reduces it by an eighth of the
	 * difference
	 */
	double out_rate, in_rate;
};

void obp_quality_rtt(struct obp_quality *quality, uint64_t rtt_ns);
/* Adds a sample of the rates. out_bytes, in_bytes: totals so far. */
void obp_quality_bytes(
	struct obp_quality *quality, uint64_t now_ns, uint64_t out_bytes, uint64_t in_bytes);
/*
 * Time-out for the answer to a ping, ns. Grows with round trip and jitter; at least
 * OBP_SILENCE_MIN_NS and at most max_ns, which takes precedence.
 */
uint64_t obp_quality_timeout(const struct obp_quality *quality, uint64_t max_ns);

/*
 * Waits between attempts to connect. The first is short and each one is twice as long as the one
 * before, up to OBP_BACKOFF_MAX_NS. A wait is drawn at random between half and all of that time, so
 * that many clients do not connect at the same moment.
 */
struct obp_backoff {
	uint64_t random;
	uint32_t attempts;
};

#define OBP_BACKOFF_FIRST_NS 10000000ull /* 10 ms */
#define OBP_BACKOFF_MAX_NS   2000000000ull

void obp_backoff_init(struct obp_backoff *backoff, uint64_t seed);
/* Returns the wait before the next attempt, ns; 0 before the first. */
uint64_t obp_backoff_next(struct obp_backoff *backoff);

/* consecutive connections that end quickly and transfer fewer than OBP_FUTILE_BYTES */
#define OBP_FUTILE_DEAD_MAX    20u
/* likewise, if the last transfer ended longer ago than limit_ns (obp_futile_broke) */
#define OBP_FUTILE_DEAD_MIN    3u
/* connections that transfer bytes, since the last complete item */
#define OBP_FUTILE_PARTIAL_MAX 1000u
#define OBP_FUTILE_BYTES       (16u << 10) /* bytes that count as a transfer */
/* a connection that ends within this time ended quickly */
#define OBP_FUTILE_QUICK_NS    5000000000ull

/*
 * Detects a series of connections that transfer no complete item. Each successful connection taken
 * by itself looks like progress. Zero it to begin.
 */
struct obp_futile {
	/* ns: time of the last break that ended a transfer; time of the last connection */
	uint64_t since, made;
	uint64_t items, bytes; /* totals at the last break */
	unsigned dead;         /* since then, connections that ended quickly */
	unsigned partial;      /* since the last complete item, connections with a transfer */
};

void obp_futile_made(struct obp_futile *futile, uint64_t now_ns);
/*
 * The connection broke. items: total of records acknowledged and replies received; bytes: total of
 * bytes transferred. True: give up.
 */
bool obp_futile_broke(struct obp_futile *futile, uint64_t now_ns, uint64_t items, uint64_t bytes,
	uint64_t limit_ns);

/* `code` of a server's pong: the state of its executor. */
enum obp_peer {
	OBP_PEER_BUSY,
	OBP_PEER_IDLE /* it waits for bytes */,
	OBP_PEER_CUT_OFF /* the data connection is broken; it waits for the next one */
};

/*
 * The state of the data connection on both sides at one moment; used to find a connection that is
 * open but moves nothing.
 */
struct obp_progress {
	uint64_t sent, received;      /* by this side: number of the last record or reply */
	uint64_t bytes_in, bytes_out; /* bytes moved by this side */
	uint64_t peer_sent, peer_received, peer_bytes_in;
	bool waiting;   /* a thread of this side waits for a reply */
	bool peer_idle; /* the peer's executor waits for bytes */
};

struct obp_stall {
	struct obp_progress last;
	/* ns; since when data has been in transit without a byte arriving; 0: no stall */
	uint64_t in_since, out_since;
};

/*
 * True: data has been in transit in one direction for at least limit_ns and no byte of it has
 * arrived.
 */
bool obp_stall_check(struct obp_stall *stall, const struct obp_progress *now, uint64_t now_ns,
	uint64_t limit_ns);

#endif
