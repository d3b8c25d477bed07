/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/fuzz/fuzz_child.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/common/handoff.h"

int fuzz_child_channel(void)
{
	int fds[2], ours, child;

	if (fcntl(OBS_HANDOFF_FD, F_GETFD) >= 0) {
		fprintf(stderr, "descriptor %d is taken already\n", OBS_HANDOFF_FD);
		exit(1);
	}
	/* The other end of the pair may have that number. */
	if (obs_handoff_pair(fds) != 0 ||
		(ours = fcntl(fds[0], F_DUPFD_CLOEXEC, OBS_HANDOFF_FD + 1)) < 0 ||
		(child = fcntl(fds[1], F_DUPFD_CLOEXEC, OBS_HANDOFF_FD + 1)) < 0) {
		perror("a channel");
		exit(1);
	}
	close(fds[0]);
	close(fds[1]);
	if (dup2(child, OBS_HANDOFF_FD) < 0 || fcntl(OBS_HANDOFF_FD, F_SETFL, O_NONBLOCK) != 0) {
		perror("a channel");
		exit(1);
	}
	close(child);
	return ours;
}
