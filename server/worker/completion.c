/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/completion.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/spin.h"
#include "base/thread.h"
#include "server/common/stats_page.h"
#include "server/worker/context.h"
#include "server/worker/device_times.h"
#include "server/worker/record.h"
#include "server/worker/reply.h"

#define AGE_SHARE    64u
#define INTERVAL_MAX (250000u) /* ns */

void obs_completion_init(struct obs_completion *completion)
{
	pthread_condattr_t attr;

	*completion = (struct obs_completion){ .last_added = &completion->added };
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&completion->lock, NULL);
	pthread_cond_init(&completion->changed, &attr);
	pthread_condattr_destroy(&attr);
}

/* Under the lock: an entry that waits for this event of the client; NULL: there is none. */
static struct obs_pending *waiter_of(const struct obs_completion *c, CUevent event)
{
	for (struct obs_pending *p = c->watched; p; p = p->next)
		if (p->shared == event)
			return p;
	for (struct obs_pending *p = c->added; p; p = p->next)
		if (p->shared == event)
			return p;
	return NULL;
}

/* ---- the thread ---- */

/*
 * Under the lock: appends the new entries to those that are polled. Before that a destroyed context
 * is left: the entry of its table may be that of another context now.
 */
static void take_added(struct obs_exec *x, struct obs_completion *c)
{
	struct obs_pending **last = &c->watched;

	if (ob_unlikely(c->forgotten))
		x->context = NULL;
	c->forgotten = false;
	if (!c->added)
		return;
	while (*last)
		last = &(*last)->next;
	*last = c->added;
	c->added = NULL;
	c->last_added = &c->added;
}

