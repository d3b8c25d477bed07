/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The calls of old toolkits: launches of CUDA before 4.0, whose shape and parameters are set one by
 * one, and the calls of CUDA before 3.2, whose addresses and sizes have 32 bits.
 *
 *     driver_old [low]     low: there must be device memory below 4 GiB
 */
#define __CUDA_API_VERSION_INTERNAL /* the plain names are the oldest versions */
#include "driver.h"

enum { GRID_X = 3, GRID_Y = 2, BLOCK_X = 4, BLOCK_Y = 2, N = GRID_X * GRID_Y * BLOCK_X * BLOCK_Y };
enum { BYTES = 4096, PITCH = 64, WIDTH = 20, HEIGHT = 5, DEPTH = 3 };

/* out[i] = small * i + number + vector's last word; the float goes behind. */
static const char SOURCE[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .b8 variable[12];\n"
	".visible .entry mix(.param .u64 out, .param .u8 small, .param .u32 number, "
	".param .f32 real, .param .align 16 .b8 vec[16])\n{\n"
	".reg .b32 %r<12>;\n.reg .b64 %rd<4>;\n.reg .f32 %f<2>;\n.reg .b16 %rs<2>;\n"
	"ld.param.u64 %rd1, [out];\nld.param.u8 %rs1, [small];\nld.param.u32 %r1, [number];\n"
	"ld.param.f32 %f1, [real];\nld.param.u32 %r2, [vec+12];\ncvt.u32.u16 %r3, %rs1;\n"
	"mov.u32 %r4, %ctaid.y;\nmov.u32 %r5, %nctaid.x;\nmov.u32 %r6, %ctaid.x;\n"
	"mad.lo.u32 %r4, %r4, %r5, %r6;\nmov.u32 %r5, %ntid.y;\nmov.u32 %r6, %tid.y;\n"
	"mad.lo.u32 %r4, %r4, %r5, %r6;\nmov.u32 %r5, %ntid.x;\nmov.u32 %r6, %tid.x;\n"
	"mad.lo.u32 %r4, %r4, %r5, %r6;\n"
	"mad.lo.u32 %r7, %r3, %r4, %r1;\nadd.u32 %r7, %r7, %r2;\n"
	"mul.wide.u32 %rd2, %r4, 8;\nadd.u64 %rd1, %rd1, %rd2;\n"
	"st.global.u32 [%rd1], %r7;\nst.global.f32 [%rd1+4], %f1;\nret;\n}\n";

struct result {
	unsigned number;
	float real;
};

static CUmodule module;
static CUfunction mix;
static CUdeviceptr out;

/* ---- launches ---- */

static void results_check(unsigned n, unsigned small, unsigned number, float real)
{
	struct result got[N];

	CU(cuMemcpyDtoH_v2(got, out, sizeof got));
	for (unsigned i = 0; i < N; i++) {
		OK(got[i].number == (i < n ? small * i + number : 0));
		OK(got[i].real == (i < n ? real : 0));
	}
	CU(cuMemsetD8_v2(out, 0, sizeof got));
}

static void launches(void)
{
	unsigned char small = 7;
	unsigned vector[4] = { 1, 2, 3, 4 };
	CUstream stream;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunch(mix)); /* no shape yet */
	CU(cuFuncSetBlockShape(mix, BLOCK_X, BLOCK_Y, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunch(mix)); /* no parameters yet */
	CU(cuParamSetv(mix, 0, &out, 8));
	CU(cuParamSetv(mix, 8, &small, 1));
	CU(cuParamSeti(mix, 12, 1000));
	CU(cuParamSetf(mix, 16, 2.5f));
	CU(cuParamSetv(mix, 32, vector, 16));
	CU(cuParamSetSize(mix, 48));
	CU(cuFuncSetSharedSize(mix, 256));
	CU(cuLaunchGrid(mix, GRID_X, GRID_Y));
	results_check(N, 7, 1004, 2.5f);
	/* The values stay for the next launch. */
	CU(cuLaunch(mix));
	results_check(BLOCK_X * BLOCK_Y, 7, 1004, 2.5f);
	CU(cuParamSeti(mix, 12, 5));
	CU(cuParamSetf(mix, 16, -1.0f));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuLaunchGridAsync(mix, GRID_X, GRID_Y, stream));
	/* The parameters were read by then. */
	CU(cuParamSeti(mix, 12, 99));
	CU(cuStreamSynchronize(stream));
	results_check(N, 7, 9, -1.0f);
	CU(cuStreamDestroy_v2(stream));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchGridAsync(mix, 1, 1, stream));
	/* At the end of the buffer, and one past it. */
	CU(cuParamSeti(mix, 4092, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSeti(mix, 4093, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetf(mix, 4096, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetv(mix, 0, vector, 4097));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetv(mix, -4, vector, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetv(mix, 0, NULL, 4));
	CU(cuParamSetv(mix, 0, NULL, 0));
	CU(cuParamSetSize(mix, 4096));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetSize(mix, 4097));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(mix, 0, 1, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(mix, 1, -1, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(mix, 0, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(mix, 1, -1));
	CU(cuFuncSetBlockShape(mix, 2048, 1, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunch(mix));
	CU(cuFuncSetBlockShape(mix, 1, 1, 1));
	CU(cuFuncSetSharedSize(mix, 1u << 30));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunch(mix));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuFuncSetBlockShape(NULL, 1, 1, 1));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuFuncSetSharedSize(NULL, 1));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuParamSetSize(NULL, 1));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuParamSeti(NULL, 0, 1));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuParamSetf(NULL, 0, 1));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuParamSetv(NULL, 0, vector, 4));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunch(NULL));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchGrid(NULL, 1, 1));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchGridAsync(NULL, 1, 1, NULL));
	results_check(0, 0, 0, 0);
}

