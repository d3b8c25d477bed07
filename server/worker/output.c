/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "protocol/conn.h"

/* A memory file for one stream; -1: it cannot be made. */
static int file_new(int which)
{
	int fd = memfd_create(which ? "stderr" : "stdout", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/*
	 * The driver writes to the file directly, so only the kernel (sealing) can bound its size.
	 */
	if (fd >= 0 && ftruncate(fd, OBS_OUTPUT_MAX) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool obs_output_capture(struct obs_output *output)
{
	int log_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);

	*output = (struct obs_output){ .now = { { -1, 0 }, { -1, 0 } },
		.old = { { -1, 0 }, { -1, 0 } } };
	pthread_mutex_init(&output->lock, NULL);
	if (log_fd < 0)
		return false;
	for (int i = 0; i < 2; i++)
		if ((output->now[i].fd = file_new(i)) < 0)
			return false;
	ob_log_set_fd(log_fd);
	for (int i = 0; i < 2; i++)
		dup2(output->now[i].fd, i ? STDERR_FILENO : STDOUT_FILENO);
	output->captured = true;
	return true;
}

static void lost_tell(int which, obs_output_send *send, void *user)
{
	static const char text[] = "outboard: kernels have printed more than the server keeps "
				   "until a call fetches it (64 MiB); the rest is lost\n";

	ob_warn("output of kernels on std%s was lost: no call fetched the %llu MiB before it",
		which ? "err" : "out", OBS_OUTPUT_MAX >> 20);
	send(user, OBP_REPLY_TEXT_STDERR, text, sizeof text - 1);
}

/* Forwards what is new in a file. The position it was read up to. */
static uint64_t forward_file(
	struct obs_output_file *file, int which, obs_output_send *send, void *user)
{
	static char piece[OBS_OUTPUT_PIECE]; /* under the lock */
	_Static_assert(OBS_OUTPUT_PIECE + sizeof(struct obp_reply) <= OBP_CONN_BIG,
		"clients take text whole");
	off_t end = file->fd >= 0 ? lseek(file->fd, 0, SEEK_CUR) : 0;

	while (end > 0 && file->sent < (uint64_t)end) {
		ssize_t n = pread(file->fd, piece, ob_min(sizeof piece, (uint64_t)end - file->sent),
			(off_t)file->sent);

		if (n <= 0)
			break;
		send(user, which ? OBP_REPLY_TEXT_STDERR : 0, piece, (uint32_t)n);
		file->sent += (uint64_t)n;
	}
	return end > 0 ? (uint64_t)end : 0;
}

/*
 * Replaces the file by a new one and frees its memory. It is not truncated in place because a
 * thread of the driver may be writing.
 */
static bool renew(struct obs_output *output, int which)
{
	struct obs_output_file *now = &output->now[which], *old = &output->old[which];
	int fd = file_new(which);

	if (fd < 0)
		return false;
	dup2(fd, which ? STDERR_FILENO : STDOUT_FILENO);
	if (old->fd >= 0)
		close(old->fd);
	*old = *now;
	*now = (struct obs_output_file){ .fd = fd };
	fallocate(old->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)old->sent);
	return true;
}

static void forward(struct obs_output *output, int which, obs_output_send *send, void *user)
{
	uint64_t end;

	forward_file(&output->old[which], which, send, user);
	end = forward_file(&output->now[which], which, send, user);
	if (end > OBS_OUTPUT_RENEW && renew(output, which) && end == OBS_OUTPUT_MAX)
		lost_tell(which, send, user);
}

void obs_output_forward(struct obs_output *output, obs_output_send *send, void *user)
{
	if (!output->captured)
		return;
	pthread_mutex_lock(&output->lock);
	fflush(stdout);
	forward(output, 0, send, user);
	forward(output, 1, send, user);
	pthread_mutex_unlock(&output->lock);
}
