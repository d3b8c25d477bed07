/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_ring: the command ring. It holds the records of the log in the order of their numbers, from
 * their reservation until the server has acknowledged them.
 *
 *        tail               sent          head
 *   ...----|------------------|-------------|......free......
 *          | kept: sent again | committed,  |
 *          | after a break    | or being    |
 *          |                  | written     |
 *
 * Offsets count bytes and only grow. Offset o is stored at byte o & mask.
 *
 * A record is contiguous. If the next record does not fit before the end of the ring, a pad mark
 * fills the rest. A record that ends exactly at the end of the ring needs no mark. A batch of
 * records never crosses the end of the ring. When the ring is empty the writer may restart at the
 * first byte of the ring, so that few pages are ever touched; it then moves the tail as well.
 *
 * The first word of a record is its size once it is committed, and 0 while it is being written.
 * Every size is a multiple of 8.
 *
 * The functions do no I/O and do not wait. Locking:
 *   writers    hold `lock` to reserve; commit needs no lock
 *   sender     one thread at a time calls gather, leaving and left
 *   acks       left, ack and rewind: under one lock of the owner (in the log: wait_lock); during
 *              rewind no thread may send
 *   release    holds `lock`, as a writer does
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

/*
 * bytes. Writers go through the whole ring, and the sender and the kernel read it after them, so it
 * must fit the last-level cache beside other data: a ring of 64 MiB costs 40 % more processor time
 * for a copy of 4 KiB. It is more than the kernel lets TCP have in flight (4 MiB unless
 * net.ipv4.tcp_wmem is raised), so on a long link the ring is not what limits.
 */
#define OBC_RING_DEFAULT (8u << 20)
#define OBC_RING_MIN     (64u << 10)
#define OBC_RING_MAX     (1u << 30)
#define OBC_RECORD_MAX   (1u << 20) /* limit of one record in any ring, in bytes */

/* bytes that one obc_ring_release examines: writers wait for it, about 30 us if all were touched */
#define OBC_RING_RELEASE (1u << 20)

/* the most batches that are sent and not acknowledged; adjacent batches share a mark, see ring.c */
#define OBC_RING_MARKS 2560u
#define OBC_PAD_MARK   0xfffffff8u /* as a record's size: unused up to the end of the ring */
/* flag in a record's lane, in the ring only: the data is outside the ring */
#define OBC_LANE_BYREF 0x8000u

_Static_assert(OBP_LANE_MAX <= OBC_LANE_BYREF, "the mark must not be a lane");

/* A record whose data is outside the ring; head_size bytes of its body follow. */
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
	/* reserving; under `lock`, except for the atomic reads */
	_Alignas(64) _Atomic uint32_t lock;
	/*
	 * limit of one reservation, in bytes; small enough that a few of the largest records always
	 * fit beside what the server has not acknowledged
	 */
	uint32_t record_max;
	uint8_t *bytes;
	uint64_t mask; /* ring size - 1 */
	/* an empty ring restarts at its first byte when its head is beyond this offset */
	uint64_t rewind_min;
	_Atomic uint64_t head;
	_Atomic uint64_t room; /* bytes behind the tail for writers: all, less while held */
	uint64_t last_number;  /* number of the last record reserved */
	_Atomic uint64_t tail; /* everything before it is free for writers */
	/* sending; owned by the sender, except for the atomic reads */
	_Alignas(64) _Atomic uint64_t sent; /* offset after the last batch sent */
	_Atomic uint64_t sent_number;       /* of the last record sent or being sent */
	/*
	 * number of the last record sent completely: the sender no longer reads its bytes.
	 * Decreases when the connection breaks
	 */
	_Atomic uint64_t left_number;
	uint32_t batch_max; /* limit of a batch of several records, in bytes */
	/* acknowledging */
	_Alignas(64) _Atomic uint64_t acked; /* number */
	_Atomic uint64_t freed; /* everything before it is acknowledged; the tail, unless held */
	_Atomic bool held;      /* acknowledgements do not move the tail, see obc_ring_hold */
	uint64_t held_room;     /* `room` while held */
	uint64_t sent_most;     /* the highest sent_number before the last break */
	uint64_t tail_number;   /* of the record that ends at `freed` */
	uint64_t granule;       /* adjacent batches of up to this many bytes share a mark */
	uint32_t first_mark, n_marks;
	void *map; /* the ring between two inaccessible guard pages */
	size_t map_size;
	struct obc_mark marks[OBC_RING_MARKS]; /* last: init does not touch its pages */
};

/* Bytes on the wire of a batch whose first record has its data outside the ring. */
#define OBC_RING_MIXED (1u << 20)

/*
 * What is sent as one frame: adjacent records of the ring, of which the first may have its data
 * outside the ring (byref).
 */
struct obc_batch {
	uint64_t start, end;   /* ring offsets */
	uint32_t count, bytes; /* records; bytes on the wire */
	const struct obc_byref *byref;
};

/*
 * size: a power of two. Fails with OB_ERR_NO_MEMORY. fini accepts a zeroed ring and a ring whose
 * init failed.
 */
enum ob_err obc_ring_init(struct obc_ring *ring, uint64_t size);
void obc_ring_fini(struct obc_ring *ring);
/*
 * Reads OUTBOARD_RING, the size in bytes. False: the value is not a usable size; one line has been
 * logged.
 */
