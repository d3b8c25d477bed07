/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Pools of several processes. An exported pool is a number that its pointers repeat. An imported
 * pool has no memory of its own: each pointer that is imported is mapped like memory of cuIpc...,
 * and freeing it unmaps it here.
 */
#include <string.h>

#include "front/backend.h"
#include "front/mempool.h"
#include "front/private.h"
#include "front/share.h"
#include "protocol/obf_calls.h"

static CUresult enter(void)
{
	CUresult result = obf_ready();

	if (result == CUDA_SUCCESS && !(obf_shares() & OBF_SHARES_POOLS))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return result;
}

static CUresult type_check(CUmemAllocationHandleType type, unsigned long long flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : obf_share_type_check(type);
}

/* The id of a pool that was created to be exported. It gets one when it is first needed. */
static CUresult pool_name(CUmemoryPool handle, struct obf_share *ret)
{
	struct obf_mempool *pool = obf_mempool_find(handle);
	CUresult result = CUDA_SUCCESS;

	if (!pool || !pool->shareable)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pool->lock);
	if (!(pool->share[0] | pool->share[1])) {
		result = obf_process.backend->sharing->pool_export(pool->device, ret);
		if (result == CUDA_SUCCESS)
			memcpy(pool->share, ret->id, sizeof pool->share);
	}
	memcpy(ret->id, pool->share, sizeof ret->id);
	pthread_mutex_unlock(&pool->lock);
	return result;
}

CUresult obf_cuMemPoolExportToShareableHandle(
	void *ret, CUmemoryPool handle, CUmemAllocationHandleType type, unsigned long long flags)
{
	struct obf_share share = { .size = 0 };
	CUresult result = enter();
	int fd;

	if (result == CUDA_SUCCESS)
		result = ret ? type_check(type, flags) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = pool_name(handle, &share);
	if (result != CUDA_SUCCESS)
		return result;
	obf_share_seal(&share, OBF_SHARE_POOL);
	fd = obf_share_file(&share);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(int *)ret = fd;
	return CUDA_SUCCESS;
}

CUresult obf_cuMemPoolImportFromShareableHandle(CUmemoryPool *ret, void *os_handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct obf_mempool *pool;
	struct obf_share share;
	CUresult result = enter();
	CUmemoryPool handle;
	int device;

	if (result == CUDA_SUCCESS)
		result = ret ? type_check(type, flags) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	if (!obf_share_file_read((int)(intptr_t)os_handle, OBF_SHARE_POOL, &share))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_process.backend->sharing->pool_import(&share, &device);
	if (result == CUDA_SUCCESS)
		result = obf_mempool_new(device, false, 0, &handle);
	if (result != CUDA_SUCCESS)
		return result;
	pool = obf_mempool_find(handle);
	pool->imported = true;
	memcpy(pool->share, share.id, sizeof pool->share);
	*ret = handle;
	return CUDA_SUCCESS;
}

CUresult obf_cuMemPoolExportPointer(CUmemPoolPtrExportData *ret, CUdeviceptr addr)
{
	struct obf_share share = { .size = 0 }, pool = { .size = 0 };
	CUresult result = enter();
	struct obf_mem mem;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !obf_mem_find(addr, &mem) || !mem.pooled || mem.imported)
		return CUDA_ERROR_INVALID_VALUE;
	result = pool_name(mem.pool, &pool);
	if (result == CUDA_SUCCESS)
		result = obf_process.backend->sharing->range_export(&mem, &share);
	if (result != CUDA_SUCCESS)
		return result;
	share.pool = pool.id[0];
	obf_share_seal(&share, OBF_SHARE_POINTER);
	memset(ret, 0, sizeof *ret);
	memcpy(ret, &share, sizeof share);
	return CUDA_SUCCESS;
}

CUresult obf_cuMemPoolImportPointer(
	CUdeviceptr *ret, CUmemoryPool handle, CUmemPoolPtrExportData *data)
{
	struct obf_mem mem = { .pooled = true, .pool = handle };
	const struct obf_mempool *pool;
	struct obf_share share;
	struct obf_ctx *ctx;
	CUresult result = enter();

	if (result == CUDA_SUCCESS)
		result = obf_ctx_enter(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	pool = obf_mempool_find(handle);
	if (!ret || !data || !pool || !pool->imported ||
		!obf_share_read(data, OBF_SHARE_POINTER, &share) || share.pool != pool->share[0])
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_share_open(ctx, &share, &mem);
	if (result == CUDA_ERROR_INVALID_HANDLE)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*ret = mem.base;
	return obf_ctx_result(ctx, result);
}
