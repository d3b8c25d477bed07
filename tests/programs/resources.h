/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What texture and surface objects are made of. */
#ifndef TESTS_PROGRAMS_RESOURCES_H
#define TESTS_PROGRAMS_RESOURCES_H

#include <string.h>

#include <cuda.h>

static inline CUDA_RESOURCE_DESC of_array(CUarray handle)
{
	CUDA_RESOURCE_DESC resource;

	memset(&resource, 0, sizeof resource);
	resource.resType = CU_RESOURCE_TYPE_ARRAY;
	resource.res.array.hArray = handle;
	return resource;
}

/* Floats. */
static inline CUDA_RESOURCE_DESC of_linear(CUdeviceptr addr, size_t size)
{
	CUDA_RESOURCE_DESC resource;

	memset(&resource, 0, sizeof resource);
	resource.resType = CU_RESOURCE_TYPE_LINEAR;
	resource.res.linear.devPtr = addr;
	resource.res.linear.format = CU_AD_FORMAT_FLOAT;
	resource.res.linear.numChannels = 1;
	resource.res.linear.sizeInBytes = size;
	return resource;
}

/* Rows of bytes. */
static inline CUDA_RESOURCE_DESC of_rows(
	CUdeviceptr addr, unsigned channels, size_t width, size_t height, size_t pitch)
{
	CUDA_RESOURCE_DESC resource;

	memset(&resource, 0, sizeof resource);
	resource.resType = CU_RESOURCE_TYPE_PITCH2D;
	resource.res.pitch2D.devPtr = addr;
	resource.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
	resource.res.pitch2D.numChannels = channels;
	resource.res.pitch2D.width = width;
	resource.res.pitch2D.height = height;
	resource.res.pitch2D.pitchInBytes = pitch;
	return resource;
}

#endif
