/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/ask.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
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
	/* to be taken back; there is no more room than this, so others stay until the session ends */
	uint64_t late[OBS_ASK_LATE_MAX][2];
	_Atomic uint32_t n_late; /* changed under the lock */
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

static bool request_send(const struct obs_ipc *request, int fd, uint64_t deadline)
{
	static struct obs_handoff message; /* under `asking` */
	int fds[OBS_HANDOFF_FDS] = { fd, -1, -1 };
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

static bool late_next(uint64_t ret_id[2])
{
	bool found;

	pthread_mutex_lock(&ask.lock);
	found = ask.n_late > 0;
	if (found)
		memcpy(ret_id, ask.late[--ask.n_late], sizeof ask.late[0]);
	pthread_mutex_unlock(&ask.lock);
	return found;
}

static void late_add(const uint64_t id[2])
{
	if (ask.n_late < OBS_ASK_LATE_MAX)
		memcpy(ask.late[ask.n_late++], id, sizeof ask.late[0]);
}

/*
 * Takes back what was registered too late. If another thread is asking, it does this afterwards. Does
 * not block.
 */
static void late_drop(void)
{
	struct obs_ipc request = { .op = OBS_IPC_DROP };
	bool sent = true;

	while (sent && ask.n_late > 0 && pthread_mutex_trylock(&ask.asking) == 0) {
		while (sent && late_next(request.id)) {
			sent = request_send(&request, -1, 0);
			if (!sent) {
				pthread_mutex_lock(&ask.lock);
				late_add(request.id);
				pthread_mutex_unlock(&ask.lock);
			}
		}
		pthread_mutex_unlock(&ask.asking);
	}
}

/* The answer to a request that has timed out. Under the lock. */
static void late_answer(const struct obs_handoff *message)
{
	struct obs_ipc answer;

	if (!ask.on || message->size != sizeof answer)
		return;
	memcpy(&answer, message->body, sizeof answer);
	if (answer.op == OBS_IPC_PUT && answer.status == OBS_IPC_OK)
		late_add(answer.id);
}

void obs_ask_answered(const struct obs_handoff *message, int fds[OBS_HANDOFF_FDS])
{
	pthread_mutex_lock(&ask.lock);
	if (ask.on && message->id == ask.number && !ask.answered &&
		message->size == sizeof ask.answer) {
		memcpy(&ask.answer, message->body, sizeof ask.answer);
		ask.answer_fd = fds[0];
		fds[0] = -1;
		ask.answered = true;
		pthread_cond_signal(&ask.changed);
	} else {
		late_answer(message);
	}
	pthread_mutex_unlock(&ask.lock);
	obs_handoff_close(fds);
	late_drop();
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
	ask.answered = true; /* a later answer is too late */
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
	late_drop();
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
