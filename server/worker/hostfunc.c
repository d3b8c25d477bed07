/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/hostfunc.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "protocol/obs_driver.h"
#include "server/layers/throttle.h"
#include "server/worker/end.h"

struct obs_hostfunc {
	struct obs_hostfunc *next;
	struct obs_session *session;
	uint64_t callback;
	uint64_t replies; /* the last one sent before the function was asked for */
	CUresult status;
	bool asked, done;
};

void obs_hostfuncs_init(struct obs_hostfuncs *hostfuncs)
{
	pthread_condattr_t attr;

	*hostfuncs = (struct obs_hostfuncs){ .control_fd = -1 };
	pthread_mutex_init(&hostfuncs->lock, NULL);
	pthread_mutex_init(&hostfuncs->send_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&hostfuncs->changed, &attr);
	pthread_condattr_destroy(&attr);
}

/* Waits until the client has joined its control connection. False: it did not in time. */
static bool control_wait(struct obs_hostfuncs *hostfuncs)
{
	struct timespec until;
	bool joined;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += OBS_CONTROL_JOIN_S;
	pthread_mutex_lock(&hostfuncs->lock);
	while (hostfuncs->control_fd < 0 && !hostfuncs->may_repeat)
		if (pthread_cond_timedwait(&hostfuncs->changed, &hostfuncs->lock, &until) ==
			ETIMEDOUT)
			break;
	joined = hostfuncs->control_fd >= 0;
	pthread_mutex_unlock(&hostfuncs->lock);
	return joined;
}

bool obs_control_send(struct obs_hostfuncs *hostfuncs, const struct obp_message *message)
{
	struct obt_stream stream;
	struct ob_buf frame;
	bool sent = false;

	if (!control_wait(hostfuncs))
		return false;
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_message_encode(message, &frame)) {
		struct iovec iov = { frame.data, frame.size };

		pthread_mutex_lock(&hostfuncs->send_lock);
		stream = hostfuncs->control;
		sent = hostfuncs->control_fd >= 0 &&
			obt_stream_send_all(&stream, &iov, 1,
				ob_clock_ns() + OBS_CONTROL_SEND_S * OB_SECOND) == OB_ERR_NONE;
		pthread_mutex_unlock(&hostfuncs->send_lock);
	}
	ob_buf_fini(&frame);
	return sent;
}

static void unlink_locked(struct obs_hostfuncs *hostfuncs, struct obs_hostfunc *function)
{
	struct obs_hostfunc **at = &hostfuncs->list;

	while (*at != function)
		at = &(*at)->next;
	*at = function->next;
	hostfuncs->n--;
}

/* Runs on a thread of the driver; the stream waits for it. */
static void run(struct obs_hostfunc *function, CUresult status)
{
	struct obs_session *session = function->session;
	struct obs_hostfuncs *hostfuncs = &session->hostfuncs;
	struct obp_message *message OB_CLEANUP(ob_freep) = calloc(1, sizeof *message);

	if (!message)
		obs_session_fatal(
			session, OB_ERR_NO_MEMORY, "out of memory while calling a host function");
	message->type = OBP_MSG_CALLBACK;
	message->value = function->callback;
	message->code = (uint32_t)status;
	message->sent = atomic_load_explicit(&session->replies.next, memory_order_acquire) - 1;
	pthread_mutex_lock(&hostfuncs->lock);
	function->replies = message->sent;
	function->asked = true;
	function->status = status;
	pthread_mutex_unlock(&hostfuncs->lock);
	/*
	 * If the session can be resumed, the function is asked for again on the next control
	 * connection. The client runs each function once.
	 */
	if (!obs_control_send(hostfuncs, message) && !session->link.on)
		obs_session_fatal(session, OB_ERR_TIMEOUT,
			"the call of a host function could not be sent: the client did not read "
			"its control connection in time");
	/*
	 * No time-out: the function is the program's and may run as long as it likes. When the
	 * client leaves, the process ends.
	 */
	pthread_mutex_lock(&hostfuncs->lock);
	while (!function->done)
		pthread_cond_wait(&hostfuncs->changed, &hostfuncs->lock);
	unlink_locked(hostfuncs, function);
	pthread_mutex_unlock(&hostfuncs->lock);
	free(function);
}

static void driver_calls(void *user)
{
	run(user, CUDA_SUCCESS);
}

static void driver_calls_with_status(CUstream stream, CUresult status, void *user)
{
	(void)stream;
	run(user, status);
}

