/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Slabs: device memory at addresses that the driver chose, for drivers without virtual memory
 * management. The client places allocations in a slab and says where they are.
 *
 *   base                                   base + size     the client may use these addresses
 *    | unit | unit | unit | unit |  ...          |         units of 512 bytes
 *      1      1      1      0       live                   allocated
 *      1      0      1      0       first                  the first unit of an allocation
 *
 * A slab belongs to the context in which it was allocated. Owned by the session's memory. Any
 * thread; the functions take the lock, except that slabs are made, removed and forgotten by the
 * executor only.
 */
#ifndef OBS_SLABS_H
#define OBS_SLABS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/control.h"
#include "protocol/format.h"

struct obs_context;
struct obs_driver;

/* bytes; allocations begin and end at multiples of it */
#define OBS_SLAB_UNIT OBP_SLAB_ALIGN
#define OBS_SLABS_MAX 4096u /* per session; the largest of them hold 1 TiB */

struct obs_slab {
	uint64_t base, size;
	CUdeviceptr driver; /* the driver's address, less than a page below base */
	struct obs_context *context;
	uint32_t device;
	uint64_t *live, *first; /* bitmaps; `first` lies behind `live` in one piece of memory */
};

struct obs_slabs {
	pthread_mutex_t lock;
	const struct obs_driver *drv;
	struct obs_slab *list; /* sorted by base */
	uint32_t n, capacity;
};

void obs_slabs_init(struct obs_slabs *slabs, const struct obs_driver *drv);
/*
 * Allocates a slab in the driver's current context, which is `context` on `device`: of `size` bytes
 * or, if the device has less, of at least `least`. CUDA_ERROR_OUT_OF_MEMORY: the device, the
 * session's limit or the host's memory does not suffice.
 */
CUresult obs_slabs_new(struct obs_slabs *slabs, struct obs_context *context, uint32_t device,
	uint64_t size, uint64_t least, struct obp_range *ret);
/* Bytes of all slabs on the device. */
uint64_t obs_slabs_bytes(struct obs_slabs *slabs, uint32_t device);
/* The context of the slab that contains the address. NULL: none does. */
struct obs_context *obs_slabs_context(struct obs_slabs *slabs, uint64_t addr);
/*
 * Removes the slab at base with all allocations in it; the caller frees *ret_driver in the context.
 * False: there is none.
 */
bool obs_slabs_remove(struct obs_slabs *slabs, uint64_t base, CUdeviceptr *ret_driver,
	struct obs_context **ret_context);
/*
 * The context was destroyed: removes its slabs. The driver knows their addresses no more; they are
 * freed for the layers that count memory.
 */
void obs_slabs_forget(struct obs_slabs *slabs, struct obs_context *context);

/* The client allocates [addr, addr + size). False: not inside a slab, or in use. */
bool obs_slabs_alloc(struct obs_slabs *slabs, uint64_t addr, uint64_t size);
/* False: no allocation begins at addr. */
bool obs_slabs_free(struct obs_slabs *slabs, uint64_t addr);
/* Whether [addr, addr + size) lies in one allocation, rounded up to whole units. size > 0. */
bool obs_slabs_check(struct obs_slabs *slabs, uint64_t addr, uint64_t size);

#endif
