/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/device_clock.h"

#include "base/check.h"
#include "base/clock.h"
#include "protocol/obs_driver.h"

#define FIRST_TRIES 4u
#define EXACT_NS    20000u /* an anchor of this width is always good enough */
/* Times are floats in ms: beyond this distance their steps are longer than 0.1 us. */
#define FAR_MS      1000.0f
#define RATE_MS     1000.0 /* anchors closer than that say nothing about drift */
#define RATE_OFF    1e-3   /* a rate farther from 1 is an error of measurement */

/* Records anchor i and waits a moment for it. */
static bool anchor_take(struct obs_device_clock *clock, const struct obs_driver *drv, unsigned i)
{
	uint64_t before = ob_clock_ns(), after;
	CUresult result = drv->cuEventRecord(clock->events[i], clock->stream);

	do {
		if (result == CUDA_SUCCESS)
			result = drv->cuEventQuery(clock->events[i]);
		after = ob_clock_ns();
	} while (result == CUDA_ERROR_NOT_READY && after - before < OBS_DEVICE_CLOCK_SPIN_NS);
	clock->at[i] = before + (after - before) / 2;
	clock->width[i] = after - before;
	return result == CUDA_SUCCESS;
}

/* Anchor i is the last one now. */
static void anchor_use(struct obs_device_clock *clock, const struct obs_driver *drv, unsigned i)
{
	float ms;

	clock->rate = 1;
	if (clock->n &&
		drv->cuEventElapsedTime_v2(&ms, clock->events[i ^ 1], clock->events[i]) ==
			CUDA_SUCCESS &&
		(double)ms >= RATE_MS) {
		double rate =
			(double)(int64_t)(clock->at[i] - clock->at[i ^ 1]) / ((double)ms * 1e6);

		if (rate > 1 - RATE_OFF && rate < 1 + RATE_OFF)
			clock->rate = rate;
	}
	clock->n = ob_min(clock->n + 1, 2u);
	clock->last = i;
	clock->count++;
}

static unsigned next_of(const struct obs_device_clock *clock)
{
	return clock->n ? clock->last ^ 1 : 0;
}

bool obs_device_clock_due(struct obs_device_clock *clock, uint64_t now)
{
	if ((clock->n && now - clock->at[clock->last] < OBS_DEVICE_CLOCK_RENEW_NS) ||
		now - clock->tried < OBS_DEVICE_CLOCK_RETRY_NS)
		return false;
	clock->tried = now;
	return true;
}

bool obs_device_clock_take(struct obs_device_clock *clock, const struct obs_driver *drv)
{
	return anchor_take(clock, drv, next_of(clock));
}

void obs_device_clock_settle(
	struct obs_device_clock *clock, const struct obs_driver *drv, bool taken)
{
	unsigned last = clock->last, next = next_of(clock);
	bool old = clock->tried > clock->at[last] &&
		clock->tried - clock->at[last] > OBS_DEVICE_CLOCK_OLD_NS;

	if (taken &&
		(!clock->n || old || clock->width[next] <= ob_max(clock->width[last], EXACT_NS))) {
		anchor_use(clock, drv, next);
	} else if (clock->n) {
		/* The anchor before the last one is gone. */
		clock->n = 1;
		clock->rate = 1;
	}
}

bool obs_device_clock_init(struct obs_device_clock *clock, const struct obs_driver *drv)
{
	*clock = (struct obs_device_clock){ .rate = 1 };
	if (drv->cuStreamCreateWithPriority(&clock->stream, CU_STREAM_NON_BLOCKING, 0) !=
		CUDA_SUCCESS) {
		clock->stream = NULL;
		return false;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (drv->cuEventCreate(&clock->events[i], CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
			clock->events[i] = NULL;
			obs_device_clock_fini(clock, drv);
			return false;
		}
	}
	/* The driver's first event may take longer, and the thread may be interrupted. */
	for (unsigned i = 0; i < FIRST_TRIES && (!clock->n || clock->width[clock->last] > EXACT_NS);
		i++)
		obs_device_clock_settle(clock, drv, obs_device_clock_take(clock, drv));
	clock->n = ob_min(clock->n, 1u);
	clock->rate = 1;
	clock->tried = ob_clock_ns();
	return true;
}

void obs_device_clock_fini(struct obs_device_clock *clock, const struct obs_driver *drv)
{
	for (unsigned i = 0; i < 2; i++)
		if (clock->events[i])
			drv->cuEventDestroy_v2(clock->events[i]);
	if (clock->stream)
		drv->cuStreamDestroy_v2(clock->stream);
	*clock = (struct obs_device_clock){ .stream = NULL };
}

bool obs_device_clock_time(const struct obs_device_clock *clock, const struct obs_driver *drv,
	CUevent event, uint64_t *ret_ns, bool *ret_far)
{
	double ns;
	float ms;

	if (!clock->n ||
		drv->cuEventElapsedTime_v2(&ms, clock->events[clock->last], event) != CUDA_SUCCESS)
		return false;
	/* Not a number, or out of any range: the driver's error. */
	if (!(ms > -1e10f && ms < 1e10f))
		return false;
	ns = (double)ms * 1e6;
	*ret_ns = clock->at[clock->last] + (uint64_t)(int64_t)(ms < 0 ? ns * clock->rate : ns);
	*ret_far = ms > FAR_MS || ms < -FAR_MS;
	return true;
}
