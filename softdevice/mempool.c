/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/mempool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/ids.h"
#include "protocol/obd_locals.h"
#include "softdevice/context.h"
#include "softdevice/memory.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"

struct obd_mempool {
	CUmemoryPool handle;
	unsigned device;
	bool is_default;
	uint32_t refs;     /* the handle and each allocation */
	uint64_t max_size; /* 0: the device's */
	uint64_t used, used_high, reserved_high, threshold;
	int reuse[3]; /* CU_MEMPOOL_ATTR_REUSE_*, kept for those who ask */
	CUmemAccess_flags access[OBD_DEVICE_MAX];
};

static struct ob_ids ids = OB_IDS_INIT(OBF_KIND_POOL, OBD_MEMPOOL_MAX);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all pools and current[] */
static struct obd_mempool *defaults[OBD_DEVICE_MAX];
static struct obd_mempool *current[OBD_DEVICE_MAX];

static struct obd_mempool *pool_new(unsigned device)
{
	struct obd_mempool *pool = calloc(1, sizeof *pool);

	if (!pool)
		return NULL;
	pool->device = device;
	pool->refs = 1;
	pool->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	for (size_t i = 0; i < ob_count(pool->reuse); i++)
		pool->reuse[i] = 1;
	pool->handle = (CUmemoryPool)(uintptr_t)ob_ids_add(&ids, pool);
	if (!pool->handle) {
		free(pool);
		return NULL;
	}
	return pool;
}

bool obd_mempool_start(void)
{
	for (unsigned i = 0; i < obd_config.devices; i++) {
		defaults[i] = current[i] = pool_new(i);
		if (!defaults[i])
			return false;
		defaults[i]->is_default = true;
	}
	return true;
}

static struct obd_mempool *pool_get(CUmemoryPool handle)
{
	return ob_ids_get(&ids, (uint64_t)(uintptr_t)handle);
}

/* Under the lock. */
static void pool_unref(struct obd_mempool *pool)
{
	if (--pool->refs == 0)
		free(pool);
}

static bool pool_charge(struct obd_mempool *pool, uint64_t size)
{
	if (pool->max_size && size > pool->max_size - ob_min(pool->used, pool->max_size))
		return false;
	pool->refs++;
	pool->used += size;
	pool->used_high = ob_max(pool->used_high, pool->used);
	pool->reserved_high = ob_max(pool->reserved_high, pool->used);
	return true;
}

static void pool_credit(struct obd_mempool *pool, uint64_t size)
{
	pool->used -= size;
	pool_unref(pool);
}

void obd_mempool_leave(struct obd_alloc *alloc)
{
	if (!alloc->pool)
		return;
	pthread_mutex_lock(&lock);
	pool_credit(alloc->pool, alloc->span.size);
	pthread_mutex_unlock(&lock);
	alloc->pool = NULL;
}

void obd_mempool_forget(struct obd_ctx *ctx)
{
	for (struct obd_alloc *alloc = ctx->allocs; alloc; alloc = alloc->next)
		obd_mempool_leave(alloc);
}

/* ---- allocating and freeing in stream order ---- */

/*
 * The context that is to own memory of the pool's device: the stream's, or the device's primary
 * one.
 */
static struct obd_ctx *owner_of(const struct obd_mempool *pool, struct obd_ctx *ctx)
{
	struct obf_ctx *primary;

	if (ctx->device->ordinal == pool->device)
		return ctx;
	primary = obf_ctx_primary((int)pool->device);
	return primary ? primary->backend : NULL;
}

static struct obd_alloc *alloc_try(struct obd_ctx *owner, uint64_t size, struct obd_ctx *ctx)
{
	struct obd_alloc *alloc = obd_memory_new(owner, size, OBD_BLOCK, OBD_ALLOC_USER);

	if (alloc)
		return alloc;
	/* Frees that are queued may be what is missing. */
	obd_ctx_wait(ctx, false);
	return obd_memory_new(owner, size, OBD_BLOCK, OBD_ALLOC_USER);
}

static CUresult alloc_do(
	CUdeviceptr *addr, size_t bytes, CUmemoryPool handle, bool from_current, CUstream stream)
{
	struct obd_stream *s;
	struct obd_ctx *ctx, *owner;
	struct obd_mempool *pool;
	struct obd_alloc *alloc;
	bool ok = false;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result)
		return result;
	if (!addr || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	pool = from_current ? current[s->ctx->device->ordinal] : pool_get(handle);
	if (pool)
		ok = pool_charge(pool, bytes);
	pthread_mutex_unlock(&lock);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ok)
		return CUDA_ERROR_OUT_OF_MEMORY;
	owner = owner_of(pool, s->ctx);
	alloc = owner ? alloc_try(owner, bytes, s->ctx) : NULL;
	if (!alloc) {
		pthread_mutex_lock(&lock);
		pool_credit(pool, bytes);
		pthread_mutex_unlock(&lock);
		return owner ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_CONTEXT;
	}
	alloc->pool = pool;
	*addr = alloc->span.base;
	return CUDA_SUCCESS;
}

