/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies between contexts, 16-bit fills, pools, stream attributes and capture state, streams that
 * wait for values in memory, tensor maps.
 */
#include "driver.h"

enum { ROWS = 6, SLICES = 4, PITCH = 64, BOX = PITCH * ROWS * SLICES };

/* Copies part of a box in one context to a different place of a box in another. */
static void peers(CUcontext here, CUcontext there, CUstream stream)
{
	unsigned char from[BOX], to[BOX], want[BOX];
	CUdeviceptr src, dst;
	CUDA_MEMCPY3D_PEER box;

	for (int i = 0; i < BOX; i++)
		from[i] = (unsigned char)(i * 7 + i / 251);
	CU(cuMemAlloc(&src, BOX));
	CU(cuCtxPushCurrent(there));
	CU(cuMemAlloc(&dst, BOX));
	CU(cuMemsetD8(dst, 0xee, BOX));
	CU(cuCtxSynchronize());
	CU(cuCtxPopCurrent(NULL));
	CU(cuMemcpyHtoD(src, from, BOX));

	CU(cuMemcpyPeerAsync(dst + 100, there, src + 40, here, 333, stream));
	CU(cuStreamSynchronize(stream));
	memset(want, 0xee, BOX);
	memcpy(want + 100, from + 40, 333);
	CU(cuMemcpyDtoH(to, dst, BOX));
	OK(memcmp(to, want, BOX) == 0);

	memset(&box, 0, sizeof(box));
	box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	box.srcDevice = src;
	box.srcContext = here;
	box.dstDevice = dst;
	box.dstContext = there;
	box.srcPitch = box.dstPitch = PITCH;
	box.srcHeight = box.dstHeight = ROWS;
	box.srcXInBytes = 5;
	box.srcY = 1;
	box.srcZ = 0;
	box.dstXInBytes = 30;
	box.dstY = 2;
	box.dstZ = 1;
	box.WidthInBytes = 23;
	box.Height = 4;
	box.Depth = 3;
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 4; y++)
			memcpy(want + 30 + PITCH * (y + 2 + ROWS * (z + 1)),
				from + 5 + PITCH * (y + 1 + ROWS * z), 23);
	CU(cuMemcpy3DPeer(&box));
	CU(cuCtxSynchronize());
	CU(cuMemcpyDtoH(to, dst, BOX));
	OK(memcmp(to, want, BOX) == 0);

	/* In the other direction, from the context that is not current. */
	box.srcDevice = dst;
	box.srcContext = there;
	box.dstDevice = src;
	box.dstContext = here;
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 4; y++)
			memcpy(from + 30 + PITCH * (y + 2 + ROWS * (z + 1)),
				want + 5 + PITCH * (y + 1 + ROWS * z), 23);
	CU(cuMemcpy3DPeerAsync(&box, stream));
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(to, src, BOX));
	OK(memcmp(to, from, BOX) == 0);
	printf("between contexts %016llx\n", (unsigned long long)checksum(to, BOX));
	CU(cuMemFree(dst));
	CU(cuMemFree(src));
}

static void fills(CUstream stream)
{
	unsigned short got[32 * 8];
	CUdeviceptr data;

	CU(cuMemAlloc(&data, sizeof(got)));
	CU(cuMemsetD16Async(data, 0xabcd, 32 * 8, stream));
	CU(cuMemsetD2D16Async(data + 2 * (32 + 3), 64, 0x1234, 10, 5, stream));
	CU(cuMemcpyDtoHAsync(got, data, sizeof(got), stream));
	CU(cuStreamSynchronize(stream));
	for (int y = 0; y < 8; y++)
		for (int x = 0; x < 32; x++)
			OK(got[32 * y + x] ==
				(y >= 1 && y < 6 && x >= 3 && x < 13 ? 0x1234 : 0xabcd));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD16Async(data + 1, 1, 4, stream));
	printf("fills %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	CU(cuMemFree(data));
}

