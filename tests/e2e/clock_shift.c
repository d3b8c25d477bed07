/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A wrong clock, for LD_PRELOAD: the time of day is OUTBOARD_TEST_CLOCK seconds ahead, or behind if
 * that is negative. Clocks that only go forward are right.
 */
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include <sys/syscall.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

API int clock_gettime(clockid_t clock, struct timespec *ret);
API time_t time(time_t *ret);
API int gettimeofday(struct timeval *restrict ret, void *restrict zone);

static long shift(void)
{
	const char *text = getenv("OUTBOARD_TEST_CLOCK");

	return text ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int result = (int)syscall(SYS_clock_gettime, clock, ret);

	if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ret->tv_sec += shift();
	return result;
}

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	ret->tv_sec = now.tv_sec;
	ret->tv_usec = now.tv_nsec / 1000;
	return 0;
}
