/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/mirror.h"

#include <stdlib.h>

#include "base/clock.h"
#include "front/memory.h"
#include "front/mirror_inside.h"
#include "front/private.h"
#include "front/waited.h"
#include "protocol/obf_calls.h"

#define COMPARED_FREE (64u << 10) /* bytes that each question of the program may compare */
#define COMPARED_REST 16u         /* times as long as a longer comparison none follows */

_Atomic unsigned obf_mirrors;
_Atomic unsigned obf_mirror_ends;

struct obf_mirror *obf_mirror_list;
pthread_mutex_t obf_mirror_lock = PTHREAD_MUTEX_INITIALIZER;

struct obf_mirror *obf_mirror_at(uint64_t host)
{
	struct obf_mirror *mirror = obf_mirror_list;

	while (mirror && host - mirror->host >= mirror->size)
		mirror = mirror->next;
	return mirror;
}

/* ---- while the program waits ---- */

/*
 * Programs ask again and again, and a comparison of much memory takes longer than an answer: questions
 * spend a small part of their time in it.
 */
static void waits(bool asks)
{
	static uint64_t rest_until; /* under the lock */
	uint64_t compared = 0, begun;

	if (obf_in_host_function)
		return;
	pthread_mutex_lock(&obf_mirror_lock);
	begun = asks && rest_until ? ob_clock_ns() : 0;
	for (struct obf_mirror *mirror = begun < rest_until && asks ? NULL : obf_mirror_list;
		mirror; mirror = mirror->next) {
		uint64_t at = 0, size;

		if (!mirror->launched)
			continue;
		compared += mirror->size;
		if (!begun && compared > COMPARED_FREE)
			begun = ob_clock_ns();
		if (obf_mirror_changed(mirror, OBF_MIRROR_PIECE, &at, &size))
			obf_ctx_run(mirror->ctx, obf_mirror_push_words, mirror);
	}
	if (compared > COMPARED_FREE) {
		uint64_t now = ob_clock_ns();

		rest_until = now + COMPARED_REST * (now - begun);
	} else if (compared) {
		rest_until = 0;
	}
	pthread_mutex_unlock(&obf_mirror_lock);
}

/* The program may see now what kernels have written. */
static CUresult waited(const struct obf_stream *stream, bool all)
{
	CUresult result = CUDA_SUCCESS;

	if (obf_in_host_function)
		return result;
	pthread_mutex_lock(&obf_mirror_lock);
	for (struct obf_mirror *mirror = obf_mirror_list; mirror && result == CUDA_SUCCESS;
		mirror = mirror->next) {
		if (!mirror->launched && !(all && mirror->maybe))
			continue;
		result = obf_ctx_run(mirror->ctx, obf_mirror_download, mirror);
		if (result == CUDA_SUCCESS && all)
			mirror->maybe = false;
		/* Kernels that were not waited for may still write. */
		if (result == CUDA_SUCCESS)
			mirror->launched = !all &&
				!(stream && mirror->stream && mirror->stream == stream->handle);
	}
	pthread_mutex_unlock(&obf_mirror_lock);
	return result;
}

/* ---- making and ending ---- */

static void mirror_free(struct obf_mirror *mirror)
{
	struct obf_mem mem;

	if (mirror->device && obf_mem_remove(mirror->device, &mem))
		obf_memory_give(mirror->ctx, &mem, true);
	free(mirror->common);
	free(mirror->got);
	free(mirror);
}

