/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Texture and surface references of a module and of cuTexRefCreate: what is set comes back, each
 * wrong use has its error, and kernels read and write what the references are bound to.
 *
 *     driver_texrefs [settings]     settings: launches nothing, for a device that computes nothing
 */
#include "driver.h"

#define WRONG(call) EXPECT(CUDA_ERROR_INVALID_VALUE, call)

static const char ptx[] =
	".version 6.4\n.target sm_75\n.address_size 64\n"
	".visible .global .texref image;\n"
	".global .texref first, second;\n"
	".visible .global .surfref screen;\n"
	".visible .global .align 512 .b8 table[4096];\n"
	".visible .entry plain(.param .u64 out, .param .u32 value)\n"
	"{\n"
	"	.reg .b64 %rd<3>;\n	.reg .b32 %r<2>;\n"
	"	ld.param.u64 %rd1, [out];\n	cvta.to.global.u64 %rd2, %rd1;\n"
	"	ld.param.u32 %r1, [value];\n	st.global.u32 [%rd2], %r1;\n	ret;\n"
	"}\n"
	".visible .entry fetch(.param .u64 out)\n"
	"{\n"
	"	.reg .b64 %rd<3>;\n	.reg .b32 %r<6>;\n"
	"	ld.param.u64 %rd1, [out];\n	cvta.to.global.u64 %rd2, %rd1;\n"
	"	mov.u32 %r1, 3;\n"
	"	tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [image, {%r1}];\n"
	"	st.global.u32 [%rd2], %r2;\n	ret;\n"
	"}\n"
	".visible .entry blend(.param .u64 out)\n"
	"{\n"
	"	.reg .b64 %rd<4>;\n	.reg .f32 %f<6>;\n"
	"	ld.param.u64 %rd1, [out];\n	cvta.to.global.u64 %rd2, %rd1;\n"
	"	mov.f32 %f1, 0f3F800000;\n	mov.u64 %rd3, first;\n"
	"	tex.1d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd3, {%f1}];\n"
	"	st.global.f32 [%rd2], %f2;\n	ret;\n"
	"}\n"
	".visible .entry put(.param .u64 out)\n"
	"{\n"
	"	.reg .b32 %r<3>;\n"
	"	mov.u32 %r1, 0;\n	mov.u32 %r2, 0x40000000;\n"
	"	sust.b.1d.b32.trap [screen, {%r1}], {%r2};\n	ret;\n"
	"}\n";

static CUcontext ctx;
static CUmodule mod;
static CUtexref image, first;
static CUsurfref screen;
static CUdeviceptr memory;
static CUarray array, surface_array;
static CUmipmappedArray mip;
static size_t align;

static void names(void)
{
	CUdeviceptr addr;
	CUtexref again, second;
	CUsurfref none;
	size_t bytes;

	CU(cuModuleGetTexRef(&image, mod, "image"));
	CU(cuModuleGetTexRef(&again, mod, "image"));
	CU(cuModuleGetTexRef(&first, mod, "first"));
	CU(cuModuleGetTexRef(&second, mod, "second"));
	CU(cuModuleGetSurfRef(&screen, mod, "screen"));
	OK(image && image == again && first && first != image && second != first);
	OK(screen != NULL);
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, mod, "imag"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, mod, "screen"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, mod, "table"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, mod, "plain"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetSurfRef(&none, mod, "image"));
	/* a reference has no address */
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&addr, &bytes, mod, "image"));
	CU(cuModuleGetGlobal(&addr, &bytes, mod, "table"));
	OK(bytes >= 4096);
	WRONG(cuModuleGetTexRef(NULL, mod, "image"));
	WRONG(cuModuleGetTexRef(&again, mod, NULL));
	WRONG(cuModuleGetSurfRef(NULL, mod, "screen"));
	WRONG(cuModuleGetSurfRef(&none, mod, NULL));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleGetTexRef(&again, NULL, "image"));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleGetSurfRef(&none, NULL, "screen"));
}

