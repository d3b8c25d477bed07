/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/memory.h"

#include <sys/mman.h>

#include "base/log.h"
#include "base/opt.h"
#include "client-shim/device.h"
#include "client-shim/heap.h"
#include "client-shim/log.h"
#include "client-shim/mempool.h"
#include "protocol/obc_calls.h"
#include "protocol/obc_locals.h"

#define PITCH_ALIGN 512u

static struct obc_heap heaps[OBP_DEVICE_MAX]; /* by the server's number of the device */
static bool vmm;                              /* addresses are ours */

static struct obc_heap *heap_of(int device)
{
	return &heaps[obc_device_number(device)];
}

static CUresult heap_grow(void *user, uint64_t addr, uint64_t size)
{
	const struct obc_heap *heap = user;

	return obc_call_op_mem_grow(addr, size, (uint32_t)(heap - heaps));
}

static void heap_trim(void *user, uint64_t addr, uint64_t size)
{
	(void)user;
	obc_call_op_mem_trim(addr, size);
}

static const struct obc_heap_ops heap_ops = { heap_grow, heap_trim };

bool obc_memory_start(const struct obp_welcome *welcome)
{
	vmm = welcome->vmm;
	if (!vmm)
		return true;
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		const struct obp_device *device = &welcome->devices[i];

		if (!obc_heap_init(&heaps[i], device->range.base, device->range.size, device->grant,
			    &heap_ops, &heaps[i])) {
			ob_error("device %u: the server's address range (0x%llx, %llu bytes) is "
				 "unusable",
				i, (unsigned long long)device->range.base,
				(unsigned long long)device->range.size);
			return false;
		}
		obf_mem_window(device->range.base, device->range.size);
	}
	return true;
}

/* ---- addresses of the driver's making ---- */

/*
 * No host memory may ever lie where a device pointer points: what is neither told apart would be
 * copied the wrong way.
 */
