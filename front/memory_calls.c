/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuMemAlloc and similar calls. */
#include "front/backend.h"
#include "front/captured.h"
#include "front/graph.h"
#include "front/memory.h"
#include "front/mempool.h"
#include "front/private.h"
#include "front/share.h"
#include "protocol/obf_calls.h"

#define PITCH_ALIGN 512u /* bytes */

CUresult obf_cuMemAlloc_v2(CUdeviceptr *ret, size_t size)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t addr;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_capture_unsafe();
	if (ob_likely(result == CUDA_SUCCESS))
		result = obf_mempools_alloc(ctx, size, NULL, &addr);
	if (result == CUDA_SUCCESS)
		*ret = addr;
	return obf_ctx_result(ctx, result);
}

CUresult obf_cuMemAllocPitch_v2(
	CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height, unsigned element)
{
	size_t pitch = ob_round_up(width, PITCH_ALIGN), size;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !ret_pitch || !width || !height || pitch < width ||
		(element != 4 && element != 8 && element != 16) ||
		ob_mul_overflows(pitch, height, &size))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_cuMemAlloc_v2(ret, size);
	if (result == CUDA_SUCCESS)
		*ret_pitch = pitch;
	return result;
}

CUresult obf_cuMemFree_v2(CUdeviceptr addr)
{
	struct obf_ctx *ctx;
	struct obf_mem mem;
	CUresult result = obf_ctx_enter(&ctx), waited;

	if (result != CUDA_SUCCESS || addr == 0)
		return result;
	result = obf_capture_unsafe();
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	/*
	 * Removed from the map before the wait, so that if two threads free the same memory, one
	 * gets an error.
	 */
	result = obf_memory_take(addr, &mem);
	if (result != CUDA_SUCCESS)
		return obf_graph_memory_free(addr);
	if (ob_unlikely(mem.imported))
		return obf_ctx_result(ctx, obf_share_close(ctx, &mem));
	waited = obf_ctx_settle(ctx);
	if (waited == CUDA_SUCCESS && mem.ctx && mem.ctx != ctx && mem.ctx->backend)
		waited = obf_ctx_settle(mem.ctx);
	if (mem.pooled)
		obf_mempool_freed(&mem);
	result = obf_ctx_result(ctx, obf_memory_give(ctx, &mem, true));
	return waited != CUDA_SUCCESS ? waited : result;
}

CUresult obf_cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	uint64_t bytes_free, total;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_free || !ret_total)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_process.backend->mem_info(ctx, &bytes_free, &total);
	if (result != CUDA_SUCCESS)
		return obf_ctx_result(ctx, result);
	*ret_free = bytes_free;
	*ret_total = total;
	return CUDA_SUCCESS;
}