CUresult obs_hostfunc_launch(
	struct obs_session *session, CUstream stream, uint64_t callback, bool with_status)
{
	struct obs_hostfuncs *hostfuncs = &session->hostfuncs;
	struct obs_hostfunc *function = calloc(1, sizeof *function);
	bool room;
	CUresult result;

	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function->session = session;
	function->callback = callback;
	pthread_mutex_lock(&hostfuncs->lock);
	room = hostfuncs->n < OBS_HOSTFUNC_MAX;
	if (room) {
		function->next = hostfuncs->list;
		hostfuncs->list = function;
		hostfuncs->n++;
	}
	pthread_mutex_unlock(&hostfuncs->lock);
	if (!room) {
		free(function);
		obs_throttle_refused("host functions that wait");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (with_status)
		result = session->drv->cuStreamAddCallback(
			stream, driver_calls_with_status, function, 0);
	else
		result = session->drv->cuLaunchHostFunc(stream, driver_calls, function);
	if (result != CUDA_SUCCESS) {
		pthread_mutex_lock(&hostfuncs->lock);
		unlink_locked(hostfuncs, function);
		pthread_mutex_unlock(&hostfuncs->lock);
		free(function);
	}
	return result;
}

bool obs_hostfunc_done(struct obs_hostfuncs *hostfuncs, uint64_t callback)
{
	struct obs_hostfunc *function;
	bool found;

	pthread_mutex_lock(&hostfuncs->lock);
	for (function = hostfuncs->list; function; function = function->next)
		if (function->callback == callback && function->asked && !function->done)
			break;
	if (function) {
		function->done = true;
		pthread_cond_broadcast(&hostfuncs->changed);
	}
	found = function != NULL || hostfuncs->may_repeat;
	pthread_mutex_unlock(&hostfuncs->lock);
	return found;
}

void obs_hostfunc_control(struct obs_hostfuncs *hostfuncs, const struct obt_stream *stream)
{
	pthread_mutex_lock(&hostfuncs->send_lock);
	pthread_mutex_lock(&hostfuncs->lock);
	hostfuncs->control = stream ? *stream : (struct obt_stream){ .fd = -1 };
	hostfuncs->control_fd = hostfuncs->control.fd;
	hostfuncs->may_repeat = hostfuncs->may_repeat || !stream;
	pthread_cond_broadcast(&hostfuncs->changed);
	pthread_mutex_unlock(&hostfuncs->lock);
	pthread_mutex_unlock(&hostfuncs->send_lock);
}

bool obs_hostfunc_running(struct obs_hostfuncs *hostfuncs)
{
	bool running = false;

	pthread_mutex_lock(&hostfuncs->lock);
	for (const struct obs_hostfunc *f = hostfuncs->list; f && !running; f = f->next)
		running = f->asked && !f->done;
	pthread_mutex_unlock(&hostfuncs->lock);
	return running;
}

/*
 * Fills in the message for the function with the lowest id above the message's that was asked for
 * and is not done. False: there is none. The list may change between calls; ids are not reused
 * soon.
 */
static bool asked_next(struct obs_hostfuncs *hostfuncs, struct obp_message *message)
{
	uint64_t after = message->value, found = 0;

	pthread_mutex_lock(&hostfuncs->lock);
	for (const struct obs_hostfunc *f = hostfuncs->list; f; f = f->next)
		if (f->asked && !f->done && f->callback > after &&
			(!found || f->callback < found)) {
			found = f->callback;
			message->code = (uint32_t)f->status;
			message->sent = f->replies;
		}
	/* The function's own thread may ask for it too: the answer may come twice from now on. */
	hostfuncs->may_repeat = hostfuncs->may_repeat || found;
	pthread_mutex_unlock(&hostfuncs->lock);
	message->value = found;
	return found != 0;
}

bool obs_hostfunc_ask_again(struct obs_hostfuncs *hostfuncs)
{
	struct obp_message *message OB_CLEANUP(ob_freep) = calloc(1, sizeof *message);
	bool rejoined;

	pthread_mutex_lock(&hostfuncs->lock);
	rejoined = hostfuncs->may_repeat;
	pthread_mutex_unlock(&hostfuncs->lock);
	/*
	 * On the first connection nothing is asked again: the threads that asked are still waiting
	 * for the connection and send for themselves.
	 */
	if (!rejoined)
		return true;
	if (!message)
		return false;
	message->type = OBP_MSG_CALLBACK;
	while (asked_next(hostfuncs, message))
		if (!obs_control_send(hostfuncs, message))
			return false;
	return true;
}
