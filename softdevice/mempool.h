/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_mempool: the account behind cuMemAllocAsync. Memory is allocated at the call and freed when
 * the stream comes to the free, so stream order holds; nothing freed is kept for reuse, whatever
 * the release threshold says: reserved is what is used.
 *
 * Default pools belong to the process; others until cuMemPoolDestroy and their last allocation. One
 * lock; any thread.
 */
#ifndef OBD_MEMPOOL_H
#define OBD_MEMPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "softdevice/config.h"

#define OBD_MEMPOOL_MAX 4096u /* live pools in the process */

struct obd_alloc;
struct obd_ctx;

/* Handles for the default pools; called when the driver is initialised. False: out of memory. */
bool obd_mempool_start(void);
/* The allocation is about to be freed: settles its pool's account. Not a pool's: nothing. */
void obd_mempool_leave(struct obd_alloc *alloc);
/* The same for all that is left of a context. */
void obd_mempool_forget(struct obd_ctx *ctx);

#endif
