/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/dry_clock.h"

#include <time.h>

/* a sleep ends late by about this time, so the rest is spent spinning */
#define SLEEP_LATE_NS 60000ull
#define SLEEP_MAX_NS  (10 * OB_MS) /* until `abort` is looked at again */

void obd_dry_wait(uint64_t time_ns, const _Atomic int *abort)
{
	uint64_t now;

	if (ob_likely(!obd_dry_clock()))
		return;
	for (now = ob_clock_ns(); now < time_ns; now = ob_clock_ns()) {
		if (abort && atomic_load_explicit(abort, memory_order_relaxed))
			return;
		if (time_ns - now > 2 * SLEEP_LATE_NS) {
			uint64_t ns = ob_min(time_ns - now - SLEEP_LATE_NS, SLEEP_MAX_NS);
			struct timespec ts = { .tv_nsec = (long)ns };

			nanosleep(&ts, NULL);
		} else {
			ob_clock_relax();
		}
	}
}
