/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by quota.c, quota_memory.c, quota_handles.c and quota_launch.c: the driver's table inside the
 * layer, and what the session has taken from it. Calls are made by any thread that calls the driver.
 */
#ifndef OBS_QUOTA_INSIDE_H
#define OBS_QUOTA_INSIDE_H

#include <pthread.h>
#include <stdbool.h>

#include "protocol/obs_driver.h"
#include "server/layers/ledger.h"

extern struct obs_driver obs_quota_next; /* set by obs_quota_wrap, before the driver is used */
extern pthread_mutex_t obs_quota_lock;
extern struct obs_ledger obs_quota_ledger; /* under the lock */

/*
 * Enters what the driver has allocated, under its name. False: it cannot be entered, and must be
 * freed again. Takes the lock.
 */
bool obs_quota_note(enum obs_charge kind, uint64_t name, uint64_t bytes, uint32_t device);
/* What has this name is gone; its charge is given back. Takes the lock. */
void obs_quota_forget(enum obs_charge kind, uint64_t name);
/* Gives back the charge of an entry that was taken out of the ledger; without the lock. */
void obs_quota_give_back(const struct obs_entry *entry);
/* The device of the current context; 0: there is none. */
uint32_t obs_quota_device(void);

/* quota_memory.c: memory with an address on the device or the host, and the heap of kernels. */
void obs_quota_memory_wrap(struct obs_driver *table);
/* quota_handles.c: memory with a handle, which is mapped. */
void obs_quota_handles_wrap(struct obs_driver *table);
/* quota_launch.c: launches wait for their turn (share.h). */
void obs_quota_launch_wrap(struct obs_driver *table);

#endif
