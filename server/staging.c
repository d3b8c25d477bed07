/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/staging.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#include "protocol/obs_driver.h"
#include "server/session.h"

void obs_staging_init(struct obs_staging *staging, const struct obs_driver *drv)
{
	pthread_condattr_t attr;

	*staging = (struct obs_staging){ .drv = drv };
	pthread_mutex_init(&staging->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&staging->returned, &attr);
	pthread_condattr_destroy(&attr);
}

static bool slot_fill(struct obs_staging *staging, struct obs_slot *slot)
{
	void *p;

	if (slot->data)
		return true;
	p = mmap(NULL, OBP_CHUNK_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	/* Without the registration copies are slower, not wrong. */
	staging->drv->cuMemHostRegister_v2(p, OBP_CHUNK_MAX, CU_MEMHOSTREGISTER_PORTABLE);
	slot->data = p;
	return true;
}

static void slot_wait(struct obs_staging *staging, struct obs_slot *slot)
{
	if (slot->pending)
		staging->drv->cuEventSynchronize(slot->event); /* a failed device shows at the client's next call anyway */
	slot->pending = false;
}

CUevent obs_staging_event(struct obs_staging *staging, struct obs_slot *slot, struct obs_context *context)
{
	if (slot->event && slot->context != context) {
		slot_wait(staging, slot);
		staging->drv->cuEventDestroy_v2(slot->event);
		slot->event = NULL;
	}
	if (!slot->event) {
		if (staging->drv->cuEventCreate(&slot->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
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
	if (!slot_fill(staging, slot))
		return NULL;
	obs_staging_event(staging, slot, context);
	return slot;
}

void obs_staging_write_started(struct obs_staging *staging, struct obs_slot *slot, struct obs_context *context, CUstream stream)
{
	if (slot->event && slot->context == context && staging->drv->cuEventRecord(slot->event, stream) == CUDA_SUCCESS)
		slot->pending = true;
	else
		staging->drv->cuStreamSynchronize(stream);
}

static int free_slots(struct obs_staging *staging, struct obs_slot *ret[2])
{
	int n = 0;

	for (uint32_t i = 0; i < OBS_STAGING_READS && n < 2; i++)
		if (!staging->reads[i].taken)
			ret[n++] = &staging->reads[i];
	return n;
}

bool obs_staging_read_take(struct obs_staging *staging, struct obs_slot *ret_slots[2])
{
	struct timespec until;
	bool taken = false;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += OBS_STAGING_TIMEOUT_S;
	pthread_mutex_lock(&staging->lock);
	while (free_slots(staging, ret_slots) < 2)
		if (pthread_cond_timedwait(&staging->returned, &staging->lock, &until) == ETIMEDOUT)
			break;
	if (free_slots(staging, ret_slots) == 2 && slot_fill(staging, ret_slots[0]) && slot_fill(staging, ret_slots[1]))
		ret_slots[0]->taken = ret_slots[1]->taken = taken = true;
	pthread_mutex_unlock(&staging->lock);
	return taken;
}

void obs_staging_read_give(struct obs_staging *staging, struct obs_slot *slots[2])
{
	pthread_mutex_lock(&staging->lock);
	slots[0]->taken = slots[1]->taken = false;
	pthread_cond_broadcast(&staging->returned);
	pthread_mutex_unlock(&staging->lock);
}

static void slot_forget(struct obs_staging *staging, struct obs_slot *slot, struct obs_context *context)
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
	pthread_mutex_unlock(&staging->lock);
}
