/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/staging.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#include "base/check.h"
#include "protocol/obs_driver.h"

static bool slot_map(struct obs_slot *slot, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	slot->data = p;
	return true;
}

bool obs_staging_init(struct obs_staging *staging, const struct obs_driver *drv)
{
	pthread_condattr_t attr;

	*staging = (struct obs_staging){
		.drv = drv, .slots = OBS_STAGING_READS, .readers_max = OBS_STAGING_READERS
	};
	pthread_mutex_init(&staging->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&staging->returned, &attr);
	pthread_condattr_destroy(&attr);
	for (uint32_t i = 0; i < OBS_STAGING_WRITES; i++)
		if (!slot_map(&staging->writes[i], OBP_CHUNK_MAX))
			return false;
	return true;
}

/*
 * Each reader has two slots, and the client may leave some replies unacknowledged. The readers are
 * so few that they cannot block one another for ever.
 */
void obs_staging_limit(struct obs_staging *staging, uint64_t bytes)
{
	staging->slots =
		(uint32_t)ob_min(ob_max(bytes / OBS_STAGING_READ, (uint64_t)OBS_STAGING_READS_MIN),
			(uint64_t)OBS_STAGING_READS);
	staging->readers_max =
		ob_min((staging->slots - (OBP_ACK_BIG - 1)) / 2, OBS_STAGING_READERS);
}

static bool slot_fill(struct obs_staging *staging, struct obs_slot *slot, size_t size)
{
	if (!slot->data && !slot_map(slot, size))
		return false;
	/* If registering fails, copies are slower, not wrong. */
	if (!slot->offered)
		staging->drv->cuMemHostRegister_v2(slot->data, size, CU_MEMHOSTREGISTER_PORTABLE);
	slot->offered = true;
	return true;
}

static void slot_wait(struct obs_staging *staging, struct obs_slot *slot)
{
	if (slot->pending)
		/* a device error is reported by the client's next call anyway */
		staging->drv->cuEventSynchronize(slot->event);
	slot->pending = false;
}

CUevent obs_staging_event(
	struct obs_staging *staging, struct obs_slot *slot, struct obs_context *context)
{
	if (slot->event && slot->context != context) {
		slot_wait(staging, slot);
		staging->drv->cuEventDestroy_v2(slot->event);
		slot->event = NULL;
	}
	if (!slot->event) {
		if (staging->drv->cuEventCreate(&slot->event, CU_EVENT_DISABLE_TIMING) !=
			CUDA_SUCCESS)
			slot->event = NULL;
		slot->context = context;
	}
	return slot->event;
}

struct obs_slot *obs_staging_write_slot(struct obs_staging *staging, struct obs_context *context)
{
	struct obs_slot *slot = &staging->writes[staging->next_write];

	staging->next_write = (staging->next_write + 1) % OBS_STAGING_WRITES;
	slot_wait(staging, slot);
	slot_fill(staging, slot, OBP_CHUNK_MAX);
	obs_staging_event(staging, slot, context);
	return slot;
}

void obs_staging_write_started(struct obs_staging *staging, struct obs_slot *slot,
	struct obs_context *context, CUstream stream)
{
	if (slot->event && slot->context == context &&
		staging->drv->cuEventRecord(slot->event, stream) == CUDA_SUCCESS)
		slot->pending = true;
	else
		staging->drv->cuStreamSynchronize(stream);
}

struct obs_slot *obs_staging_upload_take(struct obs_staging *staging, struct obs_context *context)
{
	struct obs_slot *slot = NULL;

	pthread_mutex_lock(&staging->lock);
	for (uint32_t i = 0; i < OBP_PART_PIECES_MAX && !slot; i++)
		if (!staging->uploads[i].taken)
			slot = &staging->uploads[i];
	if (slot && !slot_fill(staging, slot, OBP_PART_PIECE))
		slot = NULL;
	if (slot)
		slot->taken = true;
	pthread_mutex_unlock(&staging->lock);
	if (slot)
		obs_staging_event(staging, slot, context);
	return slot;
}

void obs_staging_upload_give(struct obs_staging *staging, struct obs_slot *slot)
{
	pthread_mutex_lock(&staging->lock);
	slot->taken = false;
	pthread_mutex_unlock(&staging->lock);
}

/* The lowest free slots, at most 2, so that few are ever touched if acknowledgements come soon. */
static unsigned free_slots(struct obs_staging *staging, unsigned want, struct obs_slot **ret)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < staging->slots && n < want; i++)
		if (!staging->reads[i].taken &&
			!atomic_load_explicit(&staging->reads[i].unacked, memory_order_acquire))
			ret[n++] = &staging->reads[i];
	return n;
}

