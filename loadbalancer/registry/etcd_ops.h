/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Transactions and ranges of the filling `etcd`. Embedded in its owner; an operation ends with its
 * call. Loop's thread only.
 */
#ifndef OBL_ETCD_OPS_H
#define OBL_ETCD_OPS_H

#include "loadbalancer/registry/lease.h"
#include "loadbalancer/registry/registry.h"

struct obl_etcd_ops {
	struct obl_calls *calls;
	struct obl_lease *lease;
	const char *prefix;
	uint32_t n; /* pending */
	/* An answer has proved that there was a quorum at started_ns. */
	void (*quorum)(void *user, uint64_t started_ns, uint64_t revision);
	void *user;
};

void obl_etcd_txn(
	struct obl_etcd_ops *ops, const struct obl_txn *txn, obl_txn_done *done, void *user);
void obl_etcd_range(struct obl_etcd_ops *ops, const char *prefix, obl_range_done *done, void *user);

#endif