static CUresult mirror_fill(struct obf_ctx *ctx, void *user)
{
	struct obf_mirror *mirror = user;
	struct obf_mem mem = {
		.size = mirror->size,
		.kind = OBF_MEM_DEVICE,
		.device = ctx->device,
		.ctx = ctx,
		.is_global = true, /* cuMemFree refuses it */
	};
	struct obf_stream *stream;
	CUresult result;

	/* Not obf_cuStreamCreate: a stream of a green context that is current would end with it. */
	result = obf_stream_new(ctx, NULL, CU_STREAM_NON_BLOCKING, 0, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	mirror->transfers = (CUstream)(uintptr_t)stream->handle;
	result = obf_process.backend->mem_alloc(ctx, &mem);
	if (result != CUDA_SUCCESS)
		return result;
	if (!obf_mem_insert(&mem)) {
		obf_process.backend->mem_free(ctx, &mem, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	mirror->device = mem.base;
	result = obf_mirror_stream(mirror, &stream);
	if (result == CUDA_SUCCESS)
		result = obf_mirror_run_upload(mirror, stream, 0, mirror->size);
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

/* Whether kernels on a device of another server use a part of the same file. */
static bool is_elsewhere(const struct obf_mirror *mirror, int device)
{
	const struct obf_mirror *other = obf_mirror_list;

	while (other &&
		!(obf_backing_meets(&mirror->backing, mirror->size, &other->backing, other->size) &&
			obf_process.backend->apart(device, other->ctx->device)))
		other = other->next;
	return other != NULL;
}

static CUresult mirror_new(const struct obf_mem *mem, struct obf_mirror **ret)
{
	struct obf_mirror *mirror = calloc(1, sizeof *mirror);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!mirror)
		return result;
	mirror->size = mem->size;
	if (obf_process.backend->apart)
		obf_backing_find(mem->base, &mirror->backing);
	if (is_elsewhere(mirror, mem->ctx->device)) {
		free(mirror);
		return obf_absent("host memory in which kernels on devices of two servers meet",
			"each server has a copy of it, so kernels that wait for each other, as "
			"those "
			"of NCCL's collectives do, would not end. Use devices of one server "
			"('outboard run --one-server'), and cudaMemcpyPeer between servers");
	}
	mirror->host = mem->base;
	mirror->ctx = mem->ctx;
	mirror->common = malloc(mem->size);
	mirror->got = malloc(mem->size);
	if (mirror->common && mirror->got)
		result = obf_ctx_run(mem->ctx, mirror_fill, mirror);
	if (result != CUDA_SUCCESS) {
		if (mirror->transfers)
			obf_cuStreamDestroy_v2(mirror->transfers);
		mirror_free(mirror);
		return result;
	}
	mirror->next = obf_mirror_list;
	obf_mirror_list = *ret = mirror;
	atomic_fetch_add(&obf_mirrors, 1);
	atomic_store(&obf_waited_listener, waited);
	atomic_store(&obf_waits_listener, waits);
	return obf_process.backend->host_functions_transfer
		? obf_process.backend->host_functions_transfer()
		: CUDA_SUCCESS;
}

CUresult obf_mirror_get(
	struct obf_ctx *ctx, const struct obf_mem *mem, uint64_t addr, uint64_t *ret_device)
{
	const struct obf_backend *backend = obf_process.backend;
	CUresult result = CUDA_SUCCESS;
	struct obf_mirror *mirror;

	if (backend->apart && backend->apart(ctx->device, mem->ctx->device))
		return obf_absent("pinned memory in kernels on devices of two servers",
			"the memory is mapped for the devices of one server only: allocate or "
			"register it while a device of the other server is current, or copy it");
	pthread_mutex_lock(&obf_mirror_lock);
	mirror = obf_mirror_at(mem->base);
	if (!mirror)
		result = mirror_new(mem, &mirror);
	if (result == CUDA_SUCCESS)
		*ret_device = mirror->device + (addr - mirror->host);
	pthread_mutex_unlock(&obf_mirror_lock);
	return result;
}

void obf_mirror_end(uint64_t base)
{
	struct obf_mirror **link = &obf_mirror_list, *mirror;

	if (ob_likely(!atomic_load(&obf_mirrors)))
		return;
	pthread_mutex_lock(&obf_mirror_lock);
	while (*link && (*link)->host != base)
		link = &(*link)->next;
	mirror = *link;
	if (mirror) {
		*link = mirror->next;
		atomic_fetch_sub(&obf_mirrors, 1);
		atomic_fetch_add(&obf_mirror_ends, 1);
	}
	pthread_mutex_unlock(&obf_mirror_lock);
	if (!mirror)
		return;
	/* The program may read what the last kernels have written. */
	if ((mirror->launched || mirror->maybe) && atomic_load(&mirror->ctx->active))
		obf_ctx_run(mirror->ctx, obf_mirror_download, mirror);
	obf_cuStreamDestroy_v2(mirror->transfers);
	mirror_free(mirror);
}

/* ---- copies ---- */

CUresult obf_mirrors_fetch(struct obf_stream *stream, uint64_t host)
{
	const struct obf_mirror *mirror;
	bool launched;

	pthread_mutex_lock(&obf_mirror_lock);
	mirror = obf_mirror_at(host);
	launched = mirror && mirror->launched;
	pthread_mutex_unlock(&obf_mirror_lock);
	return launched ? obf_waited(obf_process.backend->stream_wait(stream), stream, false)
			: CUDA_SUCCESS;
}

/* The bytes may arrive in the background, and a launch uploads what is there by then. */
CUresult obf_mirrors_written(struct obf_stream *stream, uint64_t host)
{
	bool found;

	pthread_mutex_lock(&obf_mirror_lock);
	found = obf_mirror_at(host) != NULL;
	pthread_mutex_unlock(&obf_mirror_lock);
	return found ? obf_process.backend->stream_wait(stream) : CUDA_SUCCESS;
}

/* ---- host functions ---- */

/* An error of another context does not concern the function. Contexts that end are left out. */
static CUresult transfer_all(const struct obf_ctx *ctx, bool launched,
	CUresult (*transfer)(struct obf_ctx *ctx, void *user))
{
	CUresult result = CUDA_SUCCESS, one;

	pthread_mutex_lock(&obf_mirror_lock);
	for (struct obf_mirror *mirror = obf_mirror_list; mirror && result == CUDA_SUCCESS;
		mirror = mirror->next) {
		if (mirror->ctx->device != ctx->device || !atomic_load(&mirror->ctx->active) ||
			(launched && !mirror->launched))
			continue;
		one = obf_ctx_run(mirror->ctx, transfer, mirror);
		obf_ctx_note(mirror->ctx, one);
		if (mirror->ctx == ctx)
			result = one;
	}
	pthread_mutex_unlock(&obf_mirror_lock);
	return result;
}

CUresult obf_mirrors_function_begins(const struct obf_ctx *ctx)
{
	return transfer_all(ctx, true, obf_mirror_download);
}

CUresult obf_mirrors_function_ends(const struct obf_ctx *ctx)
{
	return transfer_all(ctx, false, obf_mirror_upload_words);
}
