/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Making room in the cache of uploads, shared by cache.c and cache_sweep.c. Any process, one at a
 * time.
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
/* a temporary file that nobody has touched for so long was left by a killed worker */
#define OBS_CACHE_STALE_S     600

struct obs_cache_usage {
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
 * Counts every file, evicts those used longest ago until an eighth of the limit is free if there
 * are more bytes than the limit less a sixteenth, and removes empty folders. Where only one
 * tenant's folder is visible: evicts from that, and only what exceeds an equal share. Waits at most
 * two seconds for another process that is doing this. False: there is still no room, or the
 * supervisor has to make it.
 */
bool obs_cache_make_room(struct obs_cache *cache);

#endif
