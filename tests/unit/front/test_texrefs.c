/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Texture and surface references over the fake backend: what reaches the backend, that a failed
 * change changes nothing, and when references end.
 */
#include "front.h"

#define INVALID CUDA_ERROR_INVALID_VALUE

static const char refs_text[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
				".visible .global .texref image, other;\n"
				".global .surfref screen;\n"
				".visible .entry first()\n{\n\tret;\n}\n";

static CUmodule module;
static CUtexref image;
static CUsurfref screen;

static CUcontext begin_refs(void)
{
	CUcontext ctx = begin();

	OK(obf_cuModuleLoadData(&module, refs_text));
	OK(obf_cuModuleGetTexRef(&image, module, "image"));
	OK(obf_cuModuleGetSurfRef(&screen, module, "screen"));
	CHECK(fake.texrefs == 2 && fake.texref_sets == 0);
	return ctx;
}

TEST(names)
{
	CUtexref again;

	begin();
	OK(obf_cuModuleLoadData(&module, refs_text));
	CHECK_INT(obf_cuModuleGetTexRef(&again, module, "screen"), CUDA_ERROR_NOT_FOUND);
	CHECK_INT(obf_cuModuleGetTexRef(&again, module, "first"), CUDA_ERROR_NOT_FOUND);
	/* a reference that the backend does not know is asked for again */
	fake.texref_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuModuleGetTexRef(&again, module, "image"), CUDA_ERROR_OUT_OF_MEMORY);
	fake.texref_result = CUDA_SUCCESS;
	OK(obf_cuModuleGetTexRef(&image, module, "image"));
	CHECK_STR(fake.last_texref->name, "image");
	CHECK(!fake.last_texref->is_surface && fake.last_texref->mod->handle == module);
	OK(obf_cuModuleGetTexRef(&again, module, "image"));
	CHECK(again == image && fake.texrefs == 1);
	OK(obf_cuModuleGetSurfRef(&screen, module, "screen"));
	CHECK(fake.last_texref->is_surface && fake.texrefs == 2);
}

TEST(unset)
{
	CUaddress_mode mode = CU_TR_ADDRESS_MODE_WRAP;
	CUfilter_mode filter, mip_filter;
	float low, high, bias, color[4];
	CUarray_format format;
	int channels, anisotropy;
	CUmipmappedArray mip;
	unsigned flags = 1;
	CUdeviceptr addr;
	CUarray array;

	begin_refs();
	OK(obf_cuTexRefGetFormat(&format, &channels, image));
	CHECK(format == CU_AD_FORMAT_FLOAT && channels == 1);
	for (int i = 0; i < 3; i++) {
		OK(obf_cuTexRefGetAddressMode(&mode, image, i));
		CHECK_INT(mode, CU_TR_ADDRESS_MODE_CLAMP);
	}
	OK(obf_cuTexRefGetFilterMode(&filter, image));
	OK(obf_cuTexRefGetMipmapFilterMode(&mip_filter, image));
	CHECK(filter == CU_TR_FILTER_MODE_POINT && mip_filter == CU_TR_FILTER_MODE_POINT);
	OK(obf_cuTexRefGetMipmapLevelClamp(&low, &high, image));
	OK(obf_cuTexRefGetMipmapLevelBias(&bias, image));
	OK(obf_cuTexRefGetMaxAnisotropy(&anisotropy, image));
	OK(obf_cuTexRefGetBorderColor(color, image));
	OK(obf_cuTexRefGetFlags(&flags, image));
	CHECK(low == 0 && high == 0 && bias == 0 && anisotropy == 0 && flags == 0);
	CHECK(color[0] == 0 && color[3] == 0);
	CHECK_INT(obf_cuTexRefGetArray(&array, image), INVALID);
	CHECK_INT(obf_cuTexRefGetMipmappedArray(&mip, image), INVALID);
	CHECK_INT(obf_cuTexRefGetAddress_v2(&addr, image), INVALID);
	CHECK_INT(obf_cuSurfRefGetArray(&array, screen), INVALID);
	CHECK_INT(fake.texref_sets, 0);
}

