/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/witness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The system signals all processes of a group in one go, which may be under way. */
#define LOOKS   10u
#define LOOK_NS (2 * OB_MS)
/* `timeout` signals its child, and then the group. */
#define SAME_NS (200 * OB_MS)

static void witness_main(pid_t parent)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "outboard-signal");
	/* so that nobody waits for the end of what this process has open */
	close_range(0, ~0u, 0);
	while (getppid() == parent)
		pause();
	_exit(0);
}

void obx_witness_start(struct obx_witness *witness)
{
	pid_t parent = getpid();

	witness->pid = fork();
	if (witness->pid == 0)
		witness_main(parent);
	if (witness->pid < 0)
		witness->pid = 0;
}

void obx_witness_stop(struct obx_witness *witness)
{
	if (!witness->pid)
		return;
	kill(witness->pid, SIGKILL);
	waitpid(witness->pid, NULL, 0);
	witness->pid = 0;
}

/* Signals that are pending for the process; bit 0: number 1. */
static uint64_t pending_of(pid_t pid)
{
	unsigned long long pending = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "ShdPnd: %llx", &pending) == 1)
			break;
	fclose(file);
	return pending;
}

bool obx_witness_saw(struct obx_witness *witness, int number)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t now = ob_clock_ns(), bit = UINT64_C(1) << (number - 1), pending = 0;

	if (!witness->pid)
		return false;
	for (unsigned i = 0; i < LOOKS && !(pending & bit); i++) {
		pending = pending_of(witness->pid);
		if (!(pending & bit))
			nanosleep(&pause, NULL);
	}
	if (pending) { /* the next ones need a witness for whom nothing is pending */
		obx_witness_stop(witness);
		obx_witness_start(witness);
	}
	for (int i = 1; i <= OBX_WITNESS_SIGNALS; i++)
		if (pending >> (i - 1) & 1)
			witness->seen_ns[i] = now;
	return witness->seen_ns[number] && now < witness->seen_ns[number] + SAME_NS;
}
