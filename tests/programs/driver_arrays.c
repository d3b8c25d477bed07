/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arrays through the driver API: descriptors, one-row copies, the calls of CUDA before 3.2, planes,
 * batches, copies between peers, and each wrong use with its error.
 */
#include "driver.h"

#define N 100

typedef CUresult create_v1(CUarray *, const void *);
typedef CUresult get_v1(void *, CUarray);
typedef CUresult a_to_a_v1(CUarray, unsigned, CUarray, unsigned, unsigned);
typedef CUresult a_to_h_v1(void *, CUarray, unsigned, unsigned);
typedef CUresult h_to_a_v1(CUarray, unsigned, const void *, unsigned);
typedef CUresult a_to_h_async_v1(void *, CUarray, unsigned, unsigned, CUstream);
typedef CUresult h_to_a_async_v1(CUarray, unsigned, const void *, unsigned, CUstream);

struct desc_v1 {
	unsigned width, height;
	CUarray_format format;
	unsigned channels;
};

struct desc_3d_v1 {
	unsigned width, height, depth;
	CUarray_format format;
	unsigned channels, flags;
};

static uint32_t in[N], out[N];
static CUcontext ctx;

static CUarray row_new(size_t width)
{
	CUDA_ARRAY_DESCRIPTOR desc = { width, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1 };
	CUarray array;

	CU(cuArrayCreate(&array, &desc));
	return array;
}

static void descriptors(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 12, 12, 18, CU_AD_FORMAT_HALF, 2,
		CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST };
	CUDA_ARRAY3D_DESCRIPTOR got;
	CUDA_ARRAY_DESCRIPTOR flat;
	CUarray array, wrong = (CUarray)(uintptr_t)&desc;

	CU(cuArray3DCreate(&array, &desc));
	CU(cuArray3DGetDescriptor(&got, array));
	OK(got.Width == 12 && got.Height == 12 && got.Depth == 18 && got.Flags == desc.Flags &&
		got.Format == CU_AD_FORMAT_HALF && got.NumChannels == 2);
	CU(cuArrayGetDescriptor(&flat, array));
	OK(flat.Width == 12 && flat.Height == 12 && flat.Format == CU_AD_FORMAT_HALF &&
		flat.NumChannels == 2);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArray3DGetDescriptor(NULL, array));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetDescriptor(NULL, array));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&got, wrong));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayGetDescriptor(&flat, NULL));
	CU(cuArrayDestroy(array));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(NULL));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy((CUmipmappedArray)array));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)array));
}

static CUresult try(size_t w, size_t h, size_t d, int format, unsigned channels, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { w, h, d, (CUarray_format)format, channels, flags };
	CUarray array;
	CUresult result = cuArray3DCreate(&array, &desc);

	if (result == CUDA_SUCCESS)
		cuArrayDestroy(array);
	return result;
}

#define F32 CU_AD_FORMAT_FLOAT

static void refused(void)
{
	CUDA_ARRAY_DESCRIPTOR flat = { 4, 4, F32, 1 };
	CUarray array;
	int most, surface;

	CU(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 0));
	CU(cuDeviceGetAttribute(&surface, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, 0));
	OK(most > 0 && surface > 0);
	EXPECT(CUDA_SUCCESS, try((size_t)most, 0, 0, F32, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try((size_t)most + 1, 0, 0, F32, 1, 0));
	EXPECT(CUDA_SUCCESS, try((size_t)surface, 0, 0, F32, 1, CUDA_ARRAY3D_SURFACE_LDST));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		try((size_t)surface + 1, 0, 0, F32, 1, CUDA_ARRAY3D_SURFACE_LDST));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(0, 0, 0, F32, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(0, 4, 0, F32, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 0, 4, F32, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 0, F32, 3, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 0, F32, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 0, 0, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 0, 0x7777, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 0, F32, 1, CUDA_ARRAY3D_LAYERED));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 5, F32, 1, CUDA_ARRAY3D_CUBEMAP));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 5, 6, F32, 1, CUDA_ARRAY3D_CUBEMAP));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 12, F32, 1, CUDA_ARRAY3D_CUBEMAP));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 4, F32, 1, CUDA_ARRAY3D_TEXTURE_GATHER));
	EXPECT(CUDA_ERROR_INVALID_VALUE, try(4, 4, 0, F32, 1, 0x8000));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, try(4, 4, 0, F32, 1, CUDA_ARRAY3D_SPARSE));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, try(4, 4, 0, F32, 1, CUDA_ARRAY3D_DEFERRED_MAPPING));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(NULL, &flat));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&array, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, NULL));
}

