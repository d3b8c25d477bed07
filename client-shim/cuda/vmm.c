/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/vmm.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/heap.h"
#include "client-shim/session/log.h"
#include "front/front.h"
#include "protocol/obc_calls.h"
#include "protocol/obc_locals.h"

struct reservation {
	uint64_t base, size;
	struct obc_heap *heap;
	struct obc_block *block;
	struct reservation *next;
};

static struct {
	pthread_mutex_t lock;
	struct obc_heap *heaps;
	uint32_t n_heaps;
	struct reservation *reservations;
} vmm = { .lock = PTHREAD_MUTEX_INITIALIZER };

void obc_vmm_start(struct obc_heap *heaps, uint32_t n)
{
	vmm.heaps = heaps;
	vmm.n_heaps = n;
}

bool obc_vmm_offered(void)
{
	return vmm.n_heaps > 0;
}

/* The first check of each call in this file. */
static CUresult enter(void)
{
	CUresult result = obc_log_alive();

	return result == CUDA_SUCCESS && !vmm.n_heaps ? CUDA_ERROR_NOT_SUPPORTED : result;
}

/* ---- addresses ---- */

/* Reserves in any heap, because an address belongs to no device until memory is mapped there. */
static bool place(struct reservation *r, uint64_t align, uint64_t wanted)
{
	for (uint32_t i = 0; i < vmm.n_heaps; i++) {
		r->heap = &vmm.heaps[i];
		if (obc_heap_reserve(r->heap, r->size, align, wanted, &r->base, &r->block))
			return true;
	}
	return false;
}

CUresult obc_cuMemAddressReserve(CUdeviceptr *ret, size_t size, size_t alignment,
	CUdeviceptr wanted, unsigned long long flags)
{
	uint64_t align = ob_max((uint64_t)alignment, (uint64_t)OBC_HEAP_PAGE);
	CUresult result = enter();
	struct reservation *r;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || size == 0 || size % OBC_HEAP_PAGE || wanted % OBC_HEAP_PAGE ||
		(align & (align - 1)) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = calloc(1, sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->size = size;
	if (!place(r, align, wanted % align ? 0 : wanted)) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = r->base;
	pthread_mutex_lock(&vmm.lock);
	r->next = vmm.reservations;
	vmm.reservations = r;
	pthread_mutex_unlock(&vmm.lock);
	return CUDA_SUCCESS;
}

/* Whether a mapping is in [base, base + size). Under the lock. */
static bool any_mapped(uint64_t base, uint64_t size)
{
	struct obf_mem mem;

	for (uint64_t at = base; at < base + size; at += OBC_HEAP_PAGE)
		if (obf_mem_find(at, &mem))
			return true;
	return false;
}

CUresult obc_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct reservation *r, **link;
	CUresult result = enter();

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&vmm.lock);
	for (link = &vmm.reservations; (r = *link) && r->base != ptr; link = &r->next)
		;
	if (r && (r->size != size || any_mapped(ptr, size)))
		r = NULL;
	if (r)
		*link = r->next;
	pthread_mutex_unlock(&vmm.lock);
	if (!r)
		return CUDA_ERROR_INVALID_VALUE;
	obc_heap_unreserve(r->heap, r->block);
	free(r);
	return CUDA_SUCCESS;
}

/* ---- mappings ---- */

static bool reserved(uint64_t base, uint64_t size)
{
	for (struct reservation *r = vmm.reservations; r; r = r->next)
		if (base >= r->base && ob_span_inside(base - r->base, size, r->size))
			return true;
	return false;
}

/* Finds the device of the memory. Asks the server only if there are several devices. */
static CUresult device_of(CUmemGenericAllocationHandle handle, int *ret)
{
	CUmemAllocationProp prop;
	CUresult result;

	*ret = 0;
	if (obf_device_count() == 1)
		return CUDA_SUCCESS;
	result = obc_call_cuMemGetAllocationPropertiesFromHandle(&prop, handle);
	if (result != CUDA_SUCCESS)
		return result;
	*ret = prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop.location.id : 0;
	return *ret >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult obc_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct obf_mem mem = { .base = ptr, .size = size, .kind = OBF_MEM_DEVICE, .joins = true };
	CUresult result = enter();

	if (result != CUDA_SUCCESS)
		return result;
	if (flags || size == 0 || size % OBC_HEAP_PAGE || offset % OBC_HEAP_PAGE ||
		ptr % OBC_HEAP_PAGE)
		return CUDA_ERROR_INVALID_VALUE;
	result = device_of(handle, &mem.device);
	if (result != CUDA_SUCCESS)
		return result;
	mem.ctx = obf_ctx_primary(mem.device);
	pthread_mutex_lock(&vmm.lock);
	result = reserved(ptr, size) ? obc_call_cuMemMap(ptr, size, offset, handle, flags)
				     : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && !obf_mem_insert(&mem)) {
		obc_call_cuMemUnmap(ptr, size);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&vmm.lock);
	return result;
}

CUresult obc_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult result = enter();
	struct obf_mem mem;

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&vmm.lock);
	result = reserved(ptr, size) ? obc_call_cuMemUnmap(ptr, size) : CUDA_ERROR_INVALID_VALUE;
	/* The server has unmapped one or several adjacent whole mappings. */
	for (uint64_t at = ptr; result == CUDA_SUCCESS && at < ptr + size; at += mem.size)
		if (!obf_mem_remove(at, &mem))
			break;
	pthread_mutex_unlock(&vmm.lock);
	return result;
}
