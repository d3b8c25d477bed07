/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Virtual memory management: addresses that a program reserves, and the memory that it maps there.
 * This file checks the arguments, keeps the list of reservations, and enters mapped memory in the
 * allocation map, so that copies and pointer queries find it. The backend chooses addresses and
 * maps. Handles of memory and access rights (cuMemCreate, cuMemSetAccess and others) are the
 * driver's own: the front end needs to know neither.
 *
 * One lock guards the list. It is held while the backend maps or unmaps, so that list, allocation
 * map and mappings agree.
 */
#include <stdlib.h>

#include "front/private.h"
#include "protocol/obf_calls.h"

struct reservation {
	struct obf_reservation pub;
	struct reservation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reservation *reservations;

/* The first check of each call in this file. */
static CUresult enter(void)
{
	const struct obf_backend *backend = obf_process.backend;
	CUresult result = obf_ready();

	if (result == CUDA_SUCCESS &&
		(!backend->vmm_reserve || (backend->vmm_offered && !backend->vmm_offered())))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return result;
}

static bool is_pages(uint64_t n)
{
	return n % OBF_VMM_PAGE == 0;
}

/* ---- addresses ---- */

CUresult obf_cuMemAddressReserve(CUdeviceptr *ret, size_t size, size_t alignment,
	CUdeviceptr wanted, unsigned long long flags)
{
	uint64_t align = ob_max((uint64_t)alignment, (uint64_t)OBF_VMM_PAGE);
	CUresult result = enter();
	struct reservation *r;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || size == 0 || !is_pages(size) || !is_pages(wanted) || (align & (align - 1)) ||
		flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = calloc(1, sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->pub.size = size;
	result = obf_process.backend->vmm_reserve(&r->pub, align, wanted % align ? 0 : wanted);
	if (result != CUDA_SUCCESS) {
		free(r);
		return result;
	}
	*ret = r->pub.base;
	pthread_mutex_lock(&lock);
	r->next = reservations;
	reservations = r;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult obf_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct reservation *r, **link;
	CUresult result = enter();

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	for (link = &reservations; (r = *link) && r->pub.base != ptr; link = &r->next)
		;
	if (r && (r->pub.size != size || obf_mem_overlaps(ptr, size)))
		r = NULL;
	if (r) {
		*link = r->next;
		obf_process.backend->vmm_unreserve(&r->pub);
	}
	pthread_mutex_unlock(&lock);
	free(r);
	return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- mappings ---- */

/* Is [base, base + size) inside one reservation? Called with the lock held. */
static bool is_reserved(uint64_t base, uint64_t size)
{
	for (struct reservation *r = reservations; r; r = r->next)
		if (base >= r->pub.base && ob_span_inside(base - r->pub.base, size, r->pub.size))
			return true;
	return false;
}

CUresult obf_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	const struct obf_backend *backend = obf_process.backend;
	struct obf_mem mem = { .base = ptr, .size = size, .kind = OBF_MEM_DEVICE, .joins = true };
	CUresult result = enter();

	if (result != CUDA_SUCCESS)
		return result;
	if (flags || size == 0 || !is_pages(size) || !is_pages(offset) || !is_pages(ptr))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!is_reserved(ptr, size) || obf_mem_overlaps(ptr, size))
		result = CUDA_ERROR_INVALID_VALUE;
	else
		result = backend->vmm_map(ptr, size, offset, handle, &mem.device);
	if (result == CUDA_SUCCESS) {
		mem.ctx = obf_ctx_primary(mem.device);
		if (!obf_mem_insert(&mem)) {
			backend->vmm_unmap(ptr, size);
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Do one or several adjacent mappings cover exactly [base, base + size)? */
static bool is_exactly_mapped(uint64_t base, uint64_t size)
{
	struct obf_mem mem;
	uint64_t at = base, end;

	if (size == 0 || ob_add_overflows(base, size, &end))
		return false;
	while (at < end) {
		if (!obf_mem_find(at, &mem) || !mem.joins || mem.base != at)
			return false;
		at += mem.size;
	}
	return at == end;
}

CUresult obf_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult result = enter();
	struct obf_mem mem;

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	result = is_exactly_mapped(ptr, size) ? obf_process.backend->vmm_unmap(ptr, size)
					      : CUDA_ERROR_INVALID_VALUE;
	for (uint64_t at = ptr; result == CUDA_SUCCESS && at < ptr + size; at += mem.size)
		if (!obf_mem_remove(at, &mem))
			break;
	pthread_mutex_unlock(&lock);
	return result;
}
