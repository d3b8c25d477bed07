/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The state of a balancer, which its parts share. Owner: balancer.c; loop's thread only.
 *
 *   mirror    a copy of the registry                              (mirror.h)
 *   work      the one transaction that is under way               (work.h)
 *   members   the servers that are connected to this balancer     (members.h)
 *   asks      the clients that wait for an answer here            (asks.h)
 *   events    what happened                                       (events.h)
 *   moves     what the last round has decided                     (moves.h)
 *   follows   the clients that want to know of moves              (follows.h)
 *
 * What has to be done is always derived from this state, never remembered beside it. `wake` asks
 * for a turn: each part in `sources` is asked whether it has a transaction to make, until one has.
 * When that is done, successful or not, the next turn looks at the state again.
 */
#ifndef OBL_CORE_H
#define OBL_CORE_H

#include <time.h>

#include "loadbalancer/balancer/auth.h"
#include "loadbalancer/balancer/gate.h"
#include "loadbalancer/balancer/plan.h"
#include "loadbalancer/balancer/settings.h"
#include "loadbalancer/counts.h"
#include "loadbalancer/queue.h"
#include "loadbalancer/rebalance.h"
#include "transport/sign.h"

#define OBL_EVENTS_WAITING_MAX 256u
#define OBL_MEMBER_BUCKETS     1024u

struct obl_core;
struct obl_member;
struct obl_asker;
struct obl_command; /* of an operator (commands.h) */
struct obl_follow;  /* of a client (follows.h) */
struct obl_line;    /* the queue as placement sees it (line.h) */
struct obl_tenants; /* the file of quotas (tenants.h) */

enum obl_outcome {
	OBL_MADE,  /* all changes were made, and the mirror has them */
	OBL_STALE, /* none was made; the mirror has the present values of the compared keys */
	OBL_FAILED /* none was made, or it is unknown; *cause */
};

typedef void obl_work_done(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause);

struct obl_work {
	struct obl_plan plan;
	bool busy;
	uint64_t rest_until;    /* ob_clock_ns; no transaction before: other balancers get a turn */
	uint32_t stale;         /* conflicts in a row */
	char look[OBL_KEY_MAX]; /* the key that is read when it is unknown whether it was made */
	obl_work_done *done;
	void *user;
	uint64_t made, conflicts, failures; /* counts */
	uint64_t noted_ns;                  /* when a failure was logged last */
};

struct obl_events {
	struct obl_event ring[OBL_EVENTS_WAITING_MAX]; /* that are not in the registry yet */
	uint32_t first, n;
	uint64_t stored_ns; /* when some were stored last */
	uint64_t number;    /* of the last one that was stored */
	uint32_t storing;   /* how many are being stored */
	uint64_t dropped;
};

/* The part that is being credited; the move whose end is being noted. */
struct obl_credit {
	char id[OBL_ID_TEXT], tenant[OBP_POOL_NAME_MAX], program[OBP_NAME_MAX];
	uint32_t devices;
	bool whole; /* the reservation ends with it */
	char server[OBP_POOL_NAME_MAX];
	char from[OBP_POOL_NAME_MAX]; /* it was moved from there, and nobody has said so; "": no */
	bool moved;                   /* its program has another reservation */
	uint64_t moved_s;             /* of an arrival: what is written */
};

/* A move that a round has decided and that is not made yet. */
struct obl_decided {
	char id[OBL_ID_TEXT];
	char server[OBP_POOL_NAME_MAX]; /* "": any other one than now */
	bool any_device;
	uint8_t uuid[16];
	uint32_t load; /* per mille that it takes with it */
	char why[2 * OBP_POOL_NAME_MAX];
};

struct obl_moves {
	struct obl_rebalance rule;
	uint64_t next_ns; /* of the next round */
	/* where the next round begins: of what can be moved, and of what must leave its server */
	uint32_t turn, leaving_turn;
	bool left; /* the last second was for what must leave its server */
	struct obl_decided list[OBL_REBALANCE_MOVES_MAX];
	uint32_t n, tries;
	bool making;                /* the transaction of the first is under way */
	char to[OBP_POOL_NAME_MAX]; /* its server */
	bool arrivals;              /* successors are in use, which is to be noted */
	struct obl_credit arrival;  /* the one that is being noted */
};

/* What differs from the sum of the reservations (audit.h). */
struct obl_audit {
	uint32_t seconds;
	char key[OBL_KEY_MAX]; /* "": nothing */
	uint64_t revision;
	bool due; /* seen twice: it is to be corrected */
};

struct obl_core {
	const struct obl_settings *settings;
	const char *name;  /* of this balancer */
	uint64_t instance; /* random; of this process */
	uv_loop_t *loop;
	struct obl_gate gate;
	struct obl_auth *auth;
	struct obl_tenants *tenants; /* NULL: no file */
	struct obt_sign_key *key;
	uint8_t public_key[OBT_SIGN_KEY_BYTES];

	const char *registry_url;
	struct obl_registry *registry;
	bool usable, synced;
	uint64_t synced_ns;           /* ob_clock_ns: when the whole registry had been read last */
	char unusable[OB_CAUSE_TEXT]; /* why */
	uint64_t unusable_ns;
	struct obl_mirror mirror;
	struct obl_work work;
	bool announced;       /* balancers/NAME is written */
	uint64_t namesake_ns; /* since when it is another balancer's; 0: it is not */
	bool check_alive;     /* alive/ may have keys of servers that have gone */

	struct obl_member *members;                            /* a list */
	struct obl_member *member_buckets[OBL_MEMBER_BUCKETS]; /* the same by name */
	uint32_t n_members;
	struct obl_asker *askers, *last_asker; /* a list, the oldest first */
	uint32_t n_askers;
	struct obl_line *line;
	struct obl_command *commands; /* a list, the oldest first */
	struct obl_follow *follows;   /* a list */
	struct obl_moves moves;
	uint64_t numbers; /* of requests in the queue */
	uint64_t kills;   /* orders to end reservations have numbers of their own */
	struct obl_credit credit;
	struct obl_audit audit;
	bool orphans;      /* a server has registered: parts of its old incarnation may be left */
	bool asks_changed; /* something happened that placement depends on */
	struct obl_queue_hold hold;
	struct obl_state chance;
	struct obl_releases releases;
	struct obl_events events;

	struct obl_counts counts;
	uint64_t started_ns, placed, refused, ended;
	bool stopping;
	void (*wake)(struct obl_core *core);
};

/* Milliseconds since 1970. */
static inline uint64_t obl_time_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#endif