/* Under the lock. ret is written only if this succeeds. */
static bool slots_take(struct obs_staging *staging, unsigned want, struct obs_slot **ret)
{
	struct obs_slot *found[2];
	unsigned n = free_slots(staging, want, found);

	if (n < want)
		return false;
	for (unsigned i = 0; i < want; i++)
		if (!slot_fill(staging, found[i], OBS_STAGING_READ))
			return false;
	for (unsigned i = 0; i < want; i++) {
		found[i]->taken = true;
		ret[i] = found[i];
	}
	return true;
}

/*
 * Waits for `want` slots and, if `reader`, to become one of the readers, whose number is limited so
 * that they cannot block one another.
 */
static bool slots_await(
	struct obs_staging *staging, unsigned want, bool reader, struct obs_slot **ret)
{
	const struct obs_staging_owner *owner = staging->owner;
	struct timespec until;
	bool taken, late = false;

	/*
	 * Acknowledgements from now on wake this thread; slots that were acknowledged before are
	 * released here.
	 */
	if (owner)
		owner->wait(staging->owner_data, true);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += OBS_STAGING_TIMEOUT_S;
	pthread_mutex_lock(&staging->lock);
	while (!(taken = (!reader || staging->readers < staging->readers_max) &&
			       slots_take(staging, want, ret)) &&
		!late)
		/*
		 * While the connection is down nothing is acknowledged. Then this wait has no
		 * limit; the loop counts the grace period.
		 */
		late = pthread_cond_timedwait(&staging->returned, &staging->lock, &until) ==
				ETIMEDOUT &&
			!(owner && owner->paused(staging->owner_data));
	if (taken && reader)
		staging->readers++;
	pthread_mutex_unlock(&staging->lock);
	if (owner)
		owner->wait(staging->owner_data, false);
	return taken;
}

static bool reader_take(struct obs_staging *staging, struct obs_slot *ret_slots[2])
{
	bool taken;

	pthread_mutex_lock(&staging->lock);
	taken = staging->readers < staging->readers_max && slots_take(staging, 2, ret_slots);
	if (taken)
		staging->readers++;
	pthread_mutex_unlock(&staging->lock);
	return taken;
}

bool obs_staging_read_take(struct obs_staging *staging, struct obs_slot *ret_slots[2])
{
	return reader_take(staging, ret_slots) || slots_await(staging, 2, true, ret_slots);
}

bool obs_staging_read_try(struct obs_staging *staging, struct obs_slot *ret_slots[2])
{
	const struct obs_staging_owner *owner = staging->owner;

	if (ob_likely(reader_take(staging, ret_slots)))
		return true;
	if (!owner)
		return false;
	/* Releases the slots that were acknowledged since. */
	owner->wait(staging->owner_data, true);
	owner->wait(staging->owner_data, false);
	return reader_take(staging, ret_slots);
}

bool obs_staging_paused(const struct obs_staging *staging)
{
	return staging->owner && staging->owner->paused(staging->owner_data);
}

bool obs_staging_read_turn(struct obs_staging *staging, struct obs_slot **slot)
{
	struct obs_slot *other;
	bool taken;

	if (!atomic_load_explicit(&(*slot)->unacked, memory_order_acquire))
		return true;
	pthread_mutex_lock(&staging->lock);
	taken = slots_take(staging, 1, &other);
	pthread_mutex_unlock(&staging->lock);
	if (!taken && !slots_await(staging, 1, false, &other))
		return false;
	pthread_mutex_lock(&staging->lock);
	(*slot)->taken = false;
	pthread_mutex_unlock(&staging->lock);
	*slot = other;
	return true;
}

void obs_staging_returned(struct obs_staging *staging)
{
	pthread_mutex_lock(&staging->lock);
	pthread_cond_broadcast(&staging->returned);
	pthread_mutex_unlock(&staging->lock);
}

void obs_staging_read_give(struct obs_staging *staging, struct obs_slot *slots[2])
{
	pthread_mutex_lock(&staging->lock);
	slots[0]->taken = slots[1]->taken = false;
	staging->readers--;
	pthread_cond_broadcast(&staging->returned);
	pthread_mutex_unlock(&staging->lock);
}

static void slot_forget(
	struct obs_staging *staging, struct obs_slot *slot, struct obs_context *context)
{
	if (!slot->event || slot->context != context || slot->taken)
		return;
	slot_wait(staging, slot);
	staging->drv->cuEventDestroy_v2(slot->event);
	slot->event = NULL;
	slot->context = NULL;
}

void obs_staging_forget(struct obs_staging *staging, struct obs_context *context)
{
	pthread_mutex_lock(&staging->lock);
	for (uint32_t i = 0; i < OBS_STAGING_WRITES; i++)
		slot_forget(staging, &staging->writes[i], context);
	for (uint32_t i = 0; i < OBS_STAGING_READS; i++)
		slot_forget(staging, &staging->reads[i], context);
	for (uint32_t i = 0; i < OBP_PART_PIECES_MAX; i++)
		slot_forget(staging, &staging->uploads[i], context);
	pthread_mutex_unlock(&staging->lock);
}
