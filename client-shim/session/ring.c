/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pages.h"
#include "base/text.h"

/* an empty ring restarts at its first byte after this many bytes */
#define REWIND_MIN (256u << 10)
/* bytes: size at which a frame is sent although more records wait */
#define BATCH_MAX  (128u << 10)
#define GRANULES   1024u /* of a ring */
/* bytes at the start of a ring that obc_ring_release leaves alone, for the next few records */
#define KEEP_MAX   (64u << 10)

/*
 * While the ring is held: writers have this part of a ring of at most this size. The server keeps a
 * record with an entry of OBS_HELD_ENTRY bytes (server/worker/held.h), so small records need up to
 * five times as much there. Two of the largest records fit, one of which may be a pad.
 */
#define HELD_SHARE    8u
#define HELD_SIZE_MAX (64u << 20)

/*
 * No writer may wait for an acknowledgement that will not arrive. When the server has executed
 * everything and waits for more, at most a quarter of the ring is not acknowledged (`ring` in the
 * hello). Beside that the ring must have room for one batch and one granule that are acknowledged
 * only in part, for a pad, which is shorter than the record after it, and for that record: size/4 +
 * size/8 + size/1024 + 2 * size/4 < size.
 *
 * Marks: a batch shares the last mark while both together are at most a granule. So two adjacent
 * marks cover more than a granule, and all marks cover at most the ring: there are at most 2 *
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
	memset(ring, 0, offsetof(struct obc_ring, marks));
	ring->map = map;
	ring->map_size = inner + 2 * page;
	ring->mask = size - 1;
	ring->bytes = map + page + inner - size;
	ring->record_max = (uint32_t)ob_min(size / 4, (uint64_t)OBC_RECORD_MAX);
	ring->rewind_min = ob_min(size / 4, (uint64_t)REWIND_MIN);
	ring->batch_max = (uint32_t)ob_min(size / 8, (uint64_t)BATCH_MAX);
	ring->granule = size / GRANULES;
	ring->held_room = ob_min(ob_max(ob_min(size, (uint64_t)HELD_SIZE_MAX) / HELD_SHARE,
					 ring->record_max * 5ull / 2),
		size);
	atomic_store_explicit(&ring->room, size, memory_order_relaxed);
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

/* Rounds an offset up to the next multiple of the ring size. */
static uint64_t next_lap(const struct obc_ring *ring, uint64_t at)
{
	return (at + ring->mask) & ~ring->mask;
}

/* Bytes that a committed entry takes in the ring. */
static uint64_t entry_size(const struct obp_record *record, uint32_t size)
{
	return record->lane & OBC_LANE_BYREF ? ((const struct obc_byref *)record)->entry_size
					     : size;
}

/* Offset of the next record, whose space was reserved; the head if there is none. */
static uint64_t gather_start(struct obc_ring *ring, uint64_t head)
{
	uint64_t at = obc_ring_unsent(ring);

	while (at < head &&
		atomic_load_explicit(obc_ring_size_of(obc_ring_at(ring, at)),
			memory_order_relaxed) == OBC_PAD_MARK)
		at = next_lap(ring, at + 1);
	return ob_min(at, head);
}

bool obc_ring_gather(struct obc_ring *ring, bool mix, struct obc_batch *ret)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t start = gather_start(ring, head);
	/* The record after the end of the ring is not adjacent. */
	uint64_t limit = ob_min(head, next_lap(ring, start + 1)) - start, at = 0;
	uint8_t *first = (uint8_t *)obc_ring_at(ring, start);
	uint32_t count = 0, bytes = 0, most = ring->batch_max;

	ret->start = start;
	ret->byref = NULL;
	while (at < limit) {
		struct obp_record *record = (struct obp_record *)(first + at);
		/* Acquire: pairs with the release in commit, so the body is visible. */
		uint32_t size =
			atomic_load_explicit(obc_ring_size_of(record), memory_order_acquire);

		/* 0: reserved, still being written */
		if (size == 0 || size == OBC_PAD_MARK || (at + size > most && count))
			break;
		if (ob_unlikely(record->lane & OBC_LANE_BYREF)) {
			if (count)
				break;
			ret->byref = (const struct obc_byref *)record;
			if (!mix || size > OBC_RING_MIXED - most)
				most = 0;
			at += ret->byref->entry_size;
		} else {
			at += size;
		}
		bytes += size;
		count++;
	}
	ret->end = start + at;
	ret->bytes = bytes;
	ret->count = count;
	return count > 0;
}

void obc_ring_leaving(struct obc_ring *ring, const struct obc_batch *batch)
{
	/*
	 * Before the bytes are sent, because their acknowledgement may arrive before the system
	 * call returns.
	 */
	atomic_store_explicit(&ring->sent_number,
		atomic_load_explicit(&ring->sent_number, memory_order_relaxed) + batch->count,
		memory_order_relaxed);
}

