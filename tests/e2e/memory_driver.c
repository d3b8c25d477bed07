/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A driver for tests: one device without virtual memory management, whose memory is shared by all
 * processes, as that of a GPU is. MEMORY_DRIVER_FILE names the file that holds how much is used, in
 * bytes (64 bits). It is mapped when the library is loaded, before the worker is confined.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cuda_types.h"
#include "tests/one_device.h"

const char one_device_name[] = "shared memory";
const size_t one_device_bytes = (size_t)8 << 30;

static _Atomic uint64_t *used;

__attribute__((constructor)) static void used_map(void)
{
	const char *path = getenv("MEMORY_DRIVER_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd >= 0 ? mmap(NULL, sizeof *used, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
			  : MAP_FAILED;

	if (fd >= 0)
		close(fd);
	used = p == MAP_FAILED ? NULL : p;
}

/* The size of an allocation is in its address. */
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t size);
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t size)
{
	static _Atomic uint64_t made;

	*ret = ((made++ & 0xff) + 1) << 36 | size;
	atomic_fetch_add(used, size);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p);
EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
	atomic_fetch_sub(used, p & 0xfffffffff);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t n, CUstream stream);
EXPORT CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t n, CUstream stream)
{
	(void)p;
	(void)value;
	(void)n;
	(void)stream;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void);
EXPORT CUresult cuCtxSynchronize(void)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
EXPORT CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	if (!used)
		return CUDA_ERROR_NOT_INITIALIZED;
	*ret_total = one_device_bytes;
	*ret_free = one_device_bytes - atomic_load(used);
	return CUDA_SUCCESS;
}
