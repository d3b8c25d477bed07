/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Making room in the cache of uploads (server/common/cache.h); for cache.c only. Any process, one at a
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
/* a half-written file that nobody has touched for so long is nobody's */
#define OBS_CACHE_STALE_S     600

struct obs_cache_usage {
	_Atomic uint64_t bytes, evicted;
	/* bytes: a tenant's equal part at the last sweep; 0: there was none */
	_Atomic uint64_t fair;
	/*
	 * a worker found no room and may not look into other tenants' folders: the supervisor shall
	 */
	_Atomic uint64_t wanted;
};

/* What a file counts as. */
static inline uint64_t obs_cache_charge(uint64_t size)
{
	return ob_round_up(size, 4096);
}

/*
 * Counts every file, throws away those used longest ago until an eighth of the limit is free if
 * there are more bytes than the limit less a sixteenth, removes empty folders. Where only its own
 * tenant's folder can be seen: out of that, what is above an equal part. Waits for another process
 * that is at it, at most two seconds. False: that did not help, or this tenant has to wait for the
 * supervisor to make room.
 */
bool obs_cache_make_room(struct obs_cache *cache);

#endif
