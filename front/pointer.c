/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuPointer*, cuMemGetAddressRange: queries about an address, answered from the allocation map. */
#include <string.h>

#include "front/private.h"
#include "front/share.h"
#include "protocol/obf_calls.h"

#define ATTRIBUTES_MAX 64u
#define NO_DEVICE      (-2) /* the value that drivers return for memory that belongs to no device */

/* For each attribute: the size of its value in bytes, and the value for an unknown address. */
static size_t attr_size(CUpointer_attribute attr)
{
	switch ((int)attr) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	/* Documented as booleans, but the runtime passes uninitialised four-byte variables. */
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return sizeof(int);
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return sizeof(uint64_t);
	default:
		return 0; /* P2P_TOKENS and later attributes */
	}
}

static void attr_none(CUpointer_attribute attr, void *data)
{
	int ordinal = NO_DEVICE;

	if (attr == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
		memcpy(data, &ordinal, sizeof ordinal);
	else
		memset(data, 0, attr_size(attr));
}

/*
 * Returns the value for an address inside `mem`. CUDA_ERROR_INVALID_VALUE: there is none.
 * Little-endian: the low bytes of the 64-bit value are correct for every size.
 */
static CUresult attr_value(
	CUpointer_attribute attr, const struct obf_mem *mem, CUdeviceptr ptr, uint64_t *ret)
{
	const bool mapped = mem->sharing == OBF_SHARING_MAPPED;
	const bool device = mem->kind == OBF_MEM_DEVICE;
	const bool host = !device || mem->sharing;

	*ret = 0;
	switch ((int)attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*ret = mem->ctx && !mem->pooled ? (uintptr_t)mem->ctx->handle : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*ret = device && !mapped ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*ret = device ? ptr : 0;
		return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*ret = host ? ptr : 0;
		return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*ret = mem->buffer_id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*ret = (uint64_t)mem->device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*ret = mem->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*ret = mem->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*ret = 1;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*ret = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*ret = (uintptr_t)mem->pool;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*ret = obf_share_ipc_capable(mem);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*ret = mem->sharing == OBF_SHARING_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*ret = mem->sync_memops;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult obf_cuPointerGetAttribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr)
{
	struct obf_mem mem;
	CUresult result = obf_ready();
	uint64_t value;

	if (result != CUDA_SUCCESS)
		return result;
	if (!data || attr_size(attr) == 0 || !obf_mem_find(ptr, &mem))
		return CUDA_ERROR_INVALID_VALUE;
	result = attr_value(attr, &mem, ptr, &value);
	if (result == CUDA_SUCCESS)
		memcpy(data, &value, attr_size(attr));
	return result;
}

CUresult obf_cuPointerGetAttributes(
	unsigned n, CUpointer_attribute *attrs, void **data, CUdeviceptr ptr)
{
	struct obf_mem mem;
	CUresult result = obf_ready();
	bool known;

	if (result != CUDA_SUCCESS)
		return result;
	if (n == 0 || n > ATTRIBUTES_MAX || !attrs || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if (attr_size(attrs[i]) == 0 || !data[i])
			return CUDA_ERROR_INVALID_VALUE;
	known = obf_mem_find(ptr, &mem);
	for (unsigned i = 0; i < n; i++) {
		uint64_t value;

		if (known && attr_value(attrs[i], &mem, ptr, &value) == CUDA_SUCCESS)
			memcpy(data[i], &value, attr_size(attrs[i]));
		else
			attr_none(attrs[i], data[i]);
	}
	return CUDA_SUCCESS;
}

CUresult obf_cuPointerSetAttribute(const void *value, CUpointer_attribute attr, CUdeviceptr ptr)
{
	CUresult result = obf_ready();
	unsigned on;

	if (result != CUDA_SUCCESS)
		return result;
	/* Copies always have the guarantees of SYNC_MEMOPS, so the attribute has no effect. */
	if (!value || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
		obf_mem_classify(ptr, 1, NULL).kind != OBF_PLACE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&on, value, sizeof on);
	return obf_mem_sync_memops(ptr, on) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct obf_mem mem;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!obf_mem_find(ptr, &mem))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = mem.base;
	if (size)
		*size = mem.size;
	return CUDA_SUCCESS;
}
