/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Texture and surface objects: descriptors there and back, values that tell objects apart, and each
 * wrong use with its error. No kernel uses them here.
 */
#include "driver.h"
#include "resources.h"

#define WRONG(call) EXPECT(CUDA_ERROR_INVALID_VALUE, call)

static CUcontext ctx;
static CUdeviceptr memory;
static CUarray array, surface_array, cubemap;
static CUmipmappedArray mip;

static CUDA_RESOURCE_DESC of_mip(void)
{
	CUDA_RESOURCE_DESC resource;

	memset(&resource, 0, sizeof resource);
	resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	resource.res.mipmap.hMipmappedArray = mip;
	return resource;
}

static CUDA_RESOURCE_DESC of_pitch(size_t width, size_t height, size_t pitch)
{
	return of_rows(memory, 4, width, height, pitch);
}

static CUDA_TEXTURE_DESC usual(void)
{
	CUDA_TEXTURE_DESC texture;

	memset(&texture, 0, sizeof texture);
	for (int i = 0; i < 3; i++)
		texture.addressMode[i] = CU_TR_ADDRESS_MODE_MIRROR;
	texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
	texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
	texture.maxAnisotropy = 4;
	texture.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
	texture.mipmapLevelBias = 0.5f;
	texture.minMipmapLevelClamp = 1;
	texture.maxMipmapLevelClamp = 2;
	texture.borderColor[2] = 0.25f;
	return texture;
}

static CUDA_RESOURCE_VIEW_DESC view_of(size_t width, size_t height, CUresourceViewFormat format)
{
	CUDA_RESOURCE_VIEW_DESC view;

	memset(&view, 0, sizeof view);
	view.format = format;
	view.width = width;
	view.height = height;
	return view;
}

/* Creates an object and compares what comes back. */
static CUtexObject there_and_back(
	CUDA_RESOURCE_DESC resource, CUDA_TEXTURE_DESC texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	CUDA_RESOURCE_DESC got_resource;
	CUDA_RESOURCE_VIEW_DESC got_view;
	CUDA_TEXTURE_DESC got;
	CUtexObject object = 0;

	CU(cuTexObjectCreate(&object, &resource, &texture, view));
	OK(object != 0);
	CU(cuTexObjectGetResourceDesc(&got_resource, object));
	OK(memcmp(&got_resource, &resource, sizeof resource) == 0);
	CU(cuTexObjectGetTextureDesc(&got, object));
	OK(memcmp(&got, &texture, sizeof got) == 0);
	if (view) {
		CU(cuTexObjectGetResourceViewDesc(&got_view, object));
		OK(memcmp(&got_view, view, sizeof got_view) == 0);
	} else {
		WRONG(cuTexObjectGetResourceViewDesc(&got_view, object));
	}
	return object;
}

static void textures(void)
{
	CUDA_RESOURCE_VIEW_DESC view = view_of(32, 16, CU_RES_VIEW_FORMAT_FLOAT_1X32);
	CUDA_RESOURCE_DESC resource;
	CUtexObject object[5];

	object[0] = there_and_back(of_array(array), usual(), NULL);
	object[1] = there_and_back(of_array(array), usual(), &view);
	object[2] = there_and_back(of_mip(), usual(), NULL);
	object[3] = there_and_back(of_linear(memory, 4096), usual(), NULL);
	object[4] = there_and_back(of_pitch(16, 8, 64), usual(), NULL);
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < i; k++)
			OK(object[i] != object[k]);
	/* a texture is no surface */
	WRONG(cuSurfObjectGetResourceDesc(&resource, object[0]));
	WRONG(cuSurfObjectDestroy(object[0]));
	WRONG(cuTexObjectGetResourceDesc(NULL, object[0]));
	for (int i = 0; i < 5; i++)
		CU(cuTexObjectDestroy(object[i]));
	WRONG(cuTexObjectDestroy(object[0]));
	WRONG(cuTexObjectDestroy(0));
	CU(cuSurfObjectDestroy(0));
	WRONG(cuTexObjectGetResourceDesc(&resource, object[1]));
	WRONG(cuTexObjectGetTextureDesc(&(CUDA_TEXTURE_DESC){ 0 }, object[1]));
}

static CUresult try(
	CUDA_RESOURCE_DESC resource, CUDA_TEXTURE_DESC texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	CUtexObject object;
	CUresult result = cuTexObjectCreate(&object, &resource, &texture, view);

	if (result == CUDA_SUCCESS)
		cuTexObjectDestroy(object);
	return result;
}

