/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/throttle.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/common/stats_page.h"
#include "server/common/limits.h"

static _Atomic uint32_t points, suspensions;
static uint64_t halved_ns; /* loop thread */
static void (*session_end)(const char *why);

void obs_throttle_open(void (*end)(const char *why))
{
	session_end = end;
}

/* The degree for this number of points, at most the server's setting. */
static uint32_t degree_of(uint32_t n)
{
	uint32_t degree = OBP_THROTTLE_WELL;

	if (n >= OBS_SUSPEND_POINTS)
		degree = atomic_load(&suspensions) >= OBS_SUSPENSIONS_MAX ? OBP_THROTTLE_ENDED
									  : OBP_THROTTLE_SUSPENDED;
	else if (n >= OBS_LIMIT_POINTS)
		degree = OBP_THROTTLE_LIMITED;
	else if (n >= OBS_WARN_POINTS)
		degree = OBP_THROTTLE_WARNED;
	return ob_min(degree, obs_limits_now.strictest);
}

static void penalty(unsigned ms)
{
	obs_stats_page_hold_begin();
	usleep(ms * 1000);
	obs_stats_page_hold_end();
}

/* Applies the degree to the thread that made the call. */
static void react(uint32_t degree, uint32_t n, const char *what)
{
	char why[240];

	switch (degree) {
	case OBP_THROTTLE_LIMITED:
		penalty(OBS_LIMIT_PAUSE_MS);
		break;
	case OBP_THROTTLE_SUSPENDED:
		atomic_fetch_add(&suspensions, 1);
		penalty(OBS_SUSPEND_MS);
		atomic_store(&points, OBS_SUSPEND_POINTS / 2);
		break;
	case OBP_THROTTLE_ENDED:
		if (!session_end)
			break;
		snprintf(why, sizeof why,
			"it was ended: it ran into its limits %u times within seconds, the last "
			"time for %s, and %u suspensions did not help",
			n, what, OBS_SUSPENSIONS_MAX);
		session_end(why);
		break;
	default:
		break;
	}
}

void obs_throttle_refused(const char *what)
{
	uint32_t n = atomic_fetch_add(&points, 1) + 1, degree = degree_of(n);
	uint32_t before = atomic_exchange(&obs_stats_page->throttle, degree);

	atomic_fetch_add_explicit(&obs_stats_page->refusals, 1, memory_order_relaxed);
	if (degree > before)
		ob_warn("session of %s (process %llu): %u calls refused within seconds, the last "
			"for %s: %s",
			obs_stats_page->program, (unsigned long long)obs_stats_page->pid, n, what,
			obp_throttle_name(degree));
	react(degree, n, what);
}

void obs_throttle_tick(uint64_t now)
{
	uint32_t n = atomic_load_explicit(&points, memory_order_relaxed);

	if (now - halved_ns < OBS_THROTTLE_HALF_S * OB_SECOND)
		return;
	halved_ns = now;
	if (n == 0)
		return;
	n /= 2;
	atomic_fetch_sub(&points, n);
	atomic_store(&obs_stats_page->throttle, degree_of(n));
}
