/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The transactions of a balancer, one at a time. So no two of them conflict with each other; those
 * of other balancers are met by comparing revisions. Loop's thread only.
 */
#ifndef OBL_WORK_H
#define OBL_WORK_H

#include "loadbalancer/balancer/core.h"

/* The registry can be used and no transaction is under way. */
bool obl_work_ready(const struct obl_core *core);
/* An empty plan for the next transaction; only when obl_work_ready. */
struct obl_plan *obl_work_plan(struct obl_core *core);
/*
 * Makes the transaction. `done` is called from the loop, exactly once. look: a key that exists
 * afterwards, or not, if and only if it was made: read when the registry does not answer. False:
 * the plan has failed (no memory, too many keys); `done` is not called.
 */
bool obl_work_make(struct obl_core *core, const char *look, obl_work_done *done, void *user);

#endif
