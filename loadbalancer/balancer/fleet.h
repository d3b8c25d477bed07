/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The pool as placement sees it: every server that the registry knows, with what is reserved on its
 * devices (its ledger) and how it is (heartbeats to this balancer). A server that is not connected
 * here counts as not answering: it would not accept this balancer's tickets. Made anew for each
 * decision. Loop's thread only.
 */
#ifndef OBL_FLEET_H
#define OBL_FLEET_H

#include "loadbalancer/balancer/members.h"
#include "loadbalancer/dashboard/source.h"

struct obl_fleet_row {
	const struct obl_item *known;        /* servers/NAME */
	const struct obl_item *ledger;       /* NULL: none that can be read */
	struct obl_member *member;           /* NULL: not connected here */
	const struct obl_operator *operated; /* NULL: nothing was ordered */
	struct obl_labels labels;
};

struct obl_fleet {
	uint32_t n;
	struct obl_server servers[OBL_SERVERS_MAX];
	struct obl_fleet_row rows[OBL_SERVERS_MAX];
};

/* NULL: no memory. Freed by the caller. */
struct obl_fleet *obl_fleet_new(void);
/* Fills it in; valid until the mirror or the members change. */
void obl_fleet_fill(struct obl_core *core, struct obl_fleet *fleet);
/* What documents and metrics call the state of a server (obl_seen_state_name). */
enum obl_seen_state obl_fleet_state(const struct obl_fleet *fleet, uint32_t server);
/* The heartbeat's entry of a device; NULL: none. */
const struct obp_load_device *obl_fleet_load(
	const struct obl_member *member, const uint8_t uuid[16]);
/* Sets a bit for each server that runs a reservation with this word. */
void obl_fleet_apart(const struct obl_core *core, const struct obl_fleet *fleet, const char *word,
	uint64_t ret_bits[OBL_SERVERS_MAX / 64]);

#endif
