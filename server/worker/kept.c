/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/kept.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/resume.h"
#include "server/worker/staging.h"

#define HEAD_BYTES ((uint32_t)(sizeof(struct obp_frame) + sizeof(struct obp_reply)))

static const uint8_t zeros[8];

bool obs_kept_init(struct obs_kept *kept)
{
	*kept = (struct obs_kept){ .first = 1, .next = 1, .large_max = OBS_KEPT_LARGE_MAX };
	kept->ring = aligned_alloc(64, OBS_KEPT_BYTES);
	kept->list = calloc(OBS_KEPT_MAX, sizeof *kept->list);
	if (kept->ring && kept->list)
		return true;
	free(kept->ring);
	free(kept->list);
	return false;
}

/* `size` bytes that lie together in the ring; NULL: not now. */
static uint8_t *ring_take(struct obs_kept *kept, uint32_t size, uint32_t *ret_skipped)
{
	uint32_t at, skipped = 0;

	if (kept->used == 0)
		kept->head = 0;
	at = kept->head;
	/*
	 * The last reply may have ended exactly at the ring's end: then nothing is skipped, and
	 * this one lies at the beginning all the same.
	 */
	if (at + size > OBS_KEPT_BYTES) {
		skipped = OBS_KEPT_BYTES - at;
		at = 0;
	}
	if (kept->used + skipped + size > OBS_KEPT_BYTES)
		return NULL;
	kept->head = at + size;
	kept->used += skipped + size;
	*ret_skipped = skipped;
	return kept->ring + at;
}

struct obs_kept_reply *obs_kept_add(
	struct obs_kept *kept, const void *body, uint32_t size, struct obs_slot *slot)
{
	struct obs_kept_reply *reply = &kept->list[kept->next % OBS_KEPT_MAX];
	uint32_t pad = (8 - size % 8) % 8, here = HEAD_BYTES;
	uint8_t *own = NULL;

	if (kept->next - kept->first == OBS_KEPT_MAX)
		return NULL;
	slot = size > OBP_KEEP_SMALL ? slot : NULL;
	if (!slot && size <= OBS_KEPT_SMALL) {
		here += size + pad;
	} else if (!slot) {
		if (kept->large && kept->large + size > kept->large_max)
			return NULL;
		own = malloc(size);
		if (!own)
			return NULL;
	}
	*reply = (struct obs_kept_reply){ .size = here };
	reply->bytes = ring_take(kept, here, &reply->skipped);
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
		kept->large += size;
	}
	if (slot) {
		reply->slot = slot;
		atomic_store_explicit(&slot->kept, true, memory_order_relaxed);
	}
	kept->next++;
	return reply;
}

int obs_kept_iov(const struct obs_kept_reply *reply, struct iovec ret[3])
{
	int n = 0;

	ret[n++] = (struct iovec){ reply->bytes, reply->size };
	if (reply->body)
		ret[n++] = (struct iovec){ (void *)(uintptr_t)reply->body, reply->body_size };
	if (reply->body && reply->pad)
		ret[n++] = (struct iovec){ (void *)(uintptr_t)zeros, reply->pad };
	return n;
}

bool obs_kept_drop(struct obs_kept *kept, uint64_t number)
{
	bool slots = false;

	for (; kept->first <= number && kept->first < kept->next; kept->first++) {
		struct obs_kept_reply *reply = &kept->list[kept->first % OBS_KEPT_MAX];

		kept->used -= reply->skipped + reply->size;
		if (reply->slot) {
			/* Release: who takes the slot writes after we have read. */
			atomic_store_explicit(&reply->slot->kept, false, memory_order_release);
			slots = true;
		}
		if (reply->own) {
			kept->large -= reply->body_size;
			free(reply->own);
		}
	}
	return slots;
}
