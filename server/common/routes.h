/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sessions that can be joined, and their secrets: a table in memory shared by the supervisor
 * and the admission process. Only the supervisor writes; the admission process maps it read-only. A
 * session is entered before its client learns of it, whatever state the admission process is in,
 * and a restarted admission process finds all sessions. (Messages would not do: the channel is full
 * after some ninety sessions.)
 *
 * Each function: one thread in each of the two processes. The table holds OBS_SESSIONS_MAX
 * sessions.
 */
#ifndef OBS_ROUTES_H
#define OBS_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/control.h"
#include "server/common/handoff.h"

/* in the admission process; behind them the listening sockets */
#define OBS_ROUTES_FD              (OBS_HANDOFF_FD + 1)
#define OBS_POOL_PAGE_FD           (OBS_ROUTES_FD + 1) /* pool_page.h */
#define OBS_ADMISSION_LISTENERS_FD (OBS_POOL_PAGE_FD + 1)

struct obs_routes;

/*
 * Supervisor. *ret_fd is for admission processes: the memory cannot be written through it. NULL:
 * errno.
 */
struct obs_routes *obs_routes_new(int *ret_fd);
void obs_routes_free(struct obs_routes *routes);
/* Admission process: maps OBS_ROUTES_FD and closes it. NULL: errno. */
const struct obs_routes *obs_routes_adopt(void);

/* False: the table is full, or the route is 0. */
bool obs_routes_put(
	struct obs_routes *routes, uint64_t route, const uint8_t secret[OBP_SECRET_BYTES]);
/* Nothing happens when it is not there. */
void obs_routes_remove(struct obs_routes *routes, uint64_t route);
/* False: there is no such session. */
bool obs_routes_find(
	const struct obs_routes *routes, uint64_t route, uint8_t ret_secret[OBP_SECRET_BYTES]);

#endif
