/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/mempool.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/ids.h"
#include "front/captured.h"
#include "front/graph.h"
#include "front/memory.h"
#include "front/private.h"
#include "front/share.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

/* an idle block can be reused for a request that rounds up to the same size */
#define REUSE_ALIGN 512u

static struct ob_ids pool_ids = OB_IDS_INIT(OBF_KIND_POOL, OBF_POOL_MAX);
static pthread_mutex_t defaults_lock = PTHREAD_MUTEX_INITIALIZER;
/* Both under defaults_lock. */
static CUmemoryPool defaults[OBF_DEVICE_MAX], current[OBF_DEVICE_MAX];

struct obf_mempool *obf_mempool_find(CUmemoryPool handle)
{
	return ob_ids_get(&pool_ids, (uint64_t)(uintptr_t)handle);
}

/*
 * Destroyed pools are used again and never freed: another thread may still hold the pointer, and
 * then the lock. Under spare_lock.
 */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obf_mempool *spare;

/* NULL: out of memory. Everything but the lock is 0. */
static struct obf_mempool *pool_take(void)
{
	struct obf_mempool *pool;

	pthread_mutex_lock(&spare_lock);
	pool = spare;
	if (pool)
		spare = pool->next;
	pthread_mutex_unlock(&spare_lock);
	if (!pool) {
		pool = calloc(1, sizeof *pool);
		if (pool)
			pthread_mutex_init(&pool->lock, NULL);
		return pool;
	}
	pthread_mutex_lock(&pool->lock);
	memset(&pool->handle, 0, sizeof *pool - offsetof(struct obf_mempool, handle));
	pthread_mutex_unlock(&pool->lock);
	return pool;
}

/* Its handle is not live any more. */
static void pool_give(struct obf_mempool *pool)
{
	pthread_mutex_lock(&spare_lock);
	pool->next = spare;
	spare = pool;
	pthread_mutex_unlock(&spare_lock);
}

struct obf_mempool *obf_mempool_lock(CUmemoryPool handle)
{
	struct obf_mempool *pool = obf_mempool_find(handle);

