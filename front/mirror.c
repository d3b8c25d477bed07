/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/mirror.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/backend.h"
#include "front/backing.h"
#include "front/memory.h"
#include "front/private.h"
#include "front/stream.h"
#include "front/waited.h"
#include "protocol/obf_calls.h"

#define PIECE         4096u       /* bytes; the unit of comparisons and uploads */
#define WORD          4u          /* bytes; the unit of uploads after a host function */
#define COMPARED_FREE (64u << 10) /* bytes that each question of the program may compare */
#define COMPARED_REST 16u         /* times as long as a longer comparison none follows */
#define WORD_RUNS     64u /* uploads of that kind after one function; further ones are of pieces */

struct mirror {
	uint64_t host, size, device;
	struct obf_ctx *ctx;
	CUstream transfers; /* a stream of its own, since the program's may be blocked */
	uint8_t *common;    /* the bytes that both sides last had in common */
	uint8_t *got;       /* the device's bytes while they are compared */
	/* with several servers; inode 0: the memory is not shared */
	struct obf_backing backing;
	/* kernels since the last download. stream: all of them were in this one, or 0 */
	bool launched;
	uint64_t stream;
	/*
	 * Kernels since the last download that have no parameter which points here. They may have got
	 * a pointer from device memory.
	 */
	bool maybe;
	bool pushed;      /* uploads since that no launch has waited for */
	uint64_t settled; /* the launches up to this number have been waited for */
	struct mirror *next;
};

_Atomic unsigned obf_mirrors;
_Atomic unsigned obf_mirror_ends;

static struct mirror *mirrors;
static uint64_t launches; /* of kernels, with mirrors */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint8_t *host_of(const struct mirror *mirror)
{
	return (uint8_t *)(uintptr_t)mirror->host; /* NOLINT(performance-no-int-to-ptr) */
}

/* ---- transfers; under the lock ---- */

static CUresult stream_of(const struct mirror *mirror, struct obf_stream **ret)
{
	return obf_stream_get(mirror->transfers, mirror->ctx, ret);
}

static bool differs(const struct mirror *mirror, uint64_t at, uint64_t size)
{
	return memcmp(host_of(mirror) + at, mirror->common + at, ob_min(size, mirror->size - at)) !=
		0;
}

/* The run of units at or after *at that the program has changed. False: there is none. */
static bool changed_next(
	const struct mirror *mirror, uint32_t unit, uint64_t *at, uint64_t *ret_size)
{
	uint64_t from = *at, end;

	while (from < mirror->size && !differs(mirror, from, PIECE))
		from += PIECE;
	while (from < mirror->size && !differs(mirror, from, unit))
		from += unit;
	end = from;
	while (end < mirror->size && differs(mirror, end, unit))
		end += unit;
	*at = from;
	*ret_size = ob_min(end, mirror->size) - ob_min(from, mirror->size);
	return *ret_size > 0;
}

/* Uploads one run. The bytes are taken once, because other threads may change them meanwhile. */
static CUresult run_upload(
	struct mirror *mirror, struct obf_stream *stream, uint64_t at, uint64_t size)
{
	memcpy(mirror->common + at, host_of(mirror) + at, size);
	return obf_process.backend->write(
		stream, mirror->device + at, mirror->common + at, size, false);
}

static CUresult download(struct obf_ctx *ctx, void *user)
{
	uint8_t *host = host_of(user);
	struct mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = stream_of(mirror, &stream);

	(void)ctx;
	if (result == CUDA_SUCCESS)
		result = obf_process.backend->read(
			stream, mirror->got, mirror->device, mirror->size, true);
	if (result == CUDA_SUCCESS)
		mirror->pushed = false; /* the same stream */
	for (uint64_t at = 0; at < mirror->size && result == CUDA_SUCCESS; at += PIECE) {
		uint64_t end = ob_min(at + PIECE, mirror->size);

		if (memcmp(mirror->got + at, mirror->common + at, end - at) == 0)
			continue;
		for (uint64_t i = at; i < end; i++)
			if (mirror->got[i] != mirror->common[i])
				host[i] = mirror->common[i] = mirror->got[i];
	}
	return result;
}

/*
 * Before a kernel. If earlier kernels, which are complete, may have changed the device's side too, both
 * changes are joined first.
 */
