/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/restart.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "tools/command.h"
#include "tools/follower.h"
#include "tools/leftover.h"
#include "tools/witness.h"

#define VERB     "outboard run: "
#define AGAIN_MS 100 /* between looks for processes that are to be killed */
/* after SIGKILL, before a process that was left behind is given up */
#define LEFT_NS  (5 * OB_SECOND)

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

/* ---- one start of the program ---- */

struct run {
	const struct obx_restart *restart;
	const struct obx_reservation *reservation;
	sigset_t before; /* the signal mask */
	int signals;     /* a signalfd; -1: not open yet */
	bool blind;      /* SIGCHLD was ignored at the start: it stays so for the program */
	struct obx_witness witness;
	struct obx_earlier earlier;
	struct obx_follower follower;
	bool told;       /* the follower's event was seen */
	uint32_t number; /* how often it was started again */
	pid_t pid;
	int status;
	bool ended; /* the program has: `status` */
	bool moved; /* it is being ended, to be started elsewhere */
	bool quits; /* it has ended because somebody wants that: it is not started again */
	/* a program that ends before this time does so because of the last signal; 0: none */
	uint64_t quit_ns;
	uint64_t kill_ns; /* moved: SIGKILL */
};

static uint64_t grace_ns(const struct run *run)
{
	return run->restart->grace_s * OB_SECOND;
}

static bool program_start(struct run *run)
{
	pid_t parent = getpid();

	fflush(NULL);
	run->ended = run->moved = run->quits = false;
	run->quit_ns = 0;
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
	/* before the program is there, nothing else obeys a signal */
	obx_reserve_signals_default();
	if (run->blind)
		signal(SIGCHLD, SIG_IGN);
	sigprocmask(SIG_SETMASK, &run->before, NULL);
	_exit(run->restart->begin(run->restart->user));
}

static void children_reap(struct run *run)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		obx_earlier_drop(&run->earlier, pid);
		if (pid == run->witness.pid)
			run->witness.pid = 0;
		if (pid != run->pid || run->ended)
			continue;
		run->ended = true;
		run->status = status;
		run->quits = ob_clock_ns() < run->quit_ns;
		/* they were its business as long as it lived */
		if (run->moved && !run->quits)
			obx_leftover_kill(&run->earlier, SIGTERM);
	}
}

/* The witness may be another process afterwards: it is none of the program's. */
static bool witness_saw(struct run *run, int number)
{
	pid_t before = run->witness.pid;
	bool saw = obx_witness_saw(&run->witness, number);

	if (run->witness.pid != before) {
		obx_earlier_drop(&run->earlier, before);
		obx_earlier_add(&run->earlier, run->witness.pid);
	}
	return saw;
}

static void signal_take(struct run *run)
{
	struct signalfd_siginfo info;
	bool group;

	if (read(run->signals, &info, sizeof info) != sizeof info || info.ssi_signo == SIGCHLD)
		return;
	if (info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2) {
		run->quit_ns = ob_clock_ns() + grace_ns(run);
		run->quits |= run->ended;
	}
	group = witness_saw(run, (int)info.ssi_signo);
	/* what the terminal or the group gets goes to the program too */
	if (info.ssi_code != SI_KERNEL && !group && !run->ended)
		kill(run->pid, (int)info.ssi_signo);
}

/* ---- the offer ---- */

static void follow(struct run *run)
{
	run->told = false;
	obx_follower_start(&run->follower, run->restart->way->pool, run->reservation->id,
		run->number >= run->restart->restarts);
}

static void move_begin(struct run *run, uint64_t now)
{
	run->moved = true;
	run->kill_ns = now + grace_ns(run);
	fprintf(stderr,
		VERB "%s: the program is ended (SIGTERM, SIGKILL after %u s) and started again "
		     "there, restart %u of %u\n",
		run->follower.moved.text, run->restart->grace_s, run->number + 1,
		run->restart->restarts);
	kill(run->pid, SIGTERM);
}

/* Takes an offer, unless somebody has just told the program to end. */
static void offer_look(struct run *run, uint64_t now)
{
	if (!run->told || run->ended || run->moved || now < run->quit_ns ||
		!obx_follower_offers(&run->follower))
		return;
	if (now + grace_ns(run) <= run->follower.until_ns) {
		move_begin(run, now);
		return;
	}
	obx_follower_stop(&run->follower); /* it has come too long ago */
	follow(run);
}

/* ---- until it has ended ---- */

/* Whether processes that the moved program has left behind are still to be waited for. */
static bool left_behind(const struct run *run, uint64_t now)
{
	size_t n = obx_leftover_kill(&run->earlier, now < run->kill_ns ? 0 : SIGKILL);

	if (n && now >= run->kill_ns + LEFT_NS) {
		ob_warn("%zu process%s that the program has left behind cannot be ended; it is "
			"started beside them",
			n, n == 1 ? "" : "es");
		return false;
	}
	return n > 0;
}

