/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
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
		output->files[i] = memfd_create(i ? "stderr" : "stdout", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		/* Only the kernel can hold a driver to a size: what it prints goes past everything else here. */
		if (output->files[i] < 0 || ftruncate(output->files[i], OBS_OUTPUT_MAX) != 0 ||
		    fcntl(output->files[i], F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
			return false;
	}
	ob_log_set_fd(log_fd);
	for (int i = 0; i < 2; i++)
		dup2(output->files[i], i ? STDERR_FILENO : STDOUT_FILENO);
	output->captured = true;
	return true;
}

static void lost_tell(int which, struct obs_exec *x)
{
	static const char text[] = "outboard: kernels have printed more than the server keeps until a call fetches it (64 MiB); the rest is lost\n";

	ob_warn("output of kernels on std%s was lost: no call fetched the %llu MiB before it", which ? "err" : "out", OBS_OUTPUT_MAX >> 20);
	obs_reply_text(x, OBP_REPLY_TEXT_STDERR, text, sizeof text - 1);
}

static void forward_file(struct obs_output *output, int which, struct obs_exec *x)
{
	static char piece[OBS_OUTPUT_PIECE]; /* under the lock */
	_Static_assert(OBS_OUTPUT_PIECE + sizeof(struct obp_reply) <= OBP_CONN_BIG, "clients take text whole");
	int file = output->files[which];
	off_t end = lseek(file, 0, SEEK_CUR);

	while (end > 0 && output->sent[which] < (uint64_t)end) {
		ssize_t n = pread(file, piece, ob_min(sizeof piece, (uint64_t)end - output->sent[which]), (off_t)output->sent[which]);

		if (n <= 0)
			break;
		obs_reply_text(x, which ? OBP_REPLY_TEXT_STDERR : 0, piece, (uint32_t)n);
		output->sent[which] += (uint64_t)n;
	}
	if ((uint64_t)end == OBS_OUTPUT_MAX)
		lost_tell(which, x);
	/* What a thread of the driver writes between the two is lost: rarely, therefore, and with nothing known to be unsent. */
	if (output->sent[which] > OBS_OUTPUT_REUSE && lseek(file, 0, SEEK_CUR) == end && (uint64_t)end == output->sent[which] &&
	    lseek(file, 0, SEEK_SET) == 0) {
		fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end);
		output->sent[which] = 0;
	}
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
