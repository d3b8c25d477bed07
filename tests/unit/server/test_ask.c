/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Requests of a worker to the supervisor, which is this test: answers in time, too late, and to
 * nothing. Built with a short OBS_ASK_WAIT_MS.
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/ask.h"
#include "tests/test.h"

static int channel, of_worker; /* the two ends; each test is a process of its own */

static void start(void)
{
	int ends[2];

	CHECK_INT(obs_handoff_pair(ends), 0);
	channel = ends[0];
	of_worker = ends[1];
	obs_ask_start(of_worker);
}

static void end(void)
{
	close(channel);
	close(of_worker);
}

/* The next request. False: there is none. */
static bool request_get(struct obs_handoff *ret, struct obs_ipc *ret_ipc)
{
	struct pollfd input = { .fd = channel, .events = POLLIN };
	int fds[OBS_HANDOFF_FDS];

	if (poll(&input, 1, 0) != 1 || obs_handoff_recv(channel, ret, fds) != 1)
		return false;
	CHECK_INT(ret->type, OBS_HANDOFF_IPC);
	CHECK_INT(ret->size, sizeof *ret_ipc);
	memcpy(ret_ipc, ret->body, sizeof *ret_ipc);
	obs_handoff_close(fds);
	return true;
}

/* Delivers the answer, as the worker's loop does. */
static void answer(struct obs_handoff *message, struct obs_ipc ipc, uint64_t id)
{
	int fds[OBS_HANDOFF_FDS] = { -1, -1, -1 };

	ipc.status = OBS_IPC_OK;
	ipc.id[0] = id;
	ipc.id[1] = ~id;
	memcpy(message->body, &ipc, sizeof ipc);
	obs_ask_answered(message, fds);
}

static CUresult put(void)
{
	struct obs_ipc ipc = { .op = OBS_IPC_PUT, .kind = OBS_IPC_POOL };

	return obs_ask(&ipc, CUDA_ERROR_INVALID_VALUE, -1, NULL);
}

/* The object of a registration that nobody waits for any more is taken back, once. */
TEST(late_registration)
{
	static struct obs_handoff message, other;
	struct obs_ipc ipc, dropped;

	start();
	CHECK_INT(put(), CUDA_ERROR_TIMEOUT);
	CHECK(request_get(&message, &ipc));
	CHECK_INT(ipc.op, OBS_IPC_PUT);
	CHECK(!request_get(&other, &dropped));
	answer(&message, ipc, 77);
	CHECK(request_get(&other, &dropped));
	CHECK_INT(dropped.op, OBS_IPC_DROP);
	CHECK_INT(dropped.id[0], 77);
	CHECK_INT(dropped.id[1], ~(uint64_t)77);
	CHECK(!request_get(&other, &dropped));
	end();
}

/* Late answers of other kinds, and registrations that failed, have nothing to be taken back. */
TEST(late_others)
{
	struct obs_ipc get = { .op = OBS_IPC_GET, .kind = OBS_IPC_POOL }, ipc, dropped;
	static struct obs_handoff message, other;
	int fds[OBS_HANDOFF_FDS] = { -1, -1, -1 };

	start();
	CHECK_INT(obs_ask(&get, CUDA_ERROR_INVALID_VALUE, -1, NULL), CUDA_ERROR_TIMEOUT);
	CHECK(request_get(&message, &ipc));
	answer(&message, ipc, 5);
	CHECK_INT(put(), CUDA_ERROR_TIMEOUT);
	CHECK(request_get(&message, &ipc));
	ipc.status = OBS_IPC_LIMIT;
	memcpy(message.body, &ipc, sizeof ipc);
	obs_ask_answered(&message, fds);
	message.size = 3;
	obs_ask_answered(&message, fds);
	CHECK(!request_get(&other, &dropped));
	end();
}

static void *ask_thread(void *user)
{
	*(CUresult *)user = put();
	return NULL;
}

/* While another request waits, the object is taken back after it. */
TEST(late_beside_another)
{
	static struct obs_handoff first, second, other;
	struct obs_ipc one, two, dropped;
	struct pollfd input = { .events = POLLIN };
	CUresult result = CUDA_ERROR_UNKNOWN;
	pthread_t thread;

	start();
	CHECK_INT(put(), CUDA_ERROR_TIMEOUT);
	CHECK(request_get(&first, &one));
	CHECK_INT(pthread_create(&thread, NULL, ask_thread, &result), 0);
	input.fd = channel;
	CHECK_INT(poll(&input, 1, 10000), 1);
	CHECK(request_get(&second, &two));
	answer(&first, one, 8);
	answer(&second, two, 9);
	pthread_join(thread, NULL);
	CHECK_INT(result, CUDA_SUCCESS);
	CHECK(request_get(&other, &dropped));
	CHECK_INT(dropped.op, OBS_IPC_DROP);
	CHECK_INT(dropped.id[0], 8);
	CHECK(!request_get(&other, &dropped));
	end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
