/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * How C and CUDA tests wait. No result may depend on the machine's speed: a test waits for a
 * condition, and the time-out only ends a test that hangs. tools/dev/check-style rejects sleeps in
 * tests outside this file, and time-outs of poll below ten seconds.
 */
#ifndef OB_TEST_WAITING_H
#define OB_TEST_WAITING_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAITING_LONG_S 60 /* a wait that takes longer counts as a hang */

static inline double waiting_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One iteration of a polling loop that has its own end condition. */
static inline void waiting_look(void)
{
	struct timespec t = { 0, 1000000 };

	nanosleep(&t, NULL);
}

/* Waits until the condition holds. The test fails if it does not within WAITING_LONG_S. */
#define UNTIL(condition)                                                                    \
	do {                                                                                \
		double until_end_ = waiting_now() + WAITING_LONG_S;                         \
		while (!(condition)) {                                                      \
			if (waiting_now() > until_end_) {                                   \
				fprintf(stderr, "%s:%d: waited in vain for %s\n", __FILE__, \
					__LINE__, #condition);                              \
				exit(1);                                                    \
			}                                                                   \
			waiting_look();                                                     \
		}                                                                           \
	} while (0)

/*
 * Sleeps. Only for a test of time itself, or where the time changes the amount of work but not the
 * result. The reason says which.
 */
static inline void let_pass(unsigned us, const char *reason)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	(void)reason;
	while (nanosleep(&t, &t) != 0)
		;
}

/* Whether a thread of this process (id from gettid) is blocked in the kernel. */
static inline bool thread_asleep(pid_t tid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	fclose(file);
	return state == 'S';
}

#endif
