/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Before a kernel: pointers in its parameters, and what the program has changed. */
#include <string.h>

#include "front/mirror_inside.h"
#include "front/private.h"

static uint64_t launches; /* of kernels, with mirrors; under the lock */

/* Replaces a word that points to pinned memory. */
static void word_replace(struct obf_ctx *ctx, uint8_t *word)
{
	uint64_t value, device;
	struct obf_mem mem;

	memcpy(&value, word, sizeof value);
	if (ob_likely(value < obf_pinned_bounds.low || value >= obf_pinned_bounds.high) ||
		obf_mem_classify(value, 1, &mem).kind != OBF_PLACE_PINNED)
		return;
	/* Without room on the device the kernel gets the pointer as it is. */
	if (obf_mirror_get(ctx, &mem, value, &device) == CUDA_SUCCESS)
		memcpy(word, &device, sizeof device);
}

static bool points_to(const struct obf_mirror *mirror, const void *params, size_t size)
{
	uint64_t word;

	for (size_t at = 0; at + sizeof word <= size; at += sizeof word) {
		memcpy(&word, (const uint8_t *)params + at, sizeof word);
		if (word - mirror->device < mirror->size)
			return true;
	}
	return false;
}

static void params_replace(struct obf_ctx *ctx, const struct obf_func *func, uint8_t *packed)
{
	for (uint32_t i = 0; i < func->n_params; i++) {
		uint32_t size = func->params[i].size;
		uint8_t *param = packed + func->params[i].offset;

		if (!obf_mirror_searches(size))
			continue;
		for (uint32_t at = 0; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t))
			word_replace(ctx, param + at);
	}
}

bool obf_mirrors_replace(struct obf_ctx *ctx, const struct obf_func *func, void *packed)
{
	bool used = false;

	params_replace(ctx, func, packed);
	if (ob_likely(!atomic_load(&obf_mirrors)))
		return false;
	pthread_mutex_lock(&obf_mirror_lock);
	for (const struct obf_mirror *mirror = obf_mirror_list; mirror && !used;
		mirror = mirror->next)
		used = points_to(mirror, packed, func->param_bytes);
	pthread_mutex_unlock(&obf_mirror_lock);
	return used;
}

static CUresult context_wait(struct obf_ctx *ctx, void *user)
{
	(void)user;
	return obf_process.backend->ctx_synchronize(ctx);
}

/*
 * Waits for the kernels that may write the mirror, without the lock, because a host function before
 * them may need it.
 */
static CUresult settle(uint64_t host, struct obf_ctx *ctx)
{
	uint64_t until = launches;
	struct obf_mirror *mirror;
	CUresult result;

	pthread_mutex_unlock(&obf_mirror_lock);
	result = obf_ctx_run(ctx, context_wait, NULL);
	pthread_mutex_lock(&obf_mirror_lock);
	if ((mirror = obf_mirror_at(host)))
		mirror->settled = until;
	return result;
}

/* The kernel's stream does not wait for what was uploaded before a wait of the program. */
static CUresult pushed_wait(struct obf_ctx *ctx, void *user)
{
	struct obf_mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = obf_mirror_stream(mirror, &stream);

	(void)ctx;
	mirror->pushed = false;
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

/* Uploads what the program has changed. May release the lock for a time. */
static CUresult upload_all(const struct obf_stream *stream)
{
	struct obf_mirror *mirror = obf_mirror_list;
	CUresult result = CUDA_SUCCESS;

	while (mirror && result == CUDA_SUCCESS) {
		struct obf_ctx *ctx = mirror->ctx;
		uint64_t at = 0, size;

		if (ctx->device != stream->ctx->device) {
			mirror = mirror->next;
		} else if (!obf_mirror_changed(mirror, OBF_MIRROR_PIECE, &at, &size)) {
			result = mirror->pushed ? obf_ctx_run(ctx, pushed_wait, mirror)
						: CUDA_SUCCESS;
			mirror = mirror->next;
		} else if ((mirror->launched || mirror->maybe) && mirror->settled != launches) {
			result = settle(mirror->host, ctx);
			mirror = obf_mirror_list; /* another thread may have ended any of them */
		} else {
			result = obf_ctx_run(ctx, obf_mirror_upload, mirror);
			mirror = mirror->next;
		}
	}
	return result;
}

/* params NULL: `used` says it of all mirrors. */
static CUresult launch(struct obf_stream *stream, const void *params, size_t size, bool used)
{
	CUresult result;

	if (ob_likely(!atomic_load(&obf_mirrors)))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&obf_mirror_lock);
	result = upload_all(stream);
	launches++;
	for (struct obf_mirror *mirror = obf_mirror_list; mirror && result == CUDA_SUCCESS;
		mirror = mirror->next) {
		if (mirror->ctx->device != stream->ctx->device)
			continue;
		if (params ? !points_to(mirror, params, size) : !used) {
			mirror->maybe = true;
			continue;
		}
		mirror->stream =
			mirror->launched && mirror->stream != stream->handle ? 0 : stream->handle;
		mirror->launched = true;
	}
	pthread_mutex_unlock(&obf_mirror_lock);
	return result;
}

CUresult obf_mirrors_launch(struct obf_stream *stream, const struct obf_func *func, void *packed)
{
	params_replace(stream->ctx, func, packed);
	return launch(stream, packed, func->param_bytes, false);
}

CUresult obf_mirrors_launch_replaced(struct obf_stream *stream, bool used)
{
	return launch(stream, NULL, 0, used);
}
