/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* From scalars to the sums of buckets. */
#include <stdlib.h>
#include <string.h>

#include "compute/msm/plan.h"

#define ASK_EVERY (1 << 17) /* entries sorted between two polls of stop */

/* The signed digit of entry i (counted through halves and copies) in a set, and its reference. */
static inline int32_t entry_digit(
	const struct obk_group *g, size_t product, unsigned window, unsigned half, size_t i)
{
	const struct obk_msm_job *job = g->job;
	uint64_t l[2];
	int32_t d;

	if (g->bases->halves == 1)
		return obk_scalar_digit(
			g->plain[product * job->count + i], 4, window, g->plan->window);
	memcpy(l, g->split[(product * 2 + half) * job->count + i].l, sizeof(l));
	d = obk_scalar_digit(
		(uint64_t[]){ l[0], l[1] & ~OBK_HALF_SIGN }, 2, window, g->plan->window);
	return l[1] & OBK_HALF_SIGN ? -d : d;
}

/*
 * Calls a function for every entry of a set: first to count, then to place the entries. False: the
 * job was stopped.
 */
static inline __attribute__((always_inline)) bool for_each_entry(
	const struct obk_group *g, size_t set, uint32_t *start, uint32_t *refs)
{
	const struct obk_plan *plan = g->plan;
	size_t product = (g->first_set + set) / plan->sets,
	       row = g->bases->count * g->bases->halves;
	unsigned window = (unsigned)((g->first_set + set) % plan->sets);

	for (unsigned copy = 0; window < plan->windows; copy++, window += plan->sets) {
		for (unsigned half = 0; half < g->bases->halves; half++) {
			uint32_t base =
				(uint32_t)(copy * row + half * g->bases->count + g->job->offset);

			for (size_t i = 0; i < g->job->count; i++) {
				if (i % ASK_EVERY == ASK_EVERY - 1 && obk_stopped(&g->job->stop))
					return false;
				int32_t d = entry_digit(g, product, window, half, i);
				uint32_t size = (uint32_t)(d < 0 ? -d : d);

				if (!size)
					continue;
				if (refs)
					refs[start[size - 1]++] = (base + (uint32_t)i) |
						(d < 0 ? OBK_REF_NEGATIVE : 0);
				else
					start[size]++;
			}
		}
	}
	return true;
}

void obk_group_sort(struct obk_group *g, size_t set)
{
	uint32_t buckets = g->plan->buckets, *start = g->start + set * ((size_t)buckets + 1);

	memset(start, 0, ((size_t)buckets + 1) * sizeof(*start));
	if (!for_each_entry(g, set, start, NULL))
		return;
	for (uint32_t b = 0; b < buckets; b++)
		start[b + 1] += start[b];
	if (!for_each_entry(g, set, start, g->refs + set * g->entries))
		return;
	/* placing has moved every start to that of the next bucket */
	memmove(start + 1, start, buckets * sizeof(*start));
	start[0] = 0;
}

/* The position of a bucket, numbered through all sets. */
static inline const uint32_t *bucket_refs(
	const struct obk_group *g, uint32_t bucket, uint32_t *ret_count)
{
	uint32_t set = bucket / g->plan->buckets, b = bucket % g->plan->buckets;
	const uint32_t *start = g->start + (size_t)set * ((size_t)g->plan->buckets + 1);

	*ret_count = start[b + 1] - start[b];
	return g->refs + set * g->entries + start[b];
}

enum ob_err obk_group_cut(struct obk_group *g)
{
	uint32_t total = (uint32_t)(g->sets * g->plan->buckets), fill = 0,
		 room = (uint32_t)g->chunk_entries;
	struct obk_chunk *now = NULL;

	g->chunks = 0;
	for (uint32_t bucket = 0; bucket < total; bucket++) {
		uint32_t count, taken = 0;

		bucket_refs(g, bucket, &count);
		g->bucket[bucket] = OBK_EMPTY;
		/*
		 * a bucket that would be cut, although it fits into one chunk, starts a new chunk
		 */
		if (fill > room / 2 && fill + count > room)
			fill = room;
		while (taken < count) {
			uint32_t part;

			if (!now || fill == room) {
				if (g->chunks % 256 == 0) {
					struct obk_chunk *more = realloc(
						g->chunk, (g->chunks + 256) * sizeof(*more));

					if (!more)
						return OB_ERR_NO_MEMORY;
					g->chunk = more;
				}
				now = &g->chunk[g->chunks++];
				*now = (struct obk_chunk){
					.first = bucket, .skip = taken, .has_edge = taken > 0
				};
				fill = 0;
			}
			part = count - taken < room - fill ? count - taken : room - fill;
			taken += part;
			fill += part;
			now->last = bucket;
			now->stop = taken;
		}
	}
	return OB_ERR_NONE;
}

