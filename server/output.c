/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "protocol/conn.h"
#include "server/reply.h"

bool obs_output_capture(struct obs_output *output)
{
	int log_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);

	*output = (struct obs_output){ .files = { -1, -1 } };
	pthread_mutex_init(&output->lock, NULL);
	if (log_fd < 0)
		return false;
	for (int i = 0; i < 2; i++) {
		output->files[i] = memfd_create(i ? "stderr" : "stdout", MFD_CLOEXEC);
		if (output->files[i] < 0)
			return false;
	}
	ob_log_set_fd(log_fd);
	for (int i = 0; i < 2; i++) {
		/* Appending: truncating what was forwarded then leaves no hole. */
		fcntl(output->files[i], F_SETFL, O_APPEND);
		dup2(output->files[i], i ? STDERR_FILENO : STDOUT_FILENO);
	}
	output->captured = true;
	return true;
}

static void forward_file(struct obs_output *output, int which, struct obs_exec *x)
{
	static char piece[OBS_OUTPUT_PIECE]; /* under the lock */
	_Static_assert(OBS_OUTPUT_PIECE + sizeof(struct obp_reply) <= OBP_CONN_BIG, "clients take text whole");
	struct stat st;
	uint64_t size;

	if (fstat(output->files[which], &st) != 0)
		return;
	size = (uint64_t)st.st_size;
	while (output->sent[which] < size) {
		ssize_t n = pread(output->files[which], piece, ob_min(sizeof piece, size - output->sent[which]),
			(off_t)output->sent[which]);

		if (n <= 0)
			break;
		obs_reply_text(x, which ? OBP_REPLY_TEXT_STDERR : 0, piece, (uint32_t)n);
		output->sent[which] += (uint64_t)n;
	}
	/* Give the memory back now and then; a driver thread that writes in between loses nothing below the limit. */
	if (output->sent[which] > OBS_OUTPUT_MAX && fstat(output->files[which], &st) == 0 &&
	    (uint64_t)st.st_size == output->sent[which] && ftruncate(output->files[which], 0) == 0)
		output->sent[which] = 0;
}

void obs_output_forward(struct obs_output *output, struct obs_exec *x)
{
	if (!output->captured)
		return;
	pthread_mutex_lock(&output->lock);
	fflush(stdout);
	forward_file(output, 0, x);
	forward_file(output, 1, x);
	pthread_mutex_unlock(&output->lock);
}
