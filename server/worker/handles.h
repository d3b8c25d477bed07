/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Maps the client's handles of one kind to the driver's. A client handle is a 64-bit id that the
 * client chose. Its low 32 bits are an index below OBS_HANDLES_MAX; the other bits tell a live id
 * from a destroyed or an invented one.
 *
 * Look-ups take no lock and may race with put and remove: entries never move, and an entry's id is
 * written last (release) and read first (acquire). Only the executor puts and removes. The table
 * does not own what the entries point to.
 */
#ifndef OBS_HANDLES_H
#define OBS_HANDLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/common/limits.h"

#define OBS_HANDLES_CHUNK  1024u
#define OBS_HANDLES_CHUNKS 1024u

struct obs_context;

_Static_assert(OBS_HANDLES_CHUNK *OBS_HANDLES_CHUNKS == OBS_HANDLES_MAX, "every index has a chunk");

struct obs_handle {
	_Atomic uint64_t id;
	/* the driver's handle; NULL: creating it failed, and that was reported */
	void *driver;
	struct obs_context *context; /* where it lives */
	/*
	 * stream, event: flags; module: drawn in ops/ops.h; function: 1 + index of the
	 * next function of its module, 0: it is the last; texture reference: ops/texref.c
	 */
	uint64_t extra;
};

struct obs_handles {
	struct obs_handle *_Atomic chunks[OBS_HANDLES_CHUNKS];
	uint32_t n_live;
};

/* NULL when the id is not live. */
static inline struct obs_handle *obs_handles_find(struct obs_handles *handles, uint64_t id)
{
	uint32_t index = (uint32_t)id;
	struct obs_handle *chunk;

	if (index >= OBS_HANDLES_MAX || id == 0)
		return NULL;
	chunk = atomic_load_explicit(
		&handles->chunks[index / OBS_HANDLES_CHUNK], memory_order_acquire);
	if (!chunk)
		return NULL;
	chunk += index % OBS_HANDLES_CHUNK;
	return atomic_load_explicit(&chunk->id, memory_order_acquire) == id ? chunk : NULL;
}

/* The id at an index, 0 when none is live there. */
uint64_t obs_handles_at(struct obs_handles *handles, uint32_t index);
/* May the client make this id: its index is in range and not in use. */
bool obs_handles_vacant(struct obs_handles *handles, uint64_t id);
/* False: the index is out of range or in use, or no memory is left. */
bool obs_handles_put(struct obs_handles *handles, uint64_t id, const struct obs_handle *value);
/* The entry's last value in *ret; false: it was not live. */
bool obs_handles_remove(struct obs_handles *handles, uint64_t id, struct obs_handle *ret);
/* Visits live entries; fn may remove the one it is shown. */
void obs_handles_each(
	struct obs_handles *handles, void (*fn)(void *user, struct obs_handle *handle), void *user);
void obs_handles_fini(struct obs_handles *handles);

#endif
