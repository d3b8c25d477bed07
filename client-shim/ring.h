/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_ring: the records of the log in the order of their numbers, from the moment they are reserved
 * until the server has taken them up.
 *
 *        tail               sent          head
 *   ...----|------------------|-------------|......free......      offsets count bytes and only grow; offset o lies at byte o & mask
 *          | kept: sent again | committed,  |
 *          | after a break    | or being    |
 *          |                  | written     |
 *
 * A record lies in one piece. Where the next one does not fit before the ring's end, a pad mark
 * takes up the rest; a record that ends exactly at the ring's end leaves no mark. A batch of
 * records never crosses the ring's end. When the ring is empty the writer may go on at its first
 * byte, so that few pages are ever touched; it then moves the tail too.
 *
 * The first word of a record is its size once it is committed, 0 while it is being written. Every
 * size is a multiple of 8.
 *
 * No I/O, no waiting. Whose is what:
 *   writers    hold `lock` to reserve; commit needs no lock
 *   sender     one thread at a time: gather, leaving, left
 *   acks       left, ack and rewind: under one lock of the owner's (in the log: wait_lock). rewind:
 *              nobody sends meanwhile
 */
#ifndef OBC_RING_H
#define OBC_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/err.h"
#include "protocol/format.h"

#define OBC_RING_DEFAULT (64u << 20) /* bytes */
#define OBC_RING_MIN     (64u << 10)
#define OBC_RING_MAX     (1u << 30)
#define OBC_RECORD_MAX   (1u << 20) /* bytes of one record in any ring */

/* batches that were sent and not acknowledged; neighbours share a mark, see ring.c */
#define OBC_RING_MARKS 2560u
#define OBC_PAD_MARK   0xfffffff8u /* in a record's size: nothing more up to the ring's end */
/* in a record's lane, in the ring only: the data lies outside */
#define OBC_LANE_BYREF 0x8000u

_Static_assert(OBP_LANE_MAX <= OBC_LANE_BYREF, "the mark must not be a lane");

/* A record whose data lies outside the ring; head_size bytes of its body follow. */
struct obc_byref {
	struct obp_record record; /* size: as on the wire */
	uint32_t entry_size;      /* bytes in the ring */
	uint32_t head_size;
	const void *data;
	uint64_t size;
};

struct obc_mark {
	uint64_t begin, end; /* ring offsets */
	uint64_t number;     /* of the record that ends at `end` */
};

struct obc_ring {
	/* reserving, under `lock` but for the atomic reads */
	_Alignas(64) _Atomic uint32_t lock;
	/*
	 * bytes of one reservation; a few of the largest fit whatever the server has not
	 * acknowledged yet
	 */
	uint32_t record_max;
	uint8_t *bytes;
	uint64_t mask; /* the ring's size less 1 */
	/* an empty ring starts over when its head is farther in than this */
	uint64_t rewind_min;
	_Atomic uint64_t head;
	uint64_t last_number;  /* of the last record that was reserved */
	_Atomic uint64_t tail; /* everything before is acknowledged */
	/* sending; the sender's but for the atomic reads */
	_Alignas(64) _Atomic uint64_t sent; /* offset behind the last batch that left */
	_Atomic uint64_t sent_number;       /* of the last record that left or is leaving */
	/*
	 * of the last record that left: its bytes are no longer looked at. Goes back with a break
	 */
	_Atomic uint64_t left_number;
	uint32_t batch_max; /* bytes of several records in one batch */
	/* acknowledging */
	_Alignas(64) _Atomic uint64_t acked; /* number */
	uint64_t sent_most;                  /* the highest sent_number before the last break */
	uint64_t tail_number;                /* of the record that ends at tail */
	uint64_t granule; /* bytes up to which neighbouring batches share a mark */
	uint32_t first_mark, n_marks;
	struct obc_mark marks[OBC_RING_MARKS];
	void *map; /* the ring between two pages that nobody may touch */
	size_t map_size;
};

/*
 * What leaves as one frame: records that lie together in the ring, or one whose data lies outside.
 */
struct obc_batch {
	uint64_t start, end;   /* ring offsets */
	uint32_t count, bytes; /* records; bytes on the wire */
	const struct obc_byref *byref;
};

/*
 * size: a power of two. OB_ERR_NO_MEMORY. A ring that is all zeros or whose init failed may be
 * given to fini.
 */
