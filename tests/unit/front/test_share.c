/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What processes share: the arguments that the front end refuses, how often an allocation is open,
 * and what ends with a context.
 */
#include "front.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define INVALID CUDA_ERROR_INVALID_VALUE
#define LAZY    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
#define POSIX   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define ALL     (OBF_SHARES_VMM | OBF_SHARES_RANGES | OBF_SHARES_EVENTS | OBF_SHARES_POOLS)

static CUcontext begin_with(unsigned shares)
{
	fake.shares = shares;
	return begin();
}

static int attribute(CUdevice_attribute attr)
{
	int value = -1;

	OK(obf_cuDeviceGetAttribute(&value, attr, 0));
	return value;
}

TEST(not_offered)
{
	const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = POSIX,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemGenericAllocationHandle memory;
	CUmemPoolPtrExportData data = { { 0 } };
	CUipcEventHandle event_handle = { { 0 } };
	CUipcMemHandle handle = { { 0 } };
	CUmemoryPool pool;
	CUdeviceptr p = 0;
	CUevent event;
	int fd;

	begin_with(0);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), 0);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED), 0);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES), 0);
	CHECK_INT(obf_cuIpcGetMemHandle(&handle, p), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(&p, handle, LAZY), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuIpcCloseMemHandle(p), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuIpcGetEventHandle(&event_handle, NULL), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuIpcOpenEventHandle(&event, event_handle), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING),
		CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemExportToShareableHandle(&fd, 1, POSIX, 0), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(
		obf_cuMemImportFromShareableHandle(&memory, NULL, POSIX), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemPoolExportToShareableHandle(&fd, NULL, POSIX, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemPoolImportFromShareableHandle(&pool, NULL, POSIX, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemPoolExportPointer(&data, p), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemPoolImportPointer(&p, NULL, &data), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(attributes)
{
	begin_with(ALL);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), 1);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED), 1);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES), POSIX);
}

/* A handle as another process has made it. */
static CUipcMemHandle foreign(uint64_t id, uint64_t offset, uint64_t size, uint64_t span)
{
	struct obf_share share = { .id = { id }, .offset = offset, .size = size, .span = span };
	CUipcMemHandle handle = { { 0 } };

	obf_share_seal(&share, OBF_SHARE_RANGE);
	memcpy(&handle, &share, sizeof share);
	return handle;
}

TEST(opened_more_than_once)
{
	CUipcMemHandle handle = foreign(7, 4096, 100, OBF_VMM_PAGE), zeros = { { 0 } };
	CUdeviceptr p = 0, q = 0;
	size_t size = 0;
	int capable;

	begin_with(ALL);
	OK(obf_cuIpcOpenMemHandle_v2(&p, handle, LAZY));
	OK(obf_cuIpcOpenMemHandle_v2(&q, handle, LAZY));
	CHECK(p == q && fake.opens == 1);
	OK(obf_cuMemGetAddressRange_v2(&q, &size, p + 99));
	CHECK(q == p && size == 100);
	OK(obf_cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
	CHECK(!capable);
	CHECK_INT(obf_cuIpcGetMemHandle(&handle, p), INVALID);
	CHECK_INT(obf_cuMemFree_v2(p), INVALID);
	CHECK_INT(obf_cuIpcCloseMemHandle(p + 1), INVALID);
	OK(obf_cuIpcCloseMemHandle(p));
	CHECK(fake.opens == 1 && obf_mem_find(p, NULL));
	OK(obf_cuIpcCloseMemHandle(p));
	CHECK(fake.opens == 0 && !obf_mem_find(p, NULL));
	CHECK_INT(obf_cuIpcCloseMemHandle(p), INVALID);
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(&p, zeros, LAZY), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(NULL, handle, LAZY), INVALID);
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(&p, handle, 0), INVALID);
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(&p, foreign(7, 0, 0, 4096), LAZY),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(&p, foreign(7, 4096, 1, 4096), LAZY),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(&p, foreign(7, UINT64_MAX, 2, 4096), LAZY),
		CUDA_ERROR_INVALID_HANDLE);
	fake.share_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(&p, foreign(8, 0, 1, 4096), LAZY),
		CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(fake.opens == 0);
}

TEST(ends_with_its_context)
{
	CUipcMemHandle handle = foreign(7, 0, 100, OBF_VMM_PAGE);
	CUcontext primary = begin_with(ALL), other;
	CUdeviceptr p = 0;
	int syncs;

	OK(obf_cuCtxCreate_v2(&other, 0, 0));
	OK(obf_cuIpcOpenMemHandle_v2(&p, handle, LAZY));
	OK(obf_cuCtxSetCurrent(primary));
	syncs = fake.syncs;
	/* The work of both contexts may use it. */
	OK(obf_cuIpcCloseMemHandle(p));
	CHECK(fake.syncs == syncs + 2 && fake.opens == 0);
	OK(obf_cuCtxSetCurrent(other));
	OK(obf_cuIpcOpenMemHandle_v2(&p, handle, LAZY));
	OK(obf_cuCtxSetCurrent(primary));
	CHECK_INT(obf_cuIpcOpenMemHandle_v2(&p, handle, LAZY), CUDA_ERROR_INVALID_CONTEXT);
	OK(obf_cuCtxDestroy_v2(other));
	CHECK(fake.opens == 0 && !obf_mem_find(p, NULL));
	OK(obf_cuIpcOpenMemHandle_v2(&p, handle, LAZY));
	CHECK(fake.opens == 1);
	OK(obf_cuIpcCloseMemHandle(p));
}

