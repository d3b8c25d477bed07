/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The budget of host memory: how much one session may make its worker allocate. Code that allocates
 * memory whose amount a client decides takes it from the budget first, by purpose, and gives it
 * back when it frees the memory. The sums are on the stats page, where the supervisor can read
 * them. For memory that is not counted there is a limit of the kernel as well (sandbox.c,
 * data_limit).
 *
 * One session per process, so one state. Any thread; no lock. The limit is
 * obs_limits_now.host_memory.
 */
#ifndef OBS_HOLD_H
#define OBS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "server/common/limits.h"

/* charged for a stream, an event or a function; the software device needs 300 to 700 */
#define OBS_HANDLE_BYTES     1024u
/* for each allocation that the ledger knows */
#define OBS_ALLOCATION_BYTES 256u
#define OBS_MODULE_BYTES     (8u << 10) /* for a module, in addition to its image */
#define OBS_CONTEXT_BYTES    (64u << 10)

/* Takes `bytes` from the budget. False: that would exceed it; nothing was taken. */
bool obs_hold_take(enum obs_purpose purpose, uint64_t bytes);
/*
 * Takes without checking: for memory that is bounded in another way and can no longer be refused.
 */
void obs_hold_add(enum obs_purpose purpose, uint64_t bytes);
void obs_hold_give(enum obs_purpose purpose, uint64_t bytes);
/* True if `bytes` more would be granted. */
bool obs_hold_room(uint64_t bytes);

#endif
