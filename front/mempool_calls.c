/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Pools: creation, destruction, attributes, access, and the pool of a device. */
#include <string.h>

#include "front/mempool.h"
#include "front/private.h"
#include "front/share.h"
#include "protocol/obf_calls.h"

/* Places for which there are pools. Pools of host memory are not implemented. */
static CUresult place_check(const CUmemLocation *location)
{
	switch ((int)location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult type_check(CUmemAllocationType type)
{
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	return type == CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult props_check(const CUmemPoolProps *props, bool *ret_shareable)
{
	const unsigned types = props->handleTypes, posix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	unsigned char reserved = 0;
	CUresult result;

	for (size_t i = 0; i < sizeof props->reserved; i++)
		reserved |= props->reserved[i];
	if (reserved || types & ~OBF_SHARE_TYPES ||
		(types && props->location.type == CU_MEM_LOCATION_TYPE_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	result = type_check(props->allocType);
	if (result == CUDA_SUCCESS)
		result = place_check(&props->location);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_shareable = types == posix && obf_shares() & OBF_SHARES_POOLS;
	if (types && !*ret_shareable)
		return CUDA_ERROR_NOT_SUPPORTED;
	return obf_device_valid(props->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props)
{
	CUresult result = obf_ready();
	bool shareable;

	if (result != CUDA_SUCCESS)
		return result;
	result = ret && props ? props_check(props, &shareable) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	result = obf_mempool_new(props->location.id, false, props->maxSize, ret);
	if (result == CUDA_SUCCESS)
		obf_mempool_find(*ret)->shareable = shareable;
	return result;
}

CUresult obf_cuMemPoolDestroy(CUmemoryPool handle)
{
	CUresult result = obf_ready();

	return result == CUDA_SUCCESS ? obf_mempool_destroy(handle) : result;
}

/* Finds the pool and takes its lock. */
static CUresult pool_lock(CUmemoryPool handle, struct obf_mempool **ret)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	*ret = obf_mempool_lock(handle);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
	struct obf_mempool *pool;
	CUresult result = pool_lock(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	obf_mempool_trim(pool, keep);
	pthread_mutex_unlock(&pool->lock);
	if (!keep && obf_process.backend->mem_trim)
		obf_process.backend->mem_trim(pool->device);
	return CUDA_SUCCESS;
}

/* ---- attributes ---- */

/* Returns the pool's 64-bit attribute. NULL: the attribute is not 64 bits. */
static uint64_t *attr_number(struct obf_mempool *pool, CUmemPool_attribute attr)
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

static int *attr_switch(struct obf_mempool *pool, CUmemPool_attribute attr)
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

CUresult obf_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct obf_mempool *pool;
	CUresult result = pool_lock(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	obf_mempool_trim(pool, pool->threshold);
	if (!value)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (attr_number(pool, attr))
		memcpy(value, attr_number(pool, attr), sizeof(uint64_t));
	else if (attr_switch(pool, attr))
		memcpy(value, attr_switch(pool, attr), sizeof(int));
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pool->lock);
	return result;
}

/* A high-water mark can only be reset to 0. */
static CUresult mark_reset(struct obf_mempool *pool, CUmemPool_attribute attr, const void *value)
{
	uint64_t number;

	memcpy(&number, value, sizeof number);
	if (number)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		pool->used_high = pool->used;
	else
		pool->reserved_high = pool->reserved;
	return CUDA_SUCCESS;
}

CUresult obf_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct obf_mempool *pool;
	CUresult result = pool_lock(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (attr_switch(pool, attr))
		memcpy(attr_switch(pool, attr), value, sizeof(int));
	else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		memcpy(&pool->threshold, value, sizeof pool->threshold);
	else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		result = mark_reset(pool, attr, value);
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pool->lock);
	return result;
}

/* ---- access ---- */

CUresult obf_cuMemPoolGetAccess(
	CUmemAccess_flags *ret, CUmemoryPool handle, CUmemLocation *location)
{
	struct obf_mempool *pool;
	CUresult result = pool_lock(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
		!obf_device_valid(location->id))
		result = CUDA_ERROR_INVALID_VALUE;
	else
		*ret = pool->access[location->id];
	pthread_mutex_unlock(&pool->lock);
	return result;
}

static CUresult access_set(struct obf_mempool *pool, const CUmemAccessDesc *desc)
{
	bool own = desc->location.id == pool->device;

	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		!obf_device_valid(desc->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	/* The owner's access cannot be revoked. */
	if (own && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	pool->access[desc->location.id] = desc->flags;
	return CUDA_SUCCESS;
}

/* Opens the pool's memory to the devices that get access. Without the pool's lock: see peer.c. */
static CUresult access_open(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	const struct obf_mempool *pool = obf_mempool_find(handle);
	CUresult result = obf_ready();

	for (size_t i = 0; pool && map && i < count && result == CUDA_SUCCESS; i++)
		if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
			map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
			map[i].location.id != pool->device && obf_device_valid(map[i].location.id))
			result = obf_peer_open(pool->device, map[i].location.id);
	return result;
}

CUresult obf_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	struct obf_mempool *pool;
	CUresult result = access_open(handle, map, count);

	if (result == CUDA_SUCCESS)
		result = pool_lock(handle, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	if (count && !map)
		result = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = access_set(pool, &map[i]);
	pthread_mutex_unlock(&pool->lock);
	return result;
}

/* ---- which pool a device uses ---- */

static CUresult device_pool(CUmemoryPool *ret, int device, bool want_default)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	return ret ? obf_mempool_of_device(device, want_default, ret) : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device)
{
	return device_pool(ret, device, true);
}

CUresult obf_cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice device)
{
	return device_pool(ret, device, false);
}

CUresult obf_cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle)
{
	CUresult result = obf_ready();

	return result == CUDA_SUCCESS ? obf_mempool_set_for_device(device, handle) : result;
}

static CUresult location_check(const CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result = obf_ready(), placed;

	if (result != CUDA_SUCCESS)
		return result;
	result = location ? type_check(type) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_ERROR_INVALID_VALUE)
		return result;
	/* A managed pool may have no location. */
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED && location->type == CU_MEM_LOCATION_TYPE_NONE)
		return result;
	placed = place_check(location);
	return placed != CUDA_SUCCESS ? placed : result;
}

CUresult obf_cuMemGetDefaultMemPool(
	CUmemoryPool *ret, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result = location_check(location, type);

	return result == CUDA_SUCCESS ? device_pool(ret, location->id, true) : result;
}

CUresult obf_cuMemGetMemPool(CUmemoryPool *ret, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result = location_check(location, type);

	return result == CUDA_SUCCESS ? device_pool(ret, location->id, false) : result;
}

CUresult obf_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult result = location_check(location, type);

	return result == CUDA_SUCCESS ? obf_cuDeviceSetMemPool(location->id, pool) : result;
}