static CUresult upload(struct obf_ctx *ctx, void *user)
{
	struct mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = stream_of(mirror, &stream);
	uint64_t at = 0, size;

	if (result == CUDA_SUCCESS && (mirror->launched || mirror->maybe))
		result = download(ctx, mirror);
	for (; result == CUDA_SUCCESS && changed_next(mirror, PIECE, &at, &size); at += size)
		result = run_upload(mirror, stream, at, size);
	/* Kernels in all streams may use the bytes. */
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

/*
 * After a host function. Kernels in other streams may be writing next to what it has changed, so only
 * changed words are uploaded as long as they are in few runs.
 */
static CUresult upload_words(struct obf_ctx *ctx, void *user)
{
	struct mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = stream_of(mirror, &stream);
	uint64_t at = 0, size;
	unsigned runs = 0;

	for (; result == CUDA_SUCCESS &&
		changed_next(mirror, runs < WORD_RUNS ? WORD : PIECE, &at, &size);
		at += size) {
		if (runs++ == WORD_RUNS && (mirror->launched || mirror->maybe))
			result = download(ctx, mirror);
		if (result == CUDA_SUCCESS)
			result = run_upload(mirror, stream, at, size);
	}
	if (!runs && !mirror->pushed)
		return result;
	mirror->pushed = false;
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

/*
 * Before the program waits: what it has changed, for kernels that run and wait for it. No error is
 * returned, because the wait returns it. What is in too many runs is left to the next launch.
 */
static CUresult push_words(struct obf_ctx *ctx, void *user)
{
	struct mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = stream_of(mirror, &stream);
	uint64_t at = 0, size;

	(void)ctx;
	for (unsigned runs = 0; runs < WORD_RUNS && result == CUDA_SUCCESS &&
		changed_next(mirror, WORD, &at, &size);
		runs++, at += size)
		result = run_upload(mirror, stream, at, size);
	mirror->pushed = true;
	return result;
}

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
	pthread_mutex_lock(&lock);
	begun = asks && rest_until ? ob_clock_ns() : 0;
	for (struct mirror *mirror = begun < rest_until && asks ? NULL : mirrors; mirror;
		mirror = mirror->next) {
		uint64_t at = 0, size;

		if (!mirror->launched)
			continue;
		compared += mirror->size;
		if (!begun && compared > COMPARED_FREE)
			begun = ob_clock_ns();
		if (changed_next(mirror, PIECE, &at, &size))
			obf_ctx_run(mirror->ctx, push_words, mirror);
	}
	if (compared > COMPARED_FREE) {
		uint64_t now = ob_clock_ns();

		rest_until = now + COMPARED_REST * (now - begun);
	} else if (compared) {
		rest_until = 0;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- making and ending ---- */

/* The program may see now what kernels have written. */
static CUresult waited(const struct obf_stream *stream, bool all)
{
	CUresult result = CUDA_SUCCESS;

	if (obf_in_host_function)
		return result;
	pthread_mutex_lock(&lock);
	for (struct mirror *mirror = mirrors; mirror && result == CUDA_SUCCESS;
		mirror = mirror->next) {
		if (!mirror->launched && !(all && mirror->maybe))
			continue;
		result = obf_ctx_run(mirror->ctx, download, mirror);
		if (result == CUDA_SUCCESS && all)
			mirror->maybe = false;
		/* Kernels that were not waited for may still write. */
		if (result == CUDA_SUCCESS)
			mirror->launched = !all &&
				!(stream && mirror->stream && mirror->stream == stream->handle);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static struct mirror *mirror_at(uint64_t host)
{
	struct mirror *mirror = mirrors;

	while (mirror && host - mirror->host >= mirror->size)
		mirror = mirror->next;
	return mirror;
}

static void mirror_free(struct mirror *mirror)
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
	struct mirror *mirror = user;
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
	result = stream_of(mirror, &stream);
	if (result == CUDA_SUCCESS)
		result = run_upload(mirror, stream, 0, mirror->size);
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

/* Whether kernels on a device of another server use a part of the same file. */
static bool is_elsewhere(const struct mirror *mirror, int device)
{
	const struct mirror *other = mirrors;

	while (other &&
		!(obf_backing_meets(&mirror->backing, mirror->size, &other->backing, other->size) &&
			obf_process.backend->apart(device, other->ctx->device)))
		other = other->next;
	return other != NULL;
}

static CUresult mirror_new(const struct obf_mem *mem, struct mirror **ret)
{
	struct mirror *mirror = calloc(1, sizeof *mirror);
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
	mirror->next = mirrors;
	mirrors = *ret = mirror;
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
	struct mirror *mirror;

	if (backend->apart && backend->apart(ctx->device, mem->ctx->device))
		return obf_absent("pinned memory in kernels on devices of two servers",
			"the memory is mapped for the devices of one server only: allocate or "
			"register it while a device of the other server is current, or copy it");
	pthread_mutex_lock(&lock);
	mirror = mirror_at(mem->base);
	if (!mirror)
		result = mirror_new(mem, &mirror);
	if (result == CUDA_SUCCESS)
		*ret_device = mirror->device + (addr - mirror->host);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obf_mirrors_fetch(struct obf_stream *stream, uint64_t host)
{
	const struct mirror *mirror;
	bool launched;

	pthread_mutex_lock(&lock);
	mirror = mirror_at(host);
	launched = mirror && mirror->launched;
	pthread_mutex_unlock(&lock);
	return launched ? obf_waited(obf_process.backend->stream_wait(stream), stream, false)
			: CUDA_SUCCESS;
}

/* The bytes may arrive in the background, and a launch uploads what is there by then. */
CUresult obf_mirrors_written(struct obf_stream *stream, uint64_t host)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = mirror_at(host) != NULL;
	pthread_mutex_unlock(&lock);
	return found ? obf_process.backend->stream_wait(stream) : CUDA_SUCCESS;
}

void obf_mirror_end(uint64_t base)
{
	struct mirror **link = &mirrors, *mirror;

	if (ob_likely(!atomic_load(&obf_mirrors)))
		return;
	pthread_mutex_lock(&lock);
	while (*link && (*link)->host != base)
		link = &(*link)->next;
	mirror = *link;
	if (mirror) {
		*link = mirror->next;
		atomic_fetch_sub(&obf_mirrors, 1);
		atomic_fetch_add(&obf_mirror_ends, 1);
	}
	pthread_mutex_unlock(&lock);
	if (!mirror)
		return;
	/* The program may read what the last kernels have written. */
	if ((mirror->launched || mirror->maybe) && atomic_load(&mirror->ctx->active))
		obf_ctx_run(mirror->ctx, download, mirror);
	obf_cuStreamDestroy_v2(mirror->transfers);
	mirror_free(mirror);
}

/* ---- kernels ---- */

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

static bool points_to(const struct mirror *mirror, const void *params, size_t size)
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
	pthread_mutex_lock(&lock);
	for (const struct mirror *mirror = mirrors; mirror && !used; mirror = mirror->next)
		used = points_to(mirror, packed, func->param_bytes);
	pthread_mutex_unlock(&lock);
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
	struct mirror *mirror;
	CUresult result;

	pthread_mutex_unlock(&lock);
	result = obf_ctx_run(ctx, context_wait, NULL);
	pthread_mutex_lock(&lock);
	if ((mirror = mirror_at(host)))
		mirror->settled = until;
	return result;
}

/* The kernel's stream does not wait for what was uploaded before a wait of the program. */
static CUresult pushed_wait(struct obf_ctx *ctx, void *user)
{
	struct mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = stream_of(mirror, &stream);

	(void)ctx;
	mirror->pushed = false;
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

/* Uploads what the program has changed. May release the lock for a time. */
static CUresult upload_all(const struct obf_stream *stream)
{
	struct mirror *mirror = mirrors;
	CUresult result = CUDA_SUCCESS;

	while (mirror && result == CUDA_SUCCESS) {
		struct obf_ctx *ctx = mirror->ctx;
		uint64_t at = 0, size;

		if (ctx->device != stream->ctx->device) {
			mirror = mirror->next;
		} else if (!changed_next(mirror, PIECE, &at, &size)) {
			result = mirror->pushed ? obf_ctx_run(ctx, pushed_wait, mirror)
						: CUDA_SUCCESS;
			mirror = mirror->next;
		} else if ((mirror->launched || mirror->maybe) && mirror->settled != launches) {
			result = settle(mirror->host, ctx);
			mirror = mirrors; /* another thread may have ended any of them */
		} else {
			result = obf_ctx_run(ctx, upload, mirror);
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
	pthread_mutex_lock(&lock);
	result = upload_all(stream);
	launches++;
	for (struct mirror *mirror = mirrors; mirror && result == CUDA_SUCCESS;
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
	pthread_mutex_unlock(&lock);
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

/* ---- host functions ---- */

/* An error of another context does not concern the function. Contexts that end are left out. */
static CUresult transfer_all(const struct obf_ctx *ctx, bool launched,
	CUresult (*transfer)(struct obf_ctx *ctx, void *user))
{
	CUresult result = CUDA_SUCCESS, one;

	pthread_mutex_lock(&lock);
	for (struct mirror *mirror = mirrors; mirror && result == CUDA_SUCCESS;
		mirror = mirror->next) {
		if (mirror->ctx->device != ctx->device || !atomic_load(&mirror->ctx->active) ||
			(launched && !mirror->launched))
			continue;
		one = obf_ctx_run(mirror->ctx, transfer, mirror);
		obf_ctx_note(mirror->ctx, one);
		if (mirror->ctx == ctx)
			result = one;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obf_mirrors_function_begins(const struct obf_ctx *ctx)
{
	return transfer_all(ctx, true, download);
}

CUresult obf_mirrors_function_ends(const struct obf_ctx *ctx)
{
	return transfer_all(ctx, false, upload_words);
}