static void remove_watched(struct obs_exec *x, struct obs_completion *c, struct obs_pending **at)
{
	struct obs_pending *pending = *at, *other;

	pthread_mutex_lock(&c->lock);
	*at = pending->next;
	other = pending->shared_last ? waiter_of(c, pending->shared) : NULL;
	if (other)
		other->shared_last = true;
	else if (pending->shared_last)
		x->drv->cuEventDestroy_v2(pending->shared);
	pending->shared = NULL;
	pending->shared_last = false;
	pending->next = c->free;
	c->free = pending;
	atomic_fetch_sub_explicit(&c->n, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

/* The result of an event; CUDA_ERROR_NOT_READY: not complete. */
static CUresult event_poll(struct obs_exec *x, const struct obs_pending *pending, CUevent event)
{
	CUresult result = x->drv->cuEventQuery(event);

	/* Unlike a query, a wait also makes the driver print what kernels have written. */
	return result == CUDA_SUCCESS && !pending->query ? x->drv->cuEventSynchronize(event)
							 : result;
}

/* Answers the call when its events are complete. The last ones are removed first. */
static bool events_poll(struct obs_exec *x, struct obs_pending *pending)
{
	CUresult result = pending->shared ? event_poll(x, pending, pending->shared) : CUDA_SUCCESS;

	while (result == CUDA_SUCCESS && pending->n) {
		result = event_poll(x, pending, pending->events[pending->n - 1]);
		pending->n -= result == CUDA_SUCCESS;
	}
	if (result == CUDA_ERROR_NOT_READY)
		return false;
	if (!pending->query)
		obs_exec_output(x, result);
	obs_reply_send(x, result, pending->state, result == CUDA_SUCCESS ? pending->body : 0);
	return true;
}

static bool poll_one(struct obs_exec *x, struct obs_pending *pending)
{
	CUresult result = CUDA_SUCCESS;

	x->drv = x->session->drv;
	x->call = pending->call;
	x->opcode = pending->opcode;
	x->lane_index = pending->lane;
	x->closes = pending->open;
	x->progress = false;
	if (x->context != pending->context)
		result = obs_context_enter(x, pending->context);
	if (ob_likely(result == CUDA_SUCCESS))
		return pending->poll ? pending->poll(x, pending->state) : events_poll(x, pending);
	obs_reply_send(x, result, NULL, 0);
	return true;
}

/* Polls every entry once. Returns the age of the youngest that is left, in ns. */
static uint64_t poll_all(
	struct obs_exec *x, struct obs_completion *c, struct ob_spin *spin, bool *ret_any)
{
	uint64_t now = ob_clock_ns(), youngest = OB_NEVER;

	*ret_any = false;
	for (struct obs_pending **at = &c->watched; *at;) {
		uint64_t begun = (*at)->begun;

		if (poll_one(x, *at)) {
			remove_watched(x, c, at);
			ob_spin_learn(spin, now - begun, 0);
			*ret_any = true;
			continue;
		}
		if (x->progress) {
			(*at)->begun = ob_clock_ns();
			*ret_any = true;
		}
		youngest = ob_min(youngest, now - begun);
		at = &(*at)->next;
	}
	return youngest;
}

/* Under the lock: waits for an entry, at most `interval` ns unless it is OB_NEVER. */
static void sleep_locked(struct obs_completion *c, uint64_t interval)
{
	struct timespec until;

	c->asleep = true;
	if (interval == OB_NEVER) {
		/* No time-out: the executor adds an entry, or the process ends. */
		pthread_cond_wait(&c->changed, &c->lock);
	} else {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += (long)interval;
		if (until.tv_nsec >= (long)OB_SECOND) {
			until.tv_nsec -= (long)OB_SECOND;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&c->changed, &c->lock, &until);
	}
	c->asleep = false;
}

static void *completion_main(void *argument)
{
	struct obs_session *session = argument;
	struct obs_completion *c = &session->completion;
	struct obs_exec x = { .session = session };
	struct ob_spin spin = { 0 };

	prctl(PR_SET_TIMERSLACK, 1);
	obs_device_thread(&x);
	for (;;) {
		uint64_t age, budget;
		bool any;

		pthread_mutex_lock(&c->lock);
		take_added(&x, c);
		while (!c->watched) {
			sleep_locked(c, OB_NEVER);
			take_added(&x, c);
		}
		pthread_mutex_unlock(&c->lock);
		age = poll_all(&x, c, &spin, &any);
		if (any)
			continue;
		budget = ob_spin_budget(&spin, 0);
		if (age < budget) {
			ob_clock_relax();
			continue;
		}
		pthread_mutex_lock(&c->lock);
		if (!c->added)
			sleep_locked(c, ob_min(ob_max(age / AGE_SHARE, 1000u), INTERVAL_MAX));
		pthread_mutex_unlock(&c->lock);
	}
	return NULL;
}

/* ---- for the executor ---- */

struct obs_pending *obs_completion_new(struct obs_exec *x)
{
	struct obs_completion *c = &x->session->completion;
	struct obs_pending *pending;

	if (atomic_load_explicit(&c->n, memory_order_relaxed) >= OBS_PENDING_MAX)
		return NULL;
	if (!c->started && !ob_thread_start(completion_main, x->session, OBS_THREAD_STACK, NULL))
		return NULL;
	c->started = true;
	pthread_mutex_lock(&c->lock);
	pending = c->free;
	if (pending)
		c->free = pending->next;
	pthread_mutex_unlock(&c->lock);
	if (!pending)
		pending = calloc(1, sizeof *pending);
	if (!pending)
		return NULL;
	pending->next = NULL;
	pending->poll = NULL;
	pending->n = 0;
	pending->open = NULL;
	pending->body = 0;
	pending->query = false;
	memset(pending->state, 0, sizeof pending->state);
	pending->call = x->call;
	pending->opcode = x->opcode;
	pending->lane = x->lane_index;
	pending->context = x->context;
	return pending;
}

static void events_destroy(const struct obs_driver *drv, struct obs_pending *pending)
{
	while (pending->made)
		drv->cuEventDestroy_v2(pending->events[--pending->made]);
	pending->made_in = NULL;
}

/* Makes room for one more event. */
static bool events_grow(struct obs_pending *pending)
{
	uint32_t room = pending->room ? 2 * pending->room : 1;
	CUevent *events;

	if (pending->n < pending->room)
		return true;
	events = realloc(pending->events, room * sizeof(CUevent));
	if (!events)
		return false;
	pending->events = events;
	pending->room = room;
	return true;
}

CUresult obs_completion_await(struct obs_exec *x, struct obs_pending *pending, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;

	if (pending->made_in != x->context)
		events_destroy(x->drv, pending);
	pending->made_in = x->context;
	if (!events_grow(pending))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (pending->n == pending->made) {
		result = x->drv->cuEventCreate(
			&pending->events[pending->made], CU_EVENT_DISABLE_TIMING);
		pending->made += result == CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS)
		result = x->drv->cuEventRecord(pending->events[pending->n], stream);
	pending->n += result == CUDA_SUCCESS;
	return result;
}

void obs_completion_add(struct obs_session *session, struct obs_pending *pending)
{
	struct obs_completion *c = &session->completion;

	pending->begun = ob_clock_ns();
	pthread_mutex_lock(&c->lock);
	*c->last_added = pending;
	c->last_added = &pending->next;
	atomic_fetch_add_explicit(&c->n, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
	if (c->asleep)
		pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

void obs_completion_drop(struct obs_session *session, struct obs_pending *pending)
{
	struct obs_completion *c = &session->completion;

	pthread_mutex_lock(&c->lock);
	pending->next = c->free;
	c->free = pending;
	pthread_mutex_unlock(&c->lock);
}

/* keep: leaves the event to the call that waits for it. */
static bool event_in_use(struct obs_session *session, CUevent event, bool keep)
{
	struct obs_completion *c = &session->completion;
	struct obs_pending *waiter;

	if (ob_likely(!atomic_load_explicit(&c->n, memory_order_relaxed)))
		return false;
	pthread_mutex_lock(&c->lock);
	waiter = waiter_of(c, event);
	if (waiter && keep)
		waiter->shared_last = true;
	pthread_mutex_unlock(&c->lock);
	return waiter != NULL;
}

bool obs_completion_waits(struct obs_session *session, CUevent event)
{
	return event_in_use(session, event, false);
}

bool obs_completion_keeps(struct obs_session *session, CUevent event)
{
	return event_in_use(session, event, true);
}

/* Under the lock: destroys what the entries made in a context that is about to be destroyed. */
static void events_forget(
	const struct obs_driver *drv, struct obs_pending *list, const struct obs_context *context)
{
	for (; list; list = list->next)
		if (list->made_in == context)
			events_destroy(drv, list);
}

static bool has_context(const struct obs_pending *list, const struct obs_context *context)
{
	while (list && list->context != context)
		list = list->next;
	return list != NULL;
}

void obs_completion_forget(struct obs_session *session, struct obs_context *context)
{
	struct obs_completion *c = &session->completion;

	pthread_mutex_lock(&c->lock);
	/* No time-out: destroying the context would wait for the same work of the device. */
	while (has_context(c->watched, context) || has_context(c->added, context))
		pthread_cond_wait(&c->changed, &c->lock);
	c->forgotten = true;
	events_forget(session->drv, c->free, context);
	/* Entries of other contexts may keep events of an earlier call; they use none of them. */
	events_forget(session->drv, c->watched, context);
	events_forget(session->drv, c->added, context);
	pthread_mutex_unlock(&c->lock);
}
