/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>

#include "client-shim/cuda/device.h"
#include "client-shim/cuda/shared_inside.h"
#include "protocol/obf_calls.h"

bool obc_home_alive(const struct obc_home *home)
{
	/* The program does not know the stream, so it ends with the context. */
	return ob_ids_get(&obf_stream_ids, (uint64_t)(uintptr_t)home->stream) != NULL;
}

bool obc_home_here(const struct obc_home *home)
{
	return obc_device_server(home->ctx->device) == obc_server_number();
}

struct obc_stream *obc_home_stream(const struct obc_home *home)
{
	struct obf_stream *stream = ob_ids_get(&obf_stream_ids, (uint64_t)(uintptr_t)home->stream);

	return stream ? obc_stream_of(stream) : NULL;
}

bool obc_home_blocked(struct obc_home *home)
{
	struct obc_stream *at = home->ordered ? obc_home_stream(home) : NULL;

	if (at && obf_attached()->stream_query(&at->base) != CUDA_ERROR_NOT_READY)
		home->ordered = false;
	return home->ordered;
}

struct obc_stream *obc_home_transfers(struct obc_home *home)
{
	struct obc_stream *at = obc_home_stream(home);
	struct obf_stream *stream;

	if (!at || !obf_in_host_function || !obc_home_blocked(home))
		return at;
	stream = ob_ids_get(&obf_stream_ids, (uint64_t)(uintptr_t)home->prompt);
	if (!stream &&
		obf_stream_new(home->ctx, NULL, CU_STREAM_NON_BLOCKING, 0, &stream) != CUDA_SUCCESS)
		return NULL;
	home->prompt = (CUstream)(uintptr_t)stream->handle;
	return obc_stream_of(stream);
}

/* Makes the stream, which is none of a green context that is current, and the event. */
static bool home_open(struct obf_ctx *ctx, struct obc_home *home)
{
	struct obf_stream *stream;

	home->pending = home->ordered = home->prompt_pending = false;
	home->prompt = NULL;
	home->uploads = 0;
	if (obf_stream_new(ctx, NULL, CU_STREAM_NON_BLOCKING, 0, &stream) != CUDA_SUCCESS)
		return false;
	home->stream = (CUstream)(uintptr_t)stream->handle;
	if (obf_cuEventCreate(&home->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) {
		if (obf_cuEventCreate(&home->order, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
			return true;
		obf_cuEventDestroy_v2(home->event);
	}
	obf_cuStreamDestroy_v2(home->stream);
	return false;
}

struct obc_home *obc_home_of(struct obf_ctx *ctx)
{
	struct obc_home *home = obc_shareds.homes;

	while (home && home->ctx != ctx)
		home = home->next;
	if (home)
		return obc_home_alive(home) || home_open(ctx, home) ? home : NULL;
	home = calloc(1, sizeof *home);
	if (!home || !home_open(ctx, home)) {
		free(home);
		return NULL;
	}
	home->ctx = ctx;
	home->next = obc_shareds.homes;
	obc_shareds.homes = home;
	return home;
}

CUresult obc_home_gate(struct obc_stream *at)
{
	CUresult result = CUDA_SUCCESS;

	for (struct obc_home *home = obc_shareds.homes; home && result == CUDA_SUCCESS;
		home = home->next) {
		if (!obc_home_alive(home) || !obc_home_here(home))
			continue;
		if (home->pending) {
			result = obf_cuEventRecord(home->event, home->stream);
			home->uploads = ++obc_shareds.uploads;
			home->pending = false;
		}
		if (result == CUDA_SUCCESS && home->uploads > at->uploads_seen)
			result = obf_cuStreamWaitEvent(at->base.legacy
					? CU_STREAM_LEGACY
					: (CUstream)(uintptr_t)at->base.handle,
				home->event, 0);
	}
	if (result == CUDA_SUCCESS)
		at->uploads_seen = obc_shareds.uploads;
	return result;
}
