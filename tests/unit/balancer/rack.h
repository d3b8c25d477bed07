/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A pool for tests of rounds and moves: a core whose mirror is filled by hand, with servers that are
 * connected, their devices, and reservations in use. Nothing runs; the caller says what time it is.
 */
#ifndef TESTS_BALANCER_RACK_H
#define TESTS_BALANCER_RACK_H

#include "loadbalancer/balancer/members.h"

#define RACK_GIB     (UINT64_C(1) << 30)
#define RACK_MEMORY  (80 * RACK_GIB) /* of a device */
#define RACK_UNKNOWN UINT32_MAX      /* the server does not tell how busy its device is */

/* What a test says of a reservation; zeros are usual. */
struct rack_reservation {
	const char *server;
	uint32_t device;
	uint32_t busy; /* of its session, per mille */
	bool idle;     /* no session has come */
	bool fixed;    /* not restartable */
	bool exclusive;
	uint64_t memory; /* 0: 1 GiB */
	const char *where, *apart, *from;
	uint32_t moves, load;
	uint64_t moved, expires; /* s since 1970 */
	uint32_t successor;      /* its number; 0: none */
	uint32_t second_device;  /* above 0: it has this one too */
};

extern struct obl_core rack;
extern struct obl_settings rack_settings;

/* --rebalance 1, and this balancer leads. */
void rack_begin(void);
void rack_end(void);
/* A server with so many devices; busy: of each; RACK_UNKNOWN: no fact. */
struct obl_member *rack_server(
	const char *name, uint32_t n, const uint32_t *busy, const char *labels);
/* What an operator has ordered. */
void rack_operate(const char *name, bool cordoned, bool draining);
/* Adds or replaces the reservation with this number, from 1. */
void rack_reserve(uint32_t number, const struct rack_reservation *r);
void rack_remove(uint32_t number);
/* The number of the decided move's reservation. */
uint32_t rack_number(const struct obl_decided *decided);
/* The decided move of a reservation; NULL: none. */
const struct obl_decided *rack_decided(uint32_t number);
/*
 * Answers the transaction that is under way: made, or in conflict. False: there is none. Its changes
 * are in the mirror then; servers report what they did.
 */
bool rack_answer(bool made);
/* What the server of a reservation reports from now on. */
void rack_report(uint32_t number, const struct obp_pool_held *held);
/* How many events of the kind wait, and the last of them; NULL: none. */
uint32_t rack_events(const char *kind, const struct obl_event **ret_last);
/* The decided moves are made or dropped: rounds go on. */
void rack_forget(void);
/* The device's number on its server; UINT32_MAX: it has none of this UUID. */
uint32_t rack_device(const struct obl_decided *decided);
/* The reservation with this number in the mirror; NULL: none. */
const struct obl_reservation *rack_look(uint32_t number);

#endif
