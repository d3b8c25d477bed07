/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/memory.h"

#include "front/advice.h"
#include "front/backend.h"
#include "front/private.h"
#include "front/share.h"

#define SIZE_LIMIT (1ull << 46) /* bytes; no device has this much */

CUresult obf_memory_give(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use)
{
	const struct obf_backend *backend = obf_process.backend;

	if (ob_likely(!mem->sharing))
		return backend->mem_free(ctx, mem, in_use);
	obf_advice_forget(mem->base, mem->size);
	return (backend->shared_free ? backend->shared_free : backend->mem_free)(ctx, mem, in_use);
}

/* Enters the backend's allocation in the map. */
static CUresult mem_enter(struct obf_mem *mem)
{
	if (ob_likely(obf_mem_insert(mem)))
		return CUDA_SUCCESS;
	obf_memory_give(mem->ctx, mem, false);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obf_memory_alloc(struct obf_ctx *ctx, size_t size, CUmemoryPool pool, uint64_t *ret_addr)
{
	struct obf_mem mem = {
		.size = size,
		.kind = OBF_MEM_DEVICE,
		.device = ctx->device,
		.ctx = ctx,
		.pooled = pool != NULL,
		.pool = pool,
	};
	CUresult result;

	if (size > SIZE_LIMIT)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obf_process.backend->mem_alloc(ctx, &mem);
	if (result == CUDA_SUCCESS)
		result = mem_enter(&mem);
	if (result == CUDA_SUCCESS)
		*ret_addr = mem.base;
	return result;
}

CUresult obf_memory_share(struct obf_ctx *ctx, size_t size, enum obf_shared sharing, unsigned flags,
	uint64_t *ret_addr)
{
	struct obf_mem mem = {
		.size = size,
		.kind = OBF_MEM_DEVICE,
		.device = ctx->device,
		.ctx = ctx,
		.sharing = sharing,
		.flags = flags,
	};
	CUresult result;

	if (size > SIZE_LIMIT)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!obf_process.backend->shared_alloc)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = obf_process.backend->shared_alloc(ctx, &mem);
	if (ob_unlikely(result == CUDA_ERROR_OUT_OF_MEMORY))
		obf_explain_memory(obf_ctx_device(ctx), size);
	if (result == CUDA_SUCCESS)
		result = mem_enter(&mem);
	if (result == CUDA_SUCCESS)
		*ret_addr = mem.base;
	return result;
}

CUresult obf_memory_take(uint64_t addr, struct obf_mem *ret)
{
	if (!obf_mem_find(addr, ret) || ret->base != addr || ret->kind != OBF_MEM_DEVICE ||
		ret->is_global || ret->joins || (ret->imported && !ret->pooled) ||
		ret->sharing == OBF_SHARING_MAPPED || ret->graph || !obf_mem_remove(addr, ret))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static void mem_removed(const struct obf_mem *mem)
{
	if (mem->imported)
		obf_share_ended(mem);
	else if (mem->kind == OBF_MEM_DEVICE && !mem->is_global)
		obf_memory_give(mem->ctx, mem, false);
}

void obf_memory_end(const struct obf_ctx *ctx)
{
	obf_mem_remove_ctx(ctx, mem_removed);
}
