/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Shared by commands.c and commands_kill.c: a command under way. */
#ifndef OBL_COMMANDS_INSIDE_H
#define OBL_COMMANDS_INSIDE_H

#include "loadbalancer/balancer/commands.h"

enum obl_verb {
	OBL_VERB_CORDON,
	OBL_VERB_UNCORDON,
	OBL_VERB_DRAIN,
	OBL_VERB_KILL,
	OBL_VERB_QUOTA,
	OBL_VERB_FORGET,
	OBL_VERB_MOVE,
	OBL_VERBS
};

/* An order that is not answered yet. */
struct obl_asked {
	uint64_t incarnation; /* of its server */
	uint8_t id[OBP_RESERVATION_BYTES];
};

/*
 * A program that is being moved has a reservation at its new place, and one at the old place. If the
 * old one's server is away when it is moved again, there are more.
 */
#define OBL_KILL_CHAIN_MAX 8u
#define OBL_KILL_ASKED_MAX (OBP_POOL_PARTS_MAX + OBL_KILL_CHAIN_MAX)

struct obl_command {
	struct obl_command *next;
	struct obl_link *link; /* NULL: the operator has gone, or `told` is called */
	void (*told)(void *user, uint32_t code, const char *text);
	void *told_user;
	enum obl_verb verb;
	char target[OBP_POOL_NAME_MAX], who[OBL_WHO_MAX];
	struct obl_quota quota; /* QUOTA */
	bool no_quota;          /* QUOTA: it is removed */
	uint64_t grace_ms;      /* DRAIN */
	/* MOVE: the server that was named, "": none; the one that was chosen */
	char wanted[OBP_POOL_NAME_MAX], to[OBP_POOL_NAME_MAX];
	uint64_t deadline;
	bool making; /* its transaction is under way */
	/* KILL: the order; who has not answered; what the others have said */
	enum obp_pool_order_kind kind;
	uint8_t chain[OBL_KILL_CHAIN_MAX]
		     [OBP_RESERVATION_BYTES]; /* the reservations, the newest last */
	uint32_t n_chain;
	bool mark, marked;            /* the newest is to be marked first; it is */
	char away[OBP_POOL_NAME_MAX]; /* a server of theirs that is not connected here; "": none */
	uint64_t number;
	struct obl_asked asked[OBL_KILL_ASKED_MAX];
	uint32_t n_asked;
	bool done, failed;
};

/* Tells the operator, and frees it. */
void obl_command_finish(
	struct obl_core *core, struct obl_command *command, uint32_t code, const char *text);

/* ---- commands_kill.c ---- */

/* Finds the target, and sends the orders, or lets it be marked first. False: what is wrong. */
bool obl_command_kill(struct obl_core *core, struct obl_command *command, const char **ret_wrong);
/*
 * The newest reservation was marked: its client knows now that the program is not to be started at
 * its new place. Sends the orders.
 */
void obl_command_kill_marked(struct obl_core *core, struct obl_command *command);

#endif
