/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the programs that test which calls synchronise: the objects that the calls need, which
 * the program makes, and the calls as functions without arguments, for tables.
 */
#ifndef TESTS_PROGRAMS_SYNC_CALLS_H
#define TESTS_PROGRAMS_SYNC_CALLS_H

#include "driver.h"

#define LARGE (1u << 20) /* bytes: more than any upload that CUDA copies at the call */
#define PAGE  4096u

static CUdevice device;
static CUcontext context;
static CUdeviceptr memory; /* LARGE bytes */
static CUstream stream;
static CUmodule module;
static CUlibrary library;
static CUevent event;
static void *pinned, *aligned; /* memory of CUDA, and registered with it */
static char *pageable;         /* LARGE bytes */

static inline CUresult mem_free(void)
{
	return cuMemFree(memory);
}

static inline CUresult mem_free_host(void)
{
	return cuMemFreeHost(pinned);
}

static inline CUresult host_unregister(void)
{
	return cuMemHostUnregister(aligned);
}

static inline CUresult module_unload(void)
{
	return cuModuleUnload(module);
}

static inline CUresult library_unload(void)
{
	return cuLibraryUnload(library);
}

static inline CUresult ctx_synchronize(void)
{
	return cuCtxSynchronize();
}

static inline CUresult htod_large(void)
{
	return cuMemcpyHtoD(memory, pageable, LARGE);
}

static inline CUresult dtoh(void)
{
	return cuMemcpyDtoH(pageable, memory, PAGE);
}

static inline CUresult ctx_destroy(void)
{
	return cuCtxDestroy(context);
}

static inline CUresult primary_reset(void)
{
	return cuDevicePrimaryCtxReset(device);
}

static inline CUresult primary_release(void)
{
	return cuDevicePrimaryCtxRelease(device);
}

#endif
