/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A token bucket of device time. Tokens are nanoseconds. They are added at the session's share of
 * the clock. Each launch that has ended takes out the time that the device worked on it, measured
 * by a pair of events around it. A launch waits while the balance is negative.
 *
 * Outside the session's part, a launch has the whole device, and costs its full time. Launches that
 * have not ended are not measured yet, so few of them are allowed: at most OUTSTANDING_NS by the
 * mean of earlier launches, but always two, which keep a device busy. Kernels of several streams
 * that run in parallel are each charged their own time.
 *
 * Inside it, a launch has no more than the part at any moment, so its time costs the share of it,
 * and all launches inside together at most the share of the clock: as many tokens as are added
 * meanwhile. A session that only works inside is therefore never held back; one that also works
 * outside pays for both.
 *
 *      tokens  +rate x clock, at most BURST x rate; while inside > 0 the rest goes to `lost`
 *      outside -time
 *      inside  -rate x min(time, what is left of the clock since inside was 0); `lost` pays first
 *
 * What is left of the clock is time in which launches that are under way may have run, so it is
 * forgotten as far as none of them can have: they were queued later, or wait for something.
 *
 * What is under way may wait for something that the program does only after the launch that is held
 * back. So a launch waits for earlier ones only while these run, and not for ever: after that they
 * are `passed`, and later launches do not wait for them any more. They are charged when they end.
 */
#include "server/layers/share.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "protocol/obs_driver.h"
#include "server/common/stats_page.h"
#include "server/layers/keep.h"

#define PAIRS          128u
#define OUTSTANDING_NS (20.0 * OB_MS)
/* of the session's share: upper limit of what an idle session saves */
#define BURST_NS       (100.0 * OB_MS)
#define NAP_NS         (2 * OB_MS)
/* looks at launches under way before the thread naps; naps then are this part of its wait so far */
#define LOOKS          16u
#define NAP_PART       16u
/* nothing of the session runs, and what is under way waits for something: so long, at most */
#define STILL_NS       (200 * OB_MS)

struct pair {
	CUevent start, end;
	CUcontext ctx; /* where they live; NULL: not made */
	CUstream stream;
	bool inside; /* the session's part */
	bool passed; /* later launches do not wait for it */
	uint64_t began_ns;
};

static struct share {
	pthread_mutex_t lock;
	const struct obs_driver *next;
	double rate;         /* tokens per nanosecond */
	double tokens, mean; /* ns; mean: of the launches outside */
	uint64_t filled_ns;
	/* since launches inside are under way: when it began, their time, tokens above the limit */
	uint64_t inside_ns;
	double inside_used, lost;
	uint8_t order[PAIRS];          /* all pairs; pending ones first, oldest first */
	unsigned count;                /* of pending pairs */
	unsigned inside;               /* of them */
	unsigned ahead, ahead_outside; /* of them: not passed; of these outside */
	struct pair *open;             /* the pair of the current launch */
	bool joined;                   /* it is that of an earlier one, too */
	bool untimed;                  /* the current launch has no pair: */
	uint64_t began_ns;
	struct pair pairs[PAIRS];
} share = { .lock = PTHREAD_MUTEX_INITIALIZER };

void obs_share_open(const struct obs_driver *next, uint32_t millionths)
{
	share.next = next;
	share.rate = (double)millionths / OBP_SHARE_ALL;
	share.tokens = BURST_NS * share.rate;
	share.filled_ns = ob_clock_ns();
	for (unsigned i = 0; i < PAIRS; i++)
		share.order[i] = (uint8_t)i;
}

static struct pair *pending(unsigned i)
{
	return &share.pairs[share.order[i]];
}

static void fill(void)
{
	uint64_t now = ob_clock_ns();
	double all = share.tokens + (double)(now - share.filled_ns) * share.rate;

	share.tokens = ob_min(all, BURST_NS * share.rate);
	if (share.inside)
		share.lost += all - share.tokens;
	share.filled_ns = now;
}

/* A launch inside has ended and is still counted. */
static void charge_inside(double ns)
{
	double cost, paid;

	fill();
	ns = ob_min(ns, (double)(share.filled_ns - share.inside_ns) - share.inside_used);
	share.inside_used += ns;
	cost = ns * share.rate;
	paid = ob_min(cost, share.lost);
	share.lost -= paid;
	share.tokens -= cost - paid;
}

