/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * For programs that consist of calls that must fail (refused_*.c). Each call is printed with its
 * error code, so that the output shows which call returned what. Each group runs in a process of
 * its own: an error that ends a context does not reach the next group.
 */
#ifndef TESTS_PROGRAMS_REFUSED_H
#define TESTS_PROGRAMS_REFUSED_H

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Prints the call and its code. */
#define TRY(call)                                         \
	do {                                              \
		printf("%s -> %d\n", #call, (int)(call)); \
		fflush(stdout);                           \
	} while (0)

/* The same. The code must be `error`, which is the one that cuda.h documents for this mistake. */
#define REFUSE(error, call)                                                                  \
	do {                                                                                 \
		CUresult refused_ = (call);                                                  \
		printf("%s -> %d\n", #call, (int)refused_);                                  \
		fflush(stdout);                                                              \
		if (refused_ != CUDA_ERROR_##error) {                                        \
			fprintf(stderr, "%s:%d: %s returned %d, not %s (%d)\n", __FILE__,    \
				__LINE__, #call, (int)refused_, #error, CUDA_ERROR_##error); \
			check_failures++;                                                    \
		}                                                                            \
	} while (0)

#define REFUSE_VALUE(call) REFUSE(INVALID_VALUE, call)

struct refused_group {
	const char *name;
	void (*run)(void);
};

/* Runs the groups one after the other. Returns the exit code of the program. */
static inline int refused_run(const char *program, const struct refused_group *groups, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int status = -1;
		pid_t pid;

		printf("== %s\n", groups[i].name);
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			check_failures = 0;
			groups[i].run();
			_exit(check_failures != 0);
		}
		OK(pid > 0 && waitpid(pid, &status, 0) == pid);
		OK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	return verdict(program);
}

#endif