enum ob_err obc_ring_init(struct obc_ring *ring, uint64_t size);
void obc_ring_fini(struct obc_ring *ring);
/*
 * OUTBOARD_RING: the size in bytes. False: it is not a size that can be used; one line has been
 * logged.
 */
bool obc_ring_size_read(uint64_t *ret_size);

/* Sender: the next committed records. False: there are none. */
bool obc_ring_gather(struct obc_ring *ring, struct obc_batch *ret);
/*
 * Sender: the batch is about to leave, numbered from sent_number + 1; then that it has left, or
 * that the connection broke under it.
 */
void obc_ring_leaving(struct obc_ring *ring, const struct obc_batch *batch);
void obc_ring_left(struct obc_ring *ring, const struct obc_batch *batch);
/* The server has taken up everything up to record `number`. False: that was never sent. */
bool obc_ring_ack(struct obc_ring *ring, uint64_t number);
/*
 * A new connection: the server has everything up to record `number`, what follows is sent again.
 * False: that cannot be.
 */
bool obc_ring_rewind(struct obc_ring *ring, uint64_t number);

static inline struct obp_record *obc_ring_at(const struct obc_ring *ring, uint64_t offset)
{
	return (struct obp_record *)(ring->bytes + (offset & ring->mask));
}

static inline _Atomic uint32_t *obc_ring_size_of(struct obp_record *record)
{
	return (_Atomic uint32_t *)&record->size;
}

/*
 * Writer, under the lock: `need` bytes (at most record_max) in one piece for `numbers` records, the
 * first of which is uncommitted; more than one must be made so that whoever commits the first finds
 * the next uncommitted. NULL: no room now; *ret_tail is the tail that this was found with: look
 * again when it has moved.
 */
static inline struct obp_record *obc_ring_reserve(
	struct obc_ring *ring, uint64_t need, unsigned numbers, uint64_t *ret_tail)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	uint64_t at = head, to_end = ring->mask + 1 - (head & ring->mask);
	struct obp_record *record;

	if (ob_unlikely(
		    to_end < need || (head == tail && (head & ring->mask) > ring->rewind_min))) {
		at = head + to_end;
		/*
		 * When the ring is empty, advance the tail with the head. Otherwise only the bytes
		 * before the old tail could ever be used: acknowledgements are coarse, and with so
		 * little room for records the next one would never come.
		 */
		if (head == tail) {
			tail = at;
			atomic_store_explicit(&ring->tail, tail, memory_order_relaxed);
		}
	}
	if (ob_unlikely(at + need - tail > ring->mask + 1)) {
		*ret_tail = tail;
		return NULL;
	}
	if (ob_unlikely(at != head))
		atomic_store_explicit(obc_ring_size_of(obc_ring_at(ring, head)), OBC_PAD_MARK,
			memory_order_relaxed);
	record = obc_ring_at(ring, at);
	atomic_store_explicit(obc_ring_size_of(record), 0, memory_order_relaxed);
	ring->last_number += numbers;
	/*
	 * Release: a sender that sees the new head sees size 0 (or what commit made of it) and the
	 * pad mark.
	 */
	atomic_store_explicit(&ring->head, at + need, memory_order_release);
	return record;
}

/* Writer: the record is whole. */
static inline void obc_ring_commit(
	struct obp_record *record, uint16_t opcode, uint16_t lane, uint32_t size)
{
	record->opcode = opcode;
	record->lane = lane;
	/* Release: who sees the size sees the whole record. */
	atomic_store_explicit(obc_ring_size_of(record), size, memory_order_release);
}

/*
 * Where the next record to be sent stands. The tail is ahead of what was sent when the ring was
 * started over; looked at after the head was, it is there for every record that the head shows.
 */
static inline uint64_t obc_ring_unsent(const struct obc_ring *ring)
{
	uint64_t sent = atomic_load_explicit(&ring->sent, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	return ob_max(sent, tail);
}

/*
 * Something committed waits to be sent. Any thread. A thread that is not the sender may look at a
 * place that was sent, acknowledged and given to another record meanwhile, and take that record's
 * bytes for a size. Harmless: "yes" costs a look with the right to send, and whoever reserved that
 * place looks for a sleeping sender after us.
 */
static inline __attribute__((no_sanitize("thread"))) bool obc_ring_pending(
	const struct obc_ring *ring)
{
	/* Acquire: the record's first word was written before head moved past it. */
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire),
		 at = obc_ring_unsent(ring);

	return at < head &&
		atomic_load_explicit(
			obc_ring_size_of(obc_ring_at(ring, at)), memory_order_acquire) != 0;
}

#endif