TEST(exported_memory)
{
	CUipcMemHandle handle, zeros = { { 0 } };
	CUdeviceptr p;
	int capable = 0;

	begin_with(ALL);
	OK(obf_cuMemAlloc_v2(&p, 1000));
	OK(obf_cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
	CHECK(capable);
	memset(&handle, 0x77, sizeof handle);
	OK(obf_cuIpcGetMemHandle(&handle, p));
	/* No byte of it is left as it was. */
	CHECK(memcmp((char *)&handle + sizeof(struct obf_share), &zeros,
		      sizeof handle - sizeof(struct obf_share)) == 0);
	CHECK_INT(obf_cuIpcGetMemHandle(NULL, p), INVALID);
	CHECK_INT(obf_cuIpcGetMemHandle(&handle, 0), INVALID);
	CHECK_INT(obf_cuIpcGetMemHandle(&handle, p + 1000), INVALID);
	OK(obf_cuMemFree_v2(p));
	CHECK_INT(obf_cuIpcGetMemHandle(&handle, p), INVALID);
	CHECK_INT(fake.exports, 1);
}

TEST(events)
{
	CUipcEventHandle handle, zeros = { { 0 } };
	CUevent plain, event, opened;

	begin_with(ALL);
	OK(obf_cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	OK(obf_cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	CHECK_INT(obf_cuEventCreate(&opened, CU_EVENT_INTERPROCESS), INVALID);
	CHECK_INT(obf_cuIpcGetEventHandle(&handle, plain), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuIpcGetEventHandle(NULL, event), INVALID);
	OK(obf_cuIpcGetEventHandle(&handle, event));
	OK(obf_cuIpcOpenEventHandle(&opened, handle));
	CHECK(opened != event);
	/* Another process may have recorded it: the backend is asked. That of `plain` is not. */
	CHECK_INT(fake.looks, 0);
	OK(obf_cuEventQuery(plain));
	CHECK_INT(fake.looks, 0);
	OK(obf_cuEventQuery(opened));
	OK(obf_cuEventQuery(event));
	CHECK_INT(fake.looks, 2);
	CHECK_INT(obf_cuIpcOpenEventHandle(&opened, zeros), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuIpcOpenEventHandle(NULL, handle), INVALID);
	fake.share_result = CUDA_ERROR_INVALID_HANDLE;
	CHECK_INT(obf_cuIpcOpenEventHandle(&opened, handle), CUDA_ERROR_INVALID_HANDLE);
	OK(obf_cuEventDestroy_v2(event));
}

TEST(pools)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = POSIX,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 } };
	CUmemPoolPtrExportData data;
	struct obf_share share = { .size = 100, .span = OBF_VMM_PAGE };
	CUmemoryPool pool, imported;
	CUdeviceptr p;
	int fd = -1, again = -1;

	begin_with(ALL);
	OK(obf_cuMemPoolCreate(&pool, &props));
	OK(obf_cuMemPoolExportToShareableHandle(&fd, pool, POSIX, 0));
	OK(obf_cuMemPoolExportToShareableHandle(&again, pool, POSIX, 0));
	CHECK_INT(fake.exports, 1); /* it has one id */
	OK(obf_cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, POSIX, 0));
	CHECK_INT(write(fd, "x", 1), -1); /* sealed */
	close(fd);
	close(again);
	CHECK_INT(obf_cuMemPoolExportToShareableHandle(&fd, imported, POSIX, 0), INVALID);
	CHECK_INT(obf_cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_WIN32, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemPoolExportToShareableHandle(&fd, pool, POSIX, 1), INVALID);
	CHECK_INT(obf_cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)-1, POSIX, 0),
		INVALID);
	obf_share_seal(&share, OBF_SHARE_POINTER);
	share.pool = 1; /* the fake's first id */
	memset(&data, 0, sizeof data);
	memcpy(&data, &share, sizeof share);
	OK(obf_cuMemPoolImportPointer(&p, imported, &data));
	CHECK(fake.opens == 1);
	CHECK_INT(obf_cuMemPoolExportPointer(&data, p), INVALID);
	OK(obf_cuMemFree_v2(p));
	CHECK(fake.opens == 0);
	OK(obf_cuMemPoolImportPointer(&p, imported, &data));
	OK(obf_cuMemFreeAsync(p, NULL));
	CHECK(fake.opens == 0);
	CHECK_INT(obf_cuMemPoolImportPointer(&p, pool, &data), INVALID);
	CHECK_INT(obf_cuMemAllocFromPoolAsync(&p, 100, imported, NULL), INVALID);
	CHECK_INT(obf_cuDeviceSetMemPool(1, imported), INVALID);
	share.pool = 2;
	memcpy(&data, &share, sizeof share);
	CHECK_INT(obf_cuMemPoolImportPointer(&p, imported, &data), INVALID);
	OK(obf_cuMemPoolDestroy(imported));
	OK(obf_cuMemPoolDestroy(pool));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
