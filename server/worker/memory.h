/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The device addresses of one session.
 *
 *   range:  | slice of device 0                      | slice of device 1          | ...
 *           | grant | grown by request ... holes ... |
 *
 * Client and server reserve the same range during the handshake, so that a pointer has one value on
 * both. Only addresses that are backed by memory here can be used. Memory is mapped in chunks of at
 * most one unit (obp_memory_unit), which end at multiples of it behind the grant, because a driver
 * unmaps only what it mapped as a whole and the client gives whole units back. Owned by the
 * session. Growing, trimming, adding and removing take the lock; checking an address inside the
 * range takes none.
 *
 * A driver without virtual memory management has no range. The session's memory is then that of
 * slabs and of single allocations, at addresses of the driver.
 */
#ifndef OBS_MEMORY_H
#define OBS_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/control.h"
#include "server/worker/slabs.h"

struct obs_driver;

/* granted to a session at its start, or an eighth of what is free if that is less */
#define OBS_GRANT_BYTES   (256ull << 20)
/* what client and server agree on; a multiple of the granularity of every driver known */
#define OBS_MEMORY_ALIGN  (2ull << 20)
/*
 * The first slab of a session, or an eighth of what is free if that is less. Smaller than a grant
 * because a slab is given back only as a whole.
 */
#define OBS_SLAB_BYTES    (64ull << 20)
/*
 * The slabs of a session take at most this part of a device. A program may free all but one
 * allocation of each slab: no more than this is then missing for a larger allocation.
 */
#define OBS_SLAB_SHARE    4
#define OBS_CHUNKS_MAX    (1u << 20) /* per device */
/* the software device needs a descriptor for each, of which a worker has OBS_FILES_MAX */
#define OBS_SHAREABLE_MAX 2048u
/* module variables and plain allocations known by address */
#define OBS_EXTRA_MAX     (1u << 16)

struct obs_chunk {
	uint64_t base, size;
	CUmemGenericAllocationHandle handle;
	uint64_t request;  /* the call to obs_memory_grow that made it */
	bool shareable;    /* the driver can export it */
	uint64_t share[2]; /* what other sessions map it by; 0: not exported */
};

struct obs_slice {
	uint64_t base, size;
	uint64_t unit, granted;   /* bytes; granted: from base */
	struct obs_chunk *chunks; /* sorted by base */
	uint64_t readers;         /* other devices with access, a bit each */
	uint32_t n_chunks, capacity;
};

struct obs_extra {
	uint64_t base, size, owner; /* owner: module id, or OBS_OWNER_PLAIN */
};

#define OBS_OWNER_PLAIN 0u

struct obs_memory {
	pthread_mutex_t lock;
	const struct obs_driver *drv;
	/* addresses are the client's; else the driver's, and range is empty */
	bool vmm;
	bool reserved; /* the driver reserved the range for us */
	struct obp_range range;
	uint64_t requests;
	/* chunks are created so that the driver can export them, while there are few */
	bool shares;
	uint32_t n_shareable;
	void (*unshared)(const uint64_t share[2]); /* an exported chunk is gone */
	uint32_t n_devices;
	struct obs_slice slices[OBP_DEVICE_MAX];
	struct obs_extra *extras; /* sorted by base */
	uint32_t n_extras, extras_capacity;
	struct obs_slabs slabs; /* without vmm only */
};

void obs_memory_init(
	struct obs_memory *memory, const struct obs_driver *drv, uint32_t n_devices, bool vmm);
/*
 * Reserves the first of the client's ranges that the driver can reserve. If none: the driver's own
 * choice, *ret_ok false. False: the driver can reserve nothing.
 */
bool obs_memory_choose(
	struct obs_memory *memory, const struct obp_range *ranges, uint32_t n, bool *ret_ok);
/* Sets the unit of a device that the client sees with so many bytes. Before memory is mapped. */
void obs_memory_set_total(struct obs_memory *memory, uint32_t device, uint64_t total);
/* The client could not reserve the range: releases it, and the session goes on without one. */
void obs_memory_abandon(struct obs_memory *memory);
/*
 * Backs the first `bytes` of the device's slice with memory. How many bytes were backed: fewer when
 * the device has less.
 */
uint64_t obs_memory_grant(struct obs_memory *memory, uint32_t device, uint64_t bytes);
/*
 * Backs the unbacked parts of [addr, addr + size), widened to whole pages. All or nothing;
 * CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult obs_memory_grow(struct obs_memory *memory, uint32_t device, uint64_t addr, uint64_t size);
/*
 * Calls fn for each chunk of [addr, addr + size), in order, until it fails, under the lock.
 * CUDA_ERROR_INVALID_VALUE: a part of the range is not backed by chunks. *ret_first: the first.
 */
CUresult obs_memory_chunks(struct obs_memory *memory, uint64_t addr, uint64_t size,
	CUresult (*fn)(void *user, struct obs_chunk *chunk), void *user, uint64_t *ret_first);
/*
 * Gives device `reader` access to the device's slice, also to what is backed later. The driver's
 * error: some of it may be accessible.
 */
CUresult obs_memory_share(struct obs_memory *memory, uint32_t device, uint32_t reader);
/* Unmaps the chunks that lie completely inside. */
CUresult obs_memory_trim(struct obs_memory *memory, uint64_t addr, uint64_t size);
/*
 * Adds an address range outside the session's range that copies may access. False: too many, or out
 * of memory.
 */
bool obs_memory_extra_add(struct obs_memory *memory, uint64_t base, uint64_t size, uint64_t owner);
/* Removes by exact base; false: there is none with this owner. */
bool obs_memory_extra_remove(struct obs_memory *memory, uint64_t base, uint64_t owner);
void obs_memory_extra_remove_owner(struct obs_memory *memory, uint64_t owner);
/* True if the session's copies may access [addr, addr + size). Size 0 always is. */
bool obs_memory_check(struct obs_memory *memory, uint64_t addr, uint64_t size);
/* The device whose slice holds addr, or -1. */
int obs_memory_device(const struct obs_memory *memory, uint64_t addr);

#endif
