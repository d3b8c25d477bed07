/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/mempool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/ids.h"
#include "client-shim/heap.h"
#include "client-shim/log.h"
#include "client-shim/memory.h"
#include "client-shim/stream.h"
#include "protocol/obc_locals.h"

/* A freed piece: it may be used again behind record `number` of its stream. */
struct idle {
	struct obf_mem mem;
	struct obc_point at;
};

struct pool {
	CUmemoryPool handle;
	int device;
	bool is_default;
	pthread_mutex_t lock;
	uint64_t threshold, used, used_high, reserved, reserved_high; /* bytes */
	int reuse_events, reuse_opportunistic, reuse_internal;
	unsigned n_idle;
	struct idle idle[OBC_POOL_IDLE_MAX];
};

static struct ob_ids pool_ids = OB_IDS_INIT(OBF_KIND_POOL, OBC_POOL_MAX);
static pthread_mutex_t defaults_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool defaults[OBP_DEVICE_MAX], current[OBP_DEVICE_MAX]; /* under defaults_lock */

static struct pool *pool_get(CUmemoryPool handle)
{
	return ob_ids_get(&pool_ids, (uint64_t)(uintptr_t)handle);
}

static CUresult pool_new(int device, bool is_default, CUmemoryPool *ret)
{
	struct pool *pool = calloc(1, sizeof *pool);
	uint64_t id;

	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->device = device;
	pool->is_default = is_default;
	pool->reuse_events = pool->reuse_opportunistic = pool->reuse_internal = 1;
	pthread_mutex_init(&pool->lock, NULL);
	id = ob_ids_add(&pool_ids, pool);
	if (!id) {
		free(pool);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = pool->handle = (CUmemoryPool)(uintptr_t)id;
	return CUDA_SUCCESS;
}

/* The device's default pool (made at first use), or the one set for it. */
static CUresult pool_of_device(int device, bool want_default, CUmemoryPool *ret)
{
	CUresult result = CUDA_SUCCESS;

	if (device < 0 || device >= obf_device_count() || device >= (int)OBP_DEVICE_MAX)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&defaults_lock);
	if (!defaults[device])
		result = pool_new(device, true, &defaults[device]);
	if (result == CUDA_SUCCESS)
		*ret = want_default || !current[device] ? defaults[device] : current[device];
	pthread_mutex_unlock(&defaults_lock);
	return result;
}

/* ---- idle pieces; all under the pool's lock ---- */

static void idle_remove(struct pool *pool, unsigned i)
{
	pool->idle[i] = pool->idle[--pool->n_idle];
}

static void idle_release(struct pool *pool, unsigned i, bool fence)
{
	struct obf_mem mem = pool->idle[i].mem;

	pool->reserved -= mem.size;
	idle_remove(pool, i);
	obc_memory_release(&mem, fence);
}

/* What is complete and above what the program wants kept goes back. */
static void idle_settle(struct pool *pool)
{
	for (unsigned i = 0; i < pool->n_idle && pool->reserved > pool->threshold;) {
		if (obc_point_passed(&pool->idle[i].at))
			idle_release(pool, i, false);
		else
			i++;
	}
}

/* A piece of this size that the stream may use now; false: none. */
static bool idle_reuse(struct pool *pool, size_t size, struct obc_stream *at, struct obf_mem *ret)
{
	for (unsigned i = 0; i < pool->n_idle; i++) {
		const struct idle *idle = &pool->idle[i];
		bool same = idle->at.id == at->base.handle && idle->at.home == at->home;

		if (ob_round_up(idle->mem.size, OBC_HEAP_ALIGN) !=
				ob_round_up(size, OBC_HEAP_ALIGN) ||
			(!same && !obc_point_passed(&idle->at)))
			continue;
		*ret = idle->mem;
		pool->reserved -= idle->mem.size;
		idle_remove(pool, i);
		return true;
	}
	return false;
}

static void count_use(struct pool *pool, uint64_t size)
{
	pool->used += size;
	pool->reserved += size;
	pool->used_high = ob_max(pool->used_high, pool->used);
	pool->reserved_high = ob_max(pool->reserved_high, pool->reserved);
}

struct flush {
	const struct obf_ctx *ctx; /* NULL: any */
	int device;
	bool fence, any;
};

static void flush_pool(void *user, uint64_t id, void *value)
{
	struct flush *flush = user;
	struct pool *pool = value;

	(void)id;
	pthread_mutex_lock(&pool->lock);
	for (unsigned i = 0; i < pool->n_idle;) {
		const struct idle *idle = &pool->idle[i];

		if (pool->device != flush->device || (flush->ctx && idle->mem.ctx != flush->ctx)) {
			i++;
			continue;
		}
		idle_release(pool, i, flush->fence && !obc_point_passed(&idle->at));
		flush->any = true;
	}
	pthread_mutex_unlock(&pool->lock);
}

