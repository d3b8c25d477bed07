/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Functions of the program that a stream calls. */
#include "front/captured.h"
#include "front/mirror.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

/* Sets function->ctx. */
static CUresult submit(struct obf_host_function *function)
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
	function->ctx = ctx;
	return obf_ctx_result(ctx, obf_process.backend->host_function(stream, function));
}

void obf_host_function_run(const struct obf_host_function *function, CUresult status)
{
	bool mirrors = ob_unlikely(atomic_load(&obf_mirrors) > 0);

	obf_in_host_function = true;
	if (mirrors && status == CUDA_SUCCESS)
		status = obf_mirrors_function_begins(function->ctx);
	if (function->callback)
		function->callback(function->stream, status, function->user);
	else if (status == CUDA_SUCCESS)
		function->fn(function->user);
	/* Also if the first mirror was made meanwhile: the kernel that uses it comes behind. */
	if (status == CUDA_SUCCESS && ob_unlikely(atomic_load(&obf_mirrors) > 0))
		obf_ctx_note(function->ctx, obf_mirrors_function_ends(function->ctx));
	obf_in_host_function = false;
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