static void plain_reserve(uint64_t addr, size_t size)
{
	void *p = mmap((void *)(uintptr_t)addr, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		ob_debug("device address 0x%llx cannot be kept free in this process",
			(unsigned long long)addr);
	else if (p != (void *)(uintptr_t)addr)
		munmap(p, size);
}

static CUresult plain_alloc(size_t size, uint64_t *ret_addr)
{
	CUresult result = obc_call_op_mem_alloc_plain(size, ret_addr);

	if (result == CUDA_SUCCESS)
		plain_reserve(*ret_addr, size);
	return result;
}

/* ---- both ---- */

static CUresult place_alloc(struct obf_ctx *ctx, size_t size, struct obf_mem *mem)
{
	struct obc_block *block;
	CUresult result;

	if (!vmm)
		return plain_alloc(size, &mem->base);
	result = obc_heap_alloc(heap_of(ctx->device), size, &mem->base, &block);
	if (result != CUDA_SUCCESS)
		return result;
	mem->backend = block;
	if (ob_unlikely(!ob_opt_on(OB_OPT_GRANT))) {
		result = obc_call_op_mem_grow(mem->base, size, obc_device_number(ctx->device));
		if (result != CUDA_SUCCESS) {
			obc_heap_free(heap_of(ctx->device), block);
			return result;
		}
	}
	return obc_call_op_mem_alloc(mem->base, size, obc_device_number(ctx->device));
}

/* Large pools of idle pieces are the last reserve. */
static __attribute__((noinline)) CUresult alloc_again(
	struct obf_ctx *ctx, size_t size, struct obf_mem *mem)
{
	if (!obc_mempools_flush(ctx))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return place_alloc(ctx, size, mem);
}

CUresult obc_memory_alloc(struct obf_ctx *ctx, size_t size, CUmemoryPool pool, uint64_t *ret_addr)
{
	struct obf_mem mem = { .size = size,
		.kind = OBF_MEM_DEVICE,
		.device = ctx->device,
		.ctx = ctx,
		.pooled = pool != NULL,
		.pool = pool };
	CUresult result;

	if (size > OBP_ALLOC_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = place_alloc(ctx, size, &mem);
	if (ob_unlikely(result == CUDA_ERROR_OUT_OF_MEMORY))
		result = alloc_again(ctx, size, &mem);
	if (result != CUDA_SUCCESS)
		return result;
	if (ob_unlikely(!obf_mem_insert(&mem))) {
		obc_memory_release(&mem, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_addr = mem.base;
	return CUDA_SUCCESS;
}

CUresult obc_memory_release(const struct obf_mem *mem, bool fence)
{
	/* The record first: whoever gets the address next stands behind it in the log. */
	CUresult result = obc_call_op_mem_free(mem->base, fence);

	if (mem->backend)
		obc_heap_free(heap_of(mem->device), mem->backend);
	else if (!vmm)
		munmap((void *)(uintptr_t)mem->base, mem->size);
	return result;
}

void obc_memory_gone(const struct obf_mem *mem)
{
	if (mem->kind == OBF_MEM_DEVICE && !mem->is_global)
		obc_memory_release(mem, false);
}

void obc_memory_trim(int device)
{
	if (vmm && heap_of(device)->size)
		obc_heap_trim(heap_of(device));
}

/* ---- the program's calls ---- */

CUresult obc_cuMemAlloc_v2(CUdeviceptr *ret, size_t size)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t addr;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = obc_memory_alloc(ctx, size, NULL, &addr);
	if (result == CUDA_SUCCESS)
		*ret = addr;
	return obf_ctx_result(ctx, result);
}

CUresult obc_cuMemAllocPitch_v2(
	CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height, unsigned element)
{
	size_t pitch = ob_round_up(width, PITCH_ALIGN), size;
	CUresult result;

	if (!ret || !ret_pitch || !width || !height ||
		(element != 4 && element != 8 && element != 16) || pitch < width ||
		ob_mul_overflows(pitch, height, &size))
		return CUDA_ERROR_INVALID_VALUE;
	result = obc_cuMemAlloc_v2(ret, size);
	if (result == CUDA_SUCCESS)
		*ret_pitch = pitch;
	return result;
}

/*
 * The allocation that starts at addr, taken out of the map. CUDA_ERROR_INVALID_VALUE: there is
 * none.
 */
static CUresult mem_take(CUdeviceptr addr, struct obf_mem *ret)
{
	if (!obf_mem_find(addr, ret) || ret->base != addr || ret->kind != OBF_MEM_DEVICE ||
		ret->is_global || !obf_mem_remove(addr, ret))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult obc_cuMemFree_v2(CUdeviceptr addr)
{
	struct obc_ctx *home, *owner;
	struct obf_ctx *ctx;
	struct obf_mem mem;
	CUresult result = obf_ctx_enter(&ctx), waited;
	bool fence;

	if (result != CUDA_SUCCESS || addr == 0)
		return result;
	result = mem_take(addr, &mem);
	if (result != CUDA_SUCCESS)
		return result;
	waited = obf_ctx_settle(ctx);
	if (waited == CUDA_SUCCESS && mem.ctx && mem.ctx != ctx && mem.ctx->backend)
		waited = obf_ctx_settle(mem.ctx);
	if (mem.pooled)
		obc_mempool_freed(&mem);
	home = obc_ctx_of(ctx);
	owner = mem.ctx && mem.ctx->backend ? obc_ctx_of(mem.ctx) : home;
	fence = obc_ctx_busy(home) || obc_ctx_busy(owner);
	if (fence) {
		/* One fence serves every piece that is freed before more work goes in. */
		uint64_t last = ob_max(obc_read(&home->last_blocking), obc_read(&home->last_other));

		last = ob_max(last,
			ob_max(obc_read(&owner->last_blocking), obc_read(&owner->last_other)));
		fence = last > obc_read(&home->fenced) || atomic_load(&home->untracked);
		obc_raise(&home->fenced, last);
	}
	result = obf_ctx_result(ctx, obc_memory_release(&mem, fence));
	return waited != CUDA_SUCCESS ? waited : result;
}

CUresult obc_cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	uint64_t bytes_free, total;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_free || !ret_total)
		return CUDA_ERROR_INVALID_VALUE;
	result = obc_call_op_mem_info(&bytes_free, &total);
	if (result != CUDA_SUCCESS)
		return obf_ctx_result(ctx, result);
	/* What is promised to this session and not in use is as free as the rest. */
	if (vmm)
		bytes_free = ob_min(bytes_free + obc_heap_free_bytes(heap_of(ctx->device)), total);
	*ret_free = bytes_free;
	*ret_total = total;
	return CUDA_SUCCESS;
}
