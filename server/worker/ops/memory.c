/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory operations. The client chooses the addresses of allocations: in its range, where the
 * server maps memory and unmaps it, or in slabs.
 */
#include "server/worker/free_memory.h"
#include "server/worker/ipc.h"
#include "server/worker/lane.h"
#include "server/worker/ops/ops.h"

_Static_assert(OBP_SLAB_BYTES_MAX == OBP_SLAB_MAX, "format.h has it for the welcome");

void obs_op_mem_alloc(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_mem_alloc_req *req)
{
	struct obs_memory *memory = &x->session->memory;

	/*
	 * In a range nothing is to be done: the memory is mapped. A client that uses more than it
	 * was granted harms only its own kernels.
	 */
	if (memory->vmm ? !obs_memory_check(memory, req->addr, req->size)
			: !obs_slabs_alloc(&memory->slabs, req->addr, req->size))
		obs_async_result(x, rec, CUDA_ERROR_INVALID_VALUE);
}

void obs_op_mem_grow(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_mem_grow_req *req)
{
	obs_reply(x, rec, obs_memory_grow(&x->session->memory, req->device, req->addr, req->size),
		NULL, 0);
}

void obs_op_mem_alloc_plain(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_mem_alloc_plain_req *req)
{
	struct obp_mem_alloc_plain_rep rep = { 0 };
	CUdeviceptr addr = 0;
	CUresult result = x->drv->cuMemAlloc_v2(&addr, req->size);

	if (result == CUDA_SUCCESS &&
		!obs_memory_extra_add(&x->session->memory, addr, req->size, OBS_OWNER_PLAIN)) {
		x->drv->cuMemFree_v2(addr);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	rep.addr = addr;
	obs_reply(x, rec, result, &rep, sizeof rep);
}

/*
 * A slab takes an eighth of what is free at most, unless the client needs more, and no more than
 * the session's slabs may have. 0: they have that already. Multiples of 2 MiB hold sizes that are
 * powers of two without a rest.
 */
static uint64_t slab_size(struct obs_exec *x, const struct obp_mem_slab_req *req)
{
	uint64_t used = obs_slabs_bytes(&x->session->memory.slabs, x->context->device), most, size;
	size_t bytes_free = 0, total = 0;

	if (x->drv->cuMemGetInfo_v2(&bytes_free, &total) != CUDA_SUCCESS)
		return 0;
	most = (uint64_t)total / OBS_SLAB_SHARE;
	if (used > most || req->least > most - used)
		return 0;
	size = ob_min(ob_min(req->size, (uint64_t)bytes_free / 8), most - used);
	if (size > OBS_MEMORY_ALIGN)
		size &= ~(OBS_MEMORY_ALIGN - 1);
	return ob_max(ob_max(size, req->least), 1u);
}

void obs_op_mem_slab(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_mem_slab_req *req)
{
	struct obs_session *session = x->session;
	struct obs_context *context = obs_context_find(session, req->ctx);
	struct obp_mem_slab_rep rep = { 0 };
	struct obp_range range = { 0 };
	CUresult result = CUDA_SUCCESS;
	uint64_t size = 0;

	if (!context && !session->contexts_refused)
		obs_violation(x, rec, "unknown context");
	if (!context)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!session->welcome->welcome.slabs || session->memory.vmm)
		result = CUDA_ERROR_NOT_SUPPORTED;
	else if (req->size == 0 || req->size % OBP_SLAB_PAGE || req->least > req->size)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = obs_context_enter(x, context);
	if (result == CUDA_SUCCESS)
		size = slab_size(x, req);
	if (result == CUDA_SUCCESS)
		result = size ? obs_slabs_new(&session->memory.slabs, context, context->device,
					size, req->least, &range)
			      : CUDA_ERROR_OUT_OF_MEMORY;
	rep.addr = range.base;
	rep.bytes = range.size;
	obs_reply(x, rec, result, &rep, sizeof rep);
}

void obs_op_mem_slab_free(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_mem_slab_free_req *req)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct obs_context *context;
	CUdeviceptr driver;

	if (obs_slabs_remove(&x->session->memory.slabs, req->addr, &driver, &context)) {
		obs_context_enter(x, context);
		result = x->drv->cuMemFree_v2(driver);
	}
	obs_async_result(x, rec, result);
}

static CUresult context_wait(struct obs_exec *x, struct obs_context *context)
{
	CUresult result = obs_context_enter(x, context);

	return result == CUDA_SUCCESS ? x->drv->cuCtxSynchronize() : result;
}

/*
 * Waits for work that may still use the memory, in the context of the thread that frees it, else in
 * the device's primary context; and in the context of the slab, for which cuMemFree would wait.
 */
static CUresult fence(struct obs_exec *x, uint64_t addr)
{
	struct obs_memory *memory = &x->session->memory;
	struct obs_context *owner = memory->vmm ? NULL : obs_slabs_context(&memory->slabs, addr);
	struct obs_context *context = x->lane->context ? x->lane->context : owner;
	int device = obs_memory_device(memory, addr);
	CUresult result;

	if (!context)
		context = &x->session->contexts[device > 0 ? device : 0];
	result = context_wait(x, context);
	return result == CUDA_SUCCESS && owner && owner != context ? context_wait(x, owner)
								   : result;
}

/*
 * Memory of a destroyed context is already free: the client only gives the address back, which is
 * no error.
 */
static CUresult plain_free(struct obs_exec *x, uint64_t addr)
{
	CUresult result;

	if (!x->context && x->lane->context && x->lane->context->driver)
		obs_context_enter(x, x->lane->context);
	result = x->drv->cuMemFree_v2(addr);
	return result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_INVALID_VALUE
		? CUDA_SUCCESS
		: result;
}

void obs_op_mem_free(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_mem_free_req *req)
{
	struct obs_memory *memory = &x->session->memory;
	CUresult result = CUDA_SUCCESS;

	obs_ipc_range_freed(req->addr);
	if (req->fence)
		result = fence(x, req->addr);
	if (obs_memory_device(memory, req->addr) < 0 &&
		!obs_slabs_free(&memory->slabs, req->addr)) {
		if (obs_memory_extra_remove(memory, req->addr, OBS_OWNER_PLAIN))
			result = plain_free(x, req->addr);
		else
			result = CUDA_ERROR_INVALID_VALUE;
	}
	obs_async_result(x, rec, result);
}

void obs_op_mem_trim(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_mem_trim_req *req)
{
	obs_async_result(x, rec, obs_memory_trim(&x->session->memory, req->addr, req->size));
}

void obs_op_mem_info(struct obs_exec *x, const struct obp_record *rec)
{
	struct obp_mem_info_rep rep = { 0 };
	size_t free_bytes = 0, total = 0;
	CUresult result = x->drv->cuMemGetInfo_v2(&free_bytes, &total);

	if (result == CUDA_SUCCESS)
		obs_free_memory_context(x->session, x->context);
	rep.free = free_bytes;
	rep.total = total;
	obs_reply(x, rec, result, &rep, sizeof rep);
}
