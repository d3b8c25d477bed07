/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/ids.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/pages.h"

#define GENERATION_MASK 0xffffffu
#define NO_INDEX        UINT32_MAX

struct ob_ids_slot {
	_Atomic(uint64_t) id; /* 0 while free */
	void *_Atomic value;
	uint32_t generation; /* of the next id; under the lock */
	uint32_t next_free;
};

void ob_ids_init(struct ob_ids *ids, uint8_t kind, uint32_t max)
{
	*ids = (struct ob_ids)OB_IDS_INIT(kind, ob_min(max, OB_IDS_MAX));
	pthread_mutex_init(&ids->lock, NULL);
}

void ob_ids_fini(struct ob_ids *ids)
{
	for (uint32_t i = 0; i < OB_IDS_CHUNKS; i++)
		ob_pages_free(atomic_exchange(&ids->chunks[i], NULL));
	pthread_mutex_destroy(&ids->lock);
}

static struct ob_ids_slot *slot_at(struct ob_ids *ids, uint32_t index)
{
	struct ob_ids_slot *chunk;

	if (index >= OB_IDS_MAX)
		return NULL;
	/* Acquire pairs with the release in slot_make: the zeroes of a new chunk are visible. */
	chunk = atomic_load_explicit(&ids->chunks[index / OB_IDS_CHUNK], memory_order_acquire);
	return chunk ? &chunk[index % OB_IDS_CHUNK] : NULL;
}

static struct ob_ids_slot *slot_make(struct ob_ids *ids, uint32_t index)
{
	struct ob_ids_slot *chunk, *slot = slot_at(ids, index);

	if (slot || index >= OB_IDS_MAX)
		return slot;
	/* From the system, so that only the pages with used slots take memory. */
	chunk = ob_pages_alloc(OB_IDS_CHUNK * sizeof *chunk);
	if (!chunk)
		return NULL;
	atomic_store_explicit(&ids->chunks[index / OB_IDS_CHUNK], chunk, memory_order_release);
	return &chunk[index % OB_IDS_CHUNK];
}

static void slot_publish(struct ob_ids_slot *slot, uint64_t id, void *value)
{
	atomic_store_explicit(&slot->value, value, memory_order_relaxed);
	/* Release: a thread that reads this id with acquire also reads this value. */
	atomic_store_explicit(&slot->id, id, memory_order_release);
}

uint64_t ob_ids_add(struct ob_ids *ids, void *value)
{
	struct ob_ids_slot *slot = NULL;
	uint32_t index;
	uint64_t id = 0;

	pthread_mutex_lock(&ids->lock);
	if (ids->free_head != NO_INDEX) {
		index = ids->free_head;
		slot = slot_at(ids, index);
		ids->free_head = slot->next_free;
	} else if (ids->next_index < ids->max) {
		index = ids->next_index;
		slot = slot_make(ids, index);
		if (slot)
			ids->next_index++;
	}
	if (slot) {
		id = (uint64_t)ids->kind << 56 |
			(uint64_t)(slot->generation & GENERATION_MASK) << 32 | index;
		slot_publish(slot, id, value);
		ids->used++;
	}
	pthread_mutex_unlock(&ids->lock);
	return id;
}

bool ob_ids_put(struct ob_ids *ids, uint64_t id, void *value)
{
	uint32_t index = ob_id_index(id);
	struct ob_ids_slot *slot;
	bool ok = false;

	if (ob_id_kind(id) != ids->kind || index >= ids->max)
		return false;
	pthread_mutex_lock(&ids->lock);
	slot = slot_make(ids, index);
	if (slot && atomic_load_explicit(&slot->id, memory_order_relaxed) == 0) {
		slot_publish(slot, id, value);
		ids->used++;
		ok = true;
	}
	pthread_mutex_unlock(&ids->lock);
	return ok;
}

void *ob_ids_get(struct ob_ids *ids, uint64_t id)
{
	struct ob_ids_slot *slot = slot_at(ids, ob_id_index(id));

	if (!slot || id == 0 || atomic_load_explicit(&slot->id, memory_order_acquire) != id)
		return NULL;
	return atomic_load_explicit(&slot->value, memory_order_relaxed);
}

/* Under the lock. */
static void *slot_end(struct ob_ids *ids, uint64_t id)
{
	struct ob_ids_slot *slot = slot_at(ids, ob_id_index(id));

	if (!slot || id == 0 || atomic_load_explicit(&slot->id, memory_order_relaxed) != id)
		return NULL;
	atomic_store_explicit(&slot->id, 0, memory_order_release);
	slot->generation++;
	ids->used--;
	return atomic_load_explicit(&slot->value, memory_order_relaxed);
}

/* Under the lock. The other side reuses the ids that it chose; they never enter our free list. */
static void index_free(struct ob_ids *ids, uint32_t index)
{
	if (index >= ids->next_index)
		return;
	slot_at(ids, index)->next_free = ids->free_head;
	ids->free_head = index;
}

void *ob_ids_remove(struct ob_ids *ids, uint64_t id)
{
	void *value;

	pthread_mutex_lock(&ids->lock);
	value = slot_end(ids, id);
	if (value)
		index_free(ids, ob_id_index(id));
	pthread_mutex_unlock(&ids->lock);
	return value;
}

void *ob_ids_end(struct ob_ids *ids, uint64_t id)
{
	void *value;

	pthread_mutex_lock(&ids->lock);
	value = slot_end(ids, id);
	pthread_mutex_unlock(&ids->lock);
	return value;
}

void ob_ids_recycle(struct ob_ids *ids, uint64_t id)
{
	pthread_mutex_lock(&ids->lock);
	index_free(ids, ob_id_index(id));
	pthread_mutex_unlock(&ids->lock);
}

void ob_ids_each(struct ob_ids *ids, void (*fn)(void *user, uint64_t id, void *value), void *user)
{
	for (uint32_t c = 0; c < OB_IDS_CHUNKS; c++) {
		struct ob_ids_slot *chunk =
			atomic_load_explicit(&ids->chunks[c], memory_order_acquire);

		for (uint32_t i = 0; chunk && i < OB_IDS_CHUNK; i++) {
			uint64_t id = atomic_load_explicit(&chunk[i].id, memory_order_acquire);

			if (id)
				fn(user, id,
					atomic_load_explicit(
						&chunk[i].value, memory_order_relaxed));
		}
	}
}
