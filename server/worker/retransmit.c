/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/retransmit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/resume.h"
#include "server/worker/staging.h"

#define HEAD_BYTES ((uint32_t)(sizeof(struct obp_frame) + sizeof(struct obp_reply)))

static const uint8_t zeros[8];

bool obs_retransmit_init(struct obs_retransmit *queue)
{
	*queue = (struct obs_retransmit){
		.first = 1, .next = 1, .large_max = OBS_RETRANSMIT_LARGE_MAX
	};
	queue->ring = aligned_alloc(64, OBS_RETRANSMIT_BYTES);
	queue->list = calloc(OBS_RETRANSMIT_MAX, sizeof *queue->list);
	if (queue->ring && queue->list)
		return true;
	free(queue->ring);
	free(queue->list);
	return false;
}

/* `size` contiguous bytes of the ring; NULL: not free now. */
static uint8_t *ring_take(struct obs_retransmit *queue, uint32_t size, uint32_t *ret_skipped)
{
	uint32_t at, skipped = 0;

	if (queue->used == 0)
		queue->head = 0;
	at = queue->head;
	/*
	 * If the last reply ended exactly at the ring's end nothing is skipped, and this one still
	 * begins at the start.
	 */
	if (at + size > OBS_RETRANSMIT_BYTES) {
		skipped = OBS_RETRANSMIT_BYTES - at;
		at = 0;
	}
	if (queue->used + skipped + size > OBS_RETRANSMIT_BYTES)
		return NULL;
	queue->head = at + size;
	queue->used += skipped + size;
	*ret_skipped = skipped;
	return queue->ring + at;
}

struct obs_retransmit_entry *obs_retransmit_add(
	struct obs_retransmit *queue, const void *body, uint32_t size, struct obs_slot *slot)
{
	struct obs_retransmit_entry *reply = &queue->list[queue->next % OBS_RETRANSMIT_MAX];
	uint32_t pad = (8 - size % 8) % 8, here = HEAD_BYTES;
	uint8_t *own = NULL;

	if (queue->next - queue->first == OBS_RETRANSMIT_MAX)
		return NULL;
	slot = size > OBP_RETRANSMIT_SMALL ? slot : NULL;
	if (!slot && size <= OBS_RETRANSMIT_SMALL) {
		here += size + pad;
	} else if (!slot) {
		if (queue->large && queue->large + size > queue->large_max)
			return NULL;
		own = malloc(size);
		if (!own)
			return NULL;
	}
	*reply = (struct obs_retransmit_entry){ .size = here };
	reply->bytes = ring_take(queue, here, &reply->skipped);
	if (!reply->bytes) {
		free(own);
		return NULL;
	}
	if (here > HEAD_BYTES) {
		memcpy(reply->bytes + HEAD_BYTES, body, size);
		memset(reply->bytes + HEAD_BYTES + size, 0, pad);
	} else if (size) {
		reply->body_size = size;
		reply->pad = pad;
		reply->body = own ? own : body;
	}
	if (own) {
		memcpy(own, body, size);
		reply->own = own;
		queue->large += size;
	}
	if (slot) {
		reply->slot = slot;
		atomic_store_explicit(&slot->unacked, true, memory_order_relaxed);
	}
	queue->next++;
	return reply;
}

int obs_retransmit_iov(const struct obs_retransmit_entry *reply, struct iovec ret[3])
{
	int n = 0;

	ret[n++] = (struct iovec){ reply->bytes, reply->size };
	if (reply->body)
		ret[n++] = (struct iovec){ (void *)(uintptr_t)reply->body, reply->body_size };
	if (reply->body && reply->pad)
		ret[n++] = (struct iovec){ (void *)(uintptr_t)zeros, reply->pad };
	return n;
}

bool obs_retransmit_drop(struct obs_retransmit *queue, uint64_t number)
{
	bool slots = false;

	for (; queue->first <= number && queue->first < queue->next; queue->first++) {
		struct obs_retransmit_entry *reply =
			&queue->list[queue->first % OBS_RETRANSMIT_MAX];

		queue->used -= reply->skipped + reply->size;
		if (reply->slot) {
			/* Release: whoever takes the slot next writes only after the reads here. */
			atomic_store_explicit(&reply->slot->unacked, false, memory_order_release);
			slots = true;
		}
		if (reply->own) {
			queue->large -= reply->body_size;
			free(reply->own);
		}
	}
	return slots;
}
