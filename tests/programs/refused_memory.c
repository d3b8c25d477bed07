/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Wrong uses of managed, pinned and mapped memory, of pools, batches of copies, stream memory
 * operations and attributes of pointers. The codes are those that cuda.h documents.
 */
#include <sys/mman.h>

#include "refused.h"

#define BYTES ((size_t)8192)

static CUdevice device;
static CUcontext context;
static CUdeviceptr memory, managed;
static CUstream stream, gone;
static char host[8192];
static const CUstream odd = (CUstream)(uintptr_t)0x7777;

static void begin(void)
{
	CUdeviceptr behind;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&context, NULL, 0, device));
	CU(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	CU(cuMemAlloc(&memory, BYTES));
	/* Nothing is behind it. */
	CU(cuMemAlloc(&behind, BYTES));
	CU(cuMemFree(behind));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
	CU(cuStreamDestroy(gone));
}

/* ---- managed memory ---- */

static void managed_memory(void)
{
	const CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
			    nowhere = { CU_MEM_LOCATION_TYPE_DEVICE, -1 },
			    none = { CU_MEM_LOCATION_TYPE_INVALID, 0 };
	const CUmem_advise mostly = CU_MEM_ADVISE_SET_READ_MOSTLY;
	int value;

	begin();
	REFUSE_VALUE(cuMemAdvise(managed, BYTES + 1, mostly, here));
	REFUSE_VALUE(cuMemAdvise(managed + 1, (size_t)-1, mostly, here));
	REFUSE_VALUE(cuMemAdvise(memory, BYTES, mostly, here));
	REFUSE_VALUE(cuMemAdvise((CUdeviceptr)(uintptr_t)host, 64, mostly, here));
	REFUSE_VALUE(cuMemAdvise(0, 64, mostly, here));
	REFUSE_VALUE(cuMemAdvise(managed, BYTES, (CUmem_advise)0, here));
	REFUSE(INVALID_DEVICE,
		cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere));
	REFUSE_VALUE(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, none));
	REFUSE_VALUE(cuMemPrefetchAsync(managed, BYTES, none, 0, stream));
	REFUSE_VALUE(cuMemPrefetchAsync(managed, 0, here, 0, stream));
	REFUSE_VALUE(cuMemPrefetchAsync(managed + BYTES, 1, here, 0, stream));
	REFUSE_VALUE(cuMemPrefetchAsync(managed, (size_t)-1, here, 0, stream));
	REFUSE(INVALID_DEVICE, cuMemPrefetchAsync(managed, BYTES, nowhere, 0, stream));
	REFUSE(INVALID_HANDLE, cuMemPrefetchAsync(managed, BYTES, here, 0, gone));
	REFUSE_VALUE(cuMemRangeGetAttribute(
		NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, BYTES));
	REFUSE_VALUE(cuMemRangeGetAttribute(
		&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, BYTES));
	REFUSE_VALUE(cuMemRangeGetAttribute(
		&value, 0, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed, BYTES));
	REFUSE_VALUE(cuMemRangeGetAttribute(&value, 4, (CUmem_range_attribute)99, managed, BYTES));
	REFUSE_VALUE(cuMemRangeGetAttribute(
		&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, BYTES));
	REFUSE_VALUE(cuStreamAttachMemAsync(stream, memory, 0, CU_MEM_ATTACH_GLOBAL));
	REFUSE_VALUE(cuStreamAttachMemAsync(stream, managed + 4096, 0, CU_MEM_ATTACH_GLOBAL));
	REFUSE_VALUE(cuStreamAttachMemAsync(stream, managed, BYTES - 1, CU_MEM_ATTACH_GLOBAL));
	REFUSE_VALUE(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_SINGLE | 1));
	REFUSE_VALUE(cuStreamAttachMemAsync(CU_STREAM_LEGACY, managed, 0, CU_MEM_ATTACH_SINGLE));
	REFUSE(INVALID_HANDLE, cuStreamAttachMemAsync(gone, managed, 0, CU_MEM_ATTACH_SINGLE));
	REFUSE(INVALID_HANDLE, cuStreamAttachMemAsync(odd, managed, 0, CU_MEM_ATTACH_SINGLE));
	REFUSE(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister((void *)(uintptr_t)managed));
	REFUSE_VALUE(cuMemFreeHost((void *)(uintptr_t)managed));
	CU(cuMemFree(managed));
	REFUSE_VALUE(cuMemFree(managed));
	REFUSE_VALUE(cuMemFreeAsync(managed, stream));
	REFUSE_VALUE(cuMemAdvise(managed, BYTES, mostly, here));
	REFUSE_VALUE(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_GLOBAL));
}

