/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A registry inside this process, which the fillings `memory` and `static` share: a hub has the table;
 * each handle has a queue of answers and events, which an idle handle of its loop delivers. With a
 * store, changes are applied at once, and answers and events wait until the store has saved them. All
 * handles of a hub, and the hub, belong to one thread.
 */
#ifndef OBL_LOCAL_H
#define OBL_LOCAL_H

#include "loadbalancer/registry/registry.h"
#include "loadbalancer/registry/table.h"

struct obl_local;

/* Where a hub saves its table; the functions are called by the hub. */
struct obl_store {
	void *user;
	/* The table has changed; obl_hub_saved or obl_hub_restore follows. */
	void (*changed)(void *user);
};

struct obl_hub {
	struct obl_table table;
	struct obl_local *handles;
	struct obl_store store; /* changed NULL: none */
	uint64_t made, saved;   /* numbers of the last change that was applied, and saved */
};

/* ---- hubs ---- */

void obl_hub_init(struct obl_hub *hub, const struct obl_store *store);
/* No handle may be left. */
void obl_hub_fini(struct obl_hub *hub);
/* The changes up to number `made` are saved: their answers and events are delivered. */
void obl_hub_saved(struct obl_hub *hub, uint64_t made);
/*
 * Nothing after `saved` could be saved: the table becomes a copy of it, and the answers that wait fail
 * with the cause.
 */
void obl_hub_restore(
	struct obl_hub *hub, const struct obl_table *saved, const struct ob_cause *cause);

/* ---- handles ---- */

/* A handle; the watcher's first calls come from the loop. Ended by obl_local_close. */
struct obl_local *obl_local_new(uv_loop_t *loop, struct obl_hub *hub,
	const struct obl_registry_ops *ops, const struct obl_watcher *watcher);
struct obl_hub *obl_local_hub(struct obl_local *local);
/* For the table of functions of a filling. */
void obl_local_txn(
	struct obl_registry *registry, const struct obl_txn *txn, obl_txn_done *done, void *user);
void obl_local_range(
	struct obl_registry *registry, const char *prefix, obl_range_done *done, void *user);
bool obl_local_leads(const struct obl_registry *registry);
/* Removes the handle's leased keys; closed is called after the handle left its hub. */
void obl_local_close(struct obl_registry *registry, void (*closed)(void *user), void *user);

/* Reports a change of `usable` to the watcher; while false, requests are refused with the cause. */
void obl_local_set_usable(struct obl_local *local, bool usable, const struct ob_cause *why);
/* Removes the handle's leased keys and reports that a new lease was granted. */
void obl_local_lose_lease(struct obl_local *local);
/* The answer to the next transaction is lost: OB_ERR_TIMEOUT, whether it is made or not. */
void obl_local_lose_answer(struct obl_local *local, bool made);

#endif
