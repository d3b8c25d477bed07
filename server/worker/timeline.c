/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/timeline.h"

#include <pthread.h>

#include "base/check.h"

_Atomic bool obs_timeline_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* under the lock; events [first, next) are kept. Untouched memory of a program takes no room. */
static struct obp_timeline_event kept[OBS_TIMELINE_KEPT];
static uint64_t first, next, lost;
/* the last number stands for all threads beyond the limit */
static bool threads[OBP_TIMELINE_THREAD_MAX]; /* under the lock; by number: it exists */
static _Thread_local unsigned this_thread;    /* number + 1; 0: none yet */
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static void thread_ends(void *number)
{
	pthread_mutex_lock(&lock);
	threads[(uintptr_t)number - 1] = false;
	pthread_mutex_unlock(&lock);
}

static void thread_key_make(void)
{
	pthread_key_create(&thread_key, thread_ends);
}

static __attribute__((noinline)) void thread_number(void)
{
	unsigned n = 0;

	pthread_once(&thread_once, thread_key_make);
	pthread_mutex_lock(&lock);
	while (n < OBP_TIMELINE_THREAD_MAX && threads[n])
		n++;
	if (n < OBP_TIMELINE_THREAD_MAX) {
		threads[n] = true;
		pthread_setspecific(thread_key, (void *)(uintptr_t)(n + 1));
	}
	pthread_mutex_unlock(&lock);
	this_thread = n + 1;
}

unsigned obs_timeline_thread(void)
{
	if (!this_thread)
		thread_number();
	return this_thread - 1;
}

void obs_timeline_switch(bool on)
{
	pthread_mutex_lock(&lock);
	first = next;
	lost = 0;
	pthread_mutex_unlock(&lock);
	obs_timeline_on = on;
}

uint64_t obs_timeline_add(const struct obp_timeline_event *event)
{
	uint64_t index = UINT64_MAX;

	pthread_mutex_lock(&lock);
	if (next - first < OBS_TIMELINE_KEPT) {
		index = next++;
		kept[index % OBS_TIMELINE_KEPT] = *event;
	} else {
		lost++;
	}
	pthread_mutex_unlock(&lock);
	return index;
}

void obs_timeline_lose(uint64_t n)
{
	pthread_mutex_lock(&lock);
	lost += n;
	pthread_mutex_unlock(&lock);
}

void obs_timeline_extend(uint64_t index, uint64_t took_ns)
{
	pthread_mutex_lock(&lock);
	if (index >= first && index < next)
		kept[index % OBS_TIMELINE_KEPT].took_ns = took_ns;
	pthread_mutex_unlock(&lock);
}

uint32_t obs_timeline_read(struct obp_timeline_event *ret, uint32_t max, uint64_t *ret_lost)
{
	uint32_t n = 0;

	pthread_mutex_lock(&lock);
	for (; n < max && first < next; first++)
		ret[n++] = kept[first % OBS_TIMELINE_KEPT];
	*ret_lost = lost;
	pthread_mutex_unlock(&lock);
	return n;
}
