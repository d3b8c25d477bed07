/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/twin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "front/backend.h"
#include "front/memory.h"
#include "front/private.h"
#include "front/stream.h"
#include "front/waited.h"
#include "protocol/obf_calls.h"

#define PIECE 4096u /* bytes; the unit of comparisons and uploads */

struct twin {
	uint64_t host, size, device;
	struct obf_ctx *ctx;
	CUstream transfers; /* a stream of its own, since the program's may be blocked */
	uint8_t *common;    /* the bytes that both sides last had in common */
	uint8_t *got;       /* the device's bytes while they are compared */
	/* kernels since the last download. stream: all of them were in this one, or 0 */
	bool launched;
	uint64_t stream;
	struct twin *next;
};

_Atomic unsigned obf_twins;

static struct twin *twins;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint8_t *host_of(const struct twin *twin)
{
	return (uint8_t *)(uintptr_t)twin->host; /* NOLINT(performance-no-int-to-ptr) */
}

/* ---- transfers; under the lock ---- */

static CUresult stream_of(const struct twin *twin, struct obf_stream **ret)
{
	return obf_stream_get(twin->transfers, twin->ctx, ret);
}

/* The run of pieces at or after *at that the program has changed. False: there is none. */
static bool changed_next(const struct twin *twin, uint64_t *at, uint64_t *ret_size)
{
	const uint8_t *host = host_of(twin);
	uint64_t from = *at, end;

	while (from < twin->size &&
		memcmp(host + from, twin->common + from, ob_min(PIECE, twin->size - from)) == 0)
		from += PIECE;
	end = from;
	while (end < twin->size &&
		memcmp(host + end, twin->common + end, ob_min(PIECE, twin->size - end)) != 0)
		end += PIECE;
	*at = from;
	*ret_size = ob_min(end, twin->size) - ob_min(from, twin->size);
	return *ret_size > 0;
}

/* Uploads one run. The bytes are taken once, because other threads may change them meanwhile. */
static CUresult run_upload(struct twin *twin, struct obf_stream *stream, uint64_t at, uint64_t size)
{
	memcpy(twin->common + at, host_of(twin) + at, size);
	return obf_process.backend->write(
		stream, twin->device + at, twin->common + at, size, false);
}

static CUresult download(struct obf_ctx *ctx, void *user)
{
	uint8_t *host = host_of(user);
	struct twin *twin = user;
	struct obf_stream *stream;
	CUresult result = stream_of(twin, &stream);

	(void)ctx;
	if (result == CUDA_SUCCESS)
		result = obf_process.backend->read(
			stream, twin->got, twin->device, twin->size, true);
	for (uint64_t at = 0; at < twin->size && result == CUDA_SUCCESS; at += PIECE) {
		uint64_t end = ob_min(at + PIECE, twin->size);

		if (memcmp(twin->got + at, twin->common + at, end - at) == 0)
			continue;
		for (uint64_t i = at; i < end; i++)
			if (twin->got[i] != twin->common[i])
				host[i] = twin->common[i] = twin->got[i];
	}
	return result;
}

/*
 * Before a kernel. If an earlier kernel may have changed the device's side too, both changes are
 * joined first.
 */
