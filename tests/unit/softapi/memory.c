/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Device memory, copies and fills: what they do, and what they refuse. */
#include "tests/unit/softapi/api.h"

static size_t free_now(void)
{
	size_t free_bytes, total;

	OK(FRONT(cuMemGetInfo_v2)(&free_bytes, &total));
	CHECK(free_bytes <= total && total == 64 << 20); /* as main asked */
	return free_bytes;
}

BARE_TEST(freeing)
{
	CUdeviceptr p = device_new(1000), q;
	size_t before = free_now();

	CHECK_INT(FRONT(cuMemFree_v2)(p + 16), CUDA_ERROR_INVALID_VALUE); /* inside */
	OK(FRONT(cuMemFree_v2)(p));
	CHECK_INT(FRONT(cuMemFree_v2)(p), CUDA_ERROR_INVALID_VALUE); /* twice */
	CHECK_INT(FRONT(cuMemFree_v2)(0x1234500), CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuMemFree_v2)(0));
	CHECK(free_now() > before);
	CHECK_INT(FRONT(cuMemAlloc_v2)(&q, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuMemAlloc_v2)(NULL, 16), CUDA_ERROR_INVALID_VALUE);
}

BARE_TEST(full)
{
	size_t before = free_now();
	CUdeviceptr p[80], q = 1;
	int n = 0;

	CHECK_INT(FRONT(cuMemAlloc_v2)(&q, (64 << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(FRONT(cuMemAlloc_v2)(&q, SIZE_MAX - 100), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(q, 1);
	while (n < 80 && FRONT(cuMemAlloc_v2)(&p[n], 1 << 20) == CUDA_SUCCESS)
		n++;
	CHECK_INT(n, before >> 20);
	while (n > 0)
		OK(FRONT(cuMemFree_v2)(p[--n]));
	CHECK_INT(free_now(), before);
}

/* Sizes around each border of the allocator: disjoint, whole, and all given back. */
BARE_TEST(sizes)
{
	static const size_t size[] = { 1, 255, 256, 257, 4096, 65536, 524287, 524288, 524289,
		1 << 20, (2 << 20) - 4096, 2 << 20, 5000000 };
	enum { N = sizeof size / sizeof size[0] };
	CUdeviceptr p[N];
	size_t before = free_now();

	for (unsigned i = 0; i < N; i++) {
		p[i] = device_new(size[i]);
		OK(FRONT(cuMemsetD8Async)(p[i], (unsigned char)(i + 1), size[i], NULL));
	}
	for (unsigned i = 0; i < N; i++) {
		unsigned char *bytes = malloc(size[i]);

		OK(DTOH(bytes, p[i], size[i]));
		CHECK(bytes[0] == i + 1 && bytes[size[i] / 2] == i + 1 &&
			bytes[size[i] - 1] == i + 1);
		free(bytes);
		CHECK_INT(FRONT(cuMemsetD8Async)(p[i], 0, size[i] + 1, NULL),
			CUDA_ERROR_INVALID_VALUE);
	}
	for (unsigned i = 0; i < N; i++)
		OK(FRONT(cuMemFree_v2)(p[i]));
	CHECK_INT(free_now(), before);
}

BARE_TEST(many)
{
	enum { N = 20000 };
	static CUdeviceptr p[N];

	for (int i = 0; i < N; i++)
		p[i] = device_new(1 + (size_t)i % 700);
	for (int i = 0; i < N; i += 2)
		OK(FRONT(cuMemFree_v2)(p[i]));
	for (int i = 0; i < N; i += 2)
		p[i] = device_new(1 + (size_t)i % 300);
	for (int i = 0; i < N; i++)
		OK(FRONT(cuMemFree_v2)(p[i]));
}

BARE_TEST(bounds)
{
	CUdeviceptr p = device_new(1000);
	char host[2000] = "x";

	CHECK_INT(HTOD(p, host, 1001), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(HTOD(p + 999, host, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(HTOD(p - 1, host, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(DTOH(host, p + 1000, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(DTOH(host, 4096, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(DTOH(NULL, p, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(HTOD(p, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(DTOD(p, p + 500, 501), CUDA_ERROR_INVALID_VALUE);
	OK(HTOD(p, host, 0));
	OK(HTOD(p + 999, host, 1));
	OK(FRONT(cuMemFree_v2)(p));
	CHECK_INT(HTOD(p, host, 1), CUDA_ERROR_INVALID_VALUE);
}

BARE_TEST(fills)
{
	set32_fn set32 = (set32_fn)call_find("cuMemsetD32_v2");
	set16_fn set16 = (set16_fn)call_find("cuMemsetD16_v2");
	set2d32_fn set2d = (set2d32_fn)call_find("cuMemsetD2D32_v2");
	CUdeviceptr p = device_new(400);
	uint32_t host[100];

	OK(set32(p, 0x01020304, 100));
	OK(set16(p + 2, 0xffee, 1));
	CHECK_INT(set32(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	OK(set2d(p + 40, 40, 9, 3, 4)); /* 4 rows of 3 words, 10 words apart */
	CHECK_INT(set2d(p, 8, 9, 3, 4), CUDA_ERROR_INVALID_VALUE);
	OK(DTOH(host, p, sizeof host));
	CHECK_INT(host[0], 0xffee0304);
	for (int i = 10; i < 100; i++)
		CHECK_INT(host[i], i < 50 && i % 10 < 3 ? 9 : 0x01020304);
	OK(FRONT(cuMemFree_v2)(p));
}

BARE_TEST(rows)
{
	copy_2d_fn copy_2d = (copy_2d_fn)call_find("cuMemcpy2D_v2");
	unsigned char in[64], out[64];
	CUdeviceptr p;
	size_t pitch;
	CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 8,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.WidthInBytes = 5,
		.Height = 8 };

	for (int i = 0; i < 64; i++)
		in[i] = (unsigned char)i;
	memset(out, 0xee, sizeof out);
	OK(FRONT(cuMemAllocPitch_v2)(&p, &pitch, 5, 8, 4));
	CHECK(pitch >= 5 && pitch % 256 == 0);
	c.dstDevice = p;
	c.dstPitch = pitch;
	OK(copy_2d(&c));
	c = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = p,
		.srcPitch = pitch,
		.srcXInBytes = 1,
		.srcY = 2,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 8,
		.WidthInBytes = 4,
		.Height = 6 };
	OK(copy_2d(&c));
	for (int y = 0; y < 8; y++)
		for (int x = 0; x < 8; x++)
			CHECK_INT(out[y * 8 + x], x < 4 && y < 6 ? (y + 2) * 8 + x + 1 : 0xee);
	c.Height = 9;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = p;
	CHECK_INT(copy_2d(&c), CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuMemFree_v2)(p));
}

/*
 * Pageable memory has been read when the call returns; pinned memory is read when the stream comes
 * to it.
 */
BARE_TEST(host_kinds)
{
	CUdeviceptr p = device_new(8);
	CUstream s;
	struct gate gate;
	uint32_t pageable = 1, *pinned;

	OK(FRONT(cuMemAllocHost_v2)((void **)&pinned, 64));
	OK(FRONT(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
	*pinned = 1;
	gate_set(&gate, s);
	OK(FRONT(cuMemcpyHtoDAsync_v2)(p, &pageable, 4, s));
	OK(FRONT(cuMemcpyHtoDAsync_v2)(p + 4, pinned, 4, s));
	pageable = 2;
	*pinned = 2;
	gate_open(&gate);
	OK(FRONT(cuStreamSynchronize)(s));
	CHECK_INT(device_u32(p), 1);
	CHECK_INT(device_u32(p + 4), 2);
	OK(FRONT(cuMemcpyDtoHAsync_v2)(&pageable, p + 4, 4, s)); /* there when the call returns */
	CHECK_INT(pageable, 2);
	OK(FRONT(cuStreamDestroy_v2)(s));
	OK(FRONT(cuMemFreeHost)(pinned));
	OK(FRONT(cuMemFree_v2)(p));
}

BARE_TEST(unified)
{
	copy_dtod_fn copy = (copy_dtod_fn)call_find("cuMemcpy");
	CUdeviceptr p = device_new(4);
	uint32_t in = 0xabcd, out = 0;

	OK(copy(p, (CUdeviceptr)&in, 4));
	OK(copy((CUdeviceptr)&out, p, 4));
	CHECK_INT(out, 0xabcd);
	OK(FRONT(cuMemFree_v2)(p));
	CHECK_INT(copy((CUdeviceptr)&out, p, 4), CUDA_ERROR_INVALID_VALUE);
}

BARE_TEST(attributes)
{
	CUdeviceptr p = device_new(1000), base;
	size_t size;
	unsigned kind = 0;
	int device = -1;

	OK(FRONT(cuMemGetAddressRange_v2)(&base, &size, p + 999));
	CHECK(base == p && size == 1000);
	OK(FRONT(cuPointerGetAttribute)(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5));
	CHECK_INT(kind, CU_MEMORYTYPE_DEVICE);
	OK(FRONT(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	CHECK_INT(device, 0);
	OK(FRONT(cuMemFree_v2)(p));
	CHECK_INT(FRONT(cuPointerGetAttribute)(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p),
		CUDA_ERROR_INVALID_VALUE);
}

DEVICE_TEST(globals)
{
	CUdeviceptr p;
	size_t size;

	OK(FRONT(cuModuleGetGlobal_v2)(&p, &size, module, "counter"));
	CHECK_INT(size, 4);
	OK(launch("add", NULL, p, 5));
	CHECK_INT(device_u32(p), 12);
	CHECK_INT(FRONT(cuMemFree_v2)(p), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuModuleGetGlobal_v2)(&p, &size, module, "nothing"), CUDA_ERROR_NOT_FOUND);
}

/* What a context's end takes with it. */
BARE_TEST(ends_with_context)
{
	CUcontext second;
	size_t before = free_now();
	CUdeviceptr p;

	OK(FRONT(cuCtxCreate_v2)(&second, 0, 0));
	OK(FRONT(cuMemAlloc_v2)(&p, 3000000));
	OK(FRONT(cuMemAlloc_v2)(&p, 300));
	OK(FRONT(cuCtxDestroy_v2)(second));
	OK(FRONT(cuCtxSetCurrent)(context));
	CHECK_INT(free_now(), before);
	CHECK_INT(FRONT(cuMemFree_v2)(p), CUDA_ERROR_INVALID_VALUE);
}

int main(int argc, char **argv)
{
	setenv("OUTBOARD_SOFT_MEMORY", "64M", 1);
	return library_main(argc, argv);
}
