/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/free_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/worker/hostfunc.h"

void obs_free_memory_init(struct obs_free_memory *memory)
{
	pthread_mutex_init(&memory->use, NULL);
	pthread_mutex_init(&memory->lock, NULL);
	pthread_cond_init(&memory->changed, NULL);
}

/* False: there is no context, or it has failed; the client then asks by a call. */
static bool memory_read(
	struct obs_session *session, uint32_t device, size_t *ret_free, size_t *ret_total)
{
	struct obs_free_memory *memory = &session->free_memory;
	bool ok;

	pthread_mutex_lock(&memory->use);
	ok = memory->contexts[device] &&
		session->drv->cuCtxSetCurrent(memory->contexts[device]->driver) == CUDA_SUCCESS;
	if (ok) {
		ok = session->drv->cuMemGetInfo_v2(ret_free, ret_total) == CUDA_SUCCESS;
		session->drv->cuCtxSetCurrent(NULL);
	}
	pthread_mutex_unlock(&memory->use);
	return ok && *ret_free <= *ret_total;
}

static void answer(struct obs_session *session, uint32_t device, uint64_t value)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = calloc(1, sizeof *message);
	size_t bytes_free, total;

	if (!message)
		return;
	message->type = OBP_MSG_MEMORY;
	message->code = device;
	message->value = value;
	/* Read before the memory: what these records change is in the answer. */
	message->received = atomic_load(&session->replies.executed);
	if (!memory_read(session, device, &bytes_free, &total))
		return;
	message->free_bytes = bytes_free;
	message->total_bytes = total;
	/* If the connection is lost, the client asks again on the next one. */
	obs_control_send(&session->hostfuncs, message);
}

static void *memory_main(void *argument)
{
	struct obs_session *session = argument;
	struct obs_free_memory *memory = &session->free_memory;
	uint64_t asked[OBP_DEVICE_MAX];

	for (;;) {
		bool any = false;

		pthread_mutex_lock(&memory->lock);
		for (;;) {
			for (uint32_t i = 0; i < OBP_DEVICE_MAX; i++)
				any = any || memory->asked[i];
			if (any)
				break;
			pthread_cond_wait(&memory->changed, &memory->lock);
		}
		memcpy(asked, memory->asked, sizeof asked);
		memset(memory->asked, 0, sizeof memory->asked);
		pthread_mutex_unlock(&memory->lock);
		for (uint32_t i = 0; i < OBP_DEVICE_MAX; i++)
			if (asked[i])
				answer(session, i, asked[i]);
	}
	return NULL;
}

bool obs_free_memory_ask(struct obs_session *session, uint32_t device, uint64_t value)
{
	struct obs_free_memory *memory = &session->free_memory;

	if (device >= (uint32_t)session->n_devices || value == 0)
		return false;
	pthread_mutex_lock(&memory->lock);
	memory->asked[device] = value;
	/* Without the thread there is no answer, and the client's calls wait as before. */
	memory->running = memory->running || ob_thread_start(memory_main, session, 0, NULL);
	pthread_cond_signal(&memory->changed);
	pthread_mutex_unlock(&memory->lock);
	return true;
}

void obs_free_memory_context(struct obs_session *session, struct obs_context *context)
{
	struct obs_free_memory *memory = &session->free_memory;

	/* The executor alone writes the field, so it may read it without the lock. */
	if (!context || memory->contexts[context->device] == context)
		return;
	pthread_mutex_lock(&memory->use);
	memory->contexts[context->device] = context;
	pthread_mutex_unlock(&memory->use);
}

void obs_free_memory_forget(struct obs_session *session, const struct obs_context *context)
{
	struct obs_free_memory *memory = &session->free_memory;

	if (memory->contexts[context->device] != context)
		return;
	pthread_mutex_lock(&memory->use);
	memory->contexts[context->device] = NULL;
	pthread_mutex_unlock(&memory->use);
}