static void formats(CUtexref ref)
{
	CUarray_format format = (CUarray_format)0;
	int channels = 0;

	CU(cuTexRefSetFormat(ref, CU_AD_FORMAT_UNSIGNED_INT16, 2));
	CU(cuTexRefGetFormat(&format, &channels, ref));
	OK(format == CU_AD_FORMAT_UNSIGNED_INT16 && channels == 2);
	CU(cuTexRefSetFormat(ref, CU_AD_FORMAT_HALF, 4));
	CU(cuTexRefGetFormat(&format, NULL, ref));
	CU(cuTexRefGetFormat(NULL, &channels, ref));
	OK(format == CU_AD_FORMAT_HALF && channels == 4);
	WRONG(cuTexRefSetFormat(ref, CU_AD_FORMAT_FLOAT, 3));
	WRONG(cuTexRefSetFormat(ref, CU_AD_FORMAT_FLOAT, 0));
	WRONG(cuTexRefSetFormat(ref, (CUarray_format)0x7777, 1));
	CU(cuTexRefGetFormat(&format, &channels, ref));
	OK(format == CU_AD_FORMAT_HALF && channels == 4);
}

static void modes(CUtexref ref)
{
	CUfilter_mode filter = CU_TR_FILTER_MODE_POINT, mip_filter = CU_TR_FILTER_MODE_LINEAR;
	CUaddress_mode mode;
	unsigned flags = 0;

	for (int i = 0; i < 3; i++)
		CU(cuTexRefSetAddressMode(ref, i, (CUaddress_mode)(i + 1)));
	for (int i = 0; i < 3; i++) {
		CU(cuTexRefGetAddressMode(&mode, ref, i));
		OK(mode == (CUaddress_mode)(i + 1));
	}
	WRONG(cuTexRefSetAddressMode(ref, 3, CU_TR_ADDRESS_MODE_WRAP));
	WRONG(cuTexRefSetAddressMode(ref, -1, CU_TR_ADDRESS_MODE_WRAP));
	WRONG(cuTexRefSetAddressMode(ref, 0, (CUaddress_mode)4));
	WRONG(cuTexRefGetAddressMode(&mode, ref, 3));
	WRONG(cuTexRefGetAddressMode(NULL, ref, 0));
	CU(cuTexRefSetFilterMode(ref, CU_TR_FILTER_MODE_LINEAR));
	CU(cuTexRefSetMipmapFilterMode(ref, CU_TR_FILTER_MODE_POINT));
	CU(cuTexRefGetFilterMode(&filter, ref));
	CU(cuTexRefGetMipmapFilterMode(&mip_filter, ref));
	OK(filter == CU_TR_FILTER_MODE_LINEAR && mip_filter == CU_TR_FILTER_MODE_POINT);
	WRONG(cuTexRefSetFilterMode(ref, (CUfilter_mode)2));
	WRONG(cuTexRefSetMipmapFilterMode(ref, (CUfilter_mode)2));
	WRONG(cuTexRefGetFilterMode(NULL, ref));
	WRONG(cuTexRefGetMipmapFilterMode(NULL, ref));
	CU(cuTexRefSetFlags(ref, CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES));
	CU(cuTexRefGetFlags(&flags, ref));
	OK(flags == (CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES));
	CU(cuTexRefSetFlags(ref, CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION));
	CU(cuTexRefGetFlags(&flags, ref));
	OK(flags == (CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION));
	WRONG(cuTexRefSetFlags(ref, 0x100));
	WRONG(cuTexRefSetFlags(ref, CU_TRSF_SEAMLESS_CUBEMAP)); /* of texture objects only */
	WRONG(cuTexRefGetFlags(NULL, ref));
}

static void numbers(CUtexref ref)
{
	float color[4] = { 0.25f, -1, 3e38f, 0 }, got[4], low, high, bias;
	const uint32_t whole[4] = { 7, 0xffffffff, 0x7f800001, 1 }; /* integers, some no number */
	int anisotropy = 0;

	CU(cuTexRefSetMipmapLevelBias(ref, -0.75f));
	CU(cuTexRefGetMipmapLevelBias(&bias, ref));
	OK(bias == -0.75f);
	WRONG(cuTexRefGetMipmapLevelBias(NULL, ref));
	CU(cuTexRefSetMipmapLevelClamp(ref, 1.5f, 7.25f));
	CU(cuTexRefGetMipmapLevelClamp(&low, &high, ref));
	OK(low == 1.5f && high == 7.25f);
	WRONG(cuTexRefGetMipmapLevelClamp(NULL, &high, ref));
	WRONG(cuTexRefGetMipmapLevelClamp(&low, NULL, ref));
	CU(cuTexRefSetMaxAnisotropy(ref, 16));
	CU(cuTexRefGetMaxAnisotropy(&anisotropy, ref));
	OK(anisotropy == 16);
	WRONG(cuTexRefGetMaxAnisotropy(NULL, ref));
	CU(cuTexRefSetAddressMode(ref, 1, CU_TR_ADDRESS_MODE_BORDER));
	CU(cuTexRefSetBorderColor(ref, color));
	CU(cuTexRefGetBorderColor(got, ref));
	OK(memcmp(got, color, sizeof got) == 0);
	CU(cuTexRefSetBorderColor(ref, (float *)whole));
	CU(cuTexRefGetBorderColor(got, ref));
	OK(memcmp(got, whole, sizeof got) == 0);
	WRONG(cuTexRefSetBorderColor(ref, NULL));
	WRONG(cuTexRefGetBorderColor(NULL, ref));
	for (int i = 0; i < 3; i++)
		CU(cuTexRefSetAddressMode(ref, i, CU_TR_ADDRESS_MODE_CLAMP));
	WRONG(cuTexRefSetBorderColor(ref, color)); /* there is no border */
}