/* One change, with its setting and no other. */
static void changed(unsigned setting, unsigned dimension)
{
	CHECK_INT(fake.last_setting, setting);
	CHECK_INT(fake.last_dimension, dimension);
	CHECK_INT(fake.last_texref->handle, (uint64_t)(uintptr_t)image);
	CHECK_INT(fake.texref_sets, 1);
	fake.texref_sets = 0;
}

TEST(settings)
{
	const struct obf_texref_state *to = &fake.last_texref_state;
	float color[4] = { 1, 2, 3, 4 };

	begin_refs();
	OK(obf_cuTexRefSetFormat(image, CU_AD_FORMAT_HALF, 4));
	changed(OBF_TEXREF_FORMAT, 0);
	CHECK(to->format == CU_AD_FORMAT_HALF && to->channels == 4);
	OK(obf_cuTexRefSetAddressMode(image, 2, CU_TR_ADDRESS_MODE_BORDER));
	changed(OBF_TEXREF_ADDRESS_MODE, 2);
	CHECK_INT(to->address[2], CU_TR_ADDRESS_MODE_BORDER);
	OK(obf_cuTexRefSetBorderColor(image, color));
	changed(OBF_TEXREF_BORDER, 0);
	CHECK_MEM(to->border, color, sizeof color);
	OK(obf_cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
	changed(OBF_TEXREF_FILTER, 0);
	CHECK(to->filter == CU_TR_FILTER_MODE_LINEAR && to->mip_filter == CU_TR_FILTER_MODE_POINT);
	OK(obf_cuTexRefSetMipmapFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
	changed(OBF_TEXREF_MIP_FILTER, 0);
	CHECK_INT(to->mip_filter, CU_TR_FILTER_MODE_LINEAR);
	OK(obf_cuTexRefSetMipmapLevelBias(image, 0.5f));
	changed(OBF_TEXREF_MIP_BIAS, 0);
	CHECK(to->mip_bias == 0.5f);
	OK(obf_cuTexRefSetMipmapLevelClamp(image, 1.5f, 2.5f));
	changed(OBF_TEXREF_MIP_CLAMP, 0);
	CHECK(to->mip_min == 1.5f && to->mip_max == 2.5f);
	OK(obf_cuTexRefSetMaxAnisotropy(image, 8));
	changed(OBF_TEXREF_ANISOTROPY, 0);
	CHECK_INT(to->anisotropy, 8);
	OK(obf_cuTexRefSetFlags(image, CU_TRSF_SRGB));
	changed(OBF_TEXREF_FLAGS, 0);
	CHECK_INT(to->flags, CU_TRSF_SRGB);
	/* the earlier changes are still there */
	CHECK(to->format == CU_AD_FORMAT_HALF && to->address[2] == CU_TR_ADDRESS_MODE_BORDER);
}

TEST(failures)
{
	unsigned flags = 1;

	begin_refs();
	OK(obf_cuTexRefSetFlags(image, CU_TRSF_READ_AS_INTEGER));
	fake.texref_result = CUDA_ERROR_NOT_SUPPORTED;
	CHECK_INT(obf_cuTexRefSetFlags(image, CU_TRSF_SRGB), CUDA_ERROR_NOT_SUPPORTED);
	OK(obf_cuTexRefGetFlags(&flags, image));
	CHECK_INT(flags, CU_TRSF_READ_AS_INTEGER);
	/* what the front end refuses does not reach the backend */
	fake.texref_sets = 0;
	CHECK_INT(obf_cuTexRefSetFlags(image, CU_TRSF_SEAMLESS_CUBEMAP), INVALID);
	CHECK_INT(obf_cuTexRefSetFormat(image, CU_AD_FORMAT_FLOAT, 3), INVALID);
	CHECK_INT(obf_cuTexRefSetBorderColor(image, (float[4]){ 0 }), INVALID);
	CHECK_INT(fake.texref_sets, 0);
}

/* At a low address, which the calls of CUDA before 3.2 can name. */
static void memory_insert(uint64_t base, uint64_t size, struct obf_ctx *ctx)
{
	struct obf_mem mem = { .base = base, .size = size, .kind = OBF_MEM_DEVICE, .ctx = ctx };

	CHECK(obf_mem_insert(&mem));
}

TEST(memory)
{
	const struct obf_texref_binding *bound = &fake.last_texref_state.bound;
	const CUDA_ARRAY_DESCRIPTOR_v1 desc = { 16, 8, CU_AD_FORMAT_UNSIGNED_INT8, 4 };
	CUDA_ARRAY_DESCRIPTOR wide = { 256, 128, CU_AD_FORMAT_UNSIGNED_INT8, 1 };
	unsigned offset = 0;
	CUdeviceptr_v1 addr = 0;
	size_t wide_offset;

	begin_refs();
	memory_insert(0x10000, 1 << 20, fake.last_texref->ctx);
	OK(obf_cuTexRefSetAddress(&offset, image, 0x10000 + 512 + 20, 64));
	changed(OBF_TEXREF_BINDING, 0);
	CHECK(bound->is_bound && bound->type == CU_RESOURCE_TYPE_LINEAR && bound->size == 64);
	CHECK(bound->addr == 0x10000 + 512 + 20 && offset == 20);
	OK(obf_cuTexRefGetAddress(&addr, image));
	CHECK_INT(addr, 0x10000 + 512);
	/* the limit of the device, in elements */
	OK(obf_cuTexRefSetAddress_v2(&wide_offset, image, 0x10000, 1024 * 4));
	CHECK_INT(obf_cuTexRefSetAddress_v2(&wide_offset, image, 0x10000, 1025 * 4), INVALID);
	OK(obf_cuTexRefSetFormat(image, CU_AD_FORMAT_FLOAT, 4));
	OK(obf_cuTexRefSetAddress_v2(&wide_offset, image, 0x10000, 1025 * 4));
	fake.texref_sets = 0;
	OK(obf_cuTexRefSetAddress2D(image, &desc, 0x10000, 64));
	changed(OBF_TEXREF_BINDING, 0);
	CHECK(bound->type == CU_RESOURCE_TYPE_PITCH2D && bound->addr == 0x10000);
	CHECK(bound->width == 16 && bound->height == 8 && bound->pitch == 64);
	CHECK(fake.last_texref_state.format == CU_AD_FORMAT_UNSIGNED_INT8 &&
		fake.last_texref_state.channels == 4);
	OK(obf_cuTexRefSetAddress2D_v2(image, &wide, 0x10000, 4096));
	CHECK_INT(obf_cuTexRefSetAddress2D_v3(image, &wide, 0x10000, 4096 + 32), INVALID);
	wide.Width++;
	CHECK_INT(obf_cuTexRefSetAddress2D_v3(image, &wide, 0x10000, 4096), INVALID);
	wide.Width--;
	wide.Height++;
	CHECK_INT(obf_cuTexRefSetAddress2D_v3(image, &wide, 0x10000, 4096), INVALID);
	CHECK_INT(obf_cuTexRefSetAddress2D(image, NULL, 0x10000, 64), INVALID);
	/* nothing, and then any memory again */
	fake.texref_sets = 0;
	OK(obf_cuTexRefSetAddress(NULL, image, 0, 0));
	changed(OBF_TEXREF_BINDING, 0);
	CHECK(!bound->is_bound && bound->addr == 0 && bound->size == 0);
	CHECK_INT(obf_cuTexRefGetAddress(&addr, image), INVALID);
}

TEST(arrays)
{
	const struct obf_texref_binding *bound = &fake.last_texref_state.bound;
	CUDA_ARRAY3D_DESCRIPTOR desc = { 8, 8, 0, CU_AD_FORMAT_SIGNED_INT16, 2,
		CUDA_ARRAY3D_SURFACE_LDST };
	CUmipmappedArray mip;
	CUarray array;

	begin_refs();
	OK(obf_cuArray3DCreate_v2(&array, &desc));
	OK(obf_cuMipmappedArrayCreate(&mip, &desc, 2));
	OK(obf_cuTexRefSetArray(image, array, CU_TRSA_OVERRIDE_FORMAT));
	changed(OBF_TEXREF_BINDING, 0);
	CHECK(bound->type == CU_RESOURCE_TYPE_ARRAY && bound->array == (uintptr_t)array);
	CHECK(fake.last_texref_state.format == CU_AD_FORMAT_SIGNED_INT16);
	CHECK_INT(fake.last_texref_state.channels, 2);
	OK(obf_cuTexRefSetMipmappedArray(image, mip, CU_TRSA_OVERRIDE_FORMAT));
	changed(OBF_TEXREF_BINDING, 0);
	CHECK(bound->type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && bound->array == (uintptr_t)mip);
	OK(obf_cuSurfRefSetArray(screen, array, 0));
	CHECK(fake.last_texref->handle == (uintptr_t)screen && bound->array == (uintptr_t)array);
}

TEST(parameters)
{
	CUtexref made;
	CUfunction func;

	begin_refs();
	OK(obf_cuModuleGetFunction(&func, module, "first"));
	OK(obf_cuParamSetTexRef(func, CU_PARAM_TR_DEFAULT, image));
	CHECK(fake.texref_params == 1 && fake.last_texref->handle == (uintptr_t)image);
	OK(obf_cuTexRefCreate(&made));
	CHECK_INT(obf_cuParamSetTexRef(func, CU_PARAM_TR_DEFAULT, made), INVALID);
	CHECK_INT(obf_cuParamSetTexRef(func, 0, image), INVALID);
	CHECK_INT(fake.texref_params, 1);
}

/* The backend ends the references of a module and of a context itself. */
TEST(ends)
{
	CUcontext ctx = begin_refs(), second;
	CUtexref made, there;
	unsigned flags;

	OK(obf_cuTexRefCreate(&made));
	CHECK(!fake.last_texref->mod && fake.texrefs == 3);
	CHECK_INT(obf_cuTexRefDestroy(image), INVALID);
	OK(obf_cuTexRefDestroy(made));
	CHECK(fake.texrefs == 2 && fake.last_texref->handle == (uintptr_t)made);
	CHECK_INT(obf_cuTexRefDestroy(made), INVALID);
	OK(obf_cuCtxCreate_v2(&second, 0, 0));
	CHECK_INT(obf_cuTexRefGetFlags(&flags, image), INVALID);
	OK(obf_cuTexRefCreate(&made));
	OK(obf_cuModuleLoadData(&module, refs_text));
	OK(obf_cuModuleGetTexRef(&there, module, "other"));
	OK(obf_cuCtxDestroy_v2(second));
	OK(obf_cuCtxSetCurrent(ctx));
	CHECK_INT(obf_cuTexRefGetFlags(&flags, made), INVALID);
	CHECK_INT(obf_cuTexRefGetFlags(&flags, there), INVALID);
	OK(obf_cuTexRefGetFlags(&flags, image));
	CHECK_INT(fake.texrefs, 4); /* no call of texref_close */
}

TEST(module_ends)
{
	CUtexref gone;
	unsigned flags;

	begin_refs();
	gone = image;
	OK(obf_cuModuleUnload(module));
	CHECK_INT(obf_cuTexRefGetFlags(&flags, gone), INVALID);
	CHECK_INT(obf_cuTexRefSetFlags(gone, 0), INVALID);
	CHECK_INT(fake.texref_sets, 0);
	OK(obf_cuModuleLoadData(&module, refs_text));
	OK(obf_cuModuleGetTexRef(&image, module, "image"));
	CHECK(image != gone);
	CHECK_INT(obf_cuTexRefGetFlags(&flags, gone), INVALID);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