CUresult obd_cuMemAllocAsync(CUdeviceptr *addr, size_t bytes, CUstream stream)
{
	return alloc_do(addr, bytes, NULL, true, stream);
}

CUresult obd_cuMemAllocFromPoolAsync(
	CUdeviceptr *addr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return alloc_do(addr, bytes, pool, false, stream);
}

struct free_op {
	struct obd_op op;
	struct obd_alloc *alloc;
};

static void free_run(struct obd_op *op)
{
	struct free_op *f = (struct free_op *)op;

	obd_mempool_leave(f->alloc);
	obd_memory_free(f->alloc);
}

CUresult obd_cuMemFreeAsync(CUdeviceptr addr, CUstream stream)
{
	struct obd_stream *s;
	struct obd_ctx *ctx;
	struct obd_alloc *alloc;
	struct free_op *op;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result || addr == 0)
		return result;
	alloc = obd_memory_find(addr);
	if (!alloc || alloc->span.base != addr || alloc->kind != OBD_ALLOC_USER)
		return CUDA_ERROR_INVALID_VALUE;
	op = obd_op_new(sizeof *op, OBD_OP_COPY, s->ctx);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = free_run;
	op->alloc = alloc;
	if (atomic_exchange_explicit(&alloc->leaving, true, memory_order_acq_rel)) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		result = obd_sched_submit(&op->op, s, NULL);
		if (result)
			atomic_store(&alloc->leaving, false);
	}
	obd_op_unref(&op->op);
	return result;
}

/* ---- pools ---- */

static bool location_valid(const CUmemLocation *location)
{
	return location && location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
		location->id < obf_device_count();
}

CUresult obd_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	struct obd_mempool *new;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
		props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!location_valid(&props->location))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	new = pool_new((unsigned)props->location.id);
	if (new) {
		new->max_size = props->maxSize;
		*pool = new->handle;
	}
	pthread_mutex_unlock(&lock);
	return new ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obd_cuMemPoolDestroy(CUmemoryPool handle)
{
	struct obd_mempool *pool;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	pool = pool_get(handle);
	if (!pool || pool->is_default) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		ob_ids_remove(&ids, (uint64_t)(uintptr_t)handle);
		if (current[pool->device] == pool)
			current[pool->device] = defaults[pool->device];
		pool_unref(pool);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obd_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	CUresult result = obd_ctx_none();

	(void)keep; /* nothing is kept */
	return result ? result : pool_get(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult attribute_get(const struct obd_mempool *pool, CUmemPool_attribute attr, void *value)
{
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = pool->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = pool->reserved_high;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = pool->used_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult attribute_set(struct obd_mempool *pool, CUmemPool_attribute attr, const void *value)
{
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
			*(const int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(const cuuint64_t *)value;
		return CUDA_SUCCESS;
	/* High-water marks can be reset, to 0 only. */
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(const cuuint64_t *)value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		*(attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? &pool->used_high : &pool->reserved_high) =
			pool->used;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* A pool by its handle with the lock held, or an error without it. */
static CUresult pool_lock(CUmemoryPool handle, struct obd_mempool **ret)
{
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	*ret = pool_get(handle);
	if (*ret)
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&lock);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult obd_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct obd_mempool *pool;
	CUresult result = value ? pool_lock(handle, &pool) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	result = attribute_get(pool, attr, value);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obd_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct obd_mempool *pool;
	CUresult result = value ? pool_lock(handle, &pool) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	result = attribute_set(pool, attr, value);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obd_cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
	struct obd_mempool *pool;
	CUresult result = flags && location_valid(location) ? pool_lock(handle, &pool)
							    : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	*flags = pool->access[location->id];
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult obd_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	struct obd_mempool *pool;
	CUresult result = map || count == 0 ? pool_lock(handle, &pool) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	for (size_t i = 0; i < count && !result; i++) {
		if (!location_valid(&map[i].location) ||
			(map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
				map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
				map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
			result = CUDA_ERROR_INVALID_VALUE;
		else if (map[i].location.id == (int)pool->device &&
			map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			result = CUDA_ERROR_INVALID_DEVICE; /* its own device keeps its access */
		else
			pool->access[map[i].location.id] = map[i].flags;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static CUresult device_pool_get(CUmemoryPool *pool, int device, struct obd_mempool *const *table)
{
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= obf_device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	*pool = table[device]->handle;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult obd_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	return device_pool_get(pool, device, defaults);
}

CUresult obd_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	return device_pool_get(pool, device, current);
}

CUresult obd_cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle)
{
	struct obd_mempool *pool;
	CUresult result = device >= 0 && device < obf_device_count() ? pool_lock(handle, &pool)
								     : CUDA_ERROR_INVALID_DEVICE;

	if (result)
		return result;
	if (pool->device == (unsigned)device)
		current[device] = pool;
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obd_cuMemGetDefaultMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	if (!location_valid(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	return obd_cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult obd_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	if (!location_valid(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	return obd_cuDeviceGetMemPool(pool, location->id);
}

CUresult obd_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	if (!location_valid(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	return obd_cuDeviceSetMemPool(location->id, pool);
}