static void managed_batches(void)
{
	CUdeviceptr ptrs[2];
	size_t sizes[2] = { BYTES, BYTES }, firsts[2] = { 0, 1 }, wrong[2] = { 1, 0 },
	       far[2] = { 0, 2 };
	CUmemLocation places[3] = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		{ CU_MEM_LOCATION_TYPE_DEVICE, 0 }, { CU_MEM_LOCATION_TYPE_INVALID, 0 } };

	begin();
	ptrs[0] = ptrs[1] = managed;
	REFUSE_VALUE(cuMemPrefetchBatchAsync(NULL, sizes, 2, places, firsts, 1, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, NULL, 2, places, firsts, 1, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 0, places, firsts, 1, 0, stream));
	REFUSE_VALUE(
		cuMemPrefetchBatchAsync(ptrs, sizes, (size_t)-1, places, firsts, 1, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, NULL, firsts, 1, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, places, NULL, 1, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, places, firsts, 0, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, places, firsts, 3, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, places, wrong, 2, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, places, far, 2, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, places + 1, firsts, 2, 0, stream));
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, places, firsts, 1, 4, stream));
	REFUSE_VALUE(
		cuMemPrefetchBatchAsync(ptrs, sizes, 2, places, firsts, 1, 0, CU_STREAM_LEGACY));
	REFUSE_VALUE(cuMemDiscardBatchAsync(ptrs, sizes, 2, 1, stream));
	REFUSE_VALUE(
		cuMemDiscardAndPrefetchBatchAsync(ptrs, sizes, 2, places, wrong, 2, 0, stream));
	ptrs[1] = memory;
	REFUSE_VALUE(cuMemPrefetchBatchAsync(ptrs, sizes, 2, places, firsts, 1, 0, stream));
	REFUSE_VALUE(cuMemDiscardBatchAsync(ptrs, sizes, 2, 0, stream));
	sizes[0] = BYTES + 1;
	REFUSE_VALUE(cuMemDiscardBatchAsync(ptrs, sizes, 1, 0, stream));
}

/* ---- host memory ---- */

