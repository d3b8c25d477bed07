/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The null driver as a library, with behaviour that its user chooses, so that tools/dev/measure can
 * put the same driver under servers of two builds. OUTBOARD_BENCH_DRIVER is a list of words:
 *
 *     copy        device memory exists, and copies copy, as on a machine whose CPU moves the bytes
 *     dma         a copy from the device writes one byte of each page, so that the pages exist
 *     plain       no virtual memory management: cuMemAlloc only
 *     kernel=US   a kernel takes US microseconds of its stream, without using a processor
 *
 * Any thread may call. A stream and an event are only as safe as the caller makes them, as with
 * other drivers.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "protocol/obs_null.c"

#define EXPORT        __attribute__((visibility("default")))
#define PAGE_BYTES    4096u
#define NS_OF_US      1000ull
#define NS_OF_SECOND  1000000000ull
#define HANDLES_BELOW 16u /* CU_STREAM_LEGACY and the like are small numbers */

/* When everything enqueued so far is done, in ns of the monotonic clock. */
struct moment {
	_Atomic uint64_t done;
};

static bool copying, touching, plain;
static uint64_t kernel_ns;
static struct moment default_stream, latest;

static __attribute__((constructor)) void read_environment(void)
{
	const char *words = getenv("OUTBOARD_BENCH_DRIVER"), *kernel;

	if (!words)
		return;
	copying = strstr(words, "copy") != NULL;
	touching = strstr(words, "dma") != NULL;
	plain = strstr(words, "plain") != NULL;
	kernel = strstr(words, "kernel=");
	if (kernel)
		kernel_ns = strtoull(kernel + strlen("kernel="), NULL, 10) * NS_OF_US;
}

/* ---- memory ---- */

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	CUresult result = obs_null_cuDeviceGetAttribute(value, attribute, device);

	if (plain && attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
		*value = 0;
	return result;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
	CUdeviceptr addr, unsigned long long flags);
EXPORT CUresult cuMemAddressReserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	void *memory;

	if (plain)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!copying)
		return obs_null_cuMemAddressReserve(ptr, size, alignment, addr, flags);
	/*
	 * A page appears when it is first written. Shared, because a worker's private memory is
	 * limited.
	 */
	memory = mmap((void *)addr, size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | (addr ? MAP_FIXED_NOREPLACE : 0), -1,
		0);
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ptr = (CUdeviceptr)memory;
	return CUDA_SUCCESS;
}

CUresult obs_null_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	if (copying)
		munmap((void *)ptr, size);
	return CUDA_SUCCESS;
}

CUresult obs_null_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	if (copying)
		madvise((void *)ptr, size, MADV_REMOVE);
	return CUDA_SUCCESS;
}

static CUresult copy_up(CUdeviceptr dst, const void *src, size_t bytes)
{
	if (copying)
		memcpy((void *)dst, src, bytes);
	return CUDA_SUCCESS;
}

static CUresult copy_down(void *dst, CUdeviceptr src, size_t bytes)
{
	volatile char *pages = dst;

	if (copying)
		memcpy(dst, (const void *)src, bytes);
	for (size_t i = 0; touching && i < bytes; i += PAGE_BYTES)
		pages[i] = 1;
	return CUDA_SUCCESS;
}

CUresult obs_null_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
	return copy_up(dst, src, bytes);
}

CUresult obs_null_cuMemcpyHtoDAsync_v2(
	CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	(void)stream;
	return copy_up(dst, src, bytes);
}

CUresult obs_null_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
	return copy_down(dst, src, bytes);
}

CUresult obs_null_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	(void)stream;
	return copy_down(dst, src, bytes);
}

/* ---- time ---- */

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_OF_SECOND + (uint64_t)ts.tv_nsec;
}

static struct moment *of_stream(CUstream stream)
{
	return (uintptr_t)stream < HANDLES_BELOW ? &default_stream : (struct moment *)stream;
}