static void charge(double ns, bool inside)
{
	if (inside) {
		charge_inside(ns);
	} else {
		share.tokens -= ns;
		share.mean += (ns - share.mean) / 8;
	}
	atomic_fetch_add_explicit(&obs_stats_page->device_ns, (uint64_t)ns, memory_order_relaxed);
}

static void pair_charge(const struct pair *pair)
{
	float ms = 0;

	if (share.next->cuEventElapsedTime_v2(&ms, pair->start, pair->end) == CUDA_SUCCESS &&
		ms >= 0)
		charge((double)ms * OB_MS, pair->inside);
}

/* How long a launch inside that is under way may have run, at most. */
static double inside_may_have_run(void)
{
	for (unsigned i = 0; i < share.count; i++) {
		const struct pair *pair = pending(i);

		if (pair->inside && share.next->cuEventQuery(pair->start) == CUDA_SUCCESS)
			return (double)(share.filled_ns - ob_min(pair->began_ns, share.filled_ns));
	}
	return 0;
}

/* The session saves no tokens of a time in which it did not work inside. */
static void inside_forget(void)
{
	double left = (double)(share.filled_ns - share.inside_ns) - share.inside_used, may;

	if (share.inside == 0 || left <= BURST_NS)
		return;
	may = inside_may_have_run();
	share.inside_used += ob_max(left - may, 0);
	share.lost = ob_min(share.lost, share.rate * may);
}

/* The pending pair i has ended. */
static void pair_end(unsigned i, CUresult result)
{
	uint8_t which = share.order[i];
	struct pair *pair = pending(i);

	if (result == CUDA_SUCCESS)
		pair_charge(pair);
	share.count--;
	share.inside -= pair->inside;
	share.ahead -= !pair->passed;
	share.ahead_outside -= !pair->passed && !pair->inside;
	memmove(&share.order[i], &share.order[i + 1], share.count - i);
	share.order[share.count] = which;
}

/*
 * Charges launches that have ended: oldest first, until one has not that is not passed, or all of
 * them. Returns whether any has.
 */
static bool reap(bool all)
{
	unsigned before = share.count, i = 0;
	CUresult result;

	while (i < share.count) {
		result = share.next->cuEventQuery(pending(i)->end);
		if (result != CUDA_ERROR_NOT_READY)
			pair_end(i, result);
		else if (all || pending(i)->passed)
			i++;
		else
			break;
	}
	if (share.count != before)
		inside_forget();
	return share.count != before;
}

static void pair_begin(struct pair *pair)
{
	if (pair->inside && share.inside == 0) {
		fill();
		share.inside_ns = share.filled_ns;
		share.inside_used = share.lost = 0;
	}
	pair->passed = false;
	share.count++;
	share.inside += pair->inside;
	share.ahead++;
	share.ahead_outside += !pair->inside;
}

static void nap_ns(uint64_t ns)
{
	usleep((unsigned)(ns / 1000 + 1));
}

static bool too_much_under_way(bool inside)
{
	return (share.count == PAIRS && share.ahead) ||
		(share.rate < 1 && !inside && share.ahead_outside >= 2 &&
			share.ahead_outside * share.mean > OUTSTANDING_NS);
}

/* After a reap of all. */
static bool any_runs(void)
{
	for (unsigned i = 0; i < share.count; i++)
		if (share.next->cuEventQuery(pending(i)->start) != CUDA_ERROR_NOT_READY)
			return true;
	return false;
}

/*
 * Waits until a launch ends. If none runs for STILL_NS, or none ends in OBS_SHARE_PASS_MS, all that
 * are under way are passed.
 */
static void end_await(void)
{
	uint64_t began = ob_clock_ns(), ran = began, now = began;

	for (unsigned looks = 0; !reap(true); looks++) {
		if (any_runs())
			ran = now;
		if (now - ran >= STILL_NS || now - began >= OBS_SHARE_PASS_MS * OB_MS) {
			for (unsigned i = 0; i < share.count; i++)
				pending(i)->passed = true;
			share.ahead = share.ahead_outside = 0;
			return;
		}
		if (looks >= LOOKS)
			nap_ns(ob_min((now - began) / NAP_PART, NAP_NS));
		now = ob_clock_ns();
	}
}