static void host_memory(void)
{
	char *pages =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pinned, *more;
	CUdeviceptr there;
	unsigned flags;

	begin();
	munmap(pages + 4096, 4096);
	REFUSE_VALUE(cuMemHostAlloc(NULL, 64, 0));
	REFUSE_VALUE(cuMemHostAlloc(&more, 64, 0x80));
	REFUSE(OUT_OF_MEMORY, cuMemHostAlloc(&more, (size_t)1 << 62, 0));
	REFUSE(OUT_OF_MEMORY, cuMemHostAlloc(&more, (size_t)1 << 62, CU_MEMHOSTALLOC_DEVICEMAP));
	REFUSE_VALUE(cuMemAllocHost(NULL, 64));
	REFUSE_VALUE(cuMemAllocHost(&more, 0));
	REFUSE_VALUE(cuMemHostRegister(NULL, 64, 0));
	REFUSE_VALUE(cuMemHostRegister(pages, 0, 0));
	REFUSE_VALUE(cuMemHostRegister(pages, 4096, 0x80));
	REFUSE_VALUE(cuMemHostRegister(pages, (size_t)-4096, 0));
	/* There is no memory, or only at both ends. */
	REFUSE_VALUE(cuMemHostRegister(pages + 4096, 4096, 0));
	REFUSE_VALUE(cuMemHostRegister(pages, 3 * 4096, 0));
	CU(cuMemHostRegister(pages, 4096, 0));
	REFUSE(HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(pages, 4096, 0));
	REFUSE(HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(pages + 64, 64, 0));
	REFUSE(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages + 64));
	REFUSE_VALUE(cuMemFreeHost(pages));
	CU(cuMemHostUnregister(pages));
	REFUSE(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages));
	REFUSE_VALUE(cuMemHostUnregister(NULL));
	CU(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	REFUSE_VALUE(cuMemHostGetDevicePointer(NULL, pinned, 0));
	REFUSE_VALUE(cuMemHostGetDevicePointer(&there, pinned, 1));
	REFUSE_VALUE(cuMemHostGetDevicePointer(&there, host, 0));
	REFUSE_VALUE(cuMemHostGetFlags(NULL, pinned));
	REFUSE_VALUE(cuMemFreeHost((char *)pinned + 1));
	REFUSE_VALUE(cuMemFree((CUdeviceptr)(uintptr_t)pinned));
	REFUSE_VALUE(cuMemFreeAsync((CUdeviceptr)(uintptr_t)pinned, stream));
	CU(cuMemFreeHost(pinned));
	REFUSE_VALUE(cuMemFreeHost(pinned));
	REFUSE_VALUE(cuMemHostGetFlags(&flags, pinned));
	REFUSE_VALUE(cuMemHostGetDevicePointer(&there, pinned, 0));
}

/* ---- pools ---- */

