/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/hostfunc.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/ids.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/session/log.h"
#include "client-shim/cuda/stream.h"
#include "front/mirror.h"
#include "protocol/obc_calls.h"

#define KIND_HOSTFUNC 32 /* kind of ids that the program never sees */

static struct ob_ids hostfunc_ids = OB_IDS_INIT(KIND_HOSTFUNC, OBC_HOSTFUNC_MAX);
static _Atomic uint64_t n_pending;

bool obc_hostfunc_pending(void)
{
	return atomic_load_explicit(&n_pending, memory_order_acquire) > 0;
}

/*
 * All signals are blocked in this library's threads, but an access of the function to shared memory
 * is served by a handler.
 */
static void unblock_faults(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void obc_hostfunc_run(uint64_t id, CUresult status)
{
	struct obf_host_function *hostfunc = ob_ids_remove(&hostfunc_ids, id);

	if (!hostfunc)
		return;
	if (obc_shared_exist())
		unblock_faults();
	obf_host_function_run(hostfunc, status);
	if (obc_shared_exist())
		obc_shared_host_function_end();
	free(hostfunc);
	/* Release: a thread that sees the decremented count sees what the function wrote. */
	atomic_fetch_sub_explicit(&n_pending, 1, memory_order_release);
}

/* Either this sees a function that is being put, or that sees the new mirror: both count first. */
CUresult obc_hostfuncs_transfer(void)
{
	return atomic_load(&n_pending) > 0 ? obc_shared_host_function() : CUDA_SUCCESS;
}

/* The server will not request it. */
static CUresult hostfunc_drop(uint64_t id, CUresult result)
{
	struct obf_host_function *hostfunc = ob_ids_remove(&hostfunc_ids, id);

	if (hostfunc)
		atomic_fetch_sub(&n_pending, 1);
	free(hostfunc);
	return result;
}

CUresult obc_hostfunc_submit(struct obf_stream *stream, const struct obf_host_function *function)
{
	struct obf_host_function *hostfunc;
	struct obp_host_func_req *req;
	struct obc_slot slot;
	CUresult result;
	uint64_t id;

	hostfunc = malloc(sizeof *hostfunc);
	if (!hostfunc)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*hostfunc = *function;
	id = ob_ids_add(&hostfunc_ids, hostfunc);
	if (!id) {
		free(hostfunc);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_fetch_add(&n_pending, 1);
	if (obc_shared_exist() || ob_unlikely(atomic_load(&obf_mirrors) > 0)) {
		result = obc_shared_host_function();
		if (result != CUDA_SUCCESS)
			return hostfunc_drop(id, result);
	}
	req = obc_log_begin(&slot, OBP_OP_HOST_FUNC, sizeof *req);
	if (!req)
		return hostfunc_drop(id, obc_log_error());
	*req = (struct obp_host_func_req){
		.stream = stream->handle,
		.callback = id,
		.with_status = function->callback != NULL,
	};
	obc_stream_mark(obc_stream_of(stream), slot.number);
	result = obc_log_commit(&slot);
	return result == CUDA_SUCCESS ? result : hostfunc_drop(id, result);
}