/* ---- 32-bit addresses ---- */

/* Memory below 4 GiB, or 0 if this device has none. */
static CUdeviceptr_v1 low_memory(void)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE };
	CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle memory;
	CUdeviceptr_v1 narrow = 1;
	CUdeviceptr wide;
	CUresult status = cuMemAlloc(&narrow, BYTES);

	if (status == CUDA_SUCCESS) {
		CU(cuMemFree(narrow));
		CU(cuMemAlloc(&narrow, BYTES));
		return narrow;
	}
	OK(status == CUDA_ERROR_OUT_OF_MEMORY && narrow == 1);
	if (cuMemAddressReserve(&wide, 2 << 20, 0, 0x60000000, 0) != CUDA_SUCCESS || wide >> 32)
		return 0;
	CU(cuMemCreate(&memory, 2 << 20, &prop, 0));
	CU(cuMemMap(wide, 2 << 20, 0, memory, 0));
	CU(cuMemSetAccess(wide, 2 << 20, &access, 1));
	return (CUdeviceptr_v1)wide;
}

static unsigned char host[BYTES], back[BYTES];

static void fills(CUdeviceptr_v1 p)
{
	unsigned wide[BYTES / 4];
	unsigned short *half = (unsigned short *)back;

	CU(cuMemsetD8(p, 0xa5, BYTES));
	CU(cuMemsetD16(p + 16, 0x1234, 3));
	CU(cuMemsetD32(p + 32, 0xdeadbeef, 2));
	CU(cuMemcpyDtoH(back, p, BYTES));
	OK(back[0] == 0xa5 && back[BYTES - 1] == 0xa5 && half[8] == 0x1234 && half[10] == 0x1234);
	memcpy(wide, back, BYTES);
	OK(half[11] == 0xa5a5 && wide[8] == 0xdeadbeef && wide[9] == 0xdeadbeef &&
		wide[10] == 0xa5a5a5a5);
	CU(cuMemsetD2D8(p, PITCH, 1, 3, 2));
	CU(cuMemsetD2D16(p + 512, PITCH, 0x203, 3, 2));
	CU(cuMemsetD2D32(p + 1024, PITCH, 0x4050607, 3, 2));
	CU(cuMemcpyDtoH(back, p, BYTES));
	memcpy(wide, back, BYTES);
	OK(back[2] == 1 && back[3] == 0xa5 && back[PITCH + 2] == 1 && back[2 * PITCH] == 0xa5);
	OK(half[(512 + PITCH) / 2 + 2] == 0x203 && half[(512 + PITCH) / 2 + 3] == 0xa5a5);
	OK(wide[(1024 + PITCH) / 4 + 2] == 0x4050607 && wide[(1024 + PITCH) / 4 + 3] == 0xa5a5a5a5);
}