static void wrong_resources(void)
{
	CUDA_RESOURCE_DESC resource = of_array(array);
	CUDA_TEXTURE_DESC texture = usual();
	CUtexObject object;

	WRONG(cuTexObjectCreate(NULL, &resource, &texture, NULL));
	WRONG(cuTexObjectCreate(&object, NULL, &texture, NULL));
	WRONG(cuTexObjectCreate(&object, &resource, NULL, NULL));
	resource.flags = 1;
	WRONG(try(resource, texture, NULL));
	resource.flags = 0;
	resource.resType = (CUresourcetype)9;
	WRONG(try(resource, texture, NULL));
	WRONG(try(of_array(NULL), texture, NULL));
	WRONG(try(of_array((CUarray)mip), texture, NULL));
	WRONG(try(of_linear(memory + 4, 64), texture, NULL)); /* not aligned */
	WRONG(try(of_linear(memory, 0), texture, NULL));
	/* CUDA looks at the beginning only; what lies beyond the allocation cannot be read. */
	CU(cuTexObjectDestroy(there_and_back(of_linear(memory, 1 << 20), usual(), NULL)));
	WRONG(try(of_linear(0, 64), texture, NULL));
	resource = of_linear(memory, 64);
	resource.res.linear.numChannels = 3;
	WRONG(try(resource, texture, NULL));
	WRONG(try(of_pitch(16, 8, 48), texture, NULL)); /* narrower than a row */
	WRONG(try(of_pitch(16, 8, 65), texture, NULL)); /* not aligned */
	WRONG(try(of_pitch(0, 8, 64), texture, NULL));
	WRONG(try(of_pitch(16, 0, 64), texture, NULL));
	WRONG(try(of_pitch(16, 60000, 64), texture, NULL)); /* beyond the end */
	WRONG(try(of_pitch(1 << 20, 1, 1 << 22), texture, NULL));
}

static void wrong_sampling(void)
{
	CUDA_TEXTURE_DESC texture = usual();

	texture.flags = 0;
	WRONG(try(of_mip(), texture, NULL)); /* needs normalised coordinates */
	texture.flags = CU_TRSF_SEAMLESS_CUBEMAP;
	WRONG(try(of_array(array), texture, NULL));
	EXPECT(CUDA_SUCCESS, try(of_array(cubemap), texture, NULL));
	texture.flags = 0x100;
	WRONG(try(of_array(array), texture, NULL));
	texture = usual();
	texture.addressMode[1] = (CUaddress_mode)4;
	WRONG(try(of_array(array), texture, NULL));
	texture = usual();
	texture.filterMode = (CUfilter_mode)2;
	WRONG(try(of_array(array), texture, NULL));
	texture = usual();
	texture.mipmapFilterMode = (CUfilter_mode)2;
	WRONG(try(of_array(array), texture, NULL));
}

static void views(void)
{
	CUDA_ARRAY3D_DESCRIPTOR blocks = { 8, 4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 2, 0 };
	CUDA_RESOURCE_VIEW_DESC view = view_of(32, 16, CU_RES_VIEW_FORMAT_UINT_1X32);
	CUarray compressed;

	EXPECT(CUDA_SUCCESS, try(of_array(array), usual(), &view));
	view.format = CU_RES_VIEW_FORMAT_FLOAT_2X32; /* another size */
	WRONG(try(of_array(array), usual(), &view));
	view = view_of(31, 16, CU_RES_VIEW_FORMAT_NONE);
	WRONG(try(of_array(array), usual(), &view));
	view = view_of(32, 16, CU_RES_VIEW_FORMAT_NONE);
	view.lastMipmapLevel = 1;
	WRONG(try(of_array(array), usual(), &view));
	view = view_of(32, 16, CU_RES_VIEW_FORMAT_NONE);
	view.lastLayer = 1;
	WRONG(try(of_array(array), usual(), &view));
	WRONG(try(of_linear(memory, 64), usual(), &view));
	view = view_of(64, 32, CU_RES_VIEW_FORMAT_NONE);
	view.firstMipmapLevel = 1;
	view.lastMipmapLevel = 3;
	EXPECT(CUDA_SUCCESS, try(of_mip(), usual(), &view));
	view.lastMipmapLevel = 9;
	WRONG(try(of_mip(), usual(), &view));
	view = view_of(16, 16, CU_RES_VIEW_FORMAT_NONE);
	view.depth = 6;
	view.firstLayer = 1;
	view.lastLayer = 5;
	EXPECT(CUDA_SUCCESS, try(of_array(cubemap), usual(), &view));
	view.lastLayer = 6;
	WRONG(try(of_array(cubemap), usual(), &view));
	CU(cuArray3DCreate(&compressed, &blocks));
	view = view_of(32, 16, CU_RES_VIEW_FORMAT_UNSIGNED_BC1);
	EXPECT(CUDA_SUCCESS, try(of_array(compressed), usual(), &view));
	view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC3; /* needs four channels */
	WRONG(try(of_array(compressed), usual(), &view));
	view = view_of(8, 4, CU_RES_VIEW_FORMAT_UNSIGNED_BC1);
	WRONG(try(of_array(compressed), usual(), &view));
	CU(cuArrayDestroy(compressed));
}

