/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_retransmit: replies that were sent and not yet acknowledged, in their order, so that a client whose
 * connection broke can have them again. A reply of up to OBS_RETRANSMIT_SMALL bytes is put together here
 * and sent from here: keeping it costs no copy. Device data stays in the staging slot it was read
 * into, which is not free again before the acknowledgement. Bounded: who adds to a full one waits
 * (obs_reply).
 *
 * Owner: struct obs_replies; everything under its lock. An empty one starts over at its first byte,
 * so that few lines of memory are ever touched.
 */
#ifndef OBS_RETRANSMIT_H
#define OBS_RETRANSMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "protocol/format.h"

struct obs_slot;

#define OBS_RETRANSMIT_BYTES     (1u << 20) /* of replies held here */
#define OBS_RETRANSMIT_MAX       8192u      /* replies */
/* bytes of a body; a larger one is in a slot or gets memory of its own */
#define OBS_RETRANSMIT_SMALL     (64u << 10)
#define OBS_RETRANSMIT_LARGE_MAX (16u << 20) /* bytes of memory of their own */

struct obs_retransmit_entry {
	uint8_t *bytes;         /* frame, reply and the body or its first part */
	uint32_t size, skipped; /* skipped: bytes left free before it, at the ring's end */
	const uint8_t *body;    /* the body when it is elsewhere; NULL */
	uint32_t body_size, pad;
	struct obs_slot *slot; /* to be released */
	uint8_t *own;          /* to be freed */
};

struct obs_retransmit {
	uint8_t *ring;
	struct obs_retransmit_entry *list;
	/* reply numbers: [first, next) are kept; list[number % OBS_RETRANSMIT_MAX] */
	uint64_t first, next;
	uint32_t head, used; /* of the ring */
	/* bytes of memory of their own; at most, one that is larger by itself aside */
	uint32_t large, large_max;
};

/* False: no memory. */
bool obs_retransmit_init(struct obs_retransmit *queue);
/*
 * Room for reply number queue->next; NULL: none now. body_here: bytes of the body that are to be
 * copied in; body in `slot` or elsewhere stays where it is when slot is given, and is copied
 * otherwise. The caller fills the frame and the reply at ->bytes.
 */
struct obs_retransmit_entry *obs_retransmit_add(
	struct obs_retransmit *queue, const void *body, uint32_t size, struct obs_slot *slot);
/* What is to be sent of it: at most 3 entries. */
int obs_retransmit_iov(const struct obs_retransmit_entry *reply, struct iovec ret[3]);
/* Everything up to `number` came. True: a staging slot became free. */
bool obs_retransmit_drop(struct obs_retransmit *queue, uint64_t number);

#endif
