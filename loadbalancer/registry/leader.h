/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The election among the balancers: the leader has put the key "leader" with its lease. Whoever sees
 * that the key is gone puts it by compare-and-swap. etcd's own election calls would do the same with
 * one key for each candidate, and a call that waits for its turn: a request without an end, at one
 * endpoint, which would have to be started again after each failure. The watch tells of the key anyway.
 * Embedded in its owner. Loop's thread only.
 */
#ifndef OBL_LEADER_H
#define OBL_LEADER_H

#include "loadbalancer/registry/lease.h"
#include "loadbalancer/registry/wire.h"

/* A leader whose lease has less time left than this no longer leads. */
#define OBL_LEADER_MARGIN_NS (500 * OB_MS)

struct obl_leader {
	struct obl_calls *calls;
	const struct obl_lease *lease;
	const char *prefix, *name; /* name: this balancer's, the value of the key */
	uint64_t lease_of_key;     /* 0: the key does not exist */
	bool known;                /* the watch has told whether it exists */
	bool busy;
	uint64_t next; /* ns: no attempt before */
};

/* The watch tells: everything is unknown; the state is complete; the key (NULL: was deleted). */
void obl_leader_reset(struct obl_leader *leader);
void obl_leader_synced(struct obl_leader *leader);
void obl_leader_seen(struct obl_leader *leader, const struct obl_kv *kv);
void obl_leader_tick(struct obl_leader *leader, uint64_t now);
bool obl_leader_leads(const struct obl_leader *leader, uint64_t now);

#endif