static void arrays(void)
{
	CUmipmappedArray got_mip = NULL;
	CUarray got = NULL, gone;
	CUarray_format format;
	CUDA_ARRAY3D_DESCRIPTOR small = { 8, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0 };
	CUdeviceptr addr;
	int channels;

	CU(cuTexRefSetArray(image, array, CU_TRSA_OVERRIDE_FORMAT));
	CU(cuTexRefGetArray(&got, image));
	OK(got == array);
	CU(cuTexRefGetFormat(&format, &channels, image));
	OK(format == CU_AD_FORMAT_FLOAT && channels == 2);
	WRONG(cuTexRefGetMipmappedArray(&got_mip, image));
	WRONG(cuTexRefGetAddress(&addr, image));
	/* the format may be set again */
	CU(cuTexRefSetFormat(image, CU_AD_FORMAT_FLOAT, 2));
	CU(cuTexRefSetMipmappedArray(image, mip, CU_TRSA_OVERRIDE_FORMAT));
	CU(cuTexRefGetMipmappedArray(&got_mip, image));
	OK(got_mip == mip);
	CU(cuTexRefGetFormat(&format, &channels, image));
	OK(format == CU_AD_FORMAT_SIGNED_INT16 && channels == 1);
	WRONG(cuTexRefGetArray(&got, image));
	WRONG(cuTexRefGetMipmappedArray(NULL, image));
	WRONG(cuTexRefSetArray(image, array, 0));
	WRONG(cuTexRefSetArray(image, array, 3));
	WRONG(cuTexRefSetArray(image, NULL, CU_TRSA_OVERRIDE_FORMAT));
	WRONG(cuTexRefSetArray(image, (CUarray)mip, CU_TRSA_OVERRIDE_FORMAT));
	WRONG(cuTexRefSetMipmappedArray(image, mip, 0));
	WRONG(cuTexRefSetMipmappedArray(image, (CUmipmappedArray)array, CU_TRSA_OVERRIDE_FORMAT));
	CU(cuTexRefGetMipmappedArray(&got_mip, image)); /* none of them has changed it */
	OK(got_mip == mip);
	CU(cuArray3DCreate(&gone, &small));
	CU(cuTexRefSetArray(first, gone, CU_TRSA_OVERRIDE_FORMAT));
	CU(cuTexRefGetArray(&got, first));
	OK(got == gone);
	CU(cuArrayDestroy(gone));
	WRONG(cuTexRefGetArray(&got, first));
	CU(cuTexRefSetArray(first, array, CU_TRSA_OVERRIDE_FORMAT));
	WRONG(cuTexRefGetArray(NULL, first));
}

static void surfaces(void)
{
	CUarray got = NULL;

	WRONG(cuSurfRefGetArray(&got, screen));
	CU(cuSurfRefSetArray(screen, surface_array, 0));
	CU(cuSurfRefGetArray(&got, screen));
	OK(got == surface_array);
	WRONG(cuSurfRefGetArray(NULL, screen));
	WRONG(cuSurfRefSetArray(screen, surface_array, CU_TRSA_OVERRIDE_FORMAT));
	WRONG(cuSurfRefSetArray(screen, array, 0)); /* made without CUDA_ARRAY3D_SURFACE_LDST */
	WRONG(cuSurfRefSetArray(screen, NULL, 0));
	WRONG(cuSurfRefSetArray((CUsurfref)image, surface_array, 0));
	WRONG(cuSurfRefGetArray(&got, (CUsurfref)image));
	WRONG(cuTexRefSetArray((CUtexref)screen, array, CU_TRSA_OVERRIDE_FORMAT));
	WRONG(cuTexRefSetFlags((CUtexref)screen, 0));
}

