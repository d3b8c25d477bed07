/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The lock and the sweep of the cache of uploads, shared by cache.c and cache_sweep.c.
 *
 * The lock is a flock of the cache's directory, which ends with its process:
 *
 *     shared      an upload, from the reservation of its bytes until its file has its name
 *     exclusive   a sweep, and the removal of a damaged file
 *
 * Under the exclusive lock, therefore, no file is being written and no bytes are reserved for one: a
 * sweep counts all there is, and a temporary file is what a killed worker left.
 */
#ifndef OBS_CACHE_INSIDE_H
#define OBS_CACHE_INSIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "server/common/cache.h"

#define OBS_CACHE_FILE_NAME   (2 * OBS_CACHE_NAME_BYTES + 2) /* a letter, digits, NUL */
#define OBS_CACHE_USAGE_BYTES 4096u

struct obs_cache_usage {
	/*
	 * bytes: of all files and reservations, or more until the next sweep: two workers that
	 * write the same upload both count it. Raised under the lock. Lowered under the exclusive
	 * lock, or under the shared lock by the process that raised it.
	 */
	_Atomic uint64_t bytes, evicted;
	/* bytes: the equal share of one tenant at the last sweep; 0: there was none */
	_Atomic uint64_t fair;
	/*
	 * a worker found no room and cannot see other tenants' folders: the supervisor must sweep
	 */
	_Atomic uint64_t wanted;
};

/* Bytes that a file is counted as: whole pages. */
static inline uint64_t obs_cache_charge(uint64_t size)
{
	return ob_round_up(size, 4096);
}

/*
 * how: LOCK_SH or LOCK_EX. The caller does not hold the lock. Waits at most two seconds for other
 * processes. False: not locked; another process holds it, or the file system has no locks.
 */
bool obs_cache_lock(struct obs_cache *cache, int how);
void obs_cache_unlock(struct obs_cache *cache);

/*
 * Counts every file, evicts those used longest ago until an eighth of the limit is free if there
 * are more bytes than the limit less a sixteenth, and removes empty folders and what killed workers
 * left half written. Where only one tenant's folder is visible: evicts from that, and only what
 * exceeds an equal share. Takes the exclusive lock; without it nothing is done.
 */
void obs_cache_make_room(struct obs_cache *cache);

#endif