static void rows(CUdeviceptr memory)
{
	CUarray a = row_new(N), b = row_new(N);
	uint32_t *pinned;

	CU(cuMemAllocHost((void **)&pinned, sizeof in));
	CU(cuMemcpyHtoA(a, 0, in, sizeof in));
	CU(cuMemcpyAtoH(out, a, 0, sizeof in));
	OK(memcmp(in, out, sizeof in) == 0);
	/* a[10..30) -> memory -> b[50..70) -> a[0..20) */
	CU(cuMemcpyAtoD(memory, a, 40, 80));
	CU(cuMemcpyDtoA(b, 200, memory, 80));
	CU(cuMemcpyAtoA(a, 0, b, 200, 80));
	CU(cuMemcpyAtoHAsync(pinned, a, 0, sizeof in, NULL));
	CU(cuStreamSynchronize(NULL));
	OK(memcmp(pinned, in + 10, 80) == 0 && memcmp(pinned + 20, in + 20, 4 * (N - 20)) == 0);
	for (int i = 0; i < N; i++)
		pinned[i] = ~in[i];
	CU(cuMemcpyHtoAAsync(b, 0, pinned, sizeof in, NULL));
	CU(cuMemcpyAtoH(out, b, 4, 8));
	OK(out[0] == ~in[1] && out[1] == ~in[2]);
	EXPECT(CUDA_SUCCESS, cuMemcpyHtoA(a, 0, in, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, 4, in, sizeof in));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, 2, in, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, 0, in, 6));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, ~(size_t)3, in, 8));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, 0, NULL, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoD(memory + 4096, a, 0, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoA(NULL, 0, memory, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoA(a, 0, (CUarray)(uintptr_t)in, 0, 4));
	EXPECT(CUDA_ERROR_INVALID_HANDLE,
		cuMemcpyHtoAAsync(a, 0, in, 4, (CUstream)(uintptr_t)0x1234));
	CU(cuArrayDestroy(a));
	CU(cuArrayDestroy(b));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, 0, in, 4));
	CU(cuMemFreeHost(pinned));
}

/* cuda.h gives the plain names to the later versions. */
static void before_3_2(void)
{
	struct desc_v1 desc = { N, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1 }, got;
	struct desc_3d_v1 box = { 4, 5, 6, CU_AD_FORMAT_FLOAT, 2, 0 }, got_box;
	CUarray a, b;

	CU(((create_v1 *)driver_entry("cuArrayCreate"))(&a, &desc));
	CU(((create_v1 *)driver_entry("cuArrayCreate"))(&b, &desc));
	CU(((get_v1 *)driver_entry("cuArrayGetDescriptor"))(&got, a));
	OK(memcmp(&got, &desc, sizeof got) == 0);
	CU(((h_to_a_v1 *)driver_entry("cuMemcpyHtoA"))(a, 0, in, sizeof in));
	CU(((a_to_a_v1 *)driver_entry("cuMemcpyAtoA"))(b, 4, a, 8, 40));
	CU(((a_to_h_v1 *)driver_entry("cuMemcpyAtoH"))(out, b, 4, 40));
	OK(memcmp(out, in + 2, 40) == 0);
	CU(((h_to_a_async_v1 *)driver_entry("cuMemcpyHtoAAsync"))(b, 0, in, sizeof in, NULL));
	CU(((a_to_h_async_v1 *)driver_entry("cuMemcpyAtoHAsync"))(out, b, 0, sizeof in, NULL));
	CU(cuStreamSynchronize(NULL));
	OK(memcmp(out, in, sizeof in) == 0);
	CU(cuArrayDestroy(a));
	CU(cuArrayDestroy(b));
	CU(((create_v1 *)driver_entry("cuArray3DCreate"))(&a, &box));
	CU(((get_v1 *)driver_entry("cuArray3DGetDescriptor"))(&got_box, a));
	OK(memcmp(&got_box, &box, sizeof box) == 0);
	CU(cuArrayDestroy(a));
	EXPECT(CUDA_ERROR_INVALID_VALUE, ((create_v1 *)driver_entry("cuArrayCreate"))(&a, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, ((create_v1 *)driver_entry("cuArray3DCreate"))(&a, NULL));
}

static CUresult copy_2d(CUarray dst, CUarray src, void *host, size_t width, size_t height)
{
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = src ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
		.srcArray = src,
		.srcHost = host,
		.dstMemoryType = dst ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
		.dstArray = dst,
		.dstHost = host,
		.srcPitch = width,
		.dstPitch = width,
		.WidthInBytes = width,
		.Height = height,
	};

	return cuMemcpy2DUnaligned(&copy);
}

