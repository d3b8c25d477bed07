/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counts the instructions that a function executes, by single steps of a child process. For tests
 * that the cost of a call does not depend on how much there is: unlike a time, the number is the
 * same on a busy machine. A step takes microseconds, so the function should be short.
 */
#ifndef OB_TEST_STEPS_H
#define OB_TEST_STEPS_H

#include <stdint.h>
#include <sys/ptrace.h>

#include "tests/test.h"

#define STEPS_MAX 200000u

/* In the function that steps_count runs: a counted section begins, or ends. */
static inline void steps_mark(void)
{
	raise(SIGSTOP);
}

/* The child continues, or goes one step, and stops. Returns the signal. */
static inline int steps_go(pid_t child, bool one)
{
	int status;

	CHECK(ptrace(one ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, NULL) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	return WSTOPSIG(status);
}

/*
 * Runs fn in a child, so its effects are lost, and ends the child after n sections. ret: the
 * instructions of each, at most STEPS_MAX. Skips the case without ptrace, and with a sanitizer.
 */
static inline void steps_count(void (*fn)(void), uint64_t *ret, unsigned n)
{
	int status;
	pid_t child;

	if (TEST_SANITIZED)
		TEST_SKIP("the instructions of a sanitizer would be counted too");
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(TEST_SKIP_EXIT);
		fn();
		_exit(1); /* with fewer sections than were asked for */
	}
	CHECK(waitpid(child, &status, 0) == child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIP_EXIT)
		TEST_SKIP("the kernel does not permit ptrace");
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	for (unsigned i = 0; i < n; i++) {
		for (ret[i] = 0; ret[i] < STEPS_MAX && steps_go(child, true) != SIGSTOP; ret[i]++)
			;
		CHECK(ret[i] < STEPS_MAX);
		if (i + 1 < n)
			CHECK_INT(steps_go(child, false), SIGSTOP);
	}
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, &status, 0) == child);
}

#endif
