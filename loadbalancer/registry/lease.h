/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The lease of a balancer in etcd: granted, kept alive, and granted again when etcd says that it has
 * ended. A lost connection alone never ends it: without a leader, etcd lets no lease expire. Embedded
 * in its owner, which calls the tick. Loop's thread only.
 */
#ifndef OBL_LEASE_H
#define OBL_LEASE_H

#include "loadbalancer/registry/calls.h"

#define OBL_LEASE_MAX_S 3600u

struct obl_lease {
	struct obl_calls *calls;
	uint32_t ttl_s;       /* that is asked for */
	uint64_t id;          /* 0: none */
	uint64_t granted_s;   /* by etcd, which may give more */
	uint64_t valid_until; /* ns: it exists at least until then */
	uint64_t next;        /* ns: of the next call */
	bool busy, lost;
	/* A new lease replaces one that has ended. */
	void (*renewed)(void *user);
	/* An answer told the present revision of etcd. */
	void (*revision)(void *user, uint64_t revision);
	void *user;
};

void obl_lease_tick(struct obl_lease *lease, uint64_t now);
/* It exists now, whatever etcd has done since the last answer. */
bool obl_lease_valid(const struct obl_lease *lease, uint64_t now);
/* Another call was told that lease `id` does not exist. */
void obl_lease_gone(struct obl_lease *lease, uint64_t id);
/* Ends the lease and its keys; done is called in the end. False: there is none, done is not called. */
bool obl_lease_revoke(struct obl_lease *lease, obl_reply_done *done, void *user);

#endif
