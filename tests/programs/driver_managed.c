/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Managed and mapped memory with the driver API: wrong uses and their error codes, attributes of
 * ranges and pointers, batches of prefetches, a signal handler of the program.
 */
#include <setjmp.h>
#include <signal.h>

#include "driver.h"

#define BYTES (1u << 20)

static const CUmemLocation cpu = { .type = CU_MEM_LOCATION_TYPE_HOST };
static const CUmemLocation gpu = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
static const CUmemLocation no_gpu = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 77 };
static const CUmemLocation numa = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA };

static void allocation(void)
{
	CUdeviceptr p = 0;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(NULL, BYTES, CU_MEM_ATTACH_GLOBAL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, BYTES, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_SINGLE));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, BYTES, 3));
	EXPECT(CUDA_ERROR_OUT_OF_MEMORY,
		cuMemAllocManaged(&p, (size_t)1 << 45, CU_MEM_ATTACH_GLOBAL));
	OK(p == 0);
	CU(cuMemAllocManaged(&p, 1, CU_MEM_ATTACH_HOST));
	*(char *)p = 1;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((void *)p));
	CU(cuMemFree(p));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}

static void advice(CUdeviceptr p, CUdeviceptr device)
{
	int value = 0, list[2];
	CUmem_range_attribute both[2] = { CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
		CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE };
	void *data[2] = { &list[0], &list[1] };
	size_t sizes[2] = { sizeof(int), sizeof(int) };

	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemAdvise(device, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemAdvise(p, BYTES + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(p, BYTES, (CUmem_advise)77, gpu));
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
		cuMemAdvise(p, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, no_gpu));
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
		cuMemAdvise(p, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, numa));
	CU(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, no_gpu));
	CU(cuMemAdvise(p + 4096, 4096, CU_MEM_ADVISE_UNSET_READ_MOSTLY, gpu));
	CU(cuMemAdvise(p, BYTES / 2, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu));
	CU(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu));
	CU(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, cpu));

	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemRangeGetAttribute(NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, BYTES));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemRangeGetAttribute(&value, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, BYTES));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemRangeGetAttribute(list, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, BYTES));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemRangeGetAttribute(&value, 4, (CUmem_range_attribute)99, p, BYTES));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemRangeGetAttribute(
			&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, device, 4096));
	CU(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4096));
	OK(value == 1);
	CU(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4097));
	OK(value == 0);
	CU(cuMemRangeGetAttribute(
		&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, BYTES / 2));
	OK(value == 0);
	CU(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, BYTES));
	OK(value == CU_DEVICE_INVALID);
	CU(cuMemRangeGetAttribute(list, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, BYTES));
	OK(list[0] == CU_DEVICE_CPU && list[1] == 0);
	CU(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_UNSET_ACCESSED_BY, cpu));
	CU(cuMemRangeGetAttribute(list, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, BYTES));
	OK(list[0] == 0 && list[1] == CU_DEVICE_INVALID);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, sizes, both, 0, p, BYTES));
	CU(cuMemRangeGetAttributes(data, sizes, both, 2, p + 8192, 4096));
	OK(list[0] == 1 && list[1] == CU_MEM_LOCATION_TYPE_DEVICE);
	CU(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, cpu));
	CU(cuMemRangeGetAttributes(data, sizes, both, 2, p + 8192, 4096));
	OK(list[0] == 1 && list[1] == CU_MEM_LOCATION_TYPE_INVALID);
	puts("advice");
}

