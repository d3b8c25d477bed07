/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/restart.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "loadbalancer/pool_follow.h"
#include "tools/command.h"

#define VERB      "outboard run: "
/* for connecting to one balancer: the end of the program waits for it at most that long */
#define FOLLOW_NS (5 * OB_SECOND)
#define AGAIN_MS  100 /* between looks for processes that are to be killed */
/* A place that was offered so long ago is about to be taken back. */
#define OFFER_NS  ((OBP_POOL_TICKET_S - 8) * OB_SECOND)

extern char **environ;

/* ---- the environment ---- */

char **obx_environment_save(void)
{
	size_t n = 0;
	char **copy;

	while (environ[n])
		n++;
	copy = calloc(n + 1, sizeof *copy);
	for (size_t i = 0; copy && i < n; i++)
		if (!(copy[i] = strdup(environ[i])))
			return NULL; /* the command ends */
	return copy;
}

static void environment_restore(char **saved)
{
	clearenv();
	for (; *saved; saved++)
		putenv(*saved);
}

/* ---- following the reservation ---- */

struct follower {
	struct obl_pool pool;
	uint8_t id[OBP_RESERVATION_BYTES];
	_Atomic bool stop;
	int event; /* readable when `err` and `moved` are set */
	enum ob_err err;
	struct obp_pool_moved moved;
	pthread_t thread;
	bool runs;
};

static bool is_stopped(void *context)
{
	struct follower *f = context;

	return atomic_load(&f->stop);
}

static void *follower_main(void *argument)
{
	struct follower *f = argument;
	struct ob_cause cause = { .text = "" };

	f->err = obl_pool_follow(&f->pool, f->id, &f->moved, &cause);
	if (f->err && f->err != OB_ERR_CANCELLED)
		ob_warn("the program is not moved any more: %s", cause.text);
	eventfd_write(f->event, 1);
	return NULL;
}

static void follower_start(
	struct follower *f, const struct obx_restart *restart, const struct obx_reservation *of)
{
	*f = (struct follower){ .pool = { .balancers = restart->way->pool,
					.timeout_ns = ob_min(obl_pool_timeout_ns(), FOLLOW_NS),
					.cancelled = is_stopped,
					.context = f },
		.event = eventfd(0, EFD_CLOEXEC) };
	memcpy(f->id, of->id, sizeof f->id);
	f->runs = f->event >= 0 && ob_thread_start(follower_main, f, 0, &f->thread);
	if (!f->runs)
		ob_warn("the program cannot be moved: the system gives no thread");
}

static void follower_stop(struct follower *f)
{
	atomic_store(&f->stop, true);
	if (f->runs)
		pthread_join(f->thread, NULL);
	if (f->event >= 0)
		close(f->event);
}

/* ---- processes ---- */

static pid_t parent_of(const char *pid)
{
	char path[64], text[512];
	const char *after;
	size_t n;
	FILE *file;
	int parent = 0;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[n] = '\0';
	after = strrchr(text, ')'); /* the name before it may contain anything */
	return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Sends a signal to all children: the program, and what it has left behind. */
static void children_kill(int number)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			parent_of(entry->d_name) == getpid())
			kill((pid_t)atol(entry->d_name), number);
	if (folder)
		closedir(folder);
}

/* ---- one start of the program ---- */

struct run {
	const struct obx_restart *restart;
	sigset_t before; /* the signal mask */
	int signals;     /* a signalfd */
	struct follower follower;
	pid_t pid;
	int status;
	bool ended;    /* the program has: `status` */
	bool alone;    /* no child is left */
	bool moved;    /* it is being ended, to be started elsewhere */
	bool quitting; /* somebody wants it to end: it is not started again */
	uint64_t moved_ns, kill_ns;
};

static bool program_start(struct run *run)
{
	pid_t parent = getpid();

	fflush(NULL);
	run->ended = run->alone = run->moved = false;
	run->pid = fork();
	if (run->pid < 0) {
		fprintf(stderr, VERB "no process can be started: %s\n", strerror(errno));
		return false;
	}
	if (run->pid)
		return true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(OBX_EXIT_UNWELL);
	close(run->signals);
	sigprocmask(SIG_SETMASK, &run->before, NULL);
	_exit(run->restart->begin(run->restart->user));
}

static void children_reap(struct run *run)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == run->pid && !run->ended) {
			run->ended = true;
			run->status = status;
			/* they were its business as long as it lived */
			if (run->moved)
				children_kill(SIGTERM);
		}
	run->alone = pid < 0 && errno == ECHILD;
}

