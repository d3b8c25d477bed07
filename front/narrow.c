/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The calls of CUDA before 3.2, whose device addresses and sizes have 32 bits. Each converts its
 * arguments and makes the present call. An address above 4 GiB cannot be returned: the call fails
 * with CUDA_ERROR_OUT_OF_MEMORY and gives back what it has made. Sizes are cut off at 4 GiB - 1.
 */
#include <stdint.h>

#include "base/check.h"
#include "base/log.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

static unsigned cut_off(size_t bytes)
{
	return (unsigned)ob_min(bytes, (size_t)UINT32_MAX);
}

/* Stores an address, or logs once why that is not possible. */
static CUresult address_out(const char *call, CUdeviceptr addr, CUdeviceptr_v1 *ret)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;

	if (addr <= UINT32_MAX) {
		*ret = (CUdeviceptr_v1)addr;
		return CUDA_SUCCESS;
	}
	if (!atomic_flag_test_and_set(&logged))
		ob_warn("%s: this program was built for CUDA before 3.2, whose device addresses "
			"have 32 bits, and the device has no memory below 4 GiB. Rebuild the "
			"program with a current CUDA toolkit",
			call);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- memory ---- */

CUresult obf_cuDeviceTotalMem(unsigned *ret, CUdevice device)
{
	size_t bytes;
	CUresult result = obf_cuDeviceTotalMem_v2(ret ? &bytes : NULL, device);

	if (result == CUDA_SUCCESS)
		*ret = cut_off(bytes);
	return result;
}

CUresult obf_cuMemGetInfo(unsigned *ret_free, unsigned *ret_total)
{
	size_t bytes_free, total;
	CUresult result =
		obf_cuMemGetInfo_v2(ret_free ? &bytes_free : NULL, ret_total ? &total : NULL);

	if (result == CUDA_SUCCESS) {
		*ret_free = cut_off(bytes_free);
		*ret_total = cut_off(total);
	}
	return result;
}

/* Returns the address of new memory, or frees it. */
static CUresult memory_out(const char *call, CUresult result, CUdeviceptr addr, CUdeviceptr_v1 *ret)
{
	if (result == CUDA_SUCCESS) {
		result = address_out(call, addr, ret);
		if (result != CUDA_SUCCESS)
			obf_cuMemFree_v2(addr);
	}
	return result;
}

CUresult obf_cuMemAlloc(CUdeviceptr_v1 *ret, unsigned bytes)
{
	CUdeviceptr addr = 0;
	CUresult result = obf_cuMemAlloc_v2(ret ? &addr : NULL, bytes);

	return memory_out("cuMemAlloc", result, addr, ret);
}

CUresult obf_cuMemAllocPitch(
	CUdeviceptr_v1 *ret, unsigned *ret_pitch, unsigned width, unsigned height, unsigned element)
{
	CUdeviceptr addr = 0;
	size_t pitch = 0;
	CUresult result = obf_cuMemAllocPitch_v2(
		ret ? &addr : NULL, ret_pitch ? &pitch : NULL, width, height, element);

	result = memory_out("cuMemAllocPitch", result, addr, ret);
	if (result == CUDA_SUCCESS)
		*ret_pitch = cut_off(pitch);
	return result;
}

CUresult obf_cuMemFree(CUdeviceptr_v1 addr)
{
	return obf_cuMemFree_v2(addr);
}

CUresult obf_cuMemAllocHost(void **ret, unsigned bytes)
{
	return obf_cuMemAllocHost_v2(ret, bytes);
}

CUresult obf_cuMemHostGetDevicePointer(CUdeviceptr_v1 *ret, void *host, unsigned flags)
{
	CUdeviceptr addr = 0;
	CUresult result = obf_cuMemHostGetDevicePointer_v2(ret ? &addr : NULL, host, flags);

	return result == CUDA_SUCCESS ? address_out("cuMemHostGetDevicePointer", addr, ret)
				      : result;
}

CUresult obf_cuMemGetAddressRange(CUdeviceptr_v1 *ret_base, unsigned *ret_size, CUdeviceptr_v1 addr)
{
	CUdeviceptr base;
	size_t size;
	CUresult result =
		obf_cuMemGetAddressRange_v2(ret_base ? &base : NULL, ret_size ? &size : NULL, addr);

	if (result != CUDA_SUCCESS)
		return result;
	if (ret_base)
		*ret_base = (CUdeviceptr_v1)base; /* not above addr */
	if (ret_size)
		*ret_size = cut_off(size);
	return CUDA_SUCCESS;
}

CUresult obf_cuModuleGetGlobal(
	CUdeviceptr_v1 *ret, unsigned *ret_size, CUmodule module, const char *name)
{
	CUdeviceptr addr;
	size_t size;
	CUresult result =
		obf_cuModuleGetGlobal_v2(ret ? &addr : NULL, ret_size ? &size : NULL, module, name);

	if (result == CUDA_SUCCESS && ret)
		result = address_out("cuModuleGetGlobal", addr, ret);
	if (result == CUDA_SUCCESS && ret_size)
		*ret_size = cut_off(size);
	return result;
}

/* ---- texture references ---- */

CUresult obf_cuTexRefSetAddress(
	unsigned *ret_offset, CUtexref ref, CUdeviceptr_v1 addr, unsigned bytes)
{
	size_t offset;
	CUresult result = obf_cuTexRefSetAddress_v2(ret_offset ? &offset : NULL, ref, addr, bytes);

	if (result == CUDA_SUCCESS && ret_offset)
		*ret_offset = (unsigned)offset;
	return result;
}

