/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A table of 64-bit ids. An id consists of a kind, a generation and an index, so that an id of
 * another kind, a destroyed one or an invalid number can be told from a live one.
 *
 *   63      56 55            32 31             0
 *   |  kind   |  generation    |    index      |
 *
 * Look-ups are lock-free and may race with add and remove; add, remove and put take the table's
 * mutex. The table does not own the values. An id's generation is incremented each time its index
 * is freed, so an id does not occur again before its index was reused 2^24 times.
 */
#ifndef OB_IDS_H
#define OB_IDS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define OB_IDS_CHUNK  1024u
#define OB_IDS_CHUNKS 1024u
#define OB_IDS_MAX    (OB_IDS_CHUNK * OB_IDS_CHUNKS) /* live ids of one kind */

struct ob_ids_slot;

struct ob_ids {
	pthread_mutex_t lock;
	uint8_t kind;
	uint32_t max, used, next_index, free_head;
	struct ob_ids_slot *_Atomic chunks[OB_IDS_CHUNKS];
};

#define OB_IDS_INIT(kind_, max_)                                                   \
	{                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .kind = (kind_), .max = (max_), \
		.free_head = UINT32_MAX                                            \
	}

static inline uint8_t ob_id_kind(uint64_t id)
{
	return (uint8_t)(id >> 56);
}

static inline uint32_t ob_id_index(uint64_t id)
{
	return (uint32_t)id;
}

/* kind 1..255; max 1..OB_IDS_MAX. */
void ob_ids_init(struct ob_ids *ids, uint8_t kind, uint32_t max);
void ob_ids_fini(struct ob_ids *ids);
/* A new id for `value` (not NULL); 0 when the table is full or memory is out. */
uint64_t ob_ids_add(struct ob_ids *ids, void *value);
/*
 * Adds a value under an id that the other side chose. False: its kind or index is wrong, or the
 * index is in use.
 */
bool ob_ids_put(struct ob_ids *ids, uint64_t id, void *value);
/* NULL when the id is not live. */
void *ob_ids_get(struct ob_ids *ids, uint64_t id);
/* Removes an id and returns its value; NULL when the id was not live. */
void *ob_ids_remove(struct ob_ids *ids, uint64_t id);
/*
 * The same in two steps: the id is not live any more, and no new id gets its index before
 * ob_ids_recycle. In between the caller tells the other side that the id has ended; otherwise
 * another thread could tell it of a new id with that index first.
 */
void *ob_ids_end(struct ob_ids *ids, uint64_t id);
void ob_ids_recycle(struct ob_ids *ids, uint64_t id);
/*
 * Calls fn for each live value; fn may remove the value it is called for. Must not run at the same
 * time as ob_ids_add.
 */
void ob_ids_each(struct ob_ids *ids, void (*fn)(void *user, uint64_t id, void *value), void *user);

#endif