static void prefetch(CUdeviceptr p, CUdeviceptr device, CUstream stream)
{
	CUdeviceptr ptrs[3] = { p, p + 4096, p + BYTES / 2 };
	size_t sizes[3] = { 100, 4096, BYTES / 2 }, firsts[2] = { 0, 2 }, wrong[2] = { 0, 3 };
	CUmemLocation where[2] = { gpu, cpu };
	int value = 0;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(p, BYTES, gpu, 1, stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(device, 4096, gpu, 0, stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(p + 1, BYTES, gpu, 0, stream));
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(p, BYTES, no_gpu, 0, stream));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuMemPrefetchAsync(p, BYTES, gpu, 0, (CUstream)0x7777));
	((int *)p)[1000] = 5;
	CU(cuMemPrefetchAsync(p, BYTES, gpu, 0, stream));
	CU(cuMemPrefetchAsync(p, BYTES, cpu, 0, 0));
	OK(((int *)p)[1000] == 5 && ((int *)p)[1001] == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemPrefetchBatchAsync(ptrs, sizes, 3, where, firsts, 2, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemPrefetchBatchAsync(ptrs, sizes, 3, where, firsts, 2, 1, stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemPrefetchBatchAsync(ptrs, sizes, 3, where, wrong, 2, 0, stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemPrefetchBatchAsync(ptrs, sizes, 0, where, firsts, 2, 0, stream));
	CU(cuMemPrefetchBatchAsync(ptrs, sizes, 3, where, firsts, 2, 0, stream));
	CU(cuMemRangeGetAttribute(
		&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, p, 100));
	OK(value == CU_MEM_LOCATION_TYPE_DEVICE);
	CU(cuMemRangeGetAttribute(
		&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, p, 100));
	OK(value == 0);
	CU(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
		p + BYTES / 2, BYTES / 2));
	OK(value == CU_DEVICE_CPU);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(ptrs, sizes, 3, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(NULL, sizes, 3, 0, stream));
	CU(cuMemDiscardBatchAsync(ptrs, sizes, 1, 0, stream));
	CU(cuMemDiscardAndPrefetchBatchAsync(ptrs, sizes, 1, where, firsts, 1, 0, stream));
	CU(cuStreamSynchronize(stream));
	OK(((int *)p)[1024] == 0 && ((int *)p)[1000] == 5);
	puts("prefetch");
}

/* The calls from before CUDA 12 name a location by a device number. */
static void old_calls(CUdeviceptr p)
{
	CUresult (*old_advise)(CUdeviceptr, size_t, CUmem_advise, CUdevice);
	CUresult (*old_prefetch)(CUdeviceptr, size_t, CUdevice, CUstream);
	int value = 7;

	*(void **)&old_advise = driver_entry("cuMemAdvise");
	*(void **)&old_prefetch = driver_entry("cuMemPrefetchAsync");
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
		old_advise(p, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 77));
	CU(old_advise(p, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
	CU(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, BYTES));
	OK(value == CU_DEVICE_CPU);
	EXPECT(CUDA_ERROR_INVALID_DEVICE, old_prefetch(p, BYTES, -2, 0));
	CU(old_prefetch(p, BYTES, 0, 0));
	CU(cuMemRangeGetAttribute(
		&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, BYTES));
	OK(value == 0);
	puts("old calls");
}

static void attach(CUdeviceptr p, CUdeviceptr device, CUstream stream)
{
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, p, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, p, 0, 3));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuStreamAttachMemAsync(stream, p, 100, CU_MEM_ATTACH_SINGLE));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuStreamAttachMemAsync(stream, p + 4096, 0, CU_MEM_ATTACH_SINGLE));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuStreamAttachMemAsync(stream, device, 0, CU_MEM_ATTACH_SINGLE));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(0, p, 0, CU_MEM_ATTACH_SINGLE));
	CU(cuStreamAttachMemAsync(stream, p, 0, CU_MEM_ATTACH_HOST));
	CU(cuStreamAttachMemAsync(stream, p, BYTES, CU_MEM_ATTACH_SINGLE));
	CU(cuStreamSynchronize(stream));
	CU(cuMemsetD32Async(p, 77, BYTES / 4, stream));
	CU(cuStreamSynchronize(stream));
	OK(((int *)p)[0] == 77 && ((int *)p)[BYTES / 4 - 1] == 77);
	CU(cuStreamAttachMemAsync(0, p, 0, CU_MEM_ATTACH_GLOBAL));
	puts("attach");
}

static void pointers(CUdeviceptr p, CUdeviceptr device)
{
	unsigned type = 0;
	CUdeviceptr base = 0, mapped = 0;
	unsigned managed = 7;
	size_t size = 0;
	void *host = NULL;

	CU(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p + 9));
	OK(managed == 1);
	CU(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, device));
	OK(managed == 0);
	CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	OK(type == CU_MEMORYTYPE_DEVICE);
	CU(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 9));
	OK((CUdeviceptr)host == p + 9);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, device));
	CU(cuMemGetAddressRange(&base, &size, p + 100));
	OK(base == p && size == BYTES);
	CU(cuMemHostAlloc(&host, 5000, CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&mapped, (char *)host + 10, 0));
	OK(mapped == (CUdeviceptr)host + 10);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&mapped, host, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)host));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemAdvise((CUdeviceptr)host, 10, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
	CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)host));
	OK(type == CU_MEMORYTYPE_HOST);
	CU(cuMemFreeHost(host));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
	puts("pointers");
}