/* Release: no library thread reads before the new tail any more. */
static void freed_store(struct obc_ring *ring, uint64_t tail)
{
	atomic_store_explicit(&ring->freed, tail, memory_order_release);
	if (ob_likely(!atomic_load_explicit(&ring->held, memory_order_relaxed)))
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

/*
 * The tail is ahead if the writer has restarted an empty ring. Acquire: pairs with freed_store; the
 * sender has read everything before.
 */
static uint64_t kept_from(const struct obc_ring *ring)
{
	return ob_max(atomic_load_explicit(&ring->tail, memory_order_acquire),
		atomic_load_explicit(&ring->freed, memory_order_acquire));
}

/* Frees the space of every marked batch that was acknowledged. */
static void marks_free(struct obc_ring *ring)
{
	uint64_t acked = atomic_load_explicit(&ring->acked, memory_order_relaxed), tail = 0;

	while (ring->n_marks && ring->marks[ring->first_mark].number <= acked) {
		tail = ring->marks[ring->first_mark].end;
		ring->tail_number = ring->marks[ring->first_mark].number;
		ring->first_mark = (ring->first_mark + 1) % OBC_RING_MARKS;
		ring->n_marks--;
	}
	if (tail)
		freed_store(ring, tail);
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
	 * The space may be freed only now, even if the acknowledgement arrived before: after a
	 * break the server may acknowledge records that it received earlier, while they are being
	 * sent again.
	 */
	if (number <= atomic_load_explicit(&ring->acked, memory_order_relaxed))
		marks_free(ring);
	/* Release: a thread that sees the number may change the bytes that were sent. */
	atomic_store_explicit(&ring->left_number, number, memory_order_release);
}

/* ---- holding ---- */

void obc_ring_hold(struct obc_ring *ring, bool on)
{
	atomic_store_explicit(
		&ring->room, on ? ring->held_room : ring->mask + 1, memory_order_relaxed);
	atomic_store_explicit(&ring->held, on, memory_order_relaxed);
	/* Pairs with the fence in obc_ring_reserve_urgent: one of the two moves the tail. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!on)
		obc_ring_hold_move(ring, UINT64_MAX);
}

/*
 * Records lie between the tail and what is freed, if that is ahead; so no writer restarts the ring.
 * Another thread may free more, or move the tail, at the same time: the tail never moves back.
 */
void obc_ring_hold_move(struct obc_ring *ring, uint64_t offset)
{
	uint64_t to = ob_min(offset, atomic_load_explicit(&ring->freed, memory_order_relaxed));
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	while (tail < to &&
		!atomic_compare_exchange_weak_explicit(
			&ring->tail, &tail, to, memory_order_release, memory_order_relaxed))
		;
}

struct obp_record *obc_ring_reserve_urgent(
	struct obc_ring *ring, uint64_t need, unsigned numbers, uint64_t *ret_tail)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t freed = atomic_load_explicit(&ring->freed, memory_order_acquire);
	struct obp_record *record;

	/* A larger one could overwrite the pad of a restart. */
	if (freed > tail && need <= ring->rewind_min &&
		atomic_load_explicit(&ring->held, memory_order_relaxed))
		atomic_store_explicit(&ring->tail, freed, memory_order_relaxed);
	else
		freed = tail;
	record = obc_ring_reserve_within(ring, need, numbers, ring->mask + 1, ret_tail);
	if (freed == tail)
		return record;
	/*
	 * Back, also if the ring was restarted, which needs no tail; else the others would get room
	 * for as much again.
	 */
	atomic_store_explicit(&ring->tail, tail, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&ring->held, memory_order_relaxed))
		obc_ring_hold_move(ring, UINT64_MAX);
	*ret_tail = tail;
	return record;
}

/* ---- giving memory back ---- */

static void span_discard(const struct obc_ring *ring, uint64_t begin, uint64_t end)
{
	if (begin < end)
		ob_pages_discard(ring->bytes + begin, end - begin);
}

uint64_t obc_ring_release(const struct obc_ring *ring, uint64_t at)
{
	uint64_t size = ring->mask + 1, end;
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	/* The tail of a held ring says nothing of where the records are. */
	uint64_t tail = kept_from(ring);
	uint64_t first = tail & ring->mask, last = head & ring->mask;

	at = ob_max(at, ob_min(ring->rewind_min, (uint64_t)KEEP_MAX));
	end = ob_min(at + OBC_RING_RELEASE, size);
	if (at >= size || head - tail == size)
		return size;
	if (head == tail) {
		span_discard(ring, at, end);
	} else if (first < last) {
		/* The records lie between the two. */
		span_discard(ring, at, ob_min(end, first));
		span_discard(ring, ob_max(at, last), end);
	} else {
		span_discard(ring, ob_max(at, last), ob_min(end, first));
	}
	return end;
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
	uint64_t at = kept_from(ring), n = ring->tail_number;

	ring->sent_most = ob_max(ring->sent_most, sent);
	if (number < n || number < atomic_load_explicit(&ring->acked, memory_order_relaxed) ||
		number > ring->sent_most)
		return false;
	while (n < number) {
		struct obp_record *record = obc_ring_at(ring, at);
		uint32_t size =
			atomic_load_explicit(obc_ring_size_of(record), memory_order_acquire);

		if (size == OBC_PAD_MARK) {
			at = next_lap(ring, at + 1);
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
	/*
	 * The tail of an empty ring belongs to the writer, which may be restarting the ring at its
	 * first byte.
	 */
	if (number > ring->tail_number)
		freed_store(ring, at);
	ring->tail_number = number;
	return true;
}