static void signal_take(struct run *run)
{
	struct signalfd_siginfo info;

	if (read(run->signals, &info, sizeof info) != sizeof info || info.ssi_signo == SIGCHLD)
		return;
	if (info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2)
		run->quitting = true;
	/* what the terminal sends goes to the program too */
	if (info.ssi_code != SI_KERNEL && !run->ended)
		kill(run->pid, (int)info.ssi_signo);
}

static void move_take(struct run *run, uint32_t number)
{
	const struct follower *f = &run->follower;

	if (f->err || run->quitting)
		return;
	run->moved = true;
	run->moved_ns = ob_clock_ns();
	run->kill_ns = run->moved_ns + run->restart->grace_s * OB_SECOND;
	fprintf(stderr,
		VERB "%s: the program is ended (SIGTERM, SIGKILL after %u s) and started again "
		     "there, restart %u of %u\n",
		f->moved.text, run->restart->grace_s, number + 1, run->restart->restarts);
	if (!run->ended)
		kill(run->pid, SIGTERM);
}

/* Waits until the program has ended; if it is moved, all that it has left behind too. */
static void program_wait(struct run *run, uint32_t number)
{
	bool following = run->follower.runs;

	for (;;) {
		struct pollfd fds[] = { { .fd = run->signals, .events = POLLIN },
			{ .fd = following ? run->follower.event : -1, .events = POLLIN } };
		uint64_t now = ob_clock_ns();
		bool late = run->moved && now >= run->kill_ns;

		children_reap(run);
		if (run->ended && (!run->moved || run->alone || run->quitting))
			return;
		if (late)
			children_kill(SIGKILL);
		poll(fds, ob_count(fds),
			late                 ? AGAIN_MS
				: run->moved ? (int)((run->kill_ns - now) / OB_MS) + 1
					     : -1);
		if (fds[0].revents)
			signal_take(run);
		children_reap(run);
		if (fds[1].revents && !run->ended)
			move_take(run, number);
		following = following && !fds[1].revents;
	}
}

/* ---- from one place to the next ---- */

/* Asks for the place that was offered. Returns 0 or the exit code. */
static int next_reserve(struct run *run, struct obx_reservation *reservation)
{
	const struct obx_restart *restart = run->restart;
	bool fresh = ob_clock_ns() < run->moved_ns + OFFER_NS;
	int code;

	environment_restore(restart->environment);
	sigprocmask(SIG_SETMASK, &run->before, NULL);
	code = obx_reserve_again(restart->way, restart->wish, restart->program,
		fresh ? run->follower.moved.successor : NULL, reservation);
	if (code)
		fprintf(stderr,
			VERB "the program was ended to be moved and is not started again: "
			     "run it once more\n");
	return code;
}

static bool signals_open(struct run *run)
{
	static const int numbers[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1,
		SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ob_count(numbers); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, run->pid ? NULL : &run->before);
	if (run->signals < 0)
		run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signals >= 0;
}

/* Ends as the program has ended. */
static int end_like(const struct run *run)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t set;

	if (WIFEXITED(run->status))
		return WEXITSTATUS(run->status);
	setrlimit(RLIMIT_CORE, &no_core); /* the program has written one */
	signal(WTERMSIG(run->status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(run->status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(run->status));
	return 128 + WTERMSIG(run->status);
}

/* A place that the program does not use: it was not started, or has ended meanwhile. */
static void rest_give_back(const struct run *run, const struct obx_reservation *reservation)
{
	struct obx_reservation offered = *reservation;
	int code = WIFEXITED(run->status) ? WEXITSTATUS(run->status) : 0;

	if (code == OBX_EXIT_UNWELL || code == 126 || code == 127)
		obx_reserve_back(reservation);
	if (!run->follower.runs || run->follower.err)
		return;
	memcpy(offered.id, run->follower.moved.successor, sizeof offered.id);
	obx_reserve_back(&offered);
}

int obx_restart_run(const struct obx_restart *restart, struct obx_reservation *reservation)
{
	struct run run = { .restart = restart, .signals = -1 };
	int code;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (uint32_t number = 0;; number++) {
		bool open = signals_open(&run);

		obx_reserve_interrupted(reservation);
		if (!open || !program_start(&run)) {
			obx_reserve_back(reservation);
			return OBX_EXIT_UNWELL;
		}
		run.follower = (struct follower){ .event = -1, .err = OB_ERR_CANCELLED };
		if (number < restart->restarts)
			follower_start(&run.follower, restart, reservation);
		program_wait(&run, number);
		follower_stop(&run.follower);
		if (!run.moved || run.quitting) {
			rest_give_back(&run, reservation);
			return end_like(&run);
		}
		code = next_reserve(&run, reservation);
		if (code)
			return code;
	}
}