static void pools(void)
{
	CUmemPoolProps good = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemPoolProps bad = good;
	CUmemAccessDesc access = { good.location, (CUmemAccess_flags)2 };
	CUmemLocation odd_place = { CU_MEM_LOCATION_TYPE_INVALID, 0 },
		      current = { CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0 };
	CUmemAccess_flags flags;
	CUmemoryPool pool, base, dead;
	CUdeviceptr p;
	cuuint64_t value = 1;

	begin();
	REFUSE_VALUE(cuMemPoolCreate(NULL, &good));
	REFUSE_VALUE(cuMemPoolCreate(&pool, NULL));
	bad.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
	REFUSE_VALUE(cuMemPoolCreate(&pool, &bad));
	bad = good;
	bad.location.id = 99;
	REFUSE_VALUE(cuMemPoolCreate(&pool, &bad));
	bad = good;
	bad.location.type = CU_MEM_LOCATION_TYPE_INVALID;
	REFUSE_VALUE(cuMemPoolCreate(&pool, &bad));
	bad.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	REFUSE_VALUE(cuMemPoolCreate(&pool, &bad));
	bad.location.type = CU_MEM_LOCATION_TYPE_HOST;
	bad.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	REFUSE_VALUE(cuMemPoolCreate(&pool, &bad));
	bad = good;
	bad.handleTypes = (CUmemAllocationHandleType)0x40;
	REFUSE_VALUE(cuMemPoolCreate(&pool, &bad));
	bad = good;
	bad.reserved[0] = 1;
	REFUSE_VALUE(cuMemPoolCreate(&pool, &bad));
	CU(cuMemPoolCreate(&pool, &good));
	CU(cuMemPoolCreate(&dead, &good));
	CU(cuMemPoolDestroy(dead));
	CU(cuDeviceGetDefaultMemPool(&base, device));
	REFUSE_VALUE(cuMemPoolDestroy(base));
	REFUSE_VALUE(cuMemPoolDestroy(dead));
	REFUSE_VALUE(cuMemPoolDestroy((CUmemoryPool)stream));
	REFUSE_VALUE(cuMemPoolTrimTo((CUmemoryPool)(uintptr_t)5, 0));
	REFUSE_VALUE(cuDeviceSetMemPool(device, dead));
	REFUSE_VALUE(cuDeviceGetMemPool(NULL, device));
	REFUSE(INVALID_DEVICE, cuDeviceGetDefaultMemPool(&base, 99));
	REFUSE_VALUE(cuMemAllocFromPoolAsync(&p, 64, dead, stream));
	REFUSE_VALUE(cuMemAllocFromPoolAsync(&p, 0, pool, stream));
	REFUSE_VALUE(cuMemAllocFromPoolAsync(NULL, 64, pool, stream));
	REFUSE(OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&p, (size_t)1 << 60, pool, stream));
	REFUSE(INVALID_HANDLE, cuMemAllocFromPoolAsync(&p, 64, pool, gone));
	REFUSE_VALUE(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)77, &value));
	REFUSE_VALUE(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, NULL));
	REFUSE_VALUE(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
	REFUSE_VALUE(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
	REFUSE_VALUE(cuMemPoolSetAttribute(dead, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
	REFUSE_VALUE(cuMemPoolSetAccess(pool, NULL, 1));
	REFUSE_VALUE(cuMemPoolSetAccess(pool, &access, 1));
	access.location.id = 99;
	REFUSE_VALUE(cuMemPoolSetAccess(pool, &access, 1));
	REFUSE_VALUE(cuMemPoolGetAccess(&flags, pool, &access.location));
	REFUSE_VALUE(cuMemPoolGetAccess(NULL, pool, &good.location));
	REFUSE_VALUE(cuMemGetDefaultMemPool(&base, NULL, CU_MEM_ALLOCATION_TYPE_PINNED));
	REFUSE_VALUE(cuMemGetDefaultMemPool(&base, &odd_place, CU_MEM_ALLOCATION_TYPE_PINNED));
	REFUSE_VALUE(cuMemGetDefaultMemPool(&base, &current, CU_MEM_ALLOCATION_TYPE_PINNED));
	REFUSE_VALUE(cuMemGetMemPool(&base, &good.location, (CUmemAllocationType)9));
	REFUSE_VALUE(cuMemSetMemPool(&good.location, CU_MEM_ALLOCATION_TYPE_PINNED, dead));
	REFUSE_VALUE(cuMemSetMemPool(&odd_place, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
	/* Memory of a pool that was destroyed stays. */
	CU(cuMemAllocFromPoolAsync(&p, 64, pool, stream));
	CU(cuMemPoolDestroy(pool));
	REFUSE_VALUE(cuMemAllocFromPoolAsync(&p, 64, pool, stream));
	CU(cuMemsetD8Async(p, 1, 64, stream));
	REFUSE(INVALID_HANDLE, cuMemFreeAsync(p, gone));
	REFUSE_VALUE(cuMemFreeAsync(p + 1, stream));
	CU(cuMemFreeAsync(p, stream));
	REFUSE_VALUE(cuMemFreeAsync(p, stream));
	REFUSE_VALUE(cuMemFree(p));
}

/* ---- copies ---- */

static CUDA_MEMCPY3D_BATCH_OP box(size_t width, size_t height, size_t depth)
{
	CUDA_MEMCPY3D_BATCH_OP op = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };

	op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.src.op.ptr.ptr = memory;
	op.dst.op.ptr.ptr = memory + 4096;
	op.extent.width = width;
	op.extent.height = height;
	op.extent.depth = depth;
	return op;
}

static void batches(void)
{
	CUDA_MEMCPY3D_BATCH_OP op;
	CUmemcpyAttributes attr = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	CUdeviceptr src, dst;
	size_t size = 64, first = 0;

	begin();
	op = box(0, 1, 1);
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	op = box(8, 0, 1);
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	op = box(8, 1, 0);
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	op = box(8, 2, 1);
	op.src.op.ptr.rowLength = 7;
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	op = box(8, 2, 2);
	op.dst.op.ptr.layerHeight = 1;
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	op = box((size_t)1 << 40, (size_t)1 << 40, 1);
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	op = box(8, 1, 1);
	op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	op = box(8, 1, 1);
	op.flags = 0x100;
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	op = box(8, 1, 1);
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, CU_STREAM_LEGACY));
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, NULL, 0, stream));
	op = box(4097, 1, 1); /* beyond the end */
	REFUSE_VALUE(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	src = memory;
	dst = memory + 4096;
	REFUSE_VALUE(cuMemcpyBatchAsync(NULL, &src, &size, 1, &attr, &first, 1, stream));
	REFUSE_VALUE(cuMemcpyBatchAsync(&dst, &src, NULL, 1, &attr, &first, 1, stream));
	REFUSE_VALUE(cuMemcpyBatchAsync(&dst, &src, &size, 1, NULL, &first, 1, stream));
	REFUSE_VALUE(cuMemcpyBatchAsync(&dst, &src, &size, 1, &attr, &first, 2, stream));
	attr.flags = 0x100;
	REFUSE_VALUE(cuMemcpyBatchAsync(&dst, &src, &size, 1, &attr, &first, 1, stream));
	attr.flags = 0;
	size = 4097;
	REFUSE_VALUE(cuMemcpyBatchAsync(&dst, &src, &size, 1, &attr, &first, 1, stream));
	size = (size_t)-1;
	REFUSE_VALUE(cuMemcpyBatchAsync(&dst, &src, &size, 1, &attr, &first, 1, stream));
}

static void boxes(void)
{
	CUDA_MEMCPY2D flat = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.srcPitch = 64,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstPitch = 64,
		.WidthInBytes = 64,
		.Height = 2 };
	CUDA_MEMCPY2D bad;

	begin();
	flat.dstDevice = memory;
	bad = flat;
	bad.srcPitch = (size_t)1 << 60;
	bad.Height = (size_t)1 << 8;
	REFUSE_VALUE(cuMemcpy2D(&bad));
	bad = flat;
	bad.dstY = (size_t)1 << 58;
	REFUSE_VALUE(cuMemcpy2D(&bad));
	bad = flat;
	bad.dstXInBytes = 1;
	bad.dstPitch = 65;
	bad.Height = 127;
	REFUSE_VALUE(cuMemcpy2D(&bad));
	bad = flat;
	bad.dstMemoryType = (CUmemorytype)9;
	REFUSE_VALUE(cuMemcpy2D(&bad));
	bad = flat;
	bad.srcHost = NULL;
	REFUSE_VALUE(cuMemcpy2DAsync(&bad, stream));
	REFUSE_VALUE(cuMemcpy2D(NULL));
	REFUSE_VALUE(cuMemcpy3D(NULL));
	REFUSE_VALUE(cuMemcpy3DPeer(NULL));
	REFUSE(INVALID_HANDLE, cuMemcpy2DAsync(&flat, gone));
	REFUSE_VALUE(cuMemsetD2D8(memory, 63, 0, 64, 2));
	REFUSE_VALUE(cuMemsetD2D8(memory, (size_t)1 << 40, 0, 64, (size_t)1 << 40));
	REFUSE_VALUE(cuMemsetD2D32(memory, 66, 0, 16, 2));
	REFUSE_VALUE(cuMemsetD2D16(memory + 1, 64, 0, 16, 2));
	REFUSE_VALUE(cuMemsetD32(memory, 0, (size_t)1 << 62));
	REFUSE_VALUE(cuMemsetD16(memory, 0, ((size_t)1 << 63) + 1));
	REFUSE_VALUE(cuMemcpyDtoD(memory, memory, (size_t)-1));
	REFUSE(INVALID_HANDLE, cuMemsetD2D8Async(memory, 64, 0, 64, 2, odd));
}