static void rows(CUdeviceptr_v1 p)
{
	CUstream stream;

	for (int i = 0; i < BYTES; i++)
		host[i] = (unsigned char)(i * 7 + 1);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemcpyHtoD(p, host, BYTES));
	CU(cuMemcpyDtoD(p + 2048, p, 1024));
	memset(back, 0, BYTES);
	CU(cuMemcpyDtoH(back, p + 2048, 1024));
	OK(memcmp(back, host, 1024) == 0);
	CU(cuMemcpyHtoDAsync(p, host + 1, 512, stream));
	CU(cuMemcpyDtoDAsync(p + 512, p, 512, stream));
	CU(cuMemcpyDtoHAsync(back, p, 1024, stream));
	CU(cuStreamSynchronize(stream));
	OK(memcmp(back, host + 1, 512) == 0 && memcmp(back + 512, host + 1, 512) == 0);
	CU(cuStreamDestroy_v2(stream));
}

static CUresult box_2d(int form, const CUDA_MEMCPY2D_v1 *copy)
{
	return form == 0    ? cuMemcpy2D(copy)
		: form == 1 ? cuMemcpy2DUnaligned(copy)
			    : cuMemcpy2DAsync(copy, NULL);
}

static void boxes(CUdeviceptr_v1 p)
{
	for (int form = 0; form < 5; form++) {
		unsigned depth = form < 3 ? 1 : DEPTH;
		CUDA_MEMCPY2D_v1 flat = { .srcXInBytes = 3,
			.srcY = 1,
			.srcMemoryType = CU_MEMORYTYPE_HOST,
			.srcHost = host,
			.srcPitch = PITCH,
			.dstXInBytes = 5,
			.dstY = 2,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = p,
			.dstPitch = PITCH,
			.WidthInBytes = WIDTH,
			.Height = HEIGHT };
		CUDA_MEMCPY3D_v1 deep = { .srcXInBytes = 3,
			.srcY = 1,
			.srcMemoryType = CU_MEMORYTYPE_HOST,
			.srcHost = host,
			.srcPitch = PITCH,
			.srcHeight = 8,
			.dstXInBytes = 5,
			.dstY = 2,
			.dstZ = 1,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = p,
			.dstPitch = PITCH,
			.dstHeight = 9,
			.WidthInBytes = WIDTH,
			.Height = HEIGHT,
			.Depth = DEPTH };

		CU(cuMemsetD8(p, 0, BYTES));
		CU(form < 3                 ? box_2d(form, &flat)
				: form == 3 ? cuMemcpy3D(&deep)
					    : cuMemcpy3DAsync(&deep, NULL));
		CU(cuMemcpyDtoH(back, p, BYTES));
		for (unsigned z = 0; z < depth; z++)
			for (unsigned y = 0; y < HEIGHT; y++) {
				unsigned slice = form < 3 ? 0 : (z + 1) * 9 * PITCH;
				unsigned char *got = back + slice + (y + 2) * PITCH + 5;

				OK(memcmp(got, host + z * 8 * PITCH + (y + 1) * PITCH + 3, WIDTH) ==
					0);
				OK(got[-1] == 0 && got[WIDTH] == 0);
			}
	}
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned(NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(NULL, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync(NULL, NULL));
}

/* A row in an array, and references to memory. p: BYTES, on a boundary of 512. */
static void textures(CUdeviceptr_v1 p)
{
	CUDA_ARRAY_DESCRIPTOR_v1 desc = { 8, HEIGHT, CU_AD_FORMAT_UNSIGNED_INT8, 4 },
				 row = { 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4 };
	CUdeviceptr_v1 got = 0;
	unsigned offset = 1;
	CUtexref ref;
	CUarray array;

	CU(cuArrayCreate(&array, &row));
	CU(cuMemcpyHtoD(p, host, BYTES));
	CU(cuMemcpyDtoA(array, 4, p + 64, 20));
	CU(cuMemcpyAtoD(p + 1024, array, 8, 12));
	CU(cuMemcpyDtoH(back, p, BYTES));
	OK(memcmp(back + 1024, host + 64 + 4, 12) == 0);
	OK(memcmp(back + 1024 + 12, host + 1024 + 12, 12) == 0);
	CU(cuTexRefCreate(&ref));
	CU(cuTexRefSetAddress(&offset, ref, p + 24, 64));
	OK(offset == 24);
	CU(cuTexRefGetAddress(&got, ref));
	OK(got == p);
	CU(cuTexRefSetAddress2D(ref, &desc, p + 512, PITCH));
	CU(cuTexRefGetAddress(&got, ref));
	OK(got == p + 512);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D(ref, &desc, p + 4, PITCH));
	CU(cuTexRefDestroy(ref));
	CU(cuArrayDestroy(array));
}