	if (!pool)
		return NULL;
	pthread_mutex_lock(&pool->lock);
	if (pool->handle == handle)
		return pool;
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

CUresult obf_mempool_new(int device, bool is_default, uint64_t max_size, CUmemoryPool *ret)
{
	struct obf_mempool *pool = pool_take();
	uint64_t id;

	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->device = device;
	pool->is_default = is_default;
	pool->max_size = max_size;
	pool->reuse_events = pool->reuse_opportunistic = pool->reuse_internal = 1;
	pool->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	id = ob_ids_add(&pool_ids, pool);
	if (!id) {
		pool_give(pool);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = pool->handle = (CUmemoryPool)(uintptr_t)id;
	return CUDA_SUCCESS;
}

CUresult obf_mempool_of_device(int device, bool want_default, CUmemoryPool *ret)
{
	CUresult result = CUDA_SUCCESS;

	if (!obf_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&defaults_lock);
	if (!defaults[device])
		result = obf_mempool_new(device, true, 0, &defaults[device]);
	if (result == CUDA_SUCCESS)
		*ret = want_default || !current[device] ? defaults[device] : current[device];
	pthread_mutex_unlock(&defaults_lock);
	return result;
}

CUresult obf_mempool_set_for_device(int device, CUmemoryPool handle)
{
	const struct obf_mempool *pool = obf_mempool_find(handle);

	if (!obf_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pool || pool->device != device || pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&defaults_lock);
	current[device] = handle;
	pthread_mutex_unlock(&defaults_lock);
	return CUDA_SUCCESS;
}

/* ---- idle pieces; all under the pool's lock ---- */

static bool idle_passed(const struct obf_idle *idle)
{
	return obf_process.backend->point_passed(&idle->last_use);
}

static void idle_remove(struct obf_mempool *pool, unsigned i)
{
	obf_process.backend->point_drop(&pool->idle[i].last_use);
	pool->idle[i] = pool->idle[--pool->n_idle];
}

static void idle_release(struct obf_mempool *pool, unsigned i, bool in_use)
{
	struct obf_mem mem = pool->idle[i].mem;

	pool->reserved -= mem.size;
	idle_remove(pool, i);
	obf_process.backend->mem_free(mem.ctx, &mem, in_use);
}

void obf_mempool_trim(struct obf_mempool *pool, uint64_t keep)
{
	for (unsigned i = 0; i < pool->n_idle && pool->reserved > keep;) {
		if (idle_passed(&pool->idle[i]))
			idle_release(pool, i, false);
		else
			i++;
	}
}

/* Takes an idle block of this size that the stream may use now. False: none. */
static bool idle_reuse(
	struct obf_mempool *pool, size_t size, const struct obf_stream *stream, struct obf_mem *ret)
{
	for (unsigned i = 0; i < pool->n_idle; i++) {
		const struct obf_idle *idle = &pool->idle[i];
		bool same = idle->stream_id == stream->id && idle->ctx == stream->ctx;

		if (ob_round_up(idle->mem.size, REUSE_ALIGN) != ob_round_up(size, REUSE_ALIGN) ||
			(!same && !idle_passed(idle)))
			continue;
		*ret = idle->mem;
		pool->reserved -= idle->mem.size;
		idle_remove(pool, i);
		return true;
	}
	return false;
}

static void use_count(struct obf_mempool *pool, uint64_t size)
{
	pool->used += size;
	pool->reserved += size;
	pool->used_high = ob_max(pool->used_high, pool->used);
	pool->reserved_high = ob_max(pool->reserved_high, pool->reserved);
}

struct flush {
	const struct obf_ctx *ctx; /* NULL: any */
	int device;
	bool in_use, any;
};

static void flush_pool(void *user, uint64_t id, void *value)
{
	struct obf_mempool *pool = value;
	struct flush *flush = user;

	(void)id;
	pthread_mutex_lock(&pool->lock);
	for (unsigned i = 0; i < pool->n_idle;) {
		const struct obf_idle *idle = &pool->idle[i];

		if (pool->device != flush->device || (flush->ctx && idle->mem.ctx != flush->ctx)) {
			i++;
			continue;
		}
		idle_release(pool, i, flush->in_use && !idle_passed(idle));
		flush->any = true;
	}
	pthread_mutex_unlock(&pool->lock);
}

bool obf_mempools_flush(struct obf_ctx *ctx)
{
	struct flush flush = { .device = ctx->device, .in_use = true };

	pthread_mutex_lock(&defaults_lock);
	ob_ids_each(&pool_ids, flush_pool, &flush);
	pthread_mutex_unlock(&defaults_lock);
	return flush.any;
}

CUresult obf_mempools_alloc(struct obf_ctx *ctx, size_t size, CUmemoryPool pool, uint64_t *ret_addr)
{
	CUresult result = obf_memory_alloc(ctx, size, pool, ret_addr);

	if (ob_unlikely(result == CUDA_ERROR_OUT_OF_MEMORY) && obf_mempools_flush(ctx))
		result = obf_memory_alloc(ctx, size, pool, ret_addr);
	if (ob_unlikely(result == CUDA_ERROR_OUT_OF_MEMORY))
		obf_explain_memory(obf_ctx_device(ctx), size);
	return result;
}

void obf_mempools_end(const struct obf_ctx *ctx)
{
	struct flush flush = { .ctx = ctx, .device = ctx->device };

	pthread_mutex_lock(&defaults_lock);
	ob_ids_each(&pool_ids, flush_pool, &flush);
	pthread_mutex_unlock(&defaults_lock);
}

void obf_mempool_freed(const struct obf_mem *mem)
{
	struct obf_mempool *pool = obf_mempool_lock(mem->pool);

	if (!pool)
		return;
	pool->used -= mem->size;
	pool->reserved -= mem->size;
	pthread_mutex_unlock(&pool->lock);
}

CUresult obf_mempool_destroy(CUmemoryPool handle)
{
	struct obf_mempool *pool = obf_mempool_find(handle);

	if (!pool || pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&defaults_lock);
	pool = ob_ids_remove(&pool_ids, (uint64_t)(uintptr_t)handle);
	if (pool && current[pool->device] == handle)
		current[pool->device] = NULL;
	pthread_mutex_unlock(&defaults_lock);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pool->lock);
	while (pool->n_idle)
		idle_release(pool, 0, !idle_passed(&pool->idle[0]));
	pool->handle = NULL; /* memory that another thread frees now is not kept here */
	pthread_mutex_unlock(&pool->lock);
	pool_give(pool);
	return CUDA_SUCCESS;
}

/* ---- allocating and freeing in stream order ---- */

/* Reserves space below the pool's maximum first. */
static CUresult block_take(CUmemoryPool handle, size_t size, const struct obf_stream *stream,
	struct obf_mem *ret_reused, bool *ret_is_reused)
{
	struct obf_mempool *pool = obf_mempool_lock(handle);
	CUresult result = CUDA_SUCCESS;

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->max_size && size > pool->max_size - ob_min(pool->used, pool->max_size))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		*ret_is_reused = idle_reuse(pool, size, stream, ret_reused);
		use_count(pool, size);
	}
	pthread_mutex_unlock(&pool->lock);
	return result;
}

