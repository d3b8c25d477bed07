/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/ring.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"

/* bytes that an empty ring goes on before it starts over */
#define REWIND_MIN (256u << 10)
#define BATCH_MAX  (128u << 10) /* bytes: a frame is closed here when more is waiting */
#define GRANULES   1024u        /* of a ring */

/*
 * No writer may wait for an acknowledgement that will not come. When the server has executed
 * everything and waits for more, it has acknowledged all but a quarter of the ring at most (hello's
 * `ring`). Beside that the ring must have room for one batch, of which only a part is acknowledged,
 * for one granule likewise, for a pad, which is shorter than the record it makes way for, and for
 * that record: size/4 + size/8 + size/1024 + 2 * size/4 < size.
 *
 * Marks: a batch shares the last one while both together are at most a granule. So two neighbours
 * are longer than a granule, and all together not longer than the ring: there are at most 2 *
 * GRANULES + 1.
 */
_Static_assert(OBC_RING_MARKS > 2 * GRANULES + 1, "a mark for every batch");

bool obc_ring_size_read(uint64_t *ret_size)
{
	const char *text = getenv("OUTBOARD_RING");
	uint64_t size = OBC_RING_DEFAULT;

	if (text && *text &&
		(!ob_text_parse_size(text, &size) || size < OBC_RING_MIN || size > OBC_RING_MAX ||
			(size & (size - 1)) != 0)) {
		ob_error("OUTBOARD_RING: '%.40s' is not a power of two from 64K to 1G. Set it to "
			 "such a size or unset it",
			text);
		return false;
	}
	*ret_size = size;
	return true;
}

enum ob_err obc_ring_init(struct obc_ring *ring, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), inner = ob_round_up(size, page);
	uint8_t *map = mmap(NULL, inner + 2 * page, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return OB_ERR_NO_MEMORY;
	if (mprotect(map + page, inner, PROT_READ | PROT_WRITE) != 0) {
		munmap(map, inner + 2 * page);
		return OB_ERR_NO_MEMORY;
	}
	*ring = (struct obc_ring){ .map = map, .map_size = inner + 2 * page, .mask = size - 1 };
	ring->bytes = map + page + inner - size;
	ring->record_max = (uint32_t)ob_min(size / 4, (uint64_t)OBC_RECORD_MAX);
	ring->rewind_min = ob_min(size / 4, (uint64_t)REWIND_MIN);
	ring->batch_max = (uint32_t)ob_min(size / 8, (uint64_t)BATCH_MAX);
	ring->granule = size / GRANULES;
	return OB_ERR_NONE;
}

void obc_ring_fini(struct obc_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->map_size);
	ring->map = NULL;
	ring->bytes = NULL;
}

/* ---- sending ---- */

/* Offset of the next turn's first byte; `at` itself when it is one. */
static uint64_t turn_after(const struct obc_ring *ring, uint64_t at)
{
	return (at + ring->mask) & ~ring->mask;
}

/* Bytes that a committed entry takes in the ring. */
static uint64_t entry_size(const struct obp_record *record, uint32_t size)
{
	return record->lane & OBC_LANE_BYREF ? ((const struct obc_byref *)record)->entry_size
					     : size;
}

bool obc_ring_gather(struct obc_ring *ring, struct obc_batch *ret)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t at = obc_ring_unsent(ring);

	*ret = (struct obc_batch){ .start = at, .end = at };
	while (at < head) {
		struct obp_record *record = obc_ring_at(ring, at);
		/* Acquire pairs with the release in commit: the body is there. */
		uint32_t size =
			atomic_load_explicit(obc_ring_size_of(record), memory_order_acquire);

		if (size == 0)
			break; /* reserved, still being written */
		if (size == OBC_PAD_MARK) {
			if (ret->count)
				break;
			at = turn_after(ring, at + 1);
			ret->start = ret->end = at;
			continue;
		}
		if (ret->count &&
			(record->lane & OBC_LANE_BYREF || ret->bytes + size > ring->batch_max))
			break;
		if (record->lane & OBC_LANE_BYREF)
			ret->byref = (const struct obc_byref *)record;
		at += entry_size(record, size);
		ret->end = at;
		ret->bytes += size;
		ret->count++;
		/*
		 * At the ring's end the next record lies elsewhere, whether or not a pad mark says
		 * so.
		 */
		if (ret->byref || (at & ring->mask) == 0)
			break;
	}
	return ret->count > 0;
}