static void planes(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 32, 16, 0, CU_AD_FORMAT_NV12, 3, 0 }, got;
	unsigned char luma[32 * 16], chroma[32 * 8], back[32 * 16];
	CUarray array, plane[2], none;

	CU(cuArray3DCreate(&array, &desc));
	CU(cuArrayGetPlane(&plane[0], array, 0));
	CU(cuArrayGetPlane(&plane[1], array, 1));
	CU(cuArray3DGetDescriptor(&got, plane[0]));
	OK(got.Width == 32 && got.Height == 16 && got.NumChannels == 1 &&
		got.Format == CU_AD_FORMAT_UNSIGNED_INT8);
	CU(cuArray3DGetDescriptor(&got, plane[1]));
	OK(got.Width == 16 && got.Height == 8 && got.NumChannels == 2);
	memset(luma, 1, sizeof luma);
	memset(chroma, 2, sizeof chroma);
	CU(copy_2d(plane[1], NULL, chroma, 32, 8));
	CU(copy_2d(plane[0], NULL, luma, 32, 16));
	CU(copy_2d(NULL, plane[1], back, 32, 8));
	OK(memcmp(back, chroma, sizeof chroma) == 0);
	CU(copy_2d(NULL, plane[0], back, 32, 16));
	OK(memcmp(back, luma, sizeof luma) == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, copy_2d(NULL, array, back, 32, 16));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&none, array, 2));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(NULL, array, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&none, plane[0], 0));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayGetPlane(&none, NULL, 0));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(plane[1]));
	CU(cuArrayDestroy(array));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&got, plane[0]));
	desc.Width = 31;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &desc));
}

static void mipmaps(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 9, 5, 3, CU_AD_FORMAT_UNSIGNED_INT16, 4, 0 }, got;
	CUDA_ARRAY_SPARSE_PROPERTIES sparse;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUmipmappedArray mip, again;
	CUarray level;

	CU(cuMipmappedArrayCreate(&mip, &desc, 0)); /* 0 counts as 1 */
	CU(cuMipmappedArrayGetLevel(&level, mip, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, mip, 1));
	CU(cuMipmappedArrayDestroy(mip));
	CU(cuMipmappedArrayCreate(&mip, &desc, 99)); /* 9, 4, 2, 1 */
	CU(cuMipmappedArrayGetLevel(&level, mip, 3));
	CU(cuArray3DGetDescriptor(&got, level));
	OK(got.Width == 1 && got.Height == 1 && got.Depth == 1);
	CU(cuMipmappedArrayGetLevel(&level, mip, 1));
	CU(cuArray3DGetDescriptor(&got, level));
	OK(got.Width == 4 && got.Height == 2 && got.Depth == 1 && got.NumChannels == 4);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, mip, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(NULL, mip, 0));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetLevel(&level, NULL, 0));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy((CUarray)mip));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(level));
	/* only for arrays whose memory the program maps */
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&sparse, level));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetSparseProperties(&sparse, mip));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&needs, level, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetMemoryRequirements(&needs, mip, 0));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayGetSparseProperties(&sparse, NULL));
	CU(cuMipmappedArrayDestroy(mip));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(mip));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetLevel(&level, mip, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(&again, NULL, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(NULL, &desc, 1));
	/* wide enough for an array, too wide for a mipmapped one */
	desc = (CUDA_ARRAY3D_DESCRIPTOR){ 65536, 4, 0, F32, 1, 0 };
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(&again, &desc, 1));
}

