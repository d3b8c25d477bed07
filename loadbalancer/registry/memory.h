/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The filling `memory`. Handles that are opened with the same name ("memory:NAME") in one process
 * share one registry, which ends with its last handle; "memory" alone is a registry of its own. One
 * thread for all of them.
 */
#ifndef OBL_MEMORY_H
#define OBL_MEMORY_H

#include "loadbalancer/registry/registry.h"

/* name: "" for a registry of its own. */
enum ob_err obl_memory_open(uv_loop_t *loop, const char *name, const struct obl_watcher *watcher,
	struct obl_registry **ret, struct ob_cause *ret_cause);

/* ---- for tests: what goes wrong with etcd ---- */

/* While unusable, all requests are refused with the cause, as without a quorum. */
void obl_memory_set_usable(struct obl_registry *registry, bool usable, const struct ob_cause *why);
/* The lease ends: its keys are removed, lease_renewed is called. */
void obl_memory_lose_lease(struct obl_registry *registry);
/* The next transaction that is not refused is answered with OB_ERR_TIMEOUT; made: it is executed. */
void obl_memory_lose_answer(struct obl_registry *registry, bool made);

#endif
