/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/handles.h"

#include <stdlib.h>

#include "server/layers/hold.h"

uint64_t obs_handles_at(struct obs_handles *handles, uint32_t index)
{
	struct obs_handle *chunk;

	if (index >= OBS_HANDLES_MAX)
		return 0;
	chunk = atomic_load_explicit(
		&handles->chunks[index / OBS_HANDLES_CHUNK], memory_order_acquire);
	return chunk
		? atomic_load_explicit(&chunk[index % OBS_HANDLES_CHUNK].id, memory_order_acquire)
		: 0;
}

bool obs_handles_vacant(struct obs_handles *handles, uint64_t id)
{
	uint32_t index = (uint32_t)id;
	struct obs_handle *chunk;

	if (index >= OBS_HANDLES_MAX || id == 0)
		return false;
	chunk = atomic_load_explicit(
		&handles->chunks[index / OBS_HANDLES_CHUNK], memory_order_relaxed);
	return !chunk ||
		atomic_load_explicit(&chunk[index % OBS_HANDLES_CHUNK].id, memory_order_relaxed) ==
		0;
}

bool obs_handles_put(struct obs_handles *handles, uint64_t id, const struct obs_handle *value)
{
	uint32_t index = (uint32_t)id;
	struct obs_handle *chunk;

	if (index >= OBS_HANDLES_MAX || id == 0)
		return false;
	chunk = atomic_load_explicit(
		&handles->chunks[index / OBS_HANDLES_CHUNK], memory_order_relaxed);
	if (!chunk) {
		chunk = calloc(OBS_HANDLES_CHUNK, sizeof *chunk);
		if (!chunk)
			return false;
		obs_hold_add(OBS_HOLD_HANDLES, OBS_HANDLES_CHUNK * sizeof *chunk);
		atomic_store_explicit(
			&handles->chunks[index / OBS_HANDLES_CHUNK], chunk, memory_order_release);
	}
	chunk += index % OBS_HANDLES_CHUNK;
	if (atomic_load_explicit(&chunk->id, memory_order_relaxed) != 0)
		return false;
	chunk->driver = value->driver;
	chunk->context = value->context;
	chunk->extra = value->extra;
	/* Written last: a look-up that sees the id also sees the fields. */
	atomic_store_explicit(&chunk->id, id, memory_order_release);
	handles->n_live++;
	obs_hold_add(OBS_HOLD_HANDLES, OBS_HANDLE_BYTES);
	return true;
}

bool obs_handles_remove(struct obs_handles *handles, uint64_t id, struct obs_handle *ret)
{
	struct obs_handle *handle = obs_handles_find(handles, id);

	if (!handle)
		return false;
	if (ret) {
		ret->driver = handle->driver;
		ret->context = handle->context;
		ret->extra = handle->extra;
	}
	atomic_store_explicit(&handle->id, 0, memory_order_release);
	handles->n_live--;
	obs_hold_give(OBS_HOLD_HANDLES, OBS_HANDLE_BYTES);
	return true;
}

void obs_handles_each(
	struct obs_handles *handles, void (*fn)(void *user, struct obs_handle *handle), void *user)
{
	for (uint32_t i = 0; i < OBS_HANDLES_CHUNKS; i++) {
		struct obs_handle *chunk =
			atomic_load_explicit(&handles->chunks[i], memory_order_acquire);

		for (uint32_t k = 0; chunk && k < OBS_HANDLES_CHUNK; k++)
			if (atomic_load_explicit(&chunk[k].id, memory_order_relaxed) != 0)
				fn(user, &chunk[k]);
	}
}

void obs_handles_fini(struct obs_handles *handles)
{
	for (uint32_t i = 0; i < OBS_HANDLES_CHUNKS; i++) {
		free(atomic_load_explicit(&handles->chunks[i], memory_order_relaxed));
		atomic_store_explicit(&handles->chunks[i], NULL, memory_order_relaxed);
	}
}
