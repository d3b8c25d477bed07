/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The servers that are connected to this balancer: registration, heartbeats, orders. Loop's thread
 * only. A member exists from its REGISTER until its connection ends.
 *
 *   REGISTER ──► REGISTERED ──► first heartbeat with devices ──► transaction:
 *                                  servers/NAME, ledger/NAME, alive/NAME/BALANCER
 *
 * A new incarnation begins an empty ledger: nothing of the old one can be running. It is refused as
 * long as another incarnation of the same name is alive, here or at another balancer.
 */
#ifndef OBL_MEMBERS_H
#define OBL_MEMBERS_H

#include "loadbalancer/balancer/core.h"

#define OBL_MEMBER_VOIDS_MAX 256u  /* VOID orders that are remembered */
#define OBL_VOID_AGAIN_MS    5000u /* an order without an answer is sent again after this */
#define OBL_TELL_AGAIN_MS    3000u /* one that the heartbeats do not confirm is */
/*
 * A server obeys an order of a revision that the registry has not reached, for so long: the registry
 * was begun anew. Longer than a watch can be behind unnoticed (OBL_WATCH_LATE_NS).
 */
#define OBL_FORCE_AFTER_MS   10000u

/* What operators want of a server; each includes those before it. */
enum obl_closed { OBL_WISH_OPEN, OBL_WISH_CORDON, OBL_WISH_DRAIN };

struct obl_wish {
	enum obl_closed closed;
	uint64_t as_of;   /* the registry's revision at which this is, or was, wanted */
	uint64_t left_ms; /* OBL_WISH_DRAIN: until sessions are ended; not of `is` */
};

struct obl_void_order {
	uint8_t id[OBP_RESERVATION_BYTES];
	uint64_t sent_ns;
};

struct obl_member {
	struct obl_core *core;
	struct obl_member *next, *previous, *bucket;
	struct obl_link *link;
	char name[OBP_POOL_NAME_MAX], version[32], pin[65];
	uint64_t name_hash;
	char urls[OBL_URLS_TEXT];
	char labels_text[OBP_POOL_WHERE_MAX];
	uint64_t incarnation;
	uint64_t joined_ns, beat_ns; /* ob_clock_ns; beat_ns: of the last heartbeat, 0: none */
	bool silent;                 /* and announced as such */
	bool joined;                 /* announced */
	bool check;                  /* the registry may not have it as it is */
	struct obp_load load;        /* of the last heartbeat */
	bool healthy;
	char health[OBP_POOL_TEXT_MAX];
	struct obp_pool_held *held; /* of the last heartbeat, by id; freed with the member */
	uint32_t n_held, n_ended;   /* n_ended: of these, not in use any more */
	uint32_t unknown_s;   /* for how many seconds it has run what the registry does not know */
	uint64_t credited_ns; /* when the orders CREDITED were sent last */
	struct obl_void_order voids[OBL_MEMBER_VOIDS_MAX]; /* a ring */
	uint32_t at_void;
	struct obl_wish is;     /* what operators have made of it, as its last heartbeat says */
	struct obl_wish wanted; /* what they want of it, as obl_member_tell has seen it last */
	bool ahead;             /* the registry's revision was seen to be lower than is.as_of */
	uint64_t differs_ns;    /* since when the two differ and the mirror is usable; 0: not */
	uint64_t told_ns;       /* when an order was sent last */
	uint64_t fresh_ns;      /* slow start: the second that `fresh` counts */
	uint32_t fresh;         /* placements in it */
};

/* Messages of servers. */
void obl_member_register(
	struct obl_core *core, struct obl_link *link, const struct obp_pool_register *join);
/* Takes over the lists of the heartbeat. */
void obl_member_beat(struct obl_member *member, struct obp_pool_beat *beat);
/* The connection has ended: frees the member. */
void obl_member_gone(struct obl_member *member);

/* Adds a new member, whose name and core are set, to the core's lists. */
void obl_member_enter(struct obl_member *member);
/* NULL: no such server is connected. */
struct obl_member *obl_member_find(const struct obl_core *core, const char *name);
/* Whether a server is connected, to this balancer or to another one. */
bool obl_member_anywhere(const struct obl_core *core, const char *name);
/* Whether it is connected to another balancer than this one. */
bool obl_member_elsewhere(const struct obl_core *core, const char *name);
/* It had a heartbeat within OBP_POOL_SILENT_MS, and the registry has this incarnation. */
bool obl_member_alive(const struct obl_member *member, uint64_t now_ns);
/* The reservation's entry in the last heartbeat; NULL: none. */
const struct obp_pool_held *obl_member_held(
	const struct obl_member *member, const uint8_t id[OBP_RESERVATION_BYTES]);
/* False: the connection does not take it. id may be NULL. */
bool obl_member_order(struct obl_member *member, enum obp_pool_order_kind kind, const uint8_t *id,
	uint64_t number, const char *text);
/* Orders VOID unless that was done in the last OBL_VOID_AGAIN_MS. */
void obl_member_void(struct obl_member *member, const uint8_t id[OBP_RESERVATION_BYTES]);
/*
 * Orders what the operators want of the server, if its last heartbeat says that it is otherwise, and
 * if that is not because another balancer knows more. A server is opened by a usable mirror only.
 */
void obl_member_tell(struct obl_member *member);

/* Every second: who is silent. */
void obl_members_sweep(struct obl_core *core);
/* Registers servers and keeps alive/ up to date. True: a transaction was begun. */
bool obl_members_start(struct obl_core *core);

#endif