static void linear(void)
{
	CUdeviceptr addr = 0, table;
	CUarray got;
	size_t offset = 99, bytes;
	void *host;

	CU(cuTexRefSetFormat(image, CU_AD_FORMAT_UNSIGNED_INT32, 1));
	CU(cuTexRefSetAddress(&offset, image, memory, 4096));
	OK(offset == 0);
	CU(cuTexRefGetAddress(&addr, image));
	OK(addr == memory);
	WRONG(cuTexRefGetArray(&got, image));
	CU(cuTexRefSetAddress(NULL, image, memory, 64));
	/* not aligned: fetches must add the offset */
	CU(cuTexRefSetAddress(&offset, image, memory + align + 20, 64));
	OK(offset == 20);
	CU(cuTexRefGetAddress(&addr, image));
	OK(addr == memory + align);
	WRONG(cuTexRefSetAddress(NULL, image, memory + align + 20, 64));
	CU(cuModuleGetGlobal(&table, &bytes, mod, "table"));
	CU(cuTexRefSetAddress(&offset, image, table, bytes));
	CU(cuTexRefGetAddress(&addr, image));
	OK(addr == table - offset);
	WRONG(cuTexRefGetAddress(NULL, image));
	WRONG(cuTexRefSetAddress(&offset, image, memory, 1 << 20)); /* beyond the end */
	WRONG(cuTexRefSetAddress(&offset, image, memory, 0));
	WRONG(cuTexRefSetAddress(&offset, image, 0, 64));
	CU(cuMemAllocHost(&host, 4096));
	WRONG(cuTexRefSetAddress(&offset, image, (CUdeviceptr)(uintptr_t)host, 64));
	CU(cuMemFreeHost(host));
	CU(cuTexRefGetAddress(&addr, image)); /* none of them has changed it */
	OK(addr == table - offset);
	/* unbound */
	CU(cuTexRefSetAddress(NULL, image, 0, 0));
	WRONG(cuTexRefGetAddress(&addr, image));
}

static void pitched(void)
{
	CUresult (*set_v2)(CUtexref, const CUDA_ARRAY_DESCRIPTOR *, CUdeviceptr, size_t);
	CUDA_ARRAY_DESCRIPTOR desc = { 16, 8, CU_AD_FORMAT_UNSIGNED_INT8, 4 }, wrong = desc;
	CUarray_format format;
	CUdeviceptr addr = 0;
	size_t pitch = 0;
	int channels = 0;

	*(void **)&set_v2 = driver_entry("cuTexRefSetAddress2D_v2");
	CU(cuMemAllocPitch(&addr, &pitch, 64, 8, 4));
	CU(cuTexRefSetAddress2D(image, &desc, memory, pitch));
	CU(cuMemFree(addr));
	CU(cuTexRefGetAddress(&addr, image));
	OK(addr == memory);
	CU(cuTexRefGetFormat(&format, &channels, image));
	OK(format == CU_AD_FORMAT_UNSIGNED_INT8 && channels == 4);
	/* the format was given here */
	CU(cuTexRefSetFormat(image, CU_AD_FORMAT_UNSIGNED_INT8, 4));
	WRONG(cuTexRefSetFormat(image, CU_AD_FORMAT_UNSIGNED_INT8, 2));
	CU(set_v2(image, &desc, memory + align, pitch));
	CU(cuTexRefGetAddress(&addr, image));
	OK(addr == memory + align);
	WRONG(cuTexRefSetAddress2D(image, NULL, memory, pitch));
	WRONG(cuTexRefSetAddress2D(image, &desc, memory + 4, pitch));
	WRONG(cuTexRefSetAddress2D(image, &desc, memory, pitch + 4));
	WRONG(cuTexRefSetAddress2D(image, &desc, memory, 32)); /* narrower than a row */
	wrong.NumChannels = 3;
	WRONG(cuTexRefSetAddress2D(image, &wrong, memory, pitch));
	wrong = desc;
	wrong.Height = 60000; /* beyond the end */
	WRONG(cuTexRefSetAddress2D(image, &wrong, memory, pitch));
	wrong.Height = 0;
	WRONG(set_v2(image, &wrong, memory, pitch));
	CU(cuTexRefGetAddress(&addr, image));
	OK(addr == memory + align);
}