static int wait_ms(const struct run *run, uint64_t now)
{
	if (run->moved)
		return now < run->kill_ns ? (int)((run->kill_ns - now) / OB_MS) + 1 : AGAIN_MS;
	/* an offer that waits until it is known what a signal has done */
	return run->told && now < run->quit_ns ? (int)((run->quit_ns - now) / OB_MS) + 1 : -1;
}

/* Waits until the program has ended; if it is moved, all that it has left behind too. */
static void program_wait(struct run *run)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = run->signals, .events = POLLIN },
			{ .fd = run->told ? -1 : run->follower.event, .events = POLLIN } };
		uint64_t now = ob_clock_ns();

		children_reap(run);
		if (run->ended && (!run->moved || run->quits || !left_behind(run, now)))
			return;
		if (run->moved && !run->ended && now >= run->kill_ns)
			kill(run->pid, SIGKILL);
		offer_look(run, now);
		poll(fds, ob_count(fds), wait_ms(run, now));
		if (fds[0].revents)
			signal_take(run);
		run->told |= fds[1].revents != 0;
	}
}

/* ---- from one place to the next ---- */

/* SIGUSR1 and SIGUSR2 are for a program. While there is none they must not end this process. */
static void messages_block(const struct run *run)
{
	sigset_t set = run->before;

	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

/* The next program would end by them: it does not catch them yet when it is started. */
static void messages_drop(struct run *run)
{
	const struct timespec now = { 0 };
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	while ((number = sigtimedwait(&set, NULL, &now)) > 0)
		witness_saw(run, number);
}

/* Asks for the place that was offered. Returns 0 or the exit code. */
static int next_reserve(struct run *run, struct obx_reservation *reservation)
{
	const struct obx_restart *restart = run->restart;
	int code;

	environment_restore(restart->environment);
	messages_block(run);
	code = obx_reserve_again(restart->way, restart->wish, restart->program,
		run->follower.moved.successor, run->follower.until_ns, reservation);
	if (code)
		fprintf(stderr,
			VERB "the program was ended to be moved and is not started again: "
			     "run it once more\n");
	messages_drop(run);
	return code;
}

/*
 * Blocks the signals that this process looks at itself. One that is ignored, as by nohup, would be
 * received all the same: it is left out. Once only: `before` is the mask without them.
 */
static bool signals_open(struct run *run)
{
	static const int numbers[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1,
		SIGUSR2 };
	bool first = run->signals < 0;
	struct sigaction action;
	sigset_t set;

	if (first)
		/* children of a process that ignores it cannot be waited for */
		run->blind = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
	sigemptyset(&set);
	for (size_t i = 0; i < ob_count(numbers); i++)
		if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, first ? &run->before : NULL);
	if (first)
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

/* Whether neither the program nor what it has started lives: nobody else has its ticket. */
static bool nobody_left(struct run *run)
{
	children_reap(run);
	return run->earlier.known && obx_leftover_kill(&run->earlier, 0) == 0;
}

/* The places that the program does not use any more, or was not started for. */
static void places_give_back(struct run *run)
{
	struct obx_reservation offered = *run->reservation;
	int code = WIFEXITED(run->status) ? WEXITSTATUS(run->status) : 0;

	if (code == OBX_EXIT_UNWELL || code == 126 || code == 127)
		obx_reserve_back(run->reservation);
	else if (!run->restart->wish->hold_s && nobody_left(run))
		obx_reserve_end(run->reservation);
	if (run->follower.err)
		return;
	memcpy(offered.id, run->follower.moved.successor, sizeof offered.id);
	obx_reserve_back(&offered);
}

int obx_restart_run(const struct obx_restart *restart, struct obx_reservation *reservation)
{
	struct run run = { .restart = restart, .reservation = reservation, .signals = -1 };
	int code;

	obx_earlier_note(&run.earlier);
	signals_open(&run);
	if (run.earlier.known) {
		obx_witness_start(&run.witness);
		obx_earlier_add(&run.earlier, run.witness.pid);
	}
	for (;; run.number++) {
		bool open = signals_open(&run);

		obx_reserve_interrupted(reservation);
		if (!open || !program_start(&run)) {
			obx_reserve_back(reservation);
			return OBX_EXIT_UNWELL;
		}
		follow(&run);
		program_wait(&run);
		obx_follower_stop(&run.follower);
		if (!run.moved || run.quits) {
			places_give_back(&run);
			obx_witness_stop(&run.witness);
			return end_like(&run);
		}
		code = next_reserve(&run, reservation);
		if (code)
			return code;
	}
}
