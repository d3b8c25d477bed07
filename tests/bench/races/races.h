/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obl-races: several processes reserve and release parts of servers in one registry, by the
 * transactions of docs/adr/0046-pool.md, and an auditor follows every revision. A ledger is the value of
 * "ledger/NUMBER", its first word what is reserved; a reservation "reservations/PROCESS-NUMBER" lists
 * "SERVER:AMOUNT" words. The rest of a value is padding to the size of a real one.
 */
#ifndef OBL_RACES_H
#define OBL_RACES_H

#include "loadbalancer/registry/registry.h"

#define RACES_CAPACITY    40u /* of each server */
#define RACES_SERVERS_MAX 64u
#define RACES_PARTS_MAX   3u             /* servers of one reservation */
#define RACES_VALUE       600u           /* bytes of a ledger: eight devices */
#define RACES_END         "operator/end" /* the auditor ends when this key is put */

struct races_settings {
	const char *url, *prefix;
	uint32_t servers;
	uint32_t count; /* transactions that succeed, of this process; latency: of each kind */
	uint32_t slots; /* transactions at a time */
	uint64_t seed;
	uint32_t timeout_ms; /* of one attempt; 0: as a balancer has it */
};

/* Each is a command; the result is an exit status. They print one JSON object. */
int races_worker(const struct races_settings *settings);
int races_audit(const struct races_settings *settings);
int races_latency(const struct races_settings *settings);

/* Opens the registry or ends the program. */
struct obl_registry *races_open(
	uv_loop_t *loop, const struct races_settings *settings, const struct obl_watcher *watcher);
/* Prints what is reserved, with padding to RACES_VALUE. */
void races_ledger(char ret_value[RACES_VALUE + 1], uint32_t reserved);
uint32_t races_random(uint64_t *state, uint32_t below);
/* Prints the quantiles of n times in nanoseconds, which it sorts, as members of a JSON object. */
void races_quantiles(const char *name, uint64_t *ns, uint32_t n);

#endif
