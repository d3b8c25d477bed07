/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/texture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 1024u

/*
 * A handle:
 *   0-19 number of the place, 20-62 generation of the place, which is never 0
 */
#define INDEX_BITS 20u

struct entry {
	/* NULL: not in use. Release and acquire order the texture's fields before the pointer. */
	_Atomic(struct obd_texture *) texture;
	_Atomic uint64_t generation;
	uint32_t next_free; /* number + 1; 0: the last */
};

struct obd_textures {
	_Atomic(struct entry *) chunks[OBD_TEXTURES_MAX / CHUNK];
	pthread_mutex_t lock; /* guards changes */
	uint32_t n_entries, first_free;
	struct obd_texture *ended;
};

uint32_t obd_texel_bytes(enum obd_texel texel, uint32_t channels)
{
	static const uint8_t bytes[] = {
		[OBD_TEXEL_U8] = 1,
		[OBD_TEXEL_S8] = 1,
		[OBD_TEXEL_U16] = 2,
		[OBD_TEXEL_S16] = 2,
		[OBD_TEXEL_U32] = 4,
		[OBD_TEXEL_S32] = 4,
		[OBD_TEXEL_F16] = 2,
		[OBD_TEXEL_F32] = 4,
		[OBD_TEXEL_10_10_10_2] = 1,
	};

	return bytes[texel] * channels;
}

struct obd_textures *obd_textures_new(void)
{
	struct obd_textures *table = calloc(1, sizeof *table);

	if (table)
		pthread_mutex_init(&table->lock, NULL);
	return table;
}

void obd_textures_free(struct obd_textures *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < OBD_TEXTURES_MAX / CHUNK; i++) {
		struct entry *chunk = table->chunks[i];

		for (uint32_t k = 0; chunk && k < CHUNK; k++)
			free(chunk[k].texture);
		free(chunk);
	}
	obd_textures_drop(table->ended);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

static struct entry *entry_at(const struct obd_textures *table, uint32_t index)
{
	struct entry *chunk =
		atomic_load_explicit(&table->chunks[index / CHUNK], memory_order_acquire);

	return chunk ? &chunk[index % CHUNK] : NULL;
}

/* A free place; NULL: there is none. Under the lock. */
static struct entry *entry_take(struct obd_textures *table, uint32_t *ret_index)
{
	struct entry *e;

	if (table->first_free) {
		*ret_index = table->first_free - 1;
		e = entry_at(table, *ret_index);
		table->first_free = e->next_free;
		return e;
	}
	if (table->n_entries == OBD_TEXTURES_MAX)
		return NULL;
	if (table->n_entries % CHUNK == 0) {
		struct entry *chunk = calloc(CHUNK, sizeof *chunk);

		if (!chunk)
			return NULL;
		atomic_store_explicit(
			&table->chunks[table->n_entries / CHUNK], chunk, memory_order_release);
	}
	*ret_index = table->n_entries++;
	return entry_at(table, *ret_index);
}

static struct obd_texture *copy_of(const struct obd_texture *texture)
{
	struct obd_texture *copy = malloc(sizeof *copy);

	if (copy)
		*copy = *texture;
	return copy;
}

uint64_t obd_textures_add(struct obd_textures *table, const struct obd_texture *texture)
{
	struct obd_texture *copy = table ? copy_of(texture) : NULL;
	uint64_t handle = 0;
	struct entry *e;
	uint32_t index;

	if (!copy)
		return 0;
	pthread_mutex_lock(&table->lock);
	e = entry_take(table, &index);
	if (e) {
		/* relaxed: a kernel that sees the old generation does not know the new handle */
		uint64_t generation =
			atomic_load_explicit(&e->generation, memory_order_relaxed) + 1;

		atomic_store_explicit(&e->generation, generation, memory_order_relaxed);
		atomic_store_explicit(&e->texture, copy, memory_order_release);
		handle = generation << INDEX_BITS | index;
	}
	pthread_mutex_unlock(&table->lock);
	if (!e)
		free(copy);
	return handle;
}

static struct entry *entry_find(const struct obd_textures *table, uint64_t handle)
{
	struct entry *e = entry_at(table, (uint32_t)(handle % OBD_TEXTURES_MAX));

	return e &&
			atomic_load_explicit(&e->generation, memory_order_relaxed) ==
				handle >> INDEX_BITS
		? e
		: NULL;
}

struct obd_texture *obd_textures_swap(
	struct obd_textures *table, uint64_t handle, const struct obd_texture *texture)
{
	struct obd_texture *copy = texture ? copy_of(texture) : NULL, *old = NULL;
	struct entry *e;

	if (texture && !copy)
		return NULL;
	pthread_mutex_lock(&table->lock);
	e = entry_find(table, handle);
	if (e && e->texture) {
		old = atomic_exchange_explicit(&e->texture, copy, memory_order_acq_rel);
		copy = NULL;
		if (!texture) {
			e->next_free = table->first_free;
			table->first_free = (uint32_t)(handle % OBD_TEXTURES_MAX) + 1;
		}
	}
	pthread_mutex_unlock(&table->lock);
	free(copy);
	return old;
}

void obd_textures_end(struct obd_textures *table, uint64_t handle)
{
	struct obd_texture *old = obd_textures_swap(table, handle, NULL);

	if (!old)
		return;
	pthread_mutex_lock(&table->lock);
	/* a kernel may read the other fields now, but not this one */
	old->next_ended = table->ended;
	table->ended = old;
	pthread_mutex_unlock(&table->lock);
}

struct obd_texture *obd_textures_ended(struct obd_textures *table)
{
	struct obd_texture *ended;

	pthread_mutex_lock(&table->lock);
	ended = table->ended;
	table->ended = NULL;
	pthread_mutex_unlock(&table->lock);
	return ended;
}

void obd_textures_drop(struct obd_texture *ended)
{
	for (struct obd_texture *next; ended; ended = next) {
		next = ended->next_ended;
		free(ended);
	}
}

const struct obd_texture *obd_textures_find(const struct obd_textures *table, uint64_t handle)
{
	struct entry *e = table ? entry_find(table, handle) : NULL;

	return e ? atomic_load_explicit(&e->texture, memory_order_acquire) : NULL;
}
