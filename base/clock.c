/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/clock.h"

#include <limits.h>
#include <time.h>

uint64_t ob_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * OB_SECOND + (uint64_t)ts.tv_nsec;
}

int ob_clock_poll_ms(uint64_t deadline)
{
	uint64_t now, ms;

	if (deadline == OB_NEVER)
		return -1;
	now = ob_clock_ns();
	if (deadline <= now)
		return 0;
	ms = (deadline - now + OB_MS - 1) / OB_MS;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
