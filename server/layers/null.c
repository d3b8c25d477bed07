/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The calls of the null driver that must give sensible answers: one device of a plausible shape,
 * distinct addresses. All other calls succeed and do nothing (protocol/obs_null.h), so that the
 * wire can be measured alone.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "protocol/obs_null.h"

#define NULL_MEMORY         (80ull << 30)
#define NULL_PLAIN_BASE     0x600000000000ull
#define NULL_VARIABLE_BYTES (64u << 10)

CUresult obs_null_cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult obs_null_cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

CUresult obs_null_cuDeviceGetName(char *name, int length, CUdevice device)
{
	static const char text[] = "Outboard null device";

	(void)device;
	if (length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	strncpy(name, text, (size_t)length);
	name[length - 1] = '\0';
	return CUDA_SUCCESS;
}

CUresult obs_null_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	(void)device;
	memcpy(uuid->bytes, "outboard-null-00", sizeof uuid->bytes);
	return CUDA_SUCCESS;
}

CUresult obs_null_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	(void)device;
	*bytes = NULL_MEMORY;
	return CUDA_SUCCESS;
}

CUresult obs_null_cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	*free_bytes = *total = NULL_MEMORY;
	return CUDA_SUCCESS;
}

CUresult obs_null_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	static const struct {
		CUdevice_attribute attribute;
		int value;
	} known[] = {
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647 },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152 },
		{ CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536 },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
		{ CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647 },
		{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536 },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000 },
		{ CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512 },
		{ CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 1 << 28 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, 131072 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, 65536 },
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 128 },
		{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000 },
		{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 4096 },
		{ CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20 },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048 },
		{ CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3 },
		{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
		{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472 },
		{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536 },
		{ CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448 },
		{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32 },
		{ CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1 },
		{ CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1 },
	};

	(void)device;
	*value = 0;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (known[i].attribute == attribute)
			*value = known[i].value;
	return CUDA_SUCCESS;
}

CUresult obs_null_cuFuncGetAttribute(
	int *value, CUfunction_attribute attribute, CUfunction function)
{
	(void)function;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 32;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = 90;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

/* Any address. */
CUresult obs_null_cuMemAddressReserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	(void)size;
	(void)alignment;
	(void)flags;
	*ptr = addr ? addr : 0x500000000000ull;
	return CUDA_SUCCESS;
}

static CUdeviceptr next_place(size_t bytes)
{
	static _Atomic uint64_t used;

	return NULL_PLAIN_BASE + atomic_fetch_add(&used, ((uint64_t)bytes + 511) & ~511ull);
}

CUresult obs_null_cuMemAlloc_v2(CUdeviceptr *addr, size_t bytes)
{
	if (bytes > NULL_MEMORY)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*addr = next_place(bytes);
	return CUDA_SUCCESS;
}

CUresult obs_null_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	static _Atomic uint64_t last;

	(void)prop;
	(void)flags;
	if (size > NULL_MEMORY)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handle = atomic_fetch_add(&last, 1) + 1;
	return CUDA_SUCCESS;
}

CUresult obs_null_cuModuleGetGlobal_v2(
	CUdeviceptr *addr, size_t *bytes, CUmodule module, const char *name)
{
	(void)module;
	(void)name;
	if (addr)
		*addr = next_place(NULL_VARIABLE_BYTES);
	if (bytes)
		*bytes = NULL_VARIABLE_BYTES;
	return CUDA_SUCCESS;
}
