/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obt_ring: one direction of a byte stream in memory that two processes share: one writes, one
 * reads. Positions are byte counts that only grow; position p is at offset p modulo the ring's
 * size. Each side keeps its own position in its own memory and publishes a copy of it.
 *
 *      tail (reader)            head (writer)
 *   ----|========================|-------          0 <= head - tail <= size
 *
 * Nothing in the shared memory is trusted: every number is read once, and an impossible one (more
 * unread bytes than the ring holds, for example) ends the stream. A ring that has been read empty
 * continues at its first byte, so that short messages touch few pages: the writer moves its head,
 * and `base` with it, to the next multiple of the size, and the bytes in between are no data.
 *
 * Owners: one thread at a time writes, one reads. obt_ring_unread: any thread. Nothing here sleeps.
 * A thread that sleeps elsewhere announces it in an `asleep` word and is woken, by one byte on the
 * socket or as a futex.
 */
#ifndef OBT_RING_H
#define OBT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* bytes: a long copy is published in steps of this size, so that the other side can begin */
#define OBT_RING_CHUNK  (64u << 10)
#define OBT_RING_REWIND (16u << 10) /* an empty ring starts again only beyond this position */

enum obt_asleep { OBT_AWAKE, OBT_ASLEEP_SOCKET, OBT_ASLEEP_FUTEX };

/*
 * In the shared memory, all zeros at first. Words of different writers are two cache lines apart,
 * because processors fetch lines in pairs.
 */
struct obt_ring_shared {
	_Alignas(128) _Atomic uint64_t head; /* written by the writer */
	_Atomic uint64_t base;
	_Alignas(128) _Atomic uint64_t tail;          /* by the reader */
	_Alignas(128) _Atomic uint32_t reader_asleep; /* by both: enum obt_asleep */
	_Alignas(128) _Atomic uint32_t writer_asleep;
};

struct obt_ring_writer {
	struct obt_ring_shared *shared;
	uint8_t *data;
	uint64_t size;         /* a power of two */
	uint64_t head, tail;   /* tail: as last read */
	uint64_t rewound_from; /* the reader's last position before the restart */
	bool rewound;          /* restarted, and the reader's position was not seen since */
};

struct obt_ring_reader {
	struct obt_ring_shared *shared;
	const uint8_t *data;
	uint64_t size;
	uint64_t tail, head; /* head: as last read */
	uint64_t base;
};

void obt_ring_writer_init(
	struct obt_ring_writer *w, struct obt_ring_shared *shared, uint8_t *data, uint64_t size);
void obt_ring_reader_init(struct obt_ring_reader *r, struct obt_ring_shared *shared,
	const uint8_t *data, uint64_t size);

/*
 * Writes as many bytes as fit: 0: full; -1, EPROTO: invalid numbers in the shared memory. `fd`: the
 * socket on which a sleeping reader waits.
 */
ssize_t obt_ring_write(struct obt_ring_writer *w, const struct iovec *iov, int n, int fd);
/* Reads as many bytes as there are: 0: none; -1, EPROTO. */
ssize_t obt_ring_read(struct obt_ring_reader *r, void *dst, size_t size, int fd);
/*
 * True if the next write or read moves bytes, or fails. Owner only. Reads the shared memory again,
 * ordered after the caller's store to an asleep word.
 */
bool obt_ring_writable(struct obt_ring_writer *w);
bool obt_ring_readable(const struct obt_ring_reader *r);
/* True if the published positions differ. Any thread; only a hint. */
bool obt_ring_unread(const struct obt_ring_shared *shared);

#endif
