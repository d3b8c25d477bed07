/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/times.h"

#include <pthread.h>

#include "base/check.h"
#include "base/clock.h"
#include "protocol/obs_driver.h"

_Atomic bool obs_times_on;
static _Thread_local struct {
	struct obs_record_time record;
	uint64_t began, answered, driver_began;
	bool open;
} now;
static uint64_t arrived; /* executor */
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
	arrived = ob_clock_ns();
}

void obs_times_begin(uint64_t number)
{
	now.began = ob_clock_ns();
	now.answered = 0;
	now.record = (struct obs_record_time){ .number = number,
		.queue = arrived && now.began > arrived ? now.began - arrived : 0 };
	now.open = true;
}

void obs_times_answer(void)
{
	if (now.open && !now.answered)
		now.answered = ob_clock_ns();
}

void obs_times_end(void)
{
	uint64_t ended = ob_clock_ns();

	if (!now.open)
		return;
	now.open = false;
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
	arrived = 0;
	obs_times_on = on;
	return on ? timed(table) : table;
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
