/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory through the driver API: memsets of 16 and 32 bits and with a pitch, address ranges,
 * unified copies, 2D and 3D copies.
 */
#include "driver.h"

enum { BYTES = 8192 };

static unsigned char want[BYTES], got[BYTES];

static void compare(CUdeviceptr p, const char *what)
{
	CU(cuMemcpyDtoH(got, p, BYTES));
	OK(!memcmp(got, want, BYTES));
	printf("%s %016llx\n", what, (unsigned long long)checksum(got, BYTES));
}

static void memsets(CUdeviceptr p)
{
	uint16_t half = 0xabcd;
	uint32_t word = 0x12345678;

	CU(cuMemsetD8(p, 0x5a, BYTES));
	memset(want, 0x5a, BYTES);
	CU(cuMemsetD16(p + 102, half, 333));
	for (int i = 0; i < 333; i++)
		memcpy(want + 102 + 2 * i, &half, 2);
	CU(cuMemsetD32Async(p + 1024, word, 77, NULL));
	for (int i = 0; i < 77; i++)
		memcpy(want + 1024 + 4 * i, &word, 4);
	CU(cuMemsetD2D8(p + 2049, 128, 0xee, 19, 10));
	CU(cuMemsetD2D16(p + 4096, 64, half, 11, 9));
	CU(cuMemsetD2D32Async(p + 5120, 96, word, 5, 12, NULL));
	for (int y = 0; y < 12; y++) {
		if (y < 10)
			memset(want + 2049 + 128 * y, 0xee, 19);
		for (int x = 0; x < 11 && y < 9; x++)
			memcpy(want + 4096 + 64 * y + 2 * x, &half, 2);
		for (int x = 0; x < 5; x++)
			memcpy(want + 5120 + 96 * y + 4 * x, &word, 4);
	}
	compare(p, "memsets");
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(p + 1, 0, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(p + 2, 0, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(0, 0, 4));
}

static void rectangles(CUdeviceptr p)
{
	static unsigned char host[BYTES];

	for (int i = 0; i < BYTES; i++)
		host[i] = (unsigned char)(i * 5 + i / 256);
	CUDA_MEMCPY2D in = { 0 };
	in.srcMemoryType = CU_MEMORYTYPE_HOST;
	in.srcHost = host;
	in.srcPitch = 100;
	in.srcXInBytes = 7;
	in.srcY = 3;
	in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	in.dstDevice = p;
	in.dstPitch = 160;
	in.dstXInBytes = 33;
	in.dstY = 2;
	in.WidthInBytes = 70;
	in.Height = 20;
	CU(cuMemcpy2D(&in));
	for (int y = 0; y < 20; y++)
		memcpy(want + (y + 2) * 160 + 33, host + (y + 3) * 100 + 7, 70);

	CUDA_MEMCPY3D box = { 0 };
	box.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	box.srcDevice = p;
	box.srcPitch = 32;
	box.srcHeight = 8;
	box.srcXInBytes = 3;
	box.srcY = 1;
	box.srcZ = 2;
	box.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	box.dstDevice = p + 6000;
	box.dstPitch = 40;
	box.dstHeight = 10;
	box.dstXInBytes = 5;
	box.dstY = 4;
	box.dstZ = 1;
	box.WidthInBytes = 20;
	box.Height = 5;
	box.Depth = 3;
	CU(cuMemcpy3D(&box));
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 5; y++)
			memcpy(want + 6000 + ((z + 1) * 10 + y + 4) * 40 + 5,
				want + ((z + 2) * 8 + y + 1) * 32 + 3, 20);
	compare(p, "rectangles");
	in.WidthInBytes = 200;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&in));
}

static void ranges(void)
{
	CUdeviceptr p, base = 0, start = 0;
	size_t size = 0, pitch = 0, free_bytes = 0, total = 0;
	unsigned type = 0;
	void *pinned = NULL;

	CU(cuMemAllocPitch(&p, &pitch, 100, 30, 4));
	OK(pitch >= 100 && pitch % 16 == 0);
	CU(cuMemFree(p));
	CU(cuMemAlloc(&p, 100000));
	CU(cuMemGetAddressRange(&base, &size, p + 777));
	OK(base == p && size >= 100000);
	CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5));
	OK(type == CU_MEMORYTYPE_DEVICE);
	CU(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 99));
	OK(start == p);
	unsigned types[2] = { 0, 0 };
	CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER };
	CUdeviceptr pointer = 0;
	void *data[] = { &types[0], &pointer };
	CU(cuPointerGetAttributes(2, attributes, data, p + 8));
	OK(types[0] == CU_MEMORYTYPE_DEVICE && pointer == p + 8);
	CU(cuMemHostAlloc(&pinned, 4096, 0));
	memset(pinned, 0x42, 4096);
	/* Unified: the driver finds the kind of memory from the address. */
	CU(cuMemcpy(p, (CUdeviceptr)(uintptr_t)pinned, 4096));
	CU(cuMemcpyAsync(p + 5000, p, 4096, NULL));
	memset(pinned, 0, 4096);
	CU(cuMemcpy((CUdeviceptr)(uintptr_t)pinned, p + 5000, 4096));
	OK(((char *)pinned)[0] == 0x42 && ((char *)pinned)[4095] == 0x42);
	CU(cuPointerGetAttribute(
		&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pinned));
	OK(type == CU_MEMORYTYPE_HOST);
	CU(cuMemFreeHost(pinned));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x10));
	CU(cuMemGetInfo(&free_bytes, &total));
	OK(free_bytes <= total);
	CU(cuMemFree(p));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, 0x1000));
}

int main(void)
{
	CUdevice device;
	CUcontext context;
	CUdeviceptr p;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&context, NULL, 0, device));
	CU(cuMemAlloc(&p, BYTES));
	memsets(p);
	rectangles(p);
	ranges();
	CU(cuMemFree(p));
	CU(cuCtxDestroy(context));
	return verdict("driver_memory");
}
