/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Functions of the program that a stream calls. */
#include "front/captured.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

static CUresult submit(const struct obf_host_function *function)
{
	struct obf_stream *stream;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result == CUDA_SUCCESS)
		result = obf_stream_get_current(function->stream, ctx, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!function->fn && !function->callback)
		return CUDA_ERROR_INVALID_VALUE;
	/* As in CUDA, a callback with a status cannot be captured. */
	if (ob_unlikely(stream->capture != NULL))
		return function->fn ? obf_capture_host(stream, function->fn, function->user)
				    : obf_capture_refuse(stream);
	return obf_ctx_result(ctx, obf_process.backend->host_function(stream, function));
}

CUresult obf_cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user)
{
	return submit(&(struct obf_host_function){ .fn = fn, .stream = stream, .user = user });
}

CUresult obf_cuStreamAddCallback(
	CUstream stream, CUstreamCallback callback, void *user, unsigned flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return submit(&(struct obf_host_function){
		.callback = callback, .stream = stream, .user = user });
}
