/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/memory.h"

#include "base/log.h"
#include "base/opt.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/heap.h"
#include "client-shim/cuda/plain.h"
#include "client-shim/session/free_memory.h"
#include "client-shim/session/log.h"
#include "client-shim/cuda/progress.h"
#include "client-shim/cuda/vmm.h"
#include "client-shim/session/server.h"
#include "protocol/format.h"
#include "protocol/obc_calls.h"

/* by the server's number of the device */
static OBC_PER_SERVER struct obc_heap heaps_first[OBP_DEVICE_MAX];
#define heaps OBC_HERE(heaps_first)
static OBC_PER_SERVER bool own_places_first; /* the client chooses the addresses */
#define own_places OBC_HERE(own_places_first)

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
	own_places = welcome->vmm;
	if (!own_places) {
		obc_plain_start(welcome);
		return true;
	}
	obc_vmm_start(heaps, welcome->n_devices);
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		const struct obp_device *device = &welcome->devices[i];

		if (!obc_heap_init(&heaps[i], device->range.base, device->range.size, device->grant,
			    obp_memory_unit(device->total_mem), &heap_ops, &heaps[i])) {
			ob_error("device %u: cannot use the server's address range (0x%llx, %llu "
				 "bytes): it is not a multiple of 2 MiB, or this process is out of "
				 "memory",
				i, (unsigned long long)device->range.base,
				(unsigned long long)device->range.size);
			return false;
		}
		obf_mem_window(device->range.base, device->range.size);
	}
	return true;
}

/* ---- the calls ---- */

static CUresult place_alloc(struct obf_ctx *ctx, size_t size, struct obf_mem *mem)
{
	struct obc_block *block;
	CUresult result;

	if (!own_places)
		return obc_plain_alloc(ctx, mem);
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

CUresult obc_memory_alloc(struct obf_ctx *ctx, struct obf_mem *mem)
{
	return mem->size > OBP_ALLOC_MAX ? CUDA_ERROR_OUT_OF_MEMORY
					 : place_alloc(ctx, mem->size, mem);
}

/*
 * The server must wait before the memory is reused, because unfinished work without a later fence
 * may use it. One fence covers all blocks that are freed before the next work is submitted.
 */
static bool needs_fence(struct obf_ctx *ctx, const struct obf_mem *mem)
{
	struct obc_ctx *home = obc_ctx_of(ctx);
	struct obc_ctx *owner = mem->ctx && mem->ctx->backend ? obc_ctx_of(mem->ctx) : home;
	uint64_t last;
	bool fence;

	if (!obc_ctx_busy(home) && !obc_ctx_busy(owner))
		return false;
	last = ob_max(obc_read(&home->last_blocking), obc_read(&home->last_other));
	last = ob_max(last, ob_max(obc_read(&owner->last_blocking), obc_read(&owner->last_other)));
	fence = last > obc_read(&home->fenced) || atomic_load(&home->untracked);
	obc_raise(&home->fenced, last);
	return fence;
}

CUresult obc_memory_free(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use)
{
	bool fence = in_use && needs_fence(ctx, mem);
	CUresult result;

	if (!own_places)
		return obc_plain_free(mem, fence);
	/*
	 * The record is written before the address is freed, so that it precedes the records of the
	 * next owner.
	 */
	result = obc_call_op_mem_free(mem->base, fence);
	if (mem->backend)
		obc_heap_free(heap_of(mem->device), mem->backend);
	return result;
}

CUresult obc_memory_info(struct obf_ctx *ctx, uint64_t *ret_free, uint64_t *ret_total)
{
	const uint32_t device = obc_device_number(ctx->device);
	struct obc_free_memory_mark mark;
	uint64_t bytes_free, total, unused;

	if (!obc_free_memory_get(device, &bytes_free, &total, &mark)) {
		CUresult result = obc_call_op_mem_info(&bytes_free, &total);

		if (result != CUDA_SUCCESS)
			return result;
		obc_free_memory_put(device, &mark, bytes_free, total, obc_log_last());
	}
	/* Unused memory that this session holds counts as free. */
	unused = own_places ? obc_heap_free_bytes(heap_of(ctx->device))
			    : obc_plain_free_bytes(ctx->device);
	*ret_free = unused ? ob_min(bytes_free + unused, total) : bytes_free;
	*ret_total = total;
	return CUDA_SUCCESS;
}

void obc_memory_trim(int device)
{
	if (!own_places)
		obc_plain_trim(device);
	else if (heap_of(device)->size)
		obc_heap_trim(heap_of(device));
}