/* Collects the items of a chunk, one piece per bucket. */
static size_t collect(struct obk_group *g, const struct obk_chunk *chunk, struct obk_worker *w)
{
	size_t pieces = 0;
	uint32_t at = 0;

	for (uint32_t bucket = chunk->first; bucket <= chunk->last; bucket++) {
		uint32_t count, from = bucket == chunk->first ? chunk->skip : 0;
		const uint32_t *refs = bucket_refs(g, bucket, &count);

		if (bucket == chunk->last)
			count = chunk->stop;
		count -= from;
		if (!count)
			continue;
		memcpy(w->items + at, refs + from, count * sizeof(*refs));
		w->pieces[pieces++] =
			(struct obk_piece){ .at = at, .count = count, .bucket = bucket };
		at += count;
	}
	return pieces;
}

/* Adds up the items of each piece in pairs, level by level, for all pieces at once. */
static void add_up(const struct obk_group *g, struct obk_worker *w, size_t pieces)
{
	const struct obk_lanes *lanes = g->bases->lanes;
	size_t live = 0;
	uint32_t slot = 0;

	for (size_t i = 0; i < pieces; i++) {
		if (w->pieces[i].count > 1)
			w->live[live++] = (uint32_t)i;
	}
	while (live) {
		size_t pairs = 0, left = 0;

		for (size_t i = 0; i < live; i++) {
			struct obk_piece *piece = &w->pieces[w->live[i]];
			uint32_t *item = w->items + piece->at, half = piece->count / 2;

			for (uint32_t j = 0; j < half; j++) {
				w->pairs[pairs++] = (struct obk_pair){
					.a = item[2 * j], .b = item[2 * j + 1], .out = slot
				};
				item[j] = OBK_REF_SCRATCH | slot++;
			}
			if (piece->count % 2)
				item[half] = item[piece->count - 1];
			piece->count = (piece->count + 1) / 2;
			if (piece->count > 1)
				w->live[left++] = w->live[i];
		}
		lanes->add(g->bases->slots, w->slots, w->pairs, pairs, w->workspace);
		live = left;
	}
}

static inline const char *slot_at(const struct obk_group *g, const void *slots, size_t i)
{
	return (const char *)slots + i * g->bases->lanes->slot_bytes;
}

static void read_ref(
	const struct obk_group *g, const void *scratch, uint32_t ref, struct obk_g1_affine *p)
{
	g->bases->lanes->store(p,
		slot_at(g, ref & OBK_REF_SCRATCH ? scratch : g->bases->slots, ref & OBK_REF_INDEX),
		1);
	if (ref & OBK_REF_NEGATIVE)
		obk_g1_affine_neg(p, p);
}

void obk_group_accumulate(struct obk_group *g, size_t index, unsigned thread)
{
	struct obk_chunk *chunk = &g->chunk[index];
	struct obk_worker *w = &g->workers[thread];
	size_t pieces = collect(g, chunk, w), bytes = g->bases->lanes->slot_bytes;

	add_up(g, w, pieces);
	for (size_t i = 0; i < pieces; i++) {
		uint32_t bucket = w->pieces[i].bucket, ref = w->items[w->pieces[i].at];

		if (i == 0 && chunk->has_edge) {
			read_ref(g, w->slots, ref, &chunk->edge);
		} else if (ref & OBK_REF_SCRATCH) {
			memcpy((char *)g->points + bucket * bytes,
				slot_at(g, w->slots, ref & OBK_REF_INDEX), bytes);
			g->bucket[bucket] = OBK_REF_SCRATCH | bucket;
		} else {
			g->bucket[bucket] = ref;
		}
	}
}

void obk_group_join(struct obk_group *g)
{
	for (size_t i = 0; i < g->chunks;) {
		uint32_t bucket = g->chunk[i].first;
		struct obk_g1_affine p;
		struct obk_g1 sum;

		if (!g->chunk[i].has_edge) {
			i++;
			continue;
		}
		read_ref(g, g->points, g->bucket[bucket], &p);
		obk_g1_from_affine(&sum, &p);
		for (; i < g->chunks && g->chunk[i].has_edge && g->chunk[i].first == bucket; i++)
			obk_g1_add_affine(&sum, &sum, &g->chunk[i].edge);
		obk_g1_to_affine(&p, &sum);
		g->bases->lanes->load(
			(char *)g->points + bucket * g->bases->lanes->slot_bytes, &p, 1);
		g->bucket[bucket] = OBK_REF_SCRATCH | bucket;
	}
}
