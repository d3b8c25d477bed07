/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The budget of host memory: what one session may make its worker hold. Whatever allocates memory
 * whose amount a client decides takes it here first, by purpose, and gives it back when it is
 * freed. The sums lie on the stats page, where the supervisor can see them. Behind the accounting stands
 * a limit of the kernel (obs_sandbox_limits), for what is not counted.
 *
 * One session per process, so one state. Any thread; no lock. The limit is
 * obs_limits_now.host_memory.
 */
#ifndef OBS_HOLD_H
#define OBS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "server/common/limits.h"

/* counted for a stream, an event or a function; 300 to 700 were measured on the software device */
#define OBS_HANDLE_BYTES     1024u
/* for each allocation of device memory that is known by name */
#define OBS_ALLOCATION_BYTES 256u
#define OBS_MODULE_BYTES     (8u << 10) /* for a module, beside its image */
#define OBS_CONTEXT_BYTES    (64u << 10)

/* False: it would exceed the budget; nothing was taken. */
bool obs_hold_take(enum obs_purpose purpose, uint64_t bytes);
/* Whatever the budget says: for what is bounded by itself and cannot be refused any more. */
void obs_hold_add(enum obs_purpose purpose, uint64_t bytes);
void obs_hold_give(enum obs_purpose purpose, uint64_t bytes);
/* Would `bytes` more be taken? */
bool obs_hold_room(uint64_t bytes);

#endif