/* The names of before CUDA 3.2, whose addresses have 32 bits: this memory is above 4 GiB. */
static void narrow(void)
{
	CUresult (*set)(unsigned *, CUtexref, unsigned, unsigned);
	CUresult (*set_2d)(CUtexref, const void *, unsigned, unsigned);
	CUresult (*get)(unsigned *, CUtexref);
	struct {
		unsigned width, height;
		CUarray_format format;
		unsigned channels;
	} desc = { 16, 8, CU_AD_FORMAT_UNSIGNED_INT8, 4 };
	CUresult (*to_memory)(unsigned, CUarray, unsigned, unsigned);
	CUresult (*to_array)(CUarray, unsigned, unsigned, unsigned);
	CUDA_ARRAY3D_DESCRIPTOR row_desc = { 64, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 };
	unsigned offset = 7, addr = 7;
	CUarray row;

	*(void **)&set = driver_entry("cuTexRefSetAddress");
	*(void **)&set_2d = driver_entry("cuTexRefSetAddress2D");
	*(void **)&get = driver_entry("cuTexRefGetAddress");
	*(void **)&to_memory = driver_entry("cuMemcpyAtoD");
	*(void **)&to_array = driver_entry("cuMemcpyDtoA");
	WRONG(set(&offset, image, 4096, 64));
	WRONG(set_2d(image, &desc, 4096, 64));
	WRONG(set_2d(image, NULL, 4096, 64));
	WRONG(get(NULL, image));
	EXPECT(CUDA_ERROR_OUT_OF_MEMORY, get(&addr, image)); /* cannot be returned */
	OK(offset == 7 && addr == 7);
	CU(set(NULL, image, 0, 0));
	WRONG(get(&addr, image));
	CU(cuArray3DCreate(&row, &row_desc));
	WRONG(to_memory(4096, row, 0, 64));
	WRONG(to_array(row, 0, 4096, 64));
	CU(cuArrayDestroy(row));
}

static void created(void)
{
	CUtexref ref, other;

	CU(cuTexRefCreate(&ref));
	CU(cuTexRefCreate(&other));
	OK(ref && other && ref != other && ref != image);
	formats(ref);
	modes(ref);
	numbers(ref);
	CU(cuTexRefSetArray(ref, array, CU_TRSA_OVERRIDE_FORMAT));
	WRONG(cuTexRefCreate(NULL));
	CU(cuTexRefDestroy(ref));
	WRONG(cuTexRefDestroy(ref));
	WRONG(cuTexRefSetFlags(ref, 0));
	WRONG(cuTexRefDestroy(image)); /* it ends with its module */
	WRONG(cuTexRefDestroy(NULL));
	CU(cuTexRefDestroy(other));
}

