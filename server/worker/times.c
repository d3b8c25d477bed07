/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/times.h"

#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "server/worker/ops/ops.h"

struct record_time {
	uint64_t number, queue, executing, driver, reply;
};

_Atomic bool obs_times_on;
static _Thread_local struct {
	struct record_time record;
	uint64_t began, answered, driver_began;
	bool open;
} now;
static uint64_t arrived; /* executor */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record_time kept[OBS_TIMES_KEPT]; /* under lock, a ring */
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
	now.record = (struct record_time){ .number = number,
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

/* ---- operations ---- */

void obs_op_times_switch(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_times_switch_req *req)
{
	pthread_mutex_lock(&lock);
	n_kept = 0;
	pthread_mutex_unlock(&lock);
	arrived = 0;
	obs_times_on = req->on != 0;
	x->session->drv = obs_times_on ? timed(&x->session->lib.table) : &x->session->lib.table;
	x->drv = x->session->drv;
	obs_reply(x, rec, CUDA_SUCCESS, NULL, 0);
}

void obs_op_times_read(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_times_read_req *req)
{
	struct obp_times_read_rep rep = { 0 };
	uint64_t at;

	pthread_mutex_lock(&lock);
	for (at = n_kept > OBS_TIMES_KEPT ? n_kept - OBS_TIMES_KEPT : 0;
		at < n_kept && rep.count < OBP_TIMES_MAX; at++) {
		const struct record_time *t = &kept[at % OBS_TIMES_KEPT];

		if (t->number >= req->first)
			memcpy(&rep.times[5 * rep.count++], t, sizeof *t);
	}
	pthread_mutex_unlock(&lock);
	obs_reply(x, rec, CUDA_SUCCESS, &rep, sizeof rep);
}

_Static_assert(sizeof(struct record_time) == 5 * sizeof(uint64_t),
	"a record's five numbers go out as they lie");