/* All memory that is allocated can be bound to a texture, small pieces too. */
static void alignment(void)
{
	CUdeviceptr small[6];
	int align = 0;

	CU(cuDeviceGetAttribute(&align, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0));
	for (int i = 0; i < 6; i++) {
		CU(cuMemAlloc(&small[i], 100 + 300 * (size_t)i));
		OK(align > 0 && small[i] % (CUdeviceptr)align == 0);
		EXPECT(CUDA_SUCCESS, try(of_linear(small[i], 64), usual(), NULL));
	}
	for (int i = 0; i < 6; i++)
		CU(cuMemFree(small[i]));
}

static void surfaces(void)
{
	CUDA_RESOURCE_DESC resource = of_array(surface_array), got, plain = of_array(array),
			   linear = of_linear(memory, 64), wrong = resource;
	CUsurfObject first, second;

	CU(cuSurfObjectCreate(&first, &resource));
	CU(cuSurfObjectCreate(&second, &resource));
	OK(first && second && first != second);
	CU(cuSurfObjectGetResourceDesc(&got, first));
	OK(memcmp(&got, &resource, sizeof got) == 0);
	WRONG(cuSurfObjectGetResourceDesc(NULL, first));
	WRONG(cuTexObjectDestroy(first));
	WRONG(cuSurfObjectCreate(NULL, &resource));
	WRONG(cuSurfObjectCreate(&first, NULL));
	WRONG(cuSurfObjectCreate(&first, &linear));
	wrong.flags = 1;
	WRONG(cuSurfObjectCreate(&first, &wrong));
	CU(cuSurfObjectDestroy(first));
	WRONG(cuSurfObjectDestroy(first));
	WRONG(cuSurfObjectGetResourceDesc(&got, first));
	CU(cuSurfObjectDestroy(second));
	/* Made without CUDA_ARRAY3D_SURFACE_LDST, which CUDA does not insist on. */
	CU(cuSurfObjectCreate(&first, &plain));
	CU(cuSurfObjectDestroy(first));
}

/* Objects belong to a context. */
static void contexts(void)
{
	CUDA_RESOURCE_DESC resource = of_array(array), got;
	CUDA_TEXTURE_DESC texture = usual();
	CUtexObject here, there;
	CUcontext other;

	CU(cuTexObjectCreate(&here, &resource, &texture, NULL));
	CU(cuCtxCreate(&other, NULL, 0, 0));
	WRONG(cuTexObjectCreate(&there, &resource, &texture, NULL)); /* the array is not here */
	WRONG(cuTexObjectDestroy(here));
	CU(cuCtxDestroy(other));
	CU(cuCtxSetCurrent(ctx));
	CU(cuTexObjectGetResourceDesc(&got, here));
	CU(cuTexObjectDestroy(here));
}

int main(void)
{
	CUDA_ARRAY3D_DESCRIPTOR flat = { 32, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0 },
				store = { 32, 16, 0, CU_AD_FORMAT_FLOAT, 1,
					CUDA_ARRAY3D_SURFACE_LDST },
				cube = { 16, 16, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP },
				levels = { 64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0 };

	CU(cuInit(0));
	CU(cuDevicePrimaryCtxRetain(&ctx, 0));
	CU(cuCtxSetCurrent(ctx));
	CU(cuMemAlloc(&memory, 65536));
	CU(cuArray3DCreate(&array, &flat));
	CU(cuArray3DCreate(&surface_array, &store));
	CU(cuArray3DCreate(&cubemap, &cube));
	CU(cuMipmappedArrayCreate(&mip, &levels, 4));
	textures();
	wrong_resources();
	wrong_sampling();
	views();
	surfaces();
	alignment();
	contexts();
	return verdict("driver_textures");
}