/* ---- faults that are the program's own ---- */

static sigjmp_buf back;
static volatile sig_atomic_t faults;

static void on_fault(int sig)
{
	(void)sig;
	faults++;
	siglongjmp(back, 1);
}

static void fault_once(void)
{
	static volatile int *volatile nowhere = (int *)64;

	if (!sigsetjmp(back, 1))
		*nowhere = 1;
}

static void device_and_host(CUdeviceptr p, int value)
{
	CU(cuMemsetD32(p, (unsigned)value, BYTES / 4));
	OK(((int *)p)[0] == value && ((int *)p)[BYTES / 4 - 1] == value);
}

static void signals(CUdeviceptr p)
{
	struct sigaction action = { .sa_handler = on_fault };

	/* Installed after the library's own handler: still called, and only for its faults. */
	device_and_host(p, 1);
	sigaction(SIGSEGV, &action, NULL);
	fault_once();
	OK(faults == 1);
	device_and_host(p, 2);
	OK(faults == 1);
	fault_once();
	OK(faults == 2);
	device_and_host(p, 3);
	OK(faults == 2);
	puts("signals");
}

/* A handler on a small stack of its own, which is too small for what an access needs. */
static void small_stack(CUdeviceptr p)
{
	static char room[8192];
	stack_t small = { .ss_sp = room, .ss_size = sizeof room },
		none = { .ss_flags = SS_DISABLE };
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK };

	sigaltstack(&small, NULL);
	sigaction(SIGSEGV, &action, NULL);
	device_and_host(p, 4);
	fault_once();
	OK(faults == 3);
	device_and_host(p, 5);
	sigaltstack(&none, NULL);
	puts("small stack");
}

/* Memory ends with its context, and the next context has its own. */
static void contexts(CUdevice ordinal, CUcontext primary)
{
	static volatile int *volatile gone;
	CUdeviceptr kept, freed;
	CUcontext ctx;
	int before = faults;

	for (int round = 0; round < 3; round++) {
		CU(cuCtxCreate(&ctx, NULL, 0, ordinal));
		CU(cuMemAllocManaged(&kept, BYTES, CU_MEM_ATTACH_GLOBAL));
		CU(cuMemAllocManaged(&freed, 100, CU_MEM_ATTACH_GLOBAL));
		OK(((int *)kept)[1] == 0 && ((int *)freed)[1] == 0);
		((int *)freed)[1] = 1;
		device_and_host(kept, round + 1);
		OK(((int *)freed)[1] == 1);
		if (round != 1)
			CU(cuMemFreeAsync(freed, 0));
		CU(cuCtxDestroy(ctx));
		gone = (int *)kept;
		if (!sigsetjmp(back, 1))
			before += *gone; /* nothing is there */
		OK(faults == before + round + 1);
	}
	CU(cuCtxSetCurrent(primary));
	puts("contexts");
}

int main(void)
{
	struct sigaction before = { .sa_handler = on_fault };
	CUdeviceptr p, device;
	CUdevice ordinal;
	CUstream stream;
	CUcontext ctx;
	int value = 7;

	sigaction(SIGSEGV, &before, NULL);
	fault_once();
	OK(faults == 1);
	CU(cuInit(0));
	CU(cuDeviceGet(&ordinal, 0));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_GLOBAL));
	CU(cuDevicePrimaryCtxRetain(&ctx, ordinal));
	CU(cuCtxSetCurrent(ctx));
	CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, ordinal));
	OK(value == 0);
	CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, ordinal));
	OK(value == 1);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_GLOBAL));
	CU(cuMemAlloc(&device, 4096));
	allocation();
	prefetch(p, device, stream);
	advice(p, device);
	old_calls(p);
	attach(p, device, stream);
	pointers(p, device);
	fault_once();
	OK(faults == 2);
	faults = 0;
	signals(p);
	small_stack(p);
	CU(cuMemFree(p));
	contexts(ordinal, ctx);
	CU(cuMemFree(device));
	CU(cuStreamDestroy(stream));
	CU(cuDevicePrimaryCtxRelease(ordinal));
	return verdict("driver_managed");
}
