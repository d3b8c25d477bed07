/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard run --restartable`: runs a program as a child, follows its reservation, and when the pool
 * moves it, ends the program and starts it again on the new one (docs/adr/0050-rebalancing.md).
 *
 *   running ──MOVED, and the place is kept──► SIGTERM ──ended, or grace is over and SIGKILL──►
 *      │                                                       reserve ──► running
 *      │
 *      └──ended──► exit as the program did
 *
 * The program stays in the process group, so the terminal is its own; signals that are sent to this
 * process are passed on. If it ends within the grace time after one that asks it to, it is not started
 * again. It gets SIGKILL if this process dies. What it has left behind is ended too before it is
 * started again (tools/leftover.h). Main thread only, in a process without other threads.
 */
#ifndef OBX_RESTART_H
#define OBX_RESTART_H

#include "tools/reserve.h"

#define OBX_RESTARTS          16u /* times that a program is started again, unless told otherwise */
#define OBX_RESTARTS_MAX      1000u
#define OBX_RESTART_GRACE     10u /* s from SIGTERM to SIGKILL, unless told otherwise */
/* less than OBP_POOL_OFFER_S, for which the new place is kept */
#define OBX_RESTART_GRACE_MAX 40u

struct obx_restart {
	const struct obx_way *way;
	const struct obx_wish *wish;
	const char *program;
	uint32_t restarts, grace_s;
	char **environment; /* by obx_environment_save; each start begins with it */
	/* Called in the child, with the reservation's variables set; starts the program. */
	int (*begin)(void *user);
	void *user;
};

/* A copy of the environment. NULL: no memory. */
char **obx_environment_save(void);
/* Runs the program on the reservation, and on those that follow it. Returns the exit code. */
int obx_restart_run(const struct obx_restart *restart, struct obx_reservation *reservation);

#endif