static CUresult upload(struct obf_ctx *ctx, void *user)
{
	struct twin *twin = user;
	struct obf_stream *stream;
	CUresult result = stream_of(twin, &stream);
	uint64_t at = 0, size;
	bool any = false;

	if (result != CUDA_SUCCESS || !changed_next(twin, &at, &size))
		return result;
	if (twin->launched) {
		result = obf_process.backend->ctx_synchronize(ctx);
		if (result == CUDA_SUCCESS)
			result = download(ctx, twin);
	}
	for (; result == CUDA_SUCCESS && changed_next(twin, &at, &size); at += size) {
		result = run_upload(twin, stream, at, size);
		any = true;
	}
	/* Kernels in all streams may use the bytes. */
	return any && result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

/* ---- making and ending ---- */

/* The program may see now what kernels have written. */
static CUresult waited(const struct obf_stream *stream, bool all)
{
	CUresult result = CUDA_SUCCESS;

	if (obf_in_host_function)
		return result;
	pthread_mutex_lock(&lock);
	for (struct twin *twin = twins; twin && result == CUDA_SUCCESS; twin = twin->next) {
		if (!twin->launched)
			continue;
		result = obf_ctx_run(twin->ctx, download, twin);
		/* Kernels that were not waited for may still write. */
		if (result == CUDA_SUCCESS)
			twin->launched =
				!all && !(stream && twin->stream && twin->stream == stream->handle);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static struct twin *twin_at(uint64_t host)
{
	struct twin *twin = twins;

	while (twin && host - twin->host >= twin->size)
		twin = twin->next;
	return twin;
}

static void twin_free(struct twin *twin)
{
	struct obf_mem mem;

	if (twin->device && obf_mem_remove(twin->device, &mem))
		obf_memory_give(twin->ctx, &mem, true);
	free(twin->common);
	free(twin->got);
	free(twin);
}

static CUresult twin_fill(struct obf_ctx *ctx, void *user)
{
	struct twin *twin = user;
	struct obf_mem mem = {
		.size = twin->size,
		.kind = OBF_MEM_DEVICE,
		.device = ctx->device,
		.ctx = ctx,
		.is_global = true, /* cuMemFree refuses it */
	};
	struct obf_stream *stream;
	CUresult result;

	result = obf_cuStreamCreate(&twin->transfers, CU_STREAM_NON_BLOCKING);
	if (result == CUDA_SUCCESS)
		result = obf_process.backend->mem_alloc(ctx, &mem);
	if (result != CUDA_SUCCESS)
		return result;
	if (!obf_mem_insert(&mem)) {
		obf_process.backend->mem_free(ctx, &mem, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	twin->device = mem.base;
	result = stream_of(twin, &stream);
	if (result == CUDA_SUCCESS)
		result = run_upload(twin, stream, 0, twin->size);
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

static CUresult twin_new(const struct obf_mem *mem, struct twin **ret)
{
	struct twin *twin = calloc(1, sizeof *twin);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!twin)
		return result;
	twin->host = mem->base;
	twin->size = mem->size;
	twin->ctx = mem->ctx;
	twin->common = malloc(mem->size);
	twin->got = malloc(mem->size);
	if (twin->common && twin->got)
		result = obf_ctx_run(mem->ctx, twin_fill, twin);
	if (result != CUDA_SUCCESS) {
		if (twin->transfers)
			obf_cuStreamDestroy_v2(twin->transfers);
		twin_free(twin);
		return result;
	}
	twin->next = twins;
	twins = *ret = twin;
	atomic_fetch_add(&obf_twins, 1);
	atomic_store(&obf_waited_listener, waited);
	return CUDA_SUCCESS;
}

CUresult obf_twin_get(
	struct obf_ctx *ctx, const struct obf_mem *mem, uint64_t addr, uint64_t *ret_device)
{
	CUresult result = CUDA_SUCCESS;
	struct twin *twin;

	(void)ctx;
	pthread_mutex_lock(&lock);
	twin = twin_at(mem->base);
	if (!twin)
		result = twin_new(mem, &twin);
	if (result == CUDA_SUCCESS)
		*ret_device = twin->device + (addr - twin->host);
	pthread_mutex_unlock(&lock);
	return result;
}

void obf_twin_end(uint64_t base)
{
	struct twin **link = &twins, *twin;

	if (ob_likely(!atomic_load(&obf_twins)))
		return;
	pthread_mutex_lock(&lock);
	while (*link && (*link)->host != base)
		link = &(*link)->next;
	twin = *link;
	if (twin) {
		*link = twin->next;
		atomic_fetch_sub(&obf_twins, 1);
	}
	pthread_mutex_unlock(&lock);
	if (!twin)
		return;
	obf_cuStreamDestroy_v2(twin->transfers);
	twin_free(twin);
}

/* ---- kernels ---- */

/* Replaces a word that points to pinned memory. */
static CUresult word_replace(struct obf_stream *stream, uint8_t *word)
{
	uint64_t value, device;
	struct obf_mem mem;

	memcpy(&value, word, sizeof value);
	if (ob_likely(value < obf_pinned_bounds.low || value >= obf_pinned_bounds.high) ||
		obf_mem_classify(value, 1, &mem).kind != OBF_PLACE_PINNED)
		return CUDA_SUCCESS;
	/* Without room on the device the kernel gets the pointer as it is. */
	if (obf_twin_get(stream->ctx, &mem, value, &device) == CUDA_SUCCESS)
		memcpy(word, &device, sizeof device);
	return CUDA_SUCCESS;
}

CUresult obf_twins_launch(struct obf_stream *stream, void *params, size_t size)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t at = 0; at + sizeof(uint64_t) <= size && result == CUDA_SUCCESS;
		at += sizeof(uint64_t))
		result = word_replace(stream, (uint8_t *)params + at);
	if (ob_likely(!atomic_load(&obf_twins)))
		return result;
	pthread_mutex_lock(&lock);
	for (struct twin *twin = twins; twin && result == CUDA_SUCCESS; twin = twin->next) {
		if (twin->ctx->device != stream->ctx->device)
			continue;
		result = obf_ctx_run(twin->ctx, upload, twin);
		twin->stream =
			twin->launched && twin->stream != stream->handle ? 0 : stream->handle;
		twin->launched = true;
	}
	pthread_mutex_unlock(&lock);
	return result;
}