static bool is_done(const struct moment *moment)
{
	uint64_t done = kernel_ns ? atomic_load_explicit(&moment->done, memory_order_relaxed) : 0;

	return done == 0 || now() >= done;
}

static CUresult wait_for(const struct moment *moment)
{
	uint64_t done = kernel_ns ? atomic_load_explicit(&moment->done, memory_order_relaxed) : 0;
	struct timespec ts = { .tv_sec = (time_t)(done / NS_OF_SECOND),
		.tv_nsec = (long)(done % NS_OF_SECOND) };

	while (!is_done(moment))
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL); /* poll */
	return CUDA_SUCCESS;
}

static CUresult run_kernel(CUstream stream)
{
	struct moment *moment = of_stream(stream);
	uint64_t began, done;

	if (!kernel_ns)
		return CUDA_SUCCESS;
	began = now();
	done = atomic_load_explicit(&moment->done, memory_order_relaxed);
	done = (done > began ? done : began) + kernel_ns;
	atomic_store_explicit(&moment->done, done, memory_order_relaxed);
	if (done > atomic_load_explicit(&latest.done, memory_order_relaxed))
		atomic_store_explicit(&latest.done, done, memory_order_relaxed);
	return CUDA_SUCCESS;
}

CUresult obs_null_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared, CUstream stream, void **params, void **extra)
{
	(void)function;
	(void)grid_x;
	(void)grid_y;
	(void)grid_z;
	(void)block_x;
	(void)block_y;
	(void)block_z;
	(void)shared;
	(void)params;
	(void)extra;
	return run_kernel(stream);
}

CUresult obs_null_cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	(void)function;
	(void)params;
	(void)extra;
	return run_kernel(config->hStream);
}

static CUresult make(void **ret)
{
	*ret = calloc(1, sizeof(struct moment));
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obs_null_cuStreamCreate(CUstream *stream, unsigned int flags)
{
	(void)flags;
	return make((void **)stream);
}

CUresult obs_null_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	(void)flags;
	(void)priority;
	return make((void **)stream);
}

CUresult obs_null_cuStreamDestroy_v2(CUstream stream)
{
	free(stream);
	return CUDA_SUCCESS;
}

CUresult obs_null_cuEventCreate(CUevent *event, unsigned int flags)
{
	(void)flags;
	return make((void **)event);
}

CUresult obs_null_cuEventDestroy_v2(CUevent event)
{
	free(event);
	return CUDA_SUCCESS;
}

CUresult obs_null_cuEventRecord(CUevent event, CUstream stream)
{
	uint64_t done = atomic_load_explicit(&of_stream(stream)->done, memory_order_relaxed);

	atomic_store_explicit(&((struct moment *)event)->done, done, memory_order_relaxed);
	return CUDA_SUCCESS;
}

CUresult obs_null_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	(void)flags;
	return obs_null_cuEventRecord(event, stream);
}

CUresult obs_null_cuEventQuery(CUevent event)
{
	return is_done((struct moment *)event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult obs_null_cuStreamQuery(CUstream stream)
{
	return is_done(of_stream(stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult obs_null_cuEventSynchronize(CUevent event)
{
	return wait_for((struct moment *)event);
}

CUresult obs_null_cuStreamSynchronize(CUstream stream)
{
	return wait_for(of_stream(stream));
}

CUresult obs_null_cuCtxSynchronize(void)
{
	return wait_for(&latest);
}

CUresult obs_null_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	struct moment *moment = of_stream(stream);
	uint64_t done = atomic_load_explicit(&((struct moment *)event)->done, memory_order_relaxed);

	(void)flags;
	if (done > atomic_load_explicit(&moment->done, memory_order_relaxed))
		atomic_store_explicit(&moment->done, done, memory_order_relaxed);
	return CUDA_SUCCESS;
}

/* ---- what the library exports ---- */

#define X(call) EXPORT __typeof__(obs_null_##call) call __attribute__((alias("null_" #call)));
#include "bench_exports.inc"
#undef X
