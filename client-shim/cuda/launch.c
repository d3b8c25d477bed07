/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Launches, the hot path of the library: look-ups in arrays, CUDA's checks, and packing of the
 * parameters directly into the log. No allocation, no lock except that of the log, no system call.
 */
#include <string.h>

#include "client-shim/cuda/shared.h"
#include "client-shim/cuda/graph.h"
#include "client-shim/cuda/kept.h"
#include "client-shim/session/log.h"
#include "client-shim/cuda/stream.h"
#include "protocol/obc_calls.h"

/*
 * Checks everything that could fail during packing before the record is begun, because a begun
 * record must be finished.
 */
static inline CUresult params_check(const struct obf_func *func, void **params)
{
	if (!func->n_params)
		return CUDA_SUCCESS;
	if (ob_unlikely(!params))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < func->n_params; i++)
		if (ob_unlikely(!params[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static inline uint32_t launch_flags(const struct obf_func *func, const struct obf_launch *launch)
{
	return (launch->cooperative ? OBP_LAUNCH_COOPERATIVE : 0) |
		(launch->has_priority ? OBP_LAUNCH_PRIORITY : 0) |
		(func->mod->symbols->prints ? OBP_LAUNCH_PRINTS : 0);
}

static inline CUresult launch_write(struct obc_stream *at, const struct obf_func *func,
	const struct obf_launch *launch, void **params, const void *packed)
{
	struct obp_launch_req *req;
	struct obc_slot slot;
	void *data;

	req = obc_begin_op_launch(&slot, func->param_bytes, &data);
	if (ob_unlikely(!req))
		return obc_log_error();
	req->func = func->backend_id;
	req->stream = at->base.handle;
	memcpy(req->grid, launch->grid, sizeof req->grid);
	memcpy(req->block, launch->block, sizeof req->block);
	memcpy(req->cluster, launch->cluster, sizeof req->cluster);
	req->shared = launch->dynamic_shared;
	req->flags = launch_flags(func, launch);
	req->priority = launch->priority;
	if (ob_unlikely(packed != NULL))
		memcpy(data, packed, func->param_bytes);
	else
		obf_launch_pack(func, params, NULL, data);
	obc_stream_mark(at, slot.number);
	return obc_log_commit(&slot);
}

/*
 * Parameters that may be sent as changes, or that come in one buffer, from the program or from the
 * front end because of shared memory.
 * They are packed into a temporary buffer first, because the program's buffer may be malformed.
 */
static __attribute__((noinline)) CUresult launch_extra(struct obc_stream *at,
	const struct obf_func *func, const struct obf_launch *launch, void **params, void **extra)
{
	_Alignas(8) uint8_t packed[OBP_PARAM_BYTES_MAX];
	bool shared = obc_shared_exist(), kept = func->param_bytes >= OBC_KEPT_LEAST;
	CUresult result = obf_launch_pack(func, params, extra, packed);

	if (shared && result == CUDA_SUCCESS)
		result = obc_shared_launch(at);
	if (result != CUDA_SUCCESS)
		return result;
	if (kept)
		memset(packed + func->param_bytes, 0, -func->param_bytes % 8);
	if (!kept ||
		!obc_kept_launch(at, func, launch, launch_flags(func, launch),
			(const uint64_t *)packed, &result))
		result = launch_write(at, func, launch, NULL, packed);
	if (shared)
		obc_shared_launched();
	return result;
}

static inline CUresult launch_enqueue(struct obf_stream *stream, struct obf_func *func,
	const struct obf_launch *launch, void **params, void **extra)
{
	struct obc_stream *at = obc_stream_of(stream);
	CUresult result;

	if (ob_unlikely(extra != NULL || func->param_bytes >= OBC_KEPT_LEAST))
		return launch_extra(at, func, launch, params, extra);
	result = params_check(func, params);
	return ob_likely(result == CUDA_SUCCESS) ? launch_write(at, func, launch, params, NULL)
						 : result;
}

CUresult obc_launch_packed(struct obf_stream *stream, struct obf_func *func,
	const struct obf_launch *launch, void *packed)
{
	size_t size = func->param_bytes;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END };

	return launch_enqueue(stream, func, launch, NULL, extra);
}

#include "front/launch_calls.h"
