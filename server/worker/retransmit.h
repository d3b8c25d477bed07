/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_retransmit: the queue of replies that were sent and are not yet acknowledged, in order, so
 * that they can be sent again when the client's connection broke. A reply of up to
 * OBS_RETRANSMIT_SMALL bytes is built here and sent from here, which costs no copy. Device data
 * stays in its staging slot, which is not reused before the acknowledgement. The queue is bounded:
 * a sender waits while it is full (reply.c).
 *
 * Owner: struct obs_replies; everything under its lock. An empty queue starts again at its first
 * byte, so that few cache lines are ever touched.
 */
#ifndef OBS_RETRANSMIT_H
#define OBS_RETRANSMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "protocol/format.h"

struct obs_slot;

#define OBS_RETRANSMIT_BYTES     (1u << 20) /* of the ring */
#define OBS_RETRANSMIT_MAX       8192u      /* replies */
/* bytes of a body; a larger one is in a slot or in memory of its own */
#define OBS_RETRANSMIT_SMALL     (64u << 10)
#define OBS_RETRANSMIT_LARGE_MAX (16u << 20) /* bytes of memory of their own */

struct obs_retransmit_entry {
	uint8_t *bytes;         /* frame, reply and the body or its first part */
	uint32_t size, skipped; /* skipped: bytes left unused before it, at the ring's end */
	const uint8_t *body;    /* the body if it is not in `bytes`; else NULL */
	uint32_t body_size, pad;
	struct obs_slot *slot; /* to be released */
	uint8_t *own;          /* to be freed */
};

struct obs_retransmit {
	uint8_t *ring;
	struct obs_retransmit_entry *list;
	/* replies [first, next) are queued; list[number % OBS_RETRANSMIT_MAX] */
	uint64_t first, next;
	uint32_t head, used; /* of the ring */
	/* bytes of bodies in memory of their own, and their limit; one body may exceed it alone */
	uint32_t large, large_max;
};

/* False: no memory. */
bool obs_retransmit_init(struct obs_retransmit *queue);
/*
 * Adds reply number queue->next; NULL: no room now. A body in `slot` stays there; any other body is
 * copied. The caller fills the frame and the reply header at ->bytes.
 */
struct obs_retransmit_entry *obs_retransmit_add(
	struct obs_retransmit *queue, const void *body, uint32_t size, struct obs_slot *slot);
/* What to send: at most 3 entries. */
int obs_retransmit_iov(const struct obs_retransmit_entry *reply, struct iovec ret[3]);
/* Drops all replies up to `number`. True: a staging slot became free. */
bool obs_retransmit_drop(struct obs_retransmit *queue, uint64_t number);

#endif
