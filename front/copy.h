/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Converts the parameter structs of copies to struct obf_copy and checks them. The addresses of an
 * empty copy (an extent of 0) are undefined. Error: CUDA_ERROR_INVALID_VALUE, also for arrays, whose
 * copies are in array_copy.c. No state; any thread.
 */
#ifndef OBF_COPY_H
#define OBF_COPY_H

#include "front/front.h"

/* One side of a copy, as the program gave it. */
struct obf_copy_side {
	CUmemorytype type;
	CUarray array;
	uint64_t address; /* the pointer that the memory type selects; offsets not applied */
	size_t x, y, z, lod, pitch, height;
};

/* Unified pointers are in the device field. */
static inline uint64_t obf_copy_address(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
}

/*
 * The members of struct obf_copy_side from the parameters of one side, `src` or `dst`. The structs
 * for two dimensions, three dimensions and peers name them alike.
 */
#define OBF_SIDE_2D(copy, side)                                                      \
	.type = (copy)->side##MemoryType, .array = (copy)->side##Array,              \
	.address = obf_copy_address(                                                 \
		(copy)->side##MemoryType, (copy)->side##Host, (copy)->side##Device), \
	.x = (copy)->side##XInBytes, .y = (copy)->side##Y, .pitch = (copy)->side##Pitch
#define OBF_SIDE_3D(copy, side)                                                  \
	OBF_SIDE_2D(copy, side), .z = (copy)->side##Z, .lod = (copy)->side##LOD, \
				 .height = (copy)->side##Height

/*
 * Computes the first byte, the pitch and the slice of a side that is memory, and whether it is
 * device memory, for a copy whose extent is set and not empty.
 */
CUresult obf_copy_side_place(const struct obf_copy_side *side, const struct obf_copy *copy,
	bool *ret_device, uint64_t *ret_first, size_t *ret_pitch, size_t *ret_slice);

CUresult obf_copy_from_2d(const CUDA_MEMCPY2D *copy, struct obf_copy *ret);
CUresult obf_copy_from_3d(const CUDA_MEMCPY3D *copy, struct obf_copy *ret);
/* The caller resolves the contexts. */
CUresult obf_copy_from_peer(const CUDA_MEMCPY3D_PEER *copy, struct obf_copy *ret);

#endif