/* ---- words and pointers ---- */

static void words(void)
{
	CUstreamBatchMemOpParams op = { .writeValue = {
						.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64 } };

	begin();
	REFUSE_VALUE(cuStreamWriteValue32(stream, memory + BYTES, 1, 0));
	REFUSE_VALUE(cuStreamWriteValue64(stream, memory + BYTES - 4, 1, 0));
	REFUSE_VALUE(cuStreamWaitValue32(stream, memory + 1, 1, CU_STREAM_WAIT_VALUE_EQ));
	REFUSE_VALUE(cuStreamWaitValue64(stream, memory, 1, 0x80));
	REFUSE_VALUE(cuStreamWriteValue32(stream, (CUdeviceptr)-4, 1, 0));
	REFUSE(INVALID_HANDLE, cuStreamWriteValue32(gone, memory, 1, 0));
	op.writeValue.address = memory + 4;
	REFUSE_VALUE(cuStreamBatchMemOp(stream, 1, &op, 0));
	op.writeValue.address = memory;
	op.writeValue.flags = 0x10;
	REFUSE_VALUE(cuStreamBatchMemOp(stream, 1, &op, 0));
	op.operation = CU_STREAM_MEM_OP_BARRIER;
	op.memoryBarrier.flags = 7;
	REFUSE_VALUE(cuStreamBatchMemOp(stream, 1, &op, 0));
}

