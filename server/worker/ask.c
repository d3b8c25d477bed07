/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/ask.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

static struct {
	bool on;
	int channel;            /* to the supervisor */
	pthread_mutex_t asking; /* one request at a time */
	pthread_mutex_t lock;   /* all below */
	pthread_cond_t changed;
	uint64_t number; /* of the last request */
	bool answered;
	struct obs_ipc answer;
	int answer_fd;
} ask = { .asking = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .answer_fd = -1 };

void obs_ask_start(int channel)
{
	pthread_condattr_t clock;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_lock(&ask.lock);
	pthread_cond_init(&ask.changed, &clock);
	ask.channel = channel;
	ask.on = true;
	pthread_mutex_unlock(&ask.lock);
	pthread_condattr_destroy(&clock);
}

void obs_ask_answered(const struct obs_handoff *message, int fds[OBS_HANDOFF_FDS])
{
	pthread_mutex_lock(&ask.lock);
	/* The answer to a request that has timed out is dropped. */
	if (ask.on && message->id == ask.number && !ask.answered &&
		message->size == sizeof ask.answer) {
		memcpy(&ask.answer, message->body, sizeof ask.answer);
		ask.answer_fd = fds[0];
		fds[0] = -1;
		ask.answered = true;
		pthread_cond_signal(&ask.changed);
	}
	pthread_mutex_unlock(&ask.lock);
	obs_handoff_close(fds);
}

static bool request_send(const struct obs_ipc *request, int fd, uint64_t deadline)
{
	static struct obs_handoff message; /* under `asking` */
	int fds[OBS_HANDOFF_FDS] = { fd, -1 };
	struct pollfd channel = { .fd = ask.channel, .events = POLLOUT };

	message = (struct obs_handoff){
		.type = OBS_HANDOFF_IPC, .id = ask.number, .size = sizeof *request
	};
	memcpy(message.body, request, sizeof *request);
	while (obs_handoff_send(ask.channel, &message, fds) != 0) {
		if (errno != EAGAIN || ob_clock_ns() > deadline)
			return false;
		poll(&channel, 1, ob_clock_poll_ms(deadline));
	}
	return true;
}

/* Waits for the answer to request ask.number. */
static bool answer_await(struct obs_ipc *ret, int *ret_fd, uint64_t deadline)
{
	const struct timespec until = { .tv_sec = (time_t)(deadline / OB_SECOND),
		.tv_nsec = (long)(deadline % OB_SECOND) };
	bool answered;

	pthread_mutex_lock(&ask.lock);
	while (!ask.answered && pthread_cond_timedwait(&ask.changed, &ask.lock, &until) == 0)
		;
	answered = ask.answered;
	*ret = answered ? ask.answer : *ret;
	*ret_fd = answered ? ask.answer_fd : -1;
	ask.answer_fd = -1;
	ask.answered = true; /* a later answer is dropped */
	pthread_mutex_unlock(&ask.lock);
	return answered;
}

static CUresult status_result(enum obs_ipc_status status, CUresult none)
{
	switch (status) {
	case OBS_IPC_OK:
		return CUDA_SUCCESS;
	case OBS_IPC_NONE:
		return none;
	case OBS_IPC_LIMIT:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case OBS_IPC_TIMEOUT:
		return CUDA_ERROR_TIMEOUT;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult obs_ask(struct obs_ipc *request, CUresult none, int fd, int *ret_fd)
{
	uint64_t deadline = ob_clock_ns() + OBS_ASK_WAIT_MS * OB_MS;
	enum obs_ipc_status status = OBS_IPC_TIMEOUT;
	int answer_fd = -1;

	if (!ask.on)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&ask.asking);
	pthread_mutex_lock(&ask.lock);
	ask.number++;
	ask.answered = request->op == OBS_IPC_DROP;
	pthread_mutex_unlock(&ask.lock);
	if (!request_send(request, fd, deadline))
		status = OBS_IPC_TIMEOUT;
	else if (request->op == OBS_IPC_DROP)
		status = OBS_IPC_OK;
	else if (answer_await(request, &answer_fd, deadline))
		status = (enum obs_ipc_status)request->status;
	pthread_mutex_unlock(&ask.asking);
	if (ret_fd)
		*ret_fd = answer_fd;
	else
		obs_handoff_drop(&answer_fd);
	return status_result(status, none);
}

void obs_ask_drop(const uint64_t id[2])
{
	struct obs_ipc request = { .op = OBS_IPC_DROP, .id = { id[0], id[1] } };

	obs_ask(&request, CUDA_SUCCESS, -1, NULL);
}
