/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/threads_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * The signal that the C library uses for setuid(): its functions never block it and do not let
 * programs block it.
 */
#define EVERYBODY  (__SIGRTMIN + 1)
#define PASSES_MAX 8

/*
 * The kernel's struct sigaction. The C library refuses to set a handler for EVERYBODY, so the
 * system call is made directly.
 */
struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static DIR *list;
static bool (*todo)(int);
static int todo_argument;
static _Atomic bool failed;
/*
 * Threads that were signalled. A handler looks for its own entry, which is made before the signal
 * is sent.
 */
static struct asked {
	pid_t thread;
	_Atomic bool answered;
} asked[OBS_THREADS_MAX];
static _Atomic unsigned n_asked;

bool obs_threads_open(void)
{
	list = opendir("/proc/self/task");
	return list != NULL;
}

/* Not instrumented: sanitizers do not know this handler. */
static __attribute__((no_sanitize("address", "thread"))) void handler(int signal)
{
	pid_t me = (pid_t)syscall(SYS_gettid);
	unsigned n = atomic_load(&n_asked);
	int cause = errno;

	(void)signal;
	if (!todo(todo_argument))
		atomic_store(&failed, true);
	for (unsigned i = 0; i < n; i++)
		if (asked[i].thread == me)
			atomic_store(&asked[i].answered, true);
	errno = cause;
}

static void nothing(int signal)
{
	(void)signal;
}

/*
 * The restorer, with which a handler returns on this processor, is taken from what the C library
 * sets for another signal.
 */
static bool handler_set(struct kernel_action *ret_old)
{
	struct sigaction any = { .sa_handler = nothing, .sa_flags = SA_RESTART }, before;
	struct kernel_action action;
	bool ok;

	if (sigaction(SIGRTMAX, &any, &before) != 0)
		return false;
	ok = syscall(SYS_rt_sigaction, SIGRTMAX, NULL, &action, sizeof(uint64_t)) == 0;
	sigaction(SIGRTMAX, &before, NULL);
	action.handler = handler;
	action.mask = ~0ull;
	return ok && syscall(SYS_rt_sigaction, EVERYBODY, &action, ret_old, sizeof(uint64_t)) == 0;
}

static bool was_asked(pid_t thread)
{
	for (unsigned i = 0; i < atomic_load(&n_asked); i++)
		if (asked[i].thread == thread)
			return true;
	return false;
}

static bool signal_send(pid_t thread, int signal)
{
	return syscall(SYS_tgkill, getpid(), thread, signal) == 0;
}

/* Waits until each thread has answered or ended. */
static bool answers_await(void)
{
	const struct timespec moment = { .tv_nsec = 20000 };
	uint64_t deadline = ob_clock_ns() + OBS_THREADS_MS * OB_MS;

	for (unsigned i = 0; i < atomic_load(&n_asked); i++)
		while (!atomic_load(&asked[i].answered) && signal_send(asked[i].thread, 0)) {
			if (ob_clock_ns() > deadline)
				return false;
			nanosleep(&moment, NULL);
		}
	return true;
}

/* Signals the threads that were not signalled yet. How many; -1: too many. */
static int pass(void)
{
	const struct dirent *entry;
	int found = 0;

	rewinddir(list);
	while ((entry = readdir(list)) != NULL) {
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
		unsigned n = atomic_load(&n_asked);

		if (thread <= 0 || was_asked(thread))
			continue;
		if (n == OBS_THREADS_MAX)
			return -1;
		asked[n].thread = thread;
		atomic_store(&asked[n].answered, false);
		atomic_store(&n_asked, n + 1);
		signal_send(thread, EVERYBODY); /* a thread that has ended counts as answered */
		found++;
	}
	return found;
}

bool obs_threads_all(bool (*fn)(int), int argument)
{
	struct kernel_action old;
	int found = 1;
	bool ok = true;

	if (!list || !fn(argument) || !handler_set(&old))
		return false;
	todo = fn;
	todo_argument = argument;
	atomic_store(&failed, false);
	asked[0].thread = (pid_t)syscall(SYS_gettid);
	atomic_store(&asked[0].answered, true);
	atomic_store(&n_asked, 1);
	/*
	 * A thread that was not signalled yet may have started another: repeat until there is no
	 * new one.
	 */
	for (int i = 0; ok && found > 0; i++) {
		found = i < PASSES_MAX ? pass() : -1;
		ok = found >= 0 && answers_await();
	}
	syscall(SYS_rt_sigaction, EVERYBODY, &old, NULL, sizeof(uint64_t));
	return ok && !atomic_load(&failed);
}
