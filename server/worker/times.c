/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/times.h"

#include <pthread.h>

#include "base/check.h"
#include "base/clock.h"
#include "protocol/obs_driver.h"
#include "server/worker/timeline.h"

_Atomic bool obs_times_on;
static bool records_on; /* op times_switch; executor */
static _Thread_local struct {
	struct obs_record_time record;
	uint64_t began, answered, driver_began;
	uint64_t index; /* of the timeline's event; UINT64_MAX: none */
	uint16_t opcode;
	bool open;
} now;
static _Atomic uint64_t arrived; /* written by the executor */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct obs_record_time kept[OBS_TIMES_KEPT]; /* under lock, a ring */
static uint64_t n_kept;

/* ---- inside the driver ---- */

static CUresult before(unsigned call)
{
	(void)call;
	now.driver_began = ob_clock_ns();
	return CUDA_SUCCESS;
}

static void after(unsigned call, CUresult result)
{
	(void)call;
	(void)result;
	now.record.driver += ob_clock_ns() - now.driver_began;
}

static const struct obs_driver *timed(const struct obs_driver *table)
{
	static const struct obs_layer_hooks hooks = { before, after };
	static struct obs_driver wrapped;

	obs_layer_wrap(&wrapped, 2, table, &hooks);
	return &wrapped;
}

/* ---- around the record ---- */

void obs_times_arrived(void)
{
	atomic_store_explicit(&arrived, ob_clock_ns(), memory_order_relaxed);
}

void obs_times_begin(uint64_t number, uint16_t opcode)
{
	uint64_t since = atomic_load_explicit(&arrived, memory_order_relaxed);

	now.began = ob_clock_ns();
	now.answered = 0;
	now.index = UINT64_MAX;
	now.opcode = opcode;
	now.record = (struct obs_record_time){ .number = number,
		.queue = since && now.began > since ? now.began - since : 0 };
	now.open = true;
}

/* The event of this thread's current record. It ends at `ended` for now. */
static void timeline_executed(uint64_t ended)
{
	const struct obp_timeline_event event = { .number = now.record.number,
		.at_ns = now.began,
		.took_ns = ended - now.began,
		.more = now.answered ? ob_max(now.answered - now.began, (uint64_t)1) : 0,
		.what = obp_timeline_what(OBP_TIMELINE_EXECUTED, obs_timeline_thread(), now.opcode,
			(uint32_t)ob_min(now.record.queue, (uint64_t)UINT32_MAX)) };

	now.index = obs_timeline_add(&event);
}

void obs_times_answer(uint64_t number)
{
	bool ours = now.open && now.record.number == number;

	if (ours && now.answered)
		return;
	if (ours) {
		now.answered = ob_clock_ns();
		/* Not at the end, because this thread may lose the executor's role and never return. */
		if (obs_timeline_on)
			timeline_executed(now.answered);
	} else if (obs_timeline_on && number) {
		obs_timeline_add(&(struct obp_timeline_event){ .number = number,
			.at_ns = ob_clock_ns(),
			.what = obp_timeline_what(
				OBP_TIMELINE_ANSWERED, obs_timeline_thread(), 0, 0) });
	}
}

void obs_times_end(void)
{
	uint64_t ended = ob_clock_ns();

	if (!now.open)
		return;
	now.open = false;
	if (obs_timeline_on) {
		if (!now.answered)
			timeline_executed(ended);
		else
			obs_timeline_extend(now.index, ended - now.began);
	}
	if (!records_on)
		return;
	now.record.executing = (now.answered ? now.answered : ended) - now.began;
	now.record.reply = now.answered ? ended - now.answered : 0;
	pthread_mutex_lock(&lock);
	kept[n_kept++ % OBS_TIMES_KEPT] = now.record;
	pthread_mutex_unlock(&lock);
}

/* ---- for the operations ---- */

const struct obs_driver *obs_times_switch(const struct obs_driver *table, bool on)
{
	pthread_mutex_lock(&lock);
	n_kept = 0;
	pthread_mutex_unlock(&lock);
	atomic_store_explicit(&arrived, 0, memory_order_relaxed);
	records_on = on;
	obs_times_on = on || obs_timeline_on;
	return on ? timed(table) : table;
}

void obs_times_timeline(bool on)
{
	obs_timeline_switch(on);
	obs_times_on = on || records_on;
}

uint32_t obs_times_read(uint64_t first, struct obs_record_time *ret, uint32_t max)
{
	uint32_t n = 0;

	pthread_mutex_lock(&lock);
	for (uint64_t at = n_kept > OBS_TIMES_KEPT ? n_kept - OBS_TIMES_KEPT : 0;
		at < n_kept && n < max; at++)
		if (kept[at % OBS_TIMES_KEPT].number >= first)
			ret[n++] = kept[at % OBS_TIMES_KEPT];
	pthread_mutex_unlock(&lock);
	return n;
}
