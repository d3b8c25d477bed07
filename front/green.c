/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/green.h"

#include "base/ids.h"
#include "front/private.h"
#include "front/stream.h"

/* Handles of streams that ended with their green context: the last ones. */
#define DEAD_MAX 1024u

static struct ob_ids green_ids = OB_IDS_INIT(OBF_KIND_GREEN, OBF_GREEN_MAX);
static _Atomic unsigned long long next_id = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;     /* taken, dead, n_dead */
static pthread_mutex_t end_lock = PTHREAD_MUTEX_INITIALIZER; /* one green context ends at a time */
static struct obf_green greens[OBF_GREEN_MAX];
static bool taken[OBF_GREEN_MAX];
static uint64_t dead[DEAD_MAX];
static uint64_t n_dead;

struct obf_green *obf_green_find(CUgreenCtx handle)
{
	return ob_ids_get(&green_ids, (uint64_t)(uintptr_t)handle);
}

CUcontext obf_green_context(struct obf_green *green)
{
	atomic_store_explicit(&green->converted, true, memory_order_relaxed);
	return (CUcontext)green->handle;
}

struct obf_ctx *obf_green_ctx(const struct obf_green *green)
{
	return &green->primary->pub;
}

struct obf_context *obf_green_primary(CUcontext handle)
{
	struct obf_green *green = obf_green_find((CUgreenCtx)handle);

	return green && atomic_load_explicit(&green->converted, memory_order_relaxed)
		? green->primary
		: NULL;
}

struct obf_green *obf_green_in_thread(const struct obf_ctx *ctx)
{
	struct obf_green *green = obf_green_find((CUgreenCtx)obf_stack_handle());

	return green && &green->primary->pub == ctx ? green : NULL;
}

/* ---- streams ---- */

struct obf_stream *obf_stream_default(struct obf_ctx *ctx)
{
	const struct obf_green *green = obf_green_in_thread(ctx);

	return green ? green->stream : ctx->legacy;
}

CUresult obf_stream_missing(uint64_t handle)
{
	CUresult result = CUDA_ERROR_INVALID_HANDLE;

	pthread_mutex_lock(&lock);
	for (uint64_t i = 0; i < ob_min(n_dead, (uint64_t)DEAD_MAX); i++)
		if (dead[i] == handle && handle)
			result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	pthread_mutex_unlock(&lock);
	return result;
}

static void stream_died(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	dead[n_dead++ % DEAD_MAX] = handle;
	pthread_mutex_unlock(&lock);
}

struct search {
	const struct obf_green *green;
	uint64_t handle;
};

/* Finds a handle of the green context's streams, further handles before the first one. */
static void stream_find(void *user, uint64_t id, void *value)
{
	const struct obf_stream *stream = value;
	struct search *search = user;

	if (stream->green == search->green &&
		(!search->handle || (stream->handle != id && stream == search->green->stream)))
		search->handle = id;
}

static void streams_end(const struct obf_green *green)
{
	for (;;) {
		struct search search = { .green = green };

		ob_ids_each(&obf_stream_ids, stream_find, &search);
		if (!search.handle)
			return;
		stream_died(search.handle);
		obf_stream_end(search.handle);
	}
}

/* ---- life ---- */

static struct obf_green *green_take(void)
{
	struct obf_green *green = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < OBF_GREEN_MAX && !green; i++)
		if (!taken[i]) {
			taken[i] = true;
			green = &greens[i];
		}
	pthread_mutex_unlock(&lock);
	return green;
}

static void green_give(struct obf_green *green)
{
	pthread_mutex_lock(&lock);
	taken[green - greens] = false;
	pthread_mutex_unlock(&lock);
}

static CUresult green_begin(struct obf_green *green, const struct obf_sm_share *share)
{
	struct obf_ctx *ctx = &green->primary->pub;
	CUresult result = obf_process.backend->green_create(green, share);

	if (result != CUDA_SUCCESS)
		return result;
	result = obf_stream_new(ctx, green, CU_STREAM_NON_BLOCKING, 0, &green->stream);
	if (result != CUDA_SUCCESS)
		obf_process.backend->green_destroy(green);
	else /* what the program reads back; it does wait for streams made with the same flag */
		green->stream->flags = CU_STREAM_DEFAULT;
	return result;
}

CUresult obf_green_new(const struct obf_sm_share *share, struct obf_green **ret)
{
	struct obf_green *green = green_take();
	CUresult result;

	if (!green)
		return CUDA_ERROR_OUT_OF_MEMORY;
	green->stream = green->gate = NULL;
	green->sms = share->sms;
	green->id = atomic_fetch_add(&next_id, 1);
	atomic_store(&green->converted, false);
	result = obf_primary_retain(share->split.device, &green->primary);
	if (result != CUDA_SUCCESS) {
		green_give(green);
		return result;
	}
	green->handle = (CUgreenCtx)(uintptr_t)ob_ids_add(&green_ids, green);
	result = green->handle ? green_begin(green, share) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		atomic_fetch_add(&green->primary->pub.greens, 1);
		*ret = green;
		return CUDA_SUCCESS;
	}
	if (green->handle)
		ob_ids_remove(&green_ids, (uint64_t)(uintptr_t)green->handle);
	obf_primary_release(share->split.device);
	green_give(green);
	return result;
}

/* False: no such green context (any more). Under end_lock. */
static bool green_close(CUgreenCtx handle)
{
	struct obf_green *green = obf_green_find(handle);

	if (!green)
		return false;
	/* The context of the streams is current while they are closed. */
	if (obf_stack_push(green->primary) == CUDA_SUCCESS) {
		streams_end(green);
		obf_stack_pop(NULL);
	} else {
		streams_end(green);
	}
	ob_ids_end(&green_ids, (uint64_t)(uintptr_t)handle);
	obf_process.backend->green_destroy(green);
	ob_ids_recycle(&green_ids, (uint64_t)(uintptr_t)handle);
	atomic_fetch_sub(&green->primary->pub.greens, 1);
	green_give(green);
	return true;
}

CUresult obf_green_end(CUgreenCtx handle)
{
	const struct obf_green *green;
	int device = -1;

	pthread_mutex_lock(&end_lock);
	green = obf_green_find(handle);
	if (green) {
		device = green->primary->pub.device;
		green_close(handle);
	}
	pthread_mutex_unlock(&end_lock);
	if (device >= 0)
		return obf_primary_release(device);
	return ob_id_kind((uint64_t)(uintptr_t)handle) == OBF_KIND_GREEN
		? CUDA_ERROR_CONTEXT_IS_DESTROYED
		: CUDA_ERROR_INVALID_CONTEXT;
}

void obf_greens_end(struct obf_context *context)
{
	if (!atomic_load(&context->pub.greens))
		return;
	pthread_mutex_lock(&end_lock);
	for (unsigned i = 0; i < OBF_GREEN_MAX; i++) {
		const struct obf_green *green = obf_green_find(greens[i].handle);

		if (green != &greens[i] || green->primary != context)
			continue;
		green_close(green->handle);
		pthread_mutex_lock(&context->lock);
		context->usage--;
		pthread_mutex_unlock(&context->lock);
	}
	pthread_mutex_unlock(&end_lock);
}