static void host(CUdevice device)
{
	CUdeviceptr data, mapped = 0;
	unsigned on = 1, off = 0, got = 5;
	void *pinned;
	int maps = 0;

	CU(cuMemAlloc(&data, 4096));
	CU(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, data));
	OK(got == 0);
	CU(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, data + 100));
	CU(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, data));
	OK(got == 1);
	CU(cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, data));
	CU(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, data));
	OK(got == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, data));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, data));
	CU(cuMemFree(data));

	CU(cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, device));
	CU(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	EXPECT(maps ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
		cuMemHostGetDevicePointer(&mapped, pinned, 0));
	OK(!maps == !mapped);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&mapped, pinned, 77));
	CU(cuMemFreeHost(pinned));
}

static void pools(CUdevice device, CUstream stream)
{
	CUmemLocation at = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device };
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = at };
	CUmemAccessDesc access = { .location = at, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CUmemoryPool standard = NULL, same = NULL, own = NULL;
	CUdeviceptr data;
	uint64_t used = 0;
	int got[16];

	CU(cuDeviceGetDefaultMemPool(&standard, device));
	CU(cuMemGetDefaultMemPool(&same, &at, CU_MEM_ALLOCATION_TYPE_PINNED));
	OK(standard && same == standard);
	CU(cuMemGetMemPool(&same, &at, CU_MEM_ALLOCATION_TYPE_PINNED));
	OK(same == standard);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemGetMemPool(&same, &at, CU_MEM_ALLOCATION_TYPE_INVALID));
	CU(cuMemPoolCreate(&own, &props));
	CU(cuMemPoolSetAccess(own, &access, 1));
	CU(cuMemPoolGetAccess(&flags, own, &at));
	OK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(own, &access, 1));

	/* Allocations come from the pool that is set for the device. */
	CU(cuMemSetMemPool(&at, CU_MEM_ALLOCATION_TYPE_PINNED, own));
	CU(cuMemGetMemPool(&same, &at, CU_MEM_ALLOCATION_TYPE_PINNED));
	OK(same == own);
	CU(cuMemAllocAsync(&data, sizeof(got), stream));
	CU(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	OK(used >= sizeof(got));
	CU(cuMemsetD32Async(data, 4711, 16, stream));
	CU(cuMemcpyDtoHAsync(got, data, sizeof(got), stream));
	CU(cuMemFreeAsync(data, stream));
	CU(cuStreamSynchronize(stream));
	OK(got[0] == 4711 && got[15] == 4711);
	CU(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	OK(used == 0);
	CU(cuMemSetMemPool(&at, CU_MEM_ALLOCATION_TYPE_PINNED, standard));
	CU(cuDeviceGetMemPool(&same, device));
	OK(same == standard);
	CU(cuMemPoolDestroy(own));
}

static void attributes(CUcontext context, CUstream stream, CUstream other)
{
	CUresult (*info1)(CUstream, CUstreamCaptureStatus *, cuuint64_t *) =
		driver_entry("cuStreamGetCaptureInfo");
	CUresult (*info2)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
		const CUgraphNode **, size_t *) = driver_entry("cuStreamGetCaptureInfo_v2");
	CUresult (*info3)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
		const CUgraphNode **, const CUgraphEdgeData **, size_t *) =
		driver_entry("cuStreamGetCaptureInfo_v3");
	CUresult (*get_ctx)(CUstream, CUcontext *, CUgreenCtx *) =
		driver_entry("cuStreamGetCtx_v2");
	CUstreamAttrValue value;
	CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
	CUcontext of = NULL;
	CUgreenCtx green = (CUgreenCtx)1;

	CU(get_ctx(stream, &of, &green));
	OK(of == context && green == NULL);
	CU(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	OK(value.syncPolicy == CU_SYNC_POLICY_AUTO);
	value.syncPolicy = CU_SYNC_POLICY_YIELD;
	CU(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	value.syncPolicy = CU_SYNC_POLICY_SPIN;
	CU(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	OK(value.syncPolicy == CU_SYNC_POLICY_YIELD);
	CU(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	OK(value.syncPolicy == CU_SYNC_POLICY_AUTO);
	CU(cuStreamCopyAttributes(other, stream));
	CU(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	OK(value.syncPolicy == CU_SYNC_POLICY_YIELD);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute(stream, (CUstreamAttrID)77, &value));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(stream, (CUstreamAttrID)77, &value));

	CU(info1(stream, &status, NULL));
	OK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	status = (CUstreamCaptureStatus)77;
	CU(info2(stream, &status, NULL, NULL, NULL, NULL));
	OK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	status = (CUstreamCaptureStatus)77;
	CU(info3(stream, &status, NULL, NULL, NULL, NULL, NULL));
	OK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	EXPECT(CUDA_ERROR_INVALID_VALUE, info1(stream, NULL, NULL));
}

/* One stream waits until another has written all 64 bits. */
static void values(CUstream waiter, CUstream writer)
{
	const cuuint64_t early = 0xfffffff0ull, late = 0x100000001ull;
	cuuint64_t got = 0;
	CUdeviceptr flag;
	int mark = 0;

	CU(cuMemAlloc(&flag, 16));
	CU(cuMemsetD8(flag, 0, 16));
	CU(cuCtxSynchronize());
	CUresult status = cuStreamWaitValue64(waiter, flag, late, CU_STREAM_WAIT_VALUE_GEQ);
	if (status != CUDA_ERROR_NOT_SUPPORTED) {
		CU(status);
		CU(cuMemsetD32Async(flag + 8, 17, 1, waiter));
		CU(cuStreamWriteValue64(writer, flag, early, CU_STREAM_WRITE_VALUE_DEFAULT));
		CU(cuStreamSynchronize(writer));
		EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(waiter));
		CU(cuMemcpyDtoHAsync(&mark, flag + 8, sizeof(mark), writer));
		CU(cuStreamSynchronize(writer));
		OK(mark == 0);
		CU(cuStreamWriteValue64(writer, flag, late, CU_STREAM_WRITE_VALUE_DEFAULT));
		CU(cuStreamSynchronize(waiter));
		CU(cuMemcpyDtoH(&got, flag, sizeof(got)));
		CU(cuMemcpyDtoH(&mark, flag + 8, sizeof(mark)));
		OK(got == late && mark == 17);
	}
	CU(cuMemFree(flag));
}

/* The packing of a map is private to the driver, but two ways to make the same map must agree. */
static void tensor_maps(void)
{
	static CUtensorMap map, want;
	const cuuint64_t dims[4] = { 64, 32, 32, 4 }, strides[3] = { 256, 8192, 262144 };
	const cuuint32_t box[2] = { 16, 8 }, ones[4] = { 1, 1, 1, 1 };
	const int lower[2] = { 0, 0 }, upper[2] = { 0, 0 };
	CUdeviceptr data;
	CUresult status;

	CU(cuMemAlloc(&data, 4 << 20));
	void *at = (void *)(uintptr_t)data, *next = (void *)(uintptr_t)(data + 65536);
	status = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, at, dims, strides,
		box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	OK(status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_SUPPORTED);
	if (status == CUDA_SUCCESS) {
		CU(cuTensorMapEncodeTiled(&want, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, next, dims,
			strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
			CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
			CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
		OK(memcmp(&map, &want, sizeof(map)) != 0);
		CU(cuTensorMapReplaceAddress(&map, next));
		OK(memcmp(&map, &want, sizeof(map)) == 0);
	} else {
		memset(&map, 0x5a, sizeof(map));
		memcpy(&want, &map, sizeof(map));
		EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuTensorMapReplaceAddress(&map, next));
		OK(memcmp(&map, &want, sizeof(map)) == 0);
	}
	CUresult second = cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, at,
		dims, strides, lower, upper, 16, 8, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	OK(second == status);
	/* The wide kind exists on newer devices only. */
	CUresult wide = cuTensorMapEncodeIm2colWide(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, at,
		dims, strides, 0, 0, 16, 32, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	OK(wide == CUDA_SUCCESS || wide == CUDA_ERROR_NOT_SUPPORTED ||
		wide == CUDA_ERROR_INVALID_VALUE);
	CU(cuMemFree(data));
}

int main(void)
{
	CUdevice device;
	CUcontext context, second;
	CUstream stream, other;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&second, NULL, 0, device));
	CU(cuCtxPopCurrent(NULL));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	peers(context, second, stream);
	fills(stream);
	host(device);
	pools(device, stream);
	attributes(context, stream, other);
	values(stream, other);
	tensor_maps();
	CU(cuStreamDestroy(stream));
	CU(cuStreamDestroy(other));
	CU(cuCtxDestroy(second));
	CU(cuDevicePrimaryCtxRelease(device));
	return verdict("driver_rest");
}