CUresult obf_cuTexRefGetAddress(CUdeviceptr_v1 *ret, CUtexref ref)
{
	CUdeviceptr addr = 0;
	CUresult result = obf_cuTexRefGetAddress_v2(ret ? &addr : NULL, ref);

	return result == CUDA_SUCCESS ? address_out("cuTexRefGetAddress", addr, ret) : result;
}

CUresult obf_cuTexRefSetAddress2D(
	CUtexref ref, const CUDA_ARRAY_DESCRIPTOR_v1 *desc, CUdeviceptr_v1 addr, unsigned pitch)
{
	CUDA_ARRAY_DESCRIPTOR wide = { 0 };

	if (desc)
		wide = (CUDA_ARRAY_DESCRIPTOR){ .Width = desc->Width,
			.Height = desc->Height,
			.Format = desc->Format,
			.NumChannels = desc->NumChannels };
	return obf_cuTexRefSetAddress2D_v3(ref, desc ? &wide : NULL, addr, pitch);
}

/* ---- copies and fills: in the legacy stream if the call names none ---- */

/* A call that differs only in the types of its arguments. */
#define WIDEN(name, parameters, ...)                   \
	CUresult obf_cu##name parameters               \
	{                                              \
		return obf_cu##name##_v2(__VA_ARGS__); \
	}

WIDEN(MemcpyHtoD, (CUdeviceptr_v1 dst, const void *src, unsigned n), dst, src, n, NULL)
WIDEN(MemcpyDtoH, (void *dst, CUdeviceptr_v1 src, unsigned n), dst, src, n, NULL)
WIDEN(MemcpyDtoD, (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned n), dst, src, n, NULL)
WIDEN(MemcpyHtoDAsync, (CUdeviceptr_v1 dst, const void *src, unsigned n, CUstream stream), dst, src,
	n, stream)
WIDEN(MemcpyDtoHAsync, (void *dst, CUdeviceptr_v1 src, unsigned n, CUstream stream), dst, src, n,
	stream)
WIDEN(MemcpyAtoD, (CUdeviceptr_v1 dst, CUarray src, unsigned offset, unsigned n), dst, src, offset,
	n, NULL)
WIDEN(MemcpyDtoA, (CUarray dst, unsigned offset, CUdeviceptr_v1 src, unsigned n), dst, offset, src,
	n, NULL)
WIDEN(MemcpyDtoDAsync, (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned n, CUstream stream), dst,
	src, n, stream)

#define FILL(name, type)                                                                           \
	WIDEN(Memset##name, (CUdeviceptr_v1 dst, type value, unsigned n), dst, value, n, NULL)     \
	WIDEN(Memset##D2##name,                                                                    \
		(CUdeviceptr_v1 dst, unsigned pitch, type value, unsigned width, unsigned height), \
		dst, pitch, value, width, height, NULL)

FILL(D8, unsigned char)
FILL(D16, unsigned short)
FILL(D32, unsigned)

/* The members of one side, `src` or `dst`, which both structs have. */
#define SIDE(copy, side)                                                                \
	.side##XInBytes = (copy)->side##XInBytes, .side##Y = (copy)->side##Y,           \
	.side##MemoryType = (copy)->side##MemoryType, .side##Host = (copy)->side##Host, \
	.side##Device = (copy)->side##Device, .side##Array = (copy)->side##Array,       \
	.side##Pitch = (copy)->side##Pitch
#define SIDE_3D(copy, side)                                                           \
	SIDE(copy, side), .side##Z = (copy)->side##Z, .side##LOD = (copy)->side##LOD, \
			  .side##Height = (copy)->side##Height

static CUDA_MEMCPY2D wide_2d(const CUDA_MEMCPY2D_v1 *copy)
{
	return (CUDA_MEMCPY2D){ SIDE(copy, src), SIDE(copy, dst),
		.WidthInBytes = copy->WidthInBytes, .Height = copy->Height };
}

static CUDA_MEMCPY3D wide_3d(const CUDA_MEMCPY3D_v1 *copy)
{
	return (CUDA_MEMCPY3D){ SIDE_3D(copy, src), SIDE_3D(copy, dst),
		.reserved0 = copy->reserved0, .reserved1 = copy->reserved1,
		.WidthInBytes = copy->WidthInBytes, .Height = copy->Height, .Depth = copy->Depth };
}

#define BOX(name, kind, widen, parameters, stream)                           \
	CUresult obf_cuMemcpy##name parameters                               \
	{                                                                    \
		CUDA_MEMCPY##kind wide = { 0 };                              \
                                                                             \
		if (copy)                                                    \
			wide = widen(copy);                                  \
		return obf_cuMemcpy##name##_v2(copy ? &wide : NULL, stream); \
	}

BOX(2D, 2D, wide_2d, (const CUDA_MEMCPY2D_v1 *copy), NULL)
BOX(2DUnaligned, 2D, wide_2d, (const CUDA_MEMCPY2D_v1 *copy), NULL)
BOX(2DAsync, 2D, wide_2d, (const CUDA_MEMCPY2D_v1 *copy, CUstream stream), stream)
BOX(3D, 3D, wide_3d, (const CUDA_MEMCPY3D_v1 *copy), NULL)
BOX(3DAsync, 3D, wide_3d, (const CUDA_MEMCPY3D_v1 *copy, CUstream stream), stream)