bool obc_mempools_flush(struct obf_ctx *ctx)
{
	struct flush flush = { .device = ctx->device, .fence = true };

	pthread_mutex_lock(&defaults_lock);
	ob_ids_each(&pool_ids, flush_pool, &flush);
	pthread_mutex_unlock(&defaults_lock);
	return flush.any;
}

void obc_mempools_end(const struct obf_ctx *ctx)
{
	struct flush flush = { .ctx = ctx, .device = ctx->device };

	pthread_mutex_lock(&defaults_lock);
	ob_ids_each(&pool_ids, flush_pool, &flush);
	pthread_mutex_unlock(&defaults_lock);
}

void obc_mempool_freed(const struct obf_mem *mem)
{
	struct pool *pool = pool_get(mem->pool);

	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->used -= mem->size;
	pool->reserved -= mem->size;
	pthread_mutex_unlock(&pool->lock);
}

/* ---- allocation ---- */

static CUresult pool_alloc(
	struct obf_ctx *ctx, struct pool *pool, size_t size, struct obc_stream *at, uint64_t *ret)
{
	struct obf_mem mem;
	CUresult result;
	bool reused;

	pthread_mutex_lock(&pool->lock);
	reused = idle_reuse(pool, size, at, &mem);
	pthread_mutex_unlock(&pool->lock);
	if (reused) {
		mem.size = size;
		mem.ctx = ctx;
		mem.pool = pool->handle;
		if (!obf_mem_insert(&mem))
			return CUDA_ERROR_OUT_OF_MEMORY;
		*ret = mem.base;
		result = CUDA_SUCCESS;
	} else {
		result = obc_memory_alloc(ctx, size, pool->handle, ret);
	}
	if (result == CUDA_SUCCESS) {
		pthread_mutex_lock(&pool->lock);
		count_use(pool, size);
		pthread_mutex_unlock(&pool->lock);
	}
	return result;
}

CUresult obc_cuMemAllocFromPoolAsync(
	CUdeviceptr *ret, size_t size, CUmemoryPool handle, CUstream stream)
{
	struct obf_stream *at;
	struct obf_ctx *ctx;
	struct pool *pool;
	CUresult result = obf_stream_enter(stream, &at);
	uint64_t addr;

	if (result != CUDA_SUCCESS)
		return result;
	ctx = at->ctx; /* whose memory it becomes */
	pool = pool_get(handle);
	if (!ret || !size || !pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->device != ctx->device)
		/* memory of another device: peers are not mapped */
		return CUDA_ERROR_NOT_SUPPORTED;
	result = pool_alloc(ctx, pool, size, obc_stream_of(at), &addr);
	if (result == CUDA_SUCCESS)
		*ret = addr;
	return obf_ctx_result(ctx, result);
}

CUresult obc_cuMemAllocAsync(CUdeviceptr *ret, size_t size, CUstream stream)
{
	struct obf_stream *at;
	CUmemoryPool pool;
	CUresult result = obf_stream_enter(stream, &at);

	if (result == CUDA_SUCCESS)
		result = pool_of_device(at->ctx->device, false, &pool);
	return result == CUDA_SUCCESS ? obc_cuMemAllocFromPoolAsync(ret, size, pool, stream)
				      : result;
}

CUresult obc_cuMemFreeAsync(CUdeviceptr addr, CUstream stream)
{
	struct obf_stream *base;
	struct obc_stream *at;
	struct obf_mem mem;
	struct pool *pool;
	CUresult result = obf_stream_enter(stream, &base);

	if (result != CUDA_SUCCESS || !addr)
		return result;
	if (!obf_mem_find(addr, &mem) || mem.base != addr || mem.kind != OBF_MEM_DEVICE ||
		mem.is_global || !obf_mem_remove(addr, &mem))
		return CUDA_ERROR_INVALID_VALUE;
	pool = mem.pooled ? pool_get(mem.pool) : NULL;
	/*
	 * Memory of cuMemAlloc may be freed in a stream too; without a pool it waits for the
	 * context.
	 */
	if (!pool)
		return obf_ctx_result(
			base->ctx, obc_memory_release(&mem, obc_ctx_busy(obc_ctx_of(base->ctx))));
	at = obc_stream_of(base);
	pthread_mutex_lock(&pool->lock);
	pool->used -= mem.size;
	if (pool->n_idle == OBC_POOL_IDLE_MAX)
		idle_release(pool, 0, !obc_point_passed(&pool->idle[0].at));
	/*
	 * Behind everything that this thread has put into the stream so far, and any other thread
	 * with whom it has spoken.
	 */
	uint64_t last = obc_read(base->blocking ? &at->home->last_blocking : &at->home->last_other);
	pool->idle[pool->n_idle++] =
		(struct idle){ mem, obc_point_at(at, ob_max(last, obc_log_last())) };
	idle_settle(pool);
	pthread_mutex_unlock(&pool->lock);
	return CUDA_SUCCESS;
}

