/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/ring.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

/* wake a sleeping writer when this part of the ring is free, not for every byte */
#define ROOM_WAKES 4u

void obt_ring_writer_init(
	struct obt_ring_writer *w, struct obt_ring_shared *shared, uint8_t *data, uint64_t size)
{
	*w = (struct obt_ring_writer){ .shared = shared, .data = data, .size = size };
}

void obt_ring_reader_init(struct obt_ring_reader *r, struct obt_ring_shared *shared,
	const uint8_t *data, uint64_t size)
{
	*r = (struct obt_ring_reader){ .shared = shared, .data = data, .size = size };
}

/* ---- waking ---- */

/*
 * Counterpart of sleep_once in shm.c, which announces the sleep and then checks again. Both sides
 * use sequentially consistent operations, so that one sees the other's.
 */
static void wake(_Atomic uint32_t *asleep, int fd)
{
	switch (atomic_exchange(asleep, OBT_AWAKE)) {
	case OBT_AWAKE:
		break;
	case OBT_ASLEEP_FUTEX:
		syscall(SYS_futex, asleep, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		break;
	default:
		/* If the socket takes no byte it is full of wake-up bytes already. */
		send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

/* ---- writing ---- */

static bool tail_look(struct obt_ring_writer *w)
{
	uint64_t tail = atomic_load(&w->shared->tail);

	if (w->rewound && tail == w->rewound_from)
		return true; /* nothing was read since; the reader will continue at the base */
	if (w->head - tail > w->size) {
		errno = EPROTO;
		return false;
	}
	w->rewound = false;
	w->tail = tail;
	return true;
}

/* Makes an empty ring continue at its first byte. */
static bool rewind_try(struct obt_ring_writer *w)
{
	if (!tail_look(w))
		return false;
	if (w->tail != w->head)
		return true;
	w->rewound = true;
	w->rewound_from = w->head;
	w->head = w->tail = ob_round_up(w->head, w->size);
	/* Published with the first head beyond it. */
	atomic_store_explicit(&w->shared->base, w->head, memory_order_relaxed);
	return true;
}

static void head_publish(struct obt_ring_writer *w, int fd)
{
	atomic_store(&w->shared->head, w->head);
	if (ob_unlikely(atomic_load(&w->shared->reader_asleep)))
		wake(&w->shared->reader_asleep, fd);
}

ssize_t obt_ring_write(struct obt_ring_writer *w, const struct iovec *iov, int n, int fd)
{
	uint64_t start, published;
	bool full = false;

	if ((w->head & (w->size - 1)) >= OBT_RING_REWIND && !rewind_try(w))
		return -1;
	start = published = w->head;
	for (int i = 0; i < n && !full; i++) {
		const uint8_t *p = iov[i].iov_base;
		size_t left = iov[i].iov_len;

		while (left) {
			uint64_t at = w->head & (w->size - 1),
				 part = ob_min(ob_min((uint64_t)left, (uint64_t)OBT_RING_CHUNK),
					 w->size - at);

			if (w->size - (w->head - w->tail) < part) {
				if (!tail_look(w))
					return -1;
				part = ob_min(part, w->size - (w->head - w->tail));
				full = part == 0;
				if (full)
					break;
			}
			memcpy(w->data + at, p, part);
			w->head += part;
			p += part;
			left -= part;
			if (w->head - published >= OBT_RING_CHUNK) {
				head_publish(w, fd);
				published = w->head;
			}
		}
	}
	if (w->head != published)
		head_publish(w, fd);
	return (ssize_t)(w->head - start);
}

bool obt_ring_writable(struct obt_ring_writer *w)
{
	return !tail_look(w) || w->head - w->tail < w->size;
}

/* ---- reading ---- */

/* Reads the writer's head again. False: it is impossible. */
static bool head_look(struct obt_ring_reader *r)
{
	uint64_t head = atomic_load_explicit(&r->shared->head, memory_order_acquire), base;

	if (head == r->head)
		return true;
	base = atomic_load_explicit(&r->shared->base, memory_order_relaxed);
	if (base != r->base) {
		if (base != ob_round_up(r->tail, r->size))
			goto wrong;
		r->base = r->tail = r->head = base;
	}
	if (head - r->tail > r->size)
		goto wrong;
	r->head = head;
	return true;
wrong:
	errno = EPROTO;
	return false;
}

static void tail_publish(struct obt_ring_reader *r, int fd)
{
	struct obt_ring_shared *shared = r->shared;

	atomic_store(&shared->tail, r->tail);
	if (ob_unlikely(atomic_load(&shared->writer_asleep)) &&
		r->head - r->tail <= r->size - r->size / ROOM_WAKES)
		wake(&shared->writer_asleep, fd);
}

ssize_t obt_ring_read(struct obt_ring_reader *r, void *dst, size_t size, int fd)
{
	uint8_t *p = dst;
	size_t done = 0;

	while (done < size) {
		uint64_t at, part;

		if (r->head == r->tail && !head_look(r))
			return done ? (ssize_t)done : -1;
		if (r->head == r->tail)
			break;
		at = r->tail & (r->size - 1);
		part = ob_min(ob_min(r->head - r->tail, (uint64_t)(size - done)),
			ob_min((uint64_t)OBT_RING_CHUNK, r->size - at));
		memcpy(p + done, r->data + at, part);
		done += part;
		r->tail += part;
		tail_publish(r, fd);
	}
	return (ssize_t)done;
}

bool obt_ring_readable(const struct obt_ring_reader *r)
{
	return r->head != r->tail || atomic_load(&r->shared->head) != r->head;
}

bool obt_ring_unread(const struct obt_ring_shared *shared)
{
	return atomic_load(&shared->head) != atomic_load(&shared->tail);
}
