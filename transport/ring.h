/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obt_ring: one direction of a byte stream in memory that two processes share: one writes, one
 * reads. Positions are bytes that only grow; what lies at position p is at p modulo the ring's
 * size. Each side has its own position in its own memory and publishes a copy of it.
 *
 *      tail (reader)            head (writer)
 *   ----|========================|-------          0 <= head - tail <= size
 *
 * Nothing in the shared memory is believed: every number is read once, and one that cannot be (more
 * unread bytes than the ring holds, say) ends the stream. A ring that has been read empty goes on
 * at its first byte, so that short messages stay within few pages: the writer then moves its head,
 * and
 * `base` with it, to the next multiple of the size, and what lies between is no data.
 *
 * Owners: one thread at a time writes, one reads. obt_ring_unread: any thread. Nothing here sleeps;
 * whoever does says so in the `asleep` words, and is woken: by one byte on the socket, or as a
 * futex.
 */
#ifndef OBT_RING_H
#define OBT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* bytes: a long copy is published in such steps, so that the other side can begin */
#define OBT_RING_CHUNK  (64u << 10)
#define OBT_RING_REWIND (16u << 10) /* an empty ring starts over beyond this */

enum obt_asleep { OBT_AWAKE, OBT_ASLEEP_SOCKET, OBT_ASLEEP_FUTEX };

/*
 * In the shared memory; all zeros at first. What different sides write lies apart by two cache
 * lines: processors fetch them in pairs.
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
	uint64_t head, tail;   /* tail: as far as is known */
	uint64_t rewound_from; /* the reader's last position before the ring started over */
	bool rewound;          /* and it has not been heard of since */
};

struct obt_ring_reader {
	struct obt_ring_shared *shared;
	const uint8_t *data;
	uint64_t size;
	uint64_t tail, head; /* head: as far as is known */
	uint64_t base;
};

void obt_ring_writer_init(
	struct obt_ring_writer *w, struct obt_ring_shared *shared, uint8_t *data, uint64_t size);
void obt_ring_reader_init(struct obt_ring_reader *r, struct obt_ring_shared *shared,
	const uint8_t *data, uint64_t size);

/*
 * As many bytes as there is room for: 0 full; -1, EPROTO: the shared numbers make no sense. `fd` is
 * the socket that a sleeping reader waits at.
 */
ssize_t obt_ring_write(struct obt_ring_writer *w, const struct iovec *iov, int n, int fd);
/* As many bytes as there are: 0 none; -1, EPROTO. */
ssize_t obt_ring_read(struct obt_ring_reader *r, void *dst, size_t size, int fd);
/*
 * Whether the next write or read moves something, or fails. For the owner; a fresh look, ordered
 * behind the caller's store to an asleep word.
 */
bool obt_ring_writable(struct obt_ring_writer *w);
bool obt_ring_readable(const struct obt_ring_reader *r);
/* Both published positions differ: for any thread, and only a hint. */
bool obt_ring_unread(const struct obt_ring_shared *shared);

#endif
