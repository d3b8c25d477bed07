/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */

/*
 * Names that CUDA 13 removed from the runtime's headers, for nvcc's -include: programs written for CUDA
 * 12 and earlier compile as they are. clockRate and memoryClockRate are fields that the programs only
 * print: what they print there means nothing.
 */
#ifndef OUTBOARD_TESTS_CUDA12_NAMES_H
#define OUTBOARD_TESTS_CUDA12_NAMES_H

#include <cuda_runtime.h>

#define cudaThreadSynchronize    cudaDeviceSynchronize
#define cudaThreadExit           cudaDeviceReset
#define cudaThreadSetCacheConfig cudaDeviceSetCacheConfig
#define clockRate                reserved[0]
#define memoryClockRate          reserved[1]

#ifdef __cplusplus

static inline cudaMemLocation cuda12_location(int device)
{
	cudaMemLocation location = {};

	location.type =
		device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
	location.id = device == cudaCpuDeviceId ? 0 : device;
	return location;
}

static inline cudaError_t cudaMemPrefetchAsync(
	const void *address, size_t size, int device, cudaStream_t stream = 0)
{
	return cudaMemPrefetchAsync(address, size, cuda12_location(device), 0, stream);
}

static inline cudaError_t cudaMemAdvise(
	const void *address, size_t size, cudaMemoryAdvise advice, int device)
{
	return cudaMemAdvise(address, size, advice, cuda12_location(device));
}

#endif

#endif