/* ---- pools ---- */

CUresult obc_cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result == CUDA_ERROR_NOT_INITIALIZED)
		return result;
	if (!ret || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
		props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (props->location.id < 0 || props->location.id >= obf_device_count())
		return CUDA_ERROR_INVALID_VALUE;
	return pool_new(props->location.id, false, ret);
}

CUresult obc_cuMemPoolDestroy(CUmemoryPool handle)
{
	struct pool *pool = pool_get(handle);

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
		idle_release(pool, 0, !obc_point_passed(&pool->idle[0].at));
	pthread_mutex_unlock(&pool->lock);
	/*
	 * Allocations may outlive their pool, so another thread may still hold the object: small,
	 * and left to the process's end.
	 */
	return CUDA_SUCCESS;
}

CUresult obc_cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
	struct pool *pool = pool_get(handle);

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pool->lock);
	for (unsigned i = 0; i < pool->n_idle && pool->reserved > keep;) {
		if (obc_point_passed(&pool->idle[i].at))
			idle_release(pool, i, false);
		else
			i++;
	}
	pthread_mutex_unlock(&pool->lock);
	if (!keep)
		obc_memory_trim(pool->device);
	return CUDA_SUCCESS;
}

/* The pool's 64-bit attribute; NULL: it is not one. */
static uint64_t *pool_number(struct pool *pool, CUmemPool_attribute attr)
{
	switch (attr) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

static int *pool_switch(struct pool *pool, CUmemPool_attribute attr)
{
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		return &pool->reuse_events;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		return &pool->reuse_opportunistic;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		return &pool->reuse_internal;
	default:
		return NULL;
	}
}

CUresult obc_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct pool *pool = pool_get(handle);
	CUresult result = CUDA_SUCCESS;

	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pool->lock);
	idle_settle(pool);
	if (pool_number(pool, attr))
		memcpy(value, pool_number(pool, attr), sizeof(uint64_t));
	else if (pool_switch(pool, attr))
		memcpy(value, pool_switch(pool, attr), sizeof(int));
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pool->lock);
	return result;
}

CUresult obc_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct pool *pool = pool_get(handle);
	CUresult result = CUDA_SUCCESS;
	uint64_t number;

	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pool->lock);
	if (pool_switch(pool, attr)) {
		memcpy(pool_switch(pool, attr), value, sizeof(int));
	} else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
		memcpy(&pool->threshold, value, sizeof pool->threshold);
	} else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
		attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
		/* A high-water mark may only be reset. */
		memcpy(&number, value, sizeof number);
		if (number)
			result = CUDA_ERROR_INVALID_VALUE;
		else
			*pool_number(pool, attr) =
				attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used : pool->reserved;
	} else {
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pool->lock);
	return result;
}

CUresult obc_cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
	const struct pool *pool = pool_get(handle);

	if (!flags || !pool || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
					      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

CUresult obc_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	const struct pool *pool = pool_get(handle);

	if (!pool || (count && !map))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		bool own = map[i].location.id == pool->device;

		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].location.id < 0 ||
			map[i].location.id >= obf_device_count())
			return CUDA_ERROR_INVALID_DEVICE;
		if (own && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			/* the owner's access cannot be taken away */
			return CUDA_ERROR_INVALID_DEVICE;
		if (!own && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	}
	return CUDA_SUCCESS;
}

CUresult obc_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	return pool ? pool_of_device(device, true, pool) : CUDA_ERROR_INVALID_VALUE;
}

CUresult obc_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	return pool ? pool_of_device(device, false, pool) : CUDA_ERROR_INVALID_VALUE;
}

CUresult obc_cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle)
{
	const struct pool *pool = pool_get(handle);

	if (device < 0 || device >= obf_device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pool || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&defaults_lock);
	current[device] = handle;
	pthread_mutex_unlock(&defaults_lock);
	return CUDA_SUCCESS;
}

static CUresult location_device(const CUmemLocation *location, CUmemAllocationType type, int *ret)
{
	if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	*ret = location->id;
	return CUDA_SUCCESS;
}

CUresult obc_cuMemGetDefaultMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	int device;
	CUresult result = location_device(location, type, &device);

	return result == CUDA_SUCCESS ? obc_cuDeviceGetDefaultMemPool(pool, device) : result;
}

CUresult obc_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	int device;
	CUresult result = location_device(location, type, &device);

	return result == CUDA_SUCCESS ? obc_cuDeviceGetMemPool(pool, device) : result;
}

CUresult obc_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	int device;
	CUresult result = location_device(location, type, &device);

	return result == CUDA_SUCCESS ? obc_cuDeviceSetMemPool(device, pool) : result;
}