void obc_ring_leaving(struct obc_ring *ring, const struct obc_batch *batch)
{
	/*
	 * Before the bytes leave: their acknowledgement may come back before the system call
	 * returns.
	 */
	atomic_store_explicit(&ring->sent_number,
		atomic_load_explicit(&ring->sent_number, memory_order_relaxed) + batch->count,
		memory_order_relaxed);
}

/* Gives the room of every marked batch that was acknowledged back to the writers. */
static void marks_free(struct obc_ring *ring)
{
	uint64_t acked = atomic_load_explicit(&ring->acked, memory_order_relaxed), tail = 0;

	while (ring->n_marks && ring->marks[ring->first_mark].number <= acked) {
		tail = ring->marks[ring->first_mark].end;
		ring->tail_number = ring->marks[ring->first_mark].number;
		ring->first_mark = (ring->first_mark + 1) % OBC_RING_MARKS;
		ring->n_marks--;
	}
	/* Release: nobody of ours reads before it any more. */
	if (tail)
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

void obc_ring_left(struct obc_ring *ring, const struct obc_batch *batch)
{
	uint64_t number = atomic_load_explicit(&ring->sent_number, memory_order_relaxed);
	struct obc_mark *last =
		&ring->marks[(ring->first_mark + ring->n_marks - 1) % OBC_RING_MARKS];

	atomic_store_explicit(&ring->sent, batch->end, memory_order_relaxed);
	if (ring->n_marks && batch->end - last->begin <= ring->granule) {
		last->end = batch->end;
		last->number = number;
	} else {
		ring->marks[(ring->first_mark + ring->n_marks++) % OBC_RING_MARKS] =
			(struct obc_mark){ batch->start, batch->end, number };
	}
	/*
	 * Only now may its room be given back, however early the acknowledgement came. After a
	 * break the server may acknowledge records out of what it had received before, while they
	 * are on their way once more.
	 */
	if (number <= atomic_load_explicit(&ring->acked, memory_order_relaxed))
		marks_free(ring);
	/* Release: who sees it may change the bytes that were sent. */
	atomic_store_explicit(&ring->left_number, number, memory_order_release);
}

/* ---- acknowledgements ---- */

bool obc_ring_ack(struct obc_ring *ring, uint64_t number)
{
	uint64_t sent = atomic_load_explicit(&ring->sent_number, memory_order_relaxed);

	if (number <= atomic_load_explicit(&ring->acked, memory_order_relaxed))
		return true;
	if (number > ob_max(sent, ring->sent_most))
		return false;
	atomic_store_explicit(&ring->acked, number, memory_order_relaxed);
	marks_free(ring);
	return true;
}

bool obc_ring_rewind(struct obc_ring *ring, uint64_t number)
{
	uint64_t sent = atomic_load_explicit(&ring->sent_number, memory_order_relaxed);
	uint64_t at = atomic_load_explicit(&ring->tail, memory_order_relaxed),
		 n = ring->tail_number;

	ring->sent_most = ob_max(ring->sent_most, sent);
	if (number < n || number < atomic_load_explicit(&ring->acked, memory_order_relaxed) ||
		number > ring->sent_most)
		return false;
	while (n < number) {
		struct obp_record *record = obc_ring_at(ring, at);
		uint32_t size =
			atomic_load_explicit(obc_ring_size_of(record), memory_order_acquire);

		if (size == OBC_PAD_MARK) {
			at = turn_after(ring, at + 1);
			continue;
		}
		at += entry_size(record, size);
		n++;
	}
	atomic_store_explicit(&ring->acked, number, memory_order_relaxed);
	atomic_store_explicit(&ring->sent_number, number, memory_order_relaxed);
	atomic_store_explicit(&ring->left_number, number, memory_order_relaxed);
	atomic_store_explicit(&ring->sent, at, memory_order_relaxed);
	ring->first_mark = ring->n_marks = 0;
	/* An empty ring's tail belongs to the writer, who may be starting it over. */
	if (number > ring->tail_number)
		atomic_store_explicit(&ring->tail, at, memory_order_release);
	ring->tail_number = number;
	return true;
}