/*
 * Under the lock, after a reap. If nothing of the session is under way, it could use the device now
 * and is not let: it is not busy meanwhile.
 */
static void nap(uint64_t ns)
{
	bool idle = share.count == 0;

	if (idle)
		obs_stats_page_hold_begin();
	nap_ns(ns);
	if (idle)
		obs_stats_page_hold_end();
}

/* Under the lock. */
static void yield_wait(void)
{
	uint64_t until = ob_clock_ns() + OBS_YIELD_MAX_MS * OB_MS;

	while (atomic_load_explicit(&obs_stats_page->yield, memory_order_relaxed) &&
		ob_clock_ns() < until) {
		reap(false);
		nap(NAP_NS);
	}
}

/* Under the lock. Returns whether the launch had to wait for its share. */
static bool turn_await(bool inside)
{
	bool waited = false;

	for (reap(false); too_much_under_way(inside); end_await())
		waited |= !inside;
	if (share.rate >= 1)
		return false;
	for (fill(); share.tokens < 0; reap(false), fill()) {
		uint64_t need = (uint64_t)(-share.tokens / share.rate);

		waited = true;
		nap(ob_min(need, NAP_NS));
	}
	return waited;
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
static bool pair_ready(struct pair *pair, CUcontext ctx)
{
	if (!ctx)
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

/*
 * The pair for a launch. If all are pending, it is measured together with the last launch of its
 * stream. NULL: that is not under way either.
 */
static struct pair *pair_for(CUstream stream, CUcontext ctx, bool inside)
{
	share.joined = share.count == PAIRS;
	if (!share.joined)
		return pending(share.count);
	for (unsigned i = PAIRS; i-- > 0;)
		if (pending(i)->stream == stream && pending(i)->ctx == ctx &&
			pending(i)->inside == inside)
			return pending(i);
	return NULL;
}

/* Begins to measure a launch. Returns whether it can be measured. */
static bool pair_start(struct pair *pair, CUstream stream, CUcontext ctx, bool inside)
{
	if (!pair || share.joined)
		return pair;
	pair->stream = stream;
	pair->inside = inside;
	pair->began_ns = share.began_ns;
	return pair_ready(pair, ctx) &&
		share.next->cuEventRecord(pair->start, stream) == CUDA_SUCCESS;
}

void obs_share_wait(CUstream stream, bool graph)
{
	uint64_t began = ob_clock_ns();
	CUcontext ctx = NULL;
	struct pair *pair;
	bool inside, waited;

	if (share.next->cuCtxGetCurrent(&ctx) != CUDA_SUCCESS)
		ctx = NULL;
	inside = obs_keep_inside(ctx, graph);
	pthread_mutex_lock(&share.lock);
	waited = ob_unlikely(atomic_load_explicit(&obs_stats_page->yield, memory_order_relaxed));
	if (waited)
		yield_wait();
	waited |= turn_await(inside);
	share.began_ns = ob_clock_ns();
	if (waited)
		atomic_fetch_add_explicit(&obs_stats_page->throttled_ns, share.began_ns - began,
			memory_order_relaxed);
	pair = pair_for(stream, ctx, inside);
	share.open = pair_start(pair, stream, ctx, inside) ? pair : NULL;
	share.untimed = !share.open;
	pthread_mutex_unlock(&share.lock);
}

void obs_share_launched(CUstream stream, CUresult result)
{
	pthread_mutex_lock(&share.lock);
	if (share.open && result == CUDA_SUCCESS) {
		share.untimed = share.next->cuEventRecord(share.open->end, stream) != CUDA_SUCCESS;
		if (!share.untimed && !share.joined)
			pair_begin(share.open);
	}
	if (ob_unlikely(share.untimed) && result == CUDA_SUCCESS && share.rate < 1) {
		share.next->cuStreamSynchronize(stream);
		charge((double)(ob_clock_ns() - share.began_ns), false);
	}
	share.open = NULL;
	pthread_mutex_unlock(&share.lock);
}

void obs_share_forget(void)
{
	pthread_mutex_lock(&share.lock);
	while (share.count)
		pair_end(0, share.next->cuEventSynchronize(pending(0)->end));
	for (unsigned i = 0; i < PAIRS; i++)
		pair_drop(&share.pairs[i]);
	pthread_mutex_unlock(&share.lock);
}
