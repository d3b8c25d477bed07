/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A driver for tests: one device without virtual memory management whose calls block, print and
 * call back in defined ways. "Device memory" is this process's heap.
 *
 * A memset with the value FAKE_BEGIN begins a piece of work of the device, FAKE_END ends the
 * oldest, FAKE_COUNT and FAKE_TEXREFS answer questions (fake_driver.h), and any other value ends
 * all.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cuda_types.h"
#include "tests/one_device.h"
#include "tests/unit/server/fake_driver.h"
#include "tests/unit/server/fake_texrefs.h"

const char one_device_name[] = "fake";
const size_t one_device_bytes = 1 << 20;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned begun, ended; /* pieces of work */
static char context_object;

/* Never freed, like events, so that the use of a destroyed one is seen. */
struct context {
	struct context *next;
	bool destroyed;
};

struct event {
	unsigned at; /* complete when so many pieces have ended */
	bool destroyed;
	const struct context *context; /* NULL: the primary one */
};

static struct context *contexts; /* under lock; without the primary one */
static _Thread_local CUcontext current;

/* NULL: no context, or the primary one. */
static struct context *context_of(CUcontext context)
{
	struct context *c;

	pthread_mutex_lock(&lock);
	for (c = contexts; c && (CUcontext)c != context;)
		c = c->next;
	pthread_mutex_unlock(&lock);
	return c;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context);
EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *ret, unsigned int flags, CUdevice device);
EXPORT CUresult cuCtxCreate_v2(CUcontext *ret, unsigned int flags, CUdevice device)
{
	struct context *c = calloc(1, sizeof *c);

	(void)flags;
	(void)device;
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	c->next = contexts;
	contexts = c;
	pthread_mutex_unlock(&lock);
	*ret = current = (CUcontext)c;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *ret);
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *ret)
{
	*ret = current;
	current = NULL;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context);
EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
	struct context *c = context_of(context);

	if (c)
		c->destroyed = true;
	return c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult current_check(void)
{
	const struct context *c = context_of(current);

	return c && c->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

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

/* Where copies from the device went, in host memory. Under the lock. */
static const void *places[64];
static uint64_t n_places;

static void place_note(const void *dst)
{
	uint64_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < n_places && places[i] != dst)
		i++;
	if (i == n_places && i < sizeof places / sizeof places[0])
		places[n_places++] = dst;
	pthread_mutex_unlock(&lock);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream);
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	(void)stream;
	place_note(dst);
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

static CUresult wait_until(unsigned at)
{
	pthread_mutex_lock(&lock);
	while (ended < at)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult look(unsigned at)
{
	bool complete;

	pthread_mutex_lock(&lock);
	complete = ended >= at;
	pthread_mutex_unlock(&lock);
	return complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static unsigned begun_now(void)
{
	unsigned now;

	pthread_mutex_lock(&lock);
	now = begun;
	pthread_mutex_unlock(&lock);
	return now;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream);
EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
	(void)stream;
	return wait_until(begun_now());
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned int flags, int priority);
EXPORT CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned int flags, int priority)
{
	(void)flags;
	(void)priority;
	*ret = (CUstream)&context_object;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream);
EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamQuery(CUstream stream);
EXPORT CUresult cuStreamQuery(CUstream stream)
{
	(void)stream;
	return look(begun_now());
}

EXPORT CUresult cuCtxSynchronize(void);
EXPORT CUresult cuCtxSynchronize(void)
{
	return wait_until(begun_now());
}

/* Events are never freed, so that the use of a destroyed one is seen. */
static struct event *event_of(CUevent event)
{
	struct event *e = (struct event *)event;

	if (!e->destroyed && !(e->context && e->context->destroyed))
		return e;
	fprintf(stderr, "fake driver: a destroyed event is used\n");
	abort();
}

EXPORT CUresult cuEventCreate(CUevent *ret, unsigned int flags);
EXPORT CUresult cuEventCreate(CUevent *ret, unsigned int flags)
{
	struct event *event = calloc(1, sizeof *event);

	(void)flags;
	*ret = (CUevent)event;
	if (event)
		event->context = context_of(current);
	return event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event);
EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
	event_of(event)->destroyed = true;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream);
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
	(void)stream;
	event_of(event)->at = begun_now();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event);
EXPORT CUresult cuEventQuery(CUevent event)
{
	CUresult result = current_check();

	return result == CUDA_SUCCESS ? look(event_of(event)->at) : result;
}

EXPORT CUresult cuEventSynchronize(CUevent event);
EXPORT CUresult cuEventSynchronize(CUevent event)
{
	return wait_until(event_of(event)->at);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t size, CUstream stream);
EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t size, CUstream stream)
{
	(void)stream;
	memset((void *)(uintptr_t)dst, value, size);
	if (value == FAKE_TEXREFS) {
		fake_texrefs_take((char *)(uintptr_t)dst, size);
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&lock);
	if (value == FAKE_COUNT)
		*(uint64_t *)(uintptr_t)dst = n_places;
	else if (value == FAKE_BEGIN)
		begun++;
	else if (value != FAKE_END)
		ended = begun;
	else if (ended < begun)
		ended++;
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
