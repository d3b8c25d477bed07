/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "client-shim/cuda/shared_inside.h"
#include "client-shim/session/inside.h"
#include "protocol/obc_calls.h"

/*
 * A thread with a lane of its own that makes one call and then sleeps. As soon as a session has two
 * lanes, the server waits for streams outside of the thread that executes the log, so an access of
 * a host function is served while another thread waits for the stream.
 */
static void *helper_run(void *user)
{
	obc_call_op_ping();
	sem_post(user);
	for (;;)
		pause();
	return NULL;
}

CUresult obc_shared_host_function(void)
{
	bool *helper = &obc_shareds.helper[obc_server_number()];
	sem_t made;
	int failed;
	OBC_WAITS();

	obc_shared_lock();
	failed = *helper ? 0 : -1;
	if (failed && sem_init(&made, 0, 0) == 0) {
		failed = obc_thread_start(helper_run, &made, 0, NULL) ? 0 : -1;
		while (!failed && sem_wait(&made) != 0)
			;
		sem_destroy(&made);
		*helper = !failed;
	}
	obc_shared_unlock();
	return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
