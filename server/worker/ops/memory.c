/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory operations. The client chooses the addresses of allocations; the server maps memory at
 * them and unmaps it.
 */
#include "server/worker/lane.h"
#include "server/worker/ops/ops.h"

void obs_op_mem_alloc(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_mem_alloc_req *req)
{
	/*
	 * Nothing to do: the memory is mapped. A client that uses more than it was granted harms
	 * only its own kernels.
	 */
	if (!obs_memory_check(&x->session->memory, req->addr, req->size))
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
 * Waits for work that may still use the memory, in the context of the thread that frees it, else in
 * the device's primary context.
 */
static CUresult fence(struct obs_exec *x, uint64_t addr)
{
	struct obs_context *context = x->lane->context;
	int device = obs_memory_device(&x->session->memory, addr);
	CUresult result;

	if (!context)
		context = &x->session->contexts[device > 0 ? device : 0];
	result = obs_context_enter(x, context);
	return result == CUDA_SUCCESS ? x->drv->cuCtxSynchronize() : result;
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

	if (req->fence)
		result = fence(x, req->addr);
	if (obs_memory_device(memory, req->addr) < 0) {
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

	rep.free = free_bytes;
	rep.total = total;
	obs_reply(x, rec, result, &rep, sizeof rep);
}
