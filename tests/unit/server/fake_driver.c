/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A driver for tests: one device without virtual memory management whose calls block, print and
 * call back in defined ways. "Device memory" is this process's heap.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cuda_types.h"
#include "tests/one_device.h"

const char one_device_name[] = "fake";
const size_t one_device_bytes = 1 << 20;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int released;
static char context_object;

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t size);
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t size)
{
	void *p = size <= 1 << 20 ? calloc(1, size) : NULL;

	*ret = (CUdeviceptr)(uintptr_t)p;
	return p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p);
EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
	free((void *)(uintptr_t)p);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size);
EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	memcpy((void *)(uintptr_t)dst, src, size);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(
	CUdeviceptr dst, const void *src, size_t size, CUstream stream);
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	(void)stream;
	return cuMemcpyHtoD_v2(dst, src, size);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream);
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	(void)stream;
	memcpy(dst, (const void *)(uintptr_t)src, size);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	const char *src = copy->srcMemoryType == CU_MEMORYTYPE_HOST
		? copy->srcHost
		: (const char *)(uintptr_t)copy->srcDevice;
	char *dst = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost
							      : (char *)(uintptr_t)copy->dstDevice;

	(void)stream;
	if ((copy->Height > 1 &&
		    (copy->srcPitch < copy->WidthInBytes || copy->dstPitch < copy->WidthInBytes)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t y = 0; y < copy->Height; y++)
		memcpy(dst + y * copy->dstPitch, src + y * copy->srcPitch, copy->WidthInBytes);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream);
EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}

/* Blocks until a memset is called. */
EXPORT CUresult cuCtxSynchronize(void);
EXPORT CUresult cuCtxSynchronize(void)
{
	pthread_mutex_lock(&lock);
	while (!released)
		pthread_cond_wait(&changed, &lock);
	released = 0;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t size, CUstream stream);
EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t size, CUstream stream)
{
	(void)stream;
	memset((void *)(uintptr_t)dst, value, size);
	pthread_mutex_lock(&lock);
	released = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

struct call {
	CUhostFn fn;
	void *user;
};

static void *call_later(void *argument)
{
	struct call *call = argument;

	call->fn(call->user);
	free(call);
	return NULL;
}

EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user);
EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user)
{
	struct call *call = malloc(sizeof *call);
	pthread_t thread;

	(void)stream;
	*call = (struct call){ fn, user };
	if (pthread_create(&thread, NULL, call_later, call) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	pthread_detach(thread);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *ret, const void *image);
EXPORT CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
	*ret = (CUmodule)&context_object;
	return strstr(image, "broken") ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadDataEx(
	CUmodule *ret, const void *image, unsigned int n, CUjit_option *options, void **values);
EXPORT CUresult cuModuleLoadDataEx(
	CUmodule *ret, const void *image, unsigned int n, CUjit_option *options, void **values)
{
	for (unsigned i = 0; i + 1 < n; i++)
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER &&
			options[i + 1] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			snprintf(values[i], (size_t)(uintptr_t)values[i + 1], "line 1: %s",
				strstr(image, "broken") ? "broken" : "fine");
	return cuModuleLoadData(ret, image);
}

EXPORT CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name);
EXPORT CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
	(void)module;
	*ret = (CUfunction)&context_object;
	return strcmp(name, "kernel") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The kernel prints its parameter. */
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy,
	unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
	CUstream stream, void **params, void **extra);
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy,
	unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
	CUstream stream, void **params, void **extra)
{
	(void)function;
	(void)stream;
	(void)params;
	if (!extra || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER ||
		extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	printf("grid %u %u %u block %u %u %u shared %u params %zu: %.*s\n", gx, gy, gz, bx, by, bz,
		shared, *(size_t *)extra[3], (int)*(size_t *)extra[3], (const char *)extra[1]);
	fprintf(stderr, "to stderr\n");
	return CUDA_SUCCESS;
}