static void kernels(void)
{
	CUfunction plain, fetch;
	unsigned value = 41, got = 0;
	void *params[] = { &memory, &value };
	CUtexref ref;

	CU(cuModuleGetFunction(&plain, mod, "plain"));
	CU(cuModuleGetFunction(&fetch, mod, "fetch"));
	CU(cuParamSetTexRef(fetch, CU_PARAM_TR_DEFAULT, image));
	WRONG(cuParamSetTexRef(fetch, 0, image));
	WRONG(cuParamSetTexRef(fetch, CU_PARAM_TR_DEFAULT, NULL));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuParamSetTexRef(NULL, CU_PARAM_TR_DEFAULT, image));
	CU(cuTexRefCreate(&ref));
	WRONG(cuParamSetTexRef(fetch, CU_PARAM_TR_DEFAULT, ref));
	CU(cuTexRefDestroy(ref));
	CU(cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CU(cuMemcpyDtoH(&got, memory, sizeof got));
	OK(got == 41);
	CU(cuMemsetD32(memory + 2 * align, 0x1234567, 16));
	CU(cuTexRefSetFormat(image, CU_AD_FORMAT_UNSIGNED_INT32, 1));
	CU(cuTexRefSetFlags(image, CU_TRSF_READ_AS_INTEGER));
	CU(cuTexRefSetAddress(NULL, image, memory + 2 * align, 64));
	CU(cuLaunchKernel(fetch, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	/* the launch before it has used what was bound then */
	CU(cuTexRefSetAddress(NULL, image, memory + 3 * align, 64));
	CU(cuMemcpyDtoH(&got, memory, sizeof got));
	OK(got == 0x1234567);
}

/* Arrays: linear filtering through a texture reference, stores through a surface reference. */
static void bound_arrays(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 8, 0, 0, CU_AD_FORMAT_FLOAT, 1,
		CUDA_ARRAY3D_SURFACE_LDST };
	float row[8] = { 0, 10, 20, 30, 40, 50, 60, 70 }, got = 0;
	void *params[] = { &memory };
	CUfunction blend, put;
	CUarray line;

	CU(cuModuleGetFunction(&blend, mod, "blend"));
	CU(cuModuleGetFunction(&put, mod, "put"));
	CU(cuArray3DCreate(&line, &desc));
	CU(cuMemcpyHtoA(line, 0, row, sizeof row));
	CU(cuTexRefSetArray(first, line, CU_TRSA_OVERRIDE_FORMAT));
	CU(cuTexRefSetFilterMode(first, CU_TR_FILTER_MODE_LINEAR));
	CU(cuTexRefSetFlags(first, CU_TRSF_NORMALIZED_COORDINATES));
	CU(cuTexRefSetAddressMode(first, 0, CU_TR_ADDRESS_MODE_WRAP));
	CU(cuSurfRefSetArray(screen, line, 0));
	CU(cuLaunchKernel(blend, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CU(cuMemcpyDtoH(&got, memory, sizeof got));
	OK(got == 35); /* between 0 and 70, by the repeated edge */
	CU(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CU(cuLaunchKernel(blend, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CU(cuMemcpyDtoH(&got, memory, sizeof got));
	OK(got == 36); /* between 2 and 70 */
	CU(cuMemcpyAtoH(row, line, 0, sizeof row));
	OK(row[0] == 2 && row[1] == 10);
	CU(cuTexRefSetArray(first, array, CU_TRSA_OVERRIDE_FORMAT));
	CU(cuSurfRefSetArray(screen, surface_array, 0));
	CU(cuArrayDestroy(line));
}

/* References belong to a context, and end with their module. */
static void ends(void)
{
	CUtexref here, ref;
	CUcontext other;
	CUmodule second;
	unsigned flags;

	CU(cuTexRefSetFlags(image, CU_TRSF_READ_AS_INTEGER));
	CU(cuModuleLoadData(&second, ptx));
	CU(cuModuleGetTexRef(&here, second, "image"));
	OK(here != image);
	CU(cuTexRefSetFlags(here, CU_TRSF_SRGB));
	CU(cuTexRefGetFlags(&flags, image));
	OK(flags == CU_TRSF_READ_AS_INTEGER);
	CU(cuModuleUnload(second));
	WRONG(cuTexRefGetFlags(&flags, here));
	WRONG(cuTexRefSetFlags(here, 0));
	CU(cuCtxCreate(&other, NULL, 0, 0));
	WRONG(cuTexRefGetFlags(&flags, image));
	CU(cuModuleLoadData(&second, ptx));
	CU(cuModuleGetTexRef(&here, second, "first"));
	WRONG(cuTexRefSetArray(here, array, CU_TRSA_OVERRIDE_FORMAT)); /* of the first context */
	CU(cuTexRefCreate(&ref));
	CU(cuTexRefSetFlags(ref, 0));
	CU(cuCtxDestroy(other));
	CU(cuCtxSetCurrent(ctx));
	WRONG(cuTexRefGetFlags(&flags, here));
	WRONG(cuTexRefGetFlags(&flags, ref));
	CU(cuTexRefGetFlags(&flags, image));
	OK(flags == CU_TRSF_READ_AS_INTEGER);
}

int main(int argc, char **argv)
{
	CUDA_ARRAY3D_DESCRIPTOR flat = { 32, 16, 0, CU_AD_FORMAT_FLOAT, 2, 0 },
				store = { 32, 16, 0, CU_AD_FORMAT_FLOAT, 1,
					CUDA_ARRAY3D_SURFACE_LDST },
				levels = { 64, 32, 0, CU_AD_FORMAT_SIGNED_INT16, 1, 0 };
	int alignment;

	CU(cuInit(0));
	CU(cuDevicePrimaryCtxRetain(&ctx, 0));
	CU(cuCtxSetCurrent(ctx));
	CU(cuDeviceGetAttribute(&alignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0));
	align = (size_t)alignment;
	CU(cuMemAlloc(&memory, 65536));
	CU(cuArray3DCreate(&array, &flat));
	CU(cuArray3DCreate(&surface_array, &store));
	CU(cuMipmappedArrayCreate(&mip, &levels, 4));
	CU(cuModuleLoadData(&mod, ptx));
	names();
	formats(image);
	modes(image);
	numbers(image);
	arrays();
	surfaces();
	linear();
	pitched();
	narrow();
	created();
	if (argc < 2 || strcmp(argv[1], "settings") != 0) {
		kernels();
		bound_arrays();
	}
	ends();
	return verdict("driver_texrefs");
}