bool obc_ring_size_read(uint64_t *ret_size);

/*
 * Sender: returns the next committed records. mix: a record whose data is outside the ring may have
 * others behind it. False: there are none.
 */
bool obc_ring_gather(struct obc_ring *ring, bool mix, struct obc_batch *ret);
/*
 * Sender: obc_ring_leaving before the batch is sent; its records are numbered from sent_number + 1.
 * obc_ring_left after it was sent or the connection broke.
 */
void obc_ring_leaving(struct obc_ring *ring, const struct obc_batch *batch);
void obc_ring_left(struct obc_ring *ring, const struct obc_batch *batch);
/* The server has acknowledged all records up to `number`. False: that record was never sent. */
bool obc_ring_ack(struct obc_ring *ring, uint64_t number);
/*
 * On a new connection: the server has all records up to `number`; later ones are sent again. False:
 * `number` is impossible.
 */
bool obc_ring_rewind(struct obc_ring *ring, uint64_t number);

/*
 * Limits what writers can write. While the ring is held, acknowledgements do not move the tail:
 * writers find no room once they have written a part of the ring's size since then. The part is so
 * small that what the server needs for these records, with an entry for each, stays below its
 * limit. The tail may be farther behind the head than the ring's size. obc_ring_hold_move: what was
 * written before `offset` counts no longer, as far as it is acknowledged. Both under the lock of
 * acknowledgements.
 */
void obc_ring_hold(struct obc_ring *ring, bool on);
void obc_ring_hold_move(struct obc_ring *ring, uint64_t offset);
/*
 * As obc_ring_reserve, for small records (at most rewind_min) that may use the room which the hold
 * denies to others.
 */
struct obp_record *obc_ring_reserve_urgent(
	struct obc_ring *ring, uint64_t need, unsigned numbers, uint64_t *ret_tail);

/*
 * Gives memory back to the system: the pages of the OBC_RING_RELEASE bytes of the ring from byte
 * `at` that hold no record, except the first few of the ring. The caller holds `lock`. Returns
 * where the next call continues; the ring's size: that was all. Costs the writer that reserves
 * there next one page fault for each page.
 *
 * No thread uses these pages meanwhile. Records lie between tail and head, also those that are
 * being written, sent or kept. Only a reservation moves the head, and it needs the lock. The tail
 * may move, which only frees more. obc_ring_pending of a thread that is not the sender may still
 * read a word of a released page: it reads 0, as it may from any other record there.
 */
uint64_t obc_ring_release(const struct obc_ring *ring, uint64_t at);

static inline struct obp_record *obc_ring_at(const struct obc_ring *ring, uint64_t offset)
{
	return (struct obp_record *)(ring->bytes + (offset & ring->mask));
}

static inline _Atomic uint32_t *obc_ring_size_of(struct obp_record *record)
{
	return (_Atomic uint32_t *)&record->size;
}

/* obc_ring_reserve, with the bytes that records may take behind the tail. */
static inline struct obp_record *obc_ring_reserve_within(
	struct obc_ring *ring, uint64_t need, unsigned numbers, uint64_t room, uint64_t *ret_tail)
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
		 * before the old tail could ever be used: acknowledgements are coarse, and too few
		 * records would fit for the server to send the next one.
		 */
		if (head == tail) {
			tail = at;
			atomic_store_explicit(&ring->tail, tail, memory_order_relaxed);
		}
	}
	if (ob_unlikely(at + need - tail > room)) {
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
	 * Release: a sender that sees the new head also sees the pad mark and the size, which is 0
	 * or the value that commit stored.
	 */
	atomic_store_explicit(&ring->head, at + need, memory_order_release);
	return record;
}

/*
 * Writer, under the lock: reserves `need` contiguous bytes (at most record_max) for `numbers`
 * records and marks the first as uncommitted. With more than one, the caller must mark each
 * following record as uncommitted before it commits the one before. NULL: no room now; try again
 * when the tail differs from *ret_tail, or the ring was held and is not any more.
 */
static inline struct obp_record *obc_ring_reserve(
	struct obc_ring *ring, uint64_t need, unsigned numbers, uint64_t *ret_tail)
{
	return obc_ring_reserve_within(ring, need, numbers,
		atomic_load_explicit(&ring->room, memory_order_relaxed), ret_tail);
}

/* Writer: the record is complete. */
static inline void obc_ring_commit(
	struct obp_record *record, uint16_t opcode, uint16_t lane, uint32_t size)
{
	record->opcode = opcode;
	record->lane = lane;
	/* Release: a thread that sees the size sees the whole record. */
	atomic_store_explicit(obc_ring_size_of(record), size, memory_order_release);
}

/*
 * Offset of the next record to send. After the ring restarted at its first byte the tail is ahead
 * of `sent`. A thread that loads head first (acquire) sees a tail that is valid for every record
 * before that head.
 */
static inline uint64_t obc_ring_unsent(const struct obc_ring *ring)
{
	uint64_t sent = atomic_load_explicit(&ring->sent, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	return ob_max(sent, tail);
}

/*
 * Whether a committed record waits to be sent. Any thread. If the caller is not the sender, the
 * record at that offset may be sent, acknowledged and overwritten meanwhile, and the bytes of
 * another record are read as a size. This is harmless: a wrong "true" costs one check under the
 * send right; after a wrong "false", the thread that reserved that space checks for a sleeping
 * sender later than this thread.
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