static void pointers(void)
{
	const CUpointer_attribute type = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	CUpointer_attribute types[2] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		(CUpointer_attribute)99 };
	unsigned value[4];
	void *out[2] = { value, NULL };
	CUdeviceptr base;

	begin();
	REFUSE_VALUE(cuPointerGetAttribute(NULL, type, memory));
	REFUSE_VALUE(cuPointerGetAttribute(value, (CUpointer_attribute)99, memory));
	REFUSE_VALUE(cuPointerGetAttribute(value, (CUpointer_attribute)0, memory));
	REFUSE_VALUE(cuPointerGetAttribute(value, type, memory + BYTES));
	REFUSE_VALUE(cuPointerGetAttribute(value, type, 0));
	REFUSE_VALUE(cuPointerGetAttribute(value, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory));
	REFUSE_VALUE(cuPointerGetAttributes(0, types, out, memory));
	REFUSE_VALUE(cuPointerGetAttributes(1, NULL, out, memory));
	REFUSE_VALUE(cuPointerGetAttributes(1, types, NULL, memory));
	REFUSE_VALUE(cuPointerGetAttributes(2, types, out, memory));
	REFUSE_VALUE(cuPointerSetAttribute(value, type, memory));
	REFUSE_VALUE(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
	REFUSE_VALUE(cuPointerSetAttribute(
		value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)host));
	REFUSE(NOT_FOUND, cuMemGetAddressRange(&base, NULL, memory + BYTES));
	REFUSE_VALUE(cuMemAllocPitch(&base, NULL, 64, 64, 4));
	REFUSE_VALUE(cuMemAllocPitch(NULL, (size_t *)value, 64, 64, 4));
	REFUSE_VALUE(cuMemAllocPitch(&base, (size_t *)value, 0, 64, 4));
	REFUSE_VALUE(cuMemAllocPitch(&base, (size_t *)value, (size_t)-1, 64, 4));
	REFUSE_VALUE(cuMemAllocPitch(&base, (size_t *)value, (size_t)1 << 40, (size_t)1 << 40, 4));
	REFUSE(OUT_OF_MEMORY, cuMemAllocPitch(&base, (size_t *)value, 1 << 20, 1ull << 40, 4));
	REFUSE(OUT_OF_MEMORY, cuMemAllocManaged(&base, (size_t)-1, CU_MEM_ATTACH_GLOBAL));
}

static const struct refused_group GROUPS[] = {
	{ "managed memory", managed_memory },
	{ "batches of managed memory", managed_batches },
	{ "host memory", host_memory },
	{ "pools", pools },
	{ "batches of copies", batches },
	{ "copies and fills of boxes", boxes },
	{ "words", words },
	{ "pointers", pointers },
};

int main(void)
{
	return refused_run("refused_memory", GROUPS, sizeof GROUPS / sizeof *GROUPS);
}