/* What must fail whatever addresses the device has. There is no memory in the first 64 KiB. */
static void refused(void)
{
	CUDA_MEMCPY2D_v1 flat = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = 0x1000,
		.WidthInBytes = 4,
		.Height = 1 };
	CUDA_MEMCPY3D_v1 deep = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = 0x1000,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1 };
	CUdeviceptr_v1 p;
	unsigned size;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 16));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, NULL, 16, 16, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(NULL, &size, 16, 16, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &size, 16, 16, 3));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x1000));
	CU(cuMemFree(0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemGetInfo(NULL, &size));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemGetInfo(&size, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem(NULL, 0));
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem(&size, -1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocHost(NULL, 16));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&p, &size, 0x1000));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&p, &size, module, "none"));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0x1000, host, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, 0x1000, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(0x1000, 0x2000, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(0x1000, host, 4, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoHAsync(host, 0x1000, 4, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoDAsync(0x1000, 0x2000, 4, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&flat));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned(&flat));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(&flat, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&deep));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync(&deep, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(0x1000, 1, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(0x1000, 1, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(0x1000, 1, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(0x1000, 16, 1, 4, 2));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D16(0x1000, 16, 1, 4, 2));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(0x1000, 16, 1, 4, 2));
}

static void sizes(void)
{
	size_t wide_free, wide_total;
	unsigned bytes_free, total, of_device, size = 0;
	CUdeviceptr_v1 p = 1, base = 1;
	CUdeviceptr wide = 0;
	CUresult status;
	void *pinned;

	CU(cuMemGetInfo_v2(&wide_free, &wide_total));
	CU(cuMemGetInfo(&bytes_free, &total));
	CU(cuDeviceTotalMem(&of_device, 0));
	OK(total == (wide_total >> 32 ? 0xffffffffu : (unsigned)wide_total) && total == of_device);
	OK(bytes_free == (wide_free >> 32 ? 0xffffffffu : (unsigned)wide_free));
	CU(cuMemAllocHost(&pinned, BYTES));
	memset(pinned, 1, BYTES);
	/* Its address has more than 32 bits, if the device can access it at all. */
	status = cuMemHostGetDevicePointer(&p, pinned, 0);
	code_note("cuMemHostGetDevicePointer", (int)status);
	OK(status == CUDA_ERROR_OUT_OF_MEMORY || status == CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(NULL, pinned, 0));
	CU(cuMemFreeHost(pinned));
	CU(cuModuleGetGlobal(NULL, &size, module, "variable"));
	OK(size == 12);
	CU(cuModuleGetGlobal_v2(&wide, NULL, module, "variable"));
	if (wide >> 32)
		EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuModuleGetGlobal(&p, &size, module, "variable"));
	/* An address that cannot be returned is not kept: this is more than the device has. */
	for (int i = 0; i < 40; i++) {
		status = cuMemAlloc(&p, (unsigned)(wide_total >> 4 & 0x7fffffff));

		OK(status == CUDA_SUCCESS || status == CUDA_ERROR_OUT_OF_MEMORY);
		if (status == CUDA_SUCCESS)
			CU(cuMemFree(p));
		status = cuMemAllocPitch(&p, &size, 1000, 1000, 4);
		if (status != CUDA_SUCCESS)
			continue;
		OK(size >= 1000);
		CU(cuMemGetAddressRange(&base, &size, p + 100));
		OK(base == p && size >= 1000 * 1000);
		CU(cuMemFree(p));
	}
	CU(cuMemAlloc_v2(&wide, wide_total >> 4));
	CU(cuMemFree_v2(wide));
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdeviceptr_v1 p, base;
	unsigned size;

	CU(cuInit(0));
	CU(cuCtxCreate_v2(&context, 0, 0));
	CU(cuModuleLoadData(&module, SOURCE));
	CU(cuModuleGetFunction(&mix, module, "mix"));
	CU(cuMemAlloc_v2(&out, N * sizeof(struct result)));
	CU(cuMemsetD8_v2(out, 0, N * sizeof(struct result)));
	launches();
	refused();
	sizes();
	p = low_memory();
	OK(p || argc < 2);
	if (p) {
		CU(cuMemGetAddressRange(&base, &size, p + 7));
		OK(base == p && size >= BYTES);
		fills(p);
		rows(p);
		boxes(p);
		textures(p);
	}
	CU(cuCtxDestroy_v2(context));
	return verdict("driver_old");
}
