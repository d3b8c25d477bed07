/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The limits of a session, enforced around the driver's table, where no call can bypass them.
 *
 *   quota.c     what the session has, and its caps; the driver seems to have only what they allow
 *               (quota_memory.c, quota_handles.c: the calls that take or give memory)
 *   share.c     measures launches with event pairs and holds them back until the session's share of
 *               the device's time allows them
 *   throttle.c  a session that keeps running into its limits is warned, slowed, suspended, ended
 *
 * One session per process, so one state. Wrapped before the driver is used; the limits may be
 * lowered until the first record is executed.
 */
#ifndef OBS_QUOTA_H
#define OBS_QUOTA_H

#include <stdint.h>

#include "base/cuda_types.h"
#include "server/common/limits.h"

struct obs_driver;
struct obp_hello;
struct obp_welcome;

/* Puts the layer around the table: *table becomes the quota's, which calls the old entries. */
void obs_quota_wrap(struct obs_driver *table);
/*
 * After the hello: lowers the limits to what the client asks for, puts the caps into the welcome's
 * devices, and wraps the launches of `table` if they must be measured. most_priority: the highest
 * priority on this server.
 */
void obs_quota_hello(struct obs_driver *table, struct obp_welcome *welcome,
	const struct obp_hello *hello, uint32_t most_priority);
/*
 * For a session with a ticket, whose reservation page is adopted (reservation_page.h): its
 * processes together may use `memory` bytes on each device; 0: no limit. Before the hello.
 */
void obs_quota_reserve(uint64_t memory);
/*
 * Charges device memory that a driver takes without an allocation call: a module's image.
 * CUDA_ERROR_OUT_OF_MEMORY when the cap is reached.
 */
CUresult obs_quota_charge(uint32_t device, uint64_t bytes);
/* Bytes of memory with this handle, which the session has created or imported; 0: unknown. */
uint64_t obs_quota_handle_bytes(CUmemGenericAllocationHandle handle);
/*
 * Told of memory that has no handle and no mapping in the session any more. NULL: nobody is. Set
 * before memory is created; no lock of this layer is held.
 */
extern void (*obs_quota_handle_gone)(CUmemGenericAllocationHandle handle);
void obs_quota_discharge(uint32_t device, uint64_t bytes);
/* The same for host memory; obs_hold_give gives it back. */
CUresult obs_quota_host(enum obs_purpose purpose, uint64_t bytes);
/* Whether the cap leaves room for `bytes` more. A "no" does not count as a refused call. */
bool obs_quota_room(uint32_t device, uint64_t bytes);
/* Counts a refusal by a limit (throttle.h). CUDA_ERROR_OUT_OF_MEMORY. */
CUresult obs_quota_refused(const char *what);

#endif
