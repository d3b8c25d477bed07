/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A token bucket of device time. Tokens are nanoseconds. They are added at the session's share of
 * the clock. Each launch that has ended takes out the time that the device worked on it, measured
 * by a pair of events around it. A launch waits while the balance is negative. Launches that have
 * not ended are not measured yet, so few of them are allowed: at most OUTSTANDING_NS by the mean of
 * earlier launches, but always two, which keep a device busy. Kernels of several streams that run
 * in parallel are each charged their own time.
 */
#include "server/layers/share.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "protocol/obs_driver.h"
#include "server/common/stats_page.h"

#define PAIRS          32u
#define OUTSTANDING_NS (20.0 * OB_MS)
/* of the session's share: upper limit of what an idle session saves */
#define BURST_NS       (100.0 * OB_MS)
#define NAP_NS         (2 * OB_MS)

struct pair {
	CUevent start, end;
	CUcontext ctx; /* where they live; NULL: not made */
	bool held;     /* the time is charged to the share */
};

static struct share {
	pthread_mutex_t lock;
	const struct obs_driver *next;
	double rate;         /* tokens per nanosecond */
	double tokens, mean; /* ns */
	uint64_t filled_ns;
	unsigned first, count; /* pending pairs, oldest first */
	struct pair *open;     /* the pair of the current launch */
	struct pair pairs[PAIRS];
} share = { .lock = PTHREAD_MUTEX_INITIALIZER };

void obs_share_open(const struct obs_driver *next, uint32_t millionths)
{
	share.next = next;
	share.rate = (double)millionths / OBP_SHARE_ALL;
	share.tokens = BURST_NS * share.rate;
	share.filled_ns = ob_clock_ns();
}

static void fill(void)
{
	uint64_t now = ob_clock_ns();

	share.tokens = ob_min(
		share.tokens + (double)(now - share.filled_ns) * share.rate, BURST_NS * share.rate);
	share.filled_ns = now;
}

static void charge(struct pair *pair)
{
	float ms = 0;

	if (share.next->cuEventElapsedTime_v2(&ms, pair->start, pair->end) != CUDA_SUCCESS ||
		!(ms >= 0))
		return;
	if (pair->held)
		share.tokens -= (double)ms * OB_MS;
	share.mean += ((double)ms * OB_MS - share.mean) / 8;
	atomic_fetch_add_explicit(
		&obs_stats_page->device_ns, (uint64_t)((double)ms * OB_MS), memory_order_relaxed);
}

/* Charges launches that have ended, oldest first. wait: waits for the oldest. */
static void reap(bool wait)
{
	while (share.count) {
		struct pair *pair = &share.pairs[share.first];
		CUresult result = wait ? share.next->cuEventSynchronize(pair->end)
				       : share.next->cuEventQuery(pair->end);

		if (result == CUDA_ERROR_NOT_READY)
			return;
		if (result == CUDA_SUCCESS)
			charge(pair);
		share.first = (share.first + 1) % PAIRS;
		share.count--;
		wait = false;
	}
}

static bool too_much_under_way(void)
{
	return share.count >= PAIRS ||
		(share.count >= 2 && share.count * share.mean > OUTSTANDING_NS);
}

/* The session could use the device now and is not let: it is not busy meanwhile. */
static void nap(uint64_t ns)
{
	obs_stats_page_hold_begin();
	usleep((unsigned)(ns / 1000 + 1));
	obs_stats_page_hold_end();
}

static void yield_wait(void)
{
	uint64_t until = ob_clock_ns() + OBS_YIELD_MAX_MS * OB_MS;

	while (atomic_load_explicit(&obs_stats_page->yield, memory_order_relaxed) &&
		ob_clock_ns() < until)
		nap(NAP_NS);
}

/* Under the lock. */
static void turn_await(void)
{
	while (reap(false), too_much_under_way())
		reap(true);
	for (fill(); share.tokens < 0; reap(false), fill()) {
		uint64_t need = (uint64_t)(-share.tokens / share.rate);

		nap(ob_min(need, NAP_NS));
	}
}

static void pair_drop(struct pair *pair)
{
	if (pair->ctx) {
		share.next->cuEventDestroy_v2(pair->start);
		share.next->cuEventDestroy_v2(pair->end);
	}
	pair->ctx = NULL;
}

/* Events belong to a context: in another context new ones are created. */
static bool pair_ready(struct pair *pair)
{
	CUcontext ctx = NULL;

	if (share.next->cuCtxGetCurrent(&ctx) != CUDA_SUCCESS || !ctx)
		return false;
	if (pair->ctx == ctx)
		return true;
	pair_drop(pair);
	if (share.next->cuEventCreate(&pair->start, 0) != CUDA_SUCCESS)
		return false;
	if (share.next->cuEventCreate(&pair->end, 0) != CUDA_SUCCESS) {
		share.next->cuEventDestroy_v2(pair->start);
		return false;
	}
	pair->ctx = ctx;
	return true;
}

void obs_share_wait(CUstream stream, bool held)
{
	uint64_t began = ob_clock_ns(), waited;
	struct pair *pair;

	if (ob_unlikely(atomic_load_explicit(&obs_stats_page->yield, memory_order_relaxed)))
		yield_wait();
	pthread_mutex_lock(&share.lock);
	if (held && share.rate < 1)
		turn_await();
	else
		while (reap(false), share.count == PAIRS)
			reap(true);
	waited = ob_clock_ns() - began;
	if (waited > OB_MS / 10)
		atomic_fetch_add_explicit(
			&obs_stats_page->throttled_ns, waited, memory_order_relaxed);
	pair = &share.pairs[(share.first + share.count) % PAIRS];
	pair->held = held;
	share.open =
		pair_ready(pair) && share.next->cuEventRecord(pair->start, stream) == CUDA_SUCCESS
		? pair
		: NULL;
	pthread_mutex_unlock(&share.lock);
}

void obs_share_launched(CUstream stream, CUresult result)
{
	pthread_mutex_lock(&share.lock);
	if (share.open && result == CUDA_SUCCESS &&
		share.next->cuEventRecord(share.open->end, stream) == CUDA_SUCCESS) {
		share.count++;
	}
	share.open = NULL;
	pthread_mutex_unlock(&share.lock);
}

void obs_share_forget(void)
{
	pthread_mutex_lock(&share.lock);
	while (share.count)
		reap(true);
	for (unsigned i = 0; i < PAIRS; i++)
		pair_drop(&share.pairs[i]);
	pthread_mutex_unlock(&share.lock);
}
