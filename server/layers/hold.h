/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The budget of host memory: what one session may make its worker hold. Whatever allocates memory
 * whose amount a client decides takes it here first, by purpose, and gives it back when it is
 * freed. The sums lie on the board, where the supervisor can see them. Behind the accounting stands
 * a limit of the kernel (obs_sandbox_limits), for what is not counted.
 *
 * One session per process, so one state. Any thread; no lock. The limit is
 * obs_quota_limits.host_memory.
 */
#ifndef OBS_HOLD_H
#define OBS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

enum obs_purpose {
	/* staging, replies that are kept, buffers: reserved once, when the session begins */
	OBS_HOLD_TRANSPORT,
	OBS_HOLD_IMAGES,  /* code images that were uploaded */
	OBS_HOLD_MODULES, /* the driver's copies of the images it has loaded */
	/* of the software device: compiled code, launches that wait, printed text */
	OBS_HOLD_DEVICE,
	OBS_HOLD_HANDLES, /* streams, events, functions, contexts, records of allocations */
	OBS_HOLD_PINNED,  /* page-locked memory that the program asked the driver for */
	OBS_HOLD_PURPOSES
};

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