/* `owner`: the context that will own the memory. */
static CUresult pool_alloc(CUmemoryPool handle, struct obf_ctx *owner, size_t size,
	const struct obf_stream *stream, uint64_t *ret)
{
	struct obf_mem mem;
	bool reused;
	CUresult result = block_take(handle, size, stream, &mem, &reused);

	if (result != CUDA_SUCCESS)
		return result;
	if (reused) {
		mem.size = size;
		mem.pool = handle;
		result = obf_mem_insert(&mem) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		*ret = mem.base;
	} else {
		result = obf_mempools_alloc(owner, size, handle, ret);
	}
	if (result != CUDA_SUCCESS)
		obf_mempool_freed(&(struct obf_mem){ .pool = handle, .size = size });
	return result;
}

CUresult obf_cuMemAllocFromPoolAsync(
	CUdeviceptr *ret, size_t size, CUmemoryPool handle, CUstream stream_handle)
{
	struct obf_stream *stream;
	struct obf_mempool *pool;
	struct obf_ctx *owner;
	CUresult result = obf_stream_enter(stream_handle, &stream);
	uint64_t addr;

	if (result != CUDA_SUCCESS)
		return result;
	pool = obf_mempool_find(handle);
	if (!ret || !size || !pool || pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_unlikely(stream->capture != NULL))
		return obf_capture_alloc(stream, pool->device, size, ret);
	owner = stream->ctx;
	if (pool->device != owner->device) {
		if (!obf_process.backend->peers)
			return CUDA_ERROR_NOT_SUPPORTED;
		owner = obf_ctx_primary(pool->device);
		if (!atomic_load(&owner->active))
			return CUDA_ERROR_INVALID_CONTEXT;
	}
	result = pool_alloc(handle, owner, size, stream, &addr);
	if (result == CUDA_SUCCESS)
		*ret = addr;
	return obf_ctx_result(stream->ctx, result);
}

CUresult obf_cuMemAllocAsync(CUdeviceptr *ret, size_t size, CUstream stream_handle)
{
	struct obf_stream *stream;
	CUmemoryPool pool;
	CUresult result = obf_stream_enter(stream_handle, &stream);

	if (result == CUDA_SUCCESS)
		result = obf_mempool_of_device(stream->ctx->device, false, &pool);
	return result == CUDA_SUCCESS ? obf_cuMemAllocFromPoolAsync(ret, size, pool, stream_handle)
				      : result;
}

CUresult obf_cuMemFreeAsync(CUdeviceptr addr, CUstream stream_handle)
{
	struct obf_stream *stream;
	struct obf_mempool *pool;
	struct obf_idle *idle;
	struct obf_point last_use;
	struct obf_mem mem;
	CUresult result = obf_stream_enter(stream_handle, &stream), freed;

	if (result != CUDA_SUCCESS || !addr)
		return result;
	if (ob_unlikely(stream->capture != NULL))
		return obf_capture_free(stream, addr);
	result = obf_process.backend->point_take(stream, &last_use);
	if (result != CUDA_SUCCESS)
		return obf_ctx_result(stream->ctx, result);
	result = obf_memory_take(addr, &mem);
	if (result == CUDA_SUCCESS && mem.imported) {
		obf_process.backend->point_drop(&last_use);
		return obf_ctx_result(stream->ctx, obf_share_close(stream->ctx, &mem));
	}
	pool = result == CUDA_SUCCESS && mem.pooled ? obf_mempool_lock(mem.pool) : NULL;
	if (!pool) {
		/*
		 * Memory of cuMemAlloc may be freed in a stream as well. It has no pool, so the
		 * call waits for the context.
		 */
		obf_process.backend->point_drop(&last_use);
		if (result != CUDA_SUCCESS)
			return obf_graph_memory_free(addr);
		/* The addresses of managed memory are used again at once. */
		if (mem.sharing)
			result = obf_ctx_settle(mem.ctx);
		if (mem.sharing && mem.ctx != stream->ctx && result == CUDA_SUCCESS)
			result = obf_ctx_settle(stream->ctx);
		freed = obf_ctx_result(stream->ctx, obf_memory_give(stream->ctx, &mem, true));
		return result != CUDA_SUCCESS ? result : freed;
	}
	pool->used -= mem.size;
	if (pool->n_idle == OBF_POOL_IDLE_MAX)
		idle_release(pool, 0, !idle_passed(&pool->idle[0]));
	idle = &pool->idle[pool->n_idle++];
	*idle = (struct obf_idle){ mem, last_use, stream->ctx, stream->id };
	obf_mempool_trim(pool, pool->threshold);
	pthread_mutex_unlock(&pool->lock);
	return CUDA_SUCCESS;
}
