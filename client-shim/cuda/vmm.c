/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/vmm.h"

#include "client-shim/cuda/heap.h"
#include "client-shim/session/server.h"
#include "protocol/obc_calls.h"

static OBC_PER_SERVER struct obc_heap *vmm_heaps_first;
#define vmm_heaps OBC_HERE(vmm_heaps_first)
static OBC_PER_SERVER uint32_t n_vmm_heaps_first;
#define n_vmm_heaps OBC_HERE(n_vmm_heaps_first)

/* NOLINTNEXTLINE(misc-redundant-expression): constants of two headers */
_Static_assert(OBF_VMM_PAGE == OBC_HEAP_PAGE, "a reservation consists of pages of a heap");

void obc_vmm_start(struct obc_heap *heaps, uint32_t n)
{
	vmm_heaps = heaps;
	n_vmm_heaps = n;
}

bool obc_vmm_offered(void)
{
	return n_vmm_heaps > 0;
}

/* ---- addresses ---- */

static struct obc_heap *heap_at(uint64_t addr)
{
	for (uint32_t i = 0; i < n_vmm_heaps; i++)
		if (addr - vmm_heaps[i].base < vmm_heaps[i].size)
			return &vmm_heaps[i];
	return NULL;
}

CUresult obc_vmm_reserve(struct obf_reservation *r, uint64_t align, uint64_t wanted)
{
	struct obc_block *block;

	/* In any heap, because an address belongs to no device until memory is mapped there. */
	for (uint32_t i = 0; i < n_vmm_heaps; i++)
		if (obc_heap_reserve(&vmm_heaps[i], r->size, align, wanted, &r->base, &block)) {
			r->backend = block;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void obc_vmm_unreserve(const struct obf_reservation *r)
{
	obc_heap_unreserve(heap_at(r->base), r->backend);
}

/* ---- mappings ---- */

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

CUresult obc_vmm_map(uint64_t addr, uint64_t size, uint64_t offset,
	CUmemGenericAllocationHandle handle, int *ret_device)
{
	CUresult result = device_of(handle, ret_device);

	return result == CUDA_SUCCESS ? obc_call_cuMemMap(addr, size, offset, handle, 0) : result;
}

CUresult obc_vmm_unmap(uint64_t addr, uint64_t size)
{
	return obc_call_cuMemUnmap(addr, size);
}