/* A batch: extents, offsets and row lengths are elements. */
static void batch(CUstream stream)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 10, 10, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0 };
	CUDA_MEMCPY3D_BATCH_OP op[2] = { 0 };
	CUarray a, b;

	CU(cuArray3DCreate(&a, &desc));
	CU(cuArray3DCreate(&b, &desc));
	op[0].src.type = op[1].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op[0].dst.type = op[1].src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	op[0].src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)in;
	op[0].src.op.ptr.rowLength = 10;
	op[0].dst.op.array.array = a;
	op[0].extent = (CUextent3D){ 10, 10, 1 };
	op[0].srcAccessOrder = op[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	op[1].src.op.array.array = a;
	op[1].src.op.array.offset = (CUoffset3D){ 3, 4, 0 };
	op[1].dst.op.ptr.ptr = (CUdeviceptr)(uintptr_t)out;
	op[1].extent = (CUextent3D){ 7, 6, 1 };
	memset(out, 0, sizeof out);
	CU(cuMemcpy3DBatchAsync(2, op, 0, stream));
	CU(cuStreamSynchronize(stream));
	for (int y = 0; y < 6; y++)
		OK(memcmp(out + y * 7, in + (4 + y) * 10 + 3, 28) == 0);
	op[1].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	op[1].dst.op.array.array = b;
	op[1].dst.op.array.offset = (CUoffset3D){ 1, 2, 0 };
	CU(cuMemcpy3DBatchAsync(2, op, 0, stream));
	CU(cuStreamSynchronize(stream));
	CU(copy_2d(NULL, b, out, 40, 10));
	for (int y = 0; y < 6; y++)
		OK(memcmp(out + (2 + y) * 10 + 1, in + (4 + y) * 10 + 3, 28) == 0);
	op[1].extent.width = 8;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, op, 0, stream));
	CU(cuArrayDestroy(a));
	CU(cuArrayDestroy(b));
}

/* Copies between contexts; an array belongs to one. */
static void peers(void)
{
	CUDA_MEMCPY3D_PEER copy = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = sizeof in,
		.Height = 1,
		.Depth = 1 };
	CUarray a = row_new(N), b;
	CUcontext other, popped;

	CU(cuMemcpyHtoA(a, 0, in, sizeof in));
	CU(cuCtxCreate(&other, NULL, 0, 0));
	b = row_new(N);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, 0, in, 4));
	copy.srcArray = a;
	copy.srcContext = ctx;
	copy.dstArray = b;
	copy.dstContext = other;
	CU(cuMemcpy3DPeer(&copy));
	memset(out, 0, sizeof out);
	CU(cuMemcpyAtoH(out, b, 0, sizeof in));
	OK(memcmp(in, out, sizeof in) == 0);
	copy.srcContext = other;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DPeerAsync(&copy, NULL));
	/* the context takes its array with it */
	CU(cuCtxDestroy(other));
	CU(cuCtxGetCurrent(&popped));
	if (popped != ctx)
		CU(cuCtxSetCurrent(ctx));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(b));
	CU(cuArrayDestroy(a));
}

int main(void)
{
	CUdeviceptr memory;
	CUstream stream;
	uint32_t state = 7;
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR desc = { 4, 0, F32, 1 };

	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuArrayCreate(&array, &desc));
	CU(cuInit(0));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuArrayCreate(&array, &desc));
	CU(cuDevicePrimaryCtxRetain(&ctx, 0));
	CU(cuCtxSetCurrent(ctx));
	CU(cuMemAlloc(&memory, 4096));
	CU(cuStreamCreate(&stream, 0));
	for (int i = 0; i < N; i++)
		in[i] = random_next(&state);
	descriptors();
	refused();
	rows(memory);
	before_3_2();
	planes();
	mipmaps();
	batch(stream);
	peers();
	array = row_new(N);
	CU(cuDevicePrimaryCtxReset(0));
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuArrayDestroy(array));
	return verdict("driver_arrays");
}
