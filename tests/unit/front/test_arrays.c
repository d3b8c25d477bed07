/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arrays and textures over the fake backend: what reaches the backend, what becomes of objects when
 * the backend fails or the context ends, and the sizes that arrays have.
 */
#include "front.h"

#define INVALID CUDA_ERROR_INVALID_VALUE
#define U8      CU_AD_FORMAT_UNSIGNED_INT8

static CUDA_ARRAY3D_DESCRIPTOR desc_of(size_t w, size_t h, size_t d, unsigned flags)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){ w, h, d, CU_AD_FORMAT_FLOAT, 2, flags };
}

static CUarray array_new(size_t w, size_t h, size_t d)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(w, h, d, 0);
	CUarray array = NULL;

	OK(obf_cuArray3DCreate_v2(&array, &desc));
	return array;
}

TEST(sizes)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(9, 5, 3, 0), part;

	CHECK_INT(ob_array_element(U8, 4), 4);
	CHECK_INT(ob_array_element(U8, 3), 0);
	CHECK_INT(ob_array_element(CU_AD_FORMAT_UNORM_INT16X4, 4), 8);
	CHECK_INT(ob_array_element(CU_AD_FORMAT_UNORM_INT16X4, 1), 0);
	CHECK_INT(ob_array_element((CUarray_format)0x1000, 1), 0);
	CHECK_INT(ob_array_bytes(&desc, 0), 9 * 5 * 3 * 8);
	CHECK_INT(ob_array_levels_max(&desc), 4);
	CHECK_INT(ob_array_bytes(&desc, 4), (9 * 5 * 3 + 4 * 2 * 1 + 2 * 1 * 1 + 1) * 8);
	/* layers are not halved and do not count */
	desc = desc_of(4, 4, 6, CUDA_ARRAY3D_LAYERED);
	CHECK_INT(ob_array_levels_max(&desc), 3);
	CHECK_INT(ob_array_bytes(&desc, 3), (16 + 4 + 1) * 6 * 8);
	desc = desc_of(OB_ARRAY_EXTENT_MAX, 1, 0, 0);
	CHECK_INT(ob_array_bytes(&desc, 0), 0);
	desc.Width--;
	CHECK_INT(ob_array_bytes(&desc, 0), (OB_ARRAY_EXTENT_MAX - 1) * 8ull);
	CHECK_INT(ob_array_bytes(&desc, OB_ARRAY_LEVELS_MAX + 1), 0);
	desc = desc_of(0, 1, 0, 0);
	CHECK_INT(ob_array_bytes(&desc, 0), 0);
	/* 4:2:2: the second plane has half the width and all rows */
	desc = (CUDA_ARRAY3D_DESCRIPTOR){ 8, 6, 0, CU_AD_FORMAT_P210, 3, 0 };
	CHECK_INT(ob_array_bytes(&desc, 0), 8 * 6 * 2 + 4 * 6 * 2 * 2);
	CHECK(ob_array_plane(&desc, 1, &part));
	CHECK(part.Width == 4 && part.Height == 6 && part.NumChannels == 2 &&
		part.Format == CU_AD_FORMAT_UNSIGNED_INT16);
	CHECK(!ob_array_plane(&desc, 2, &part));
}

TEST(objects)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(64, 64, 0, 0);
	CUmipmappedArray mip;
	CUarray array = NULL, level;

	begin();
	fake.array_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuArray3DCreate_v2(&array, &desc), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(!array && fake.arrays == 0);
	fake.array_result = CUDA_SUCCESS;
	OK(obf_cuMipmappedArrayCreate(&mip, &desc, 5));
	fake.array_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuMipmappedArrayGetLevel(&level, mip, 2), CUDA_ERROR_OUT_OF_MEMORY);
	fake.array_result = CUDA_SUCCESS;
	OK(obf_cuMipmappedArrayGetLevel(&level, mip, 2));
	OK(obf_cuMipmappedArrayGetLevel(&array, mip, 2));
	CHECK(level == array && fake.arrays == 2);
	/* both fail: a level has no memory of its own, and this is no array */
	CHECK_INT(obf_cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(obf_cuArrayDestroy((CUarray)mip), CUDA_ERROR_INVALID_HANDLE);
	/* waits for kernels, as cuMemFree does, and reports their error */
	fake.settles = 0;
	fake.settle_result = CUDA_ERROR_NO_DEVICE;
	CHECK_INT(obf_cuMipmappedArrayDestroy(mip), CUDA_ERROR_NO_DEVICE);
	CHECK(fake.settles == 1 && fake.arrays == 0 && !fake.last_ctx_ended);
	fake.settle_result = CUDA_SUCCESS;
	CHECK_INT(obf_cuMipmappedArrayDestroy(mip), CUDA_ERROR_INVALID_HANDLE);
}

TEST(context_end)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(64, 64, 0, 0);
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUDA_TEXTURE_DESC sampling = { .flags = 0 };
	CUmipmappedArray mip;
	CUtexObject texture;
	CUarray array, level;
	CUcontext other;

	begin();
	OK(obf_cuArray3DCreate_v2(&array, &desc));
	OK(obf_cuCtxCreate_v2(&other, 0, 0));
	OK(obf_cuMipmappedArrayCreate(&mip, &desc, 3));
	OK(obf_cuMipmappedArrayGetLevel(&level, mip, 0));
	resource.res.array.hArray = level;
	OK(obf_cuTexObjectCreate(&texture, &resource, &sampling, NULL));
	CHECK(fake.arrays == 3 && fake.textures == 1);
	OK(obf_cuCtxDestroy_v2(other));
	CHECK(fake.arrays == 1 && fake.textures == 0 && fake.last_ctx_ended);
	CHECK_INT(obf_cuMipmappedArrayDestroy(mip), CUDA_ERROR_INVALID_HANDLE);
	OK(obf_cuArrayDestroy(array));
}

static CUDA_MEMCPY3D box(CUarray dst, const void *src)
{
	return (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = src,
		.srcXInBytes = 8,
		.srcY = 1,
		.srcZ = 2,
		.srcPitch = 64,
		.srcHeight = 4,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = dst,
		.dstXInBytes = 16,
		.dstY = 3,
		.dstZ = 1,
		.WidthInBytes = 40,
		.Height = 2,
		.Depth = 3 };
}

#define REFUSED(change)                                             \
	do {                                                        \
		copy = box(array, src);                             \
		copy.change;                                        \
		CHECK_INT(obf_cuMemcpy3D_v2(&copy, NULL), INVALID); \
	} while (0)

TEST(copies)
{
	static const uint8_t src[4096];
	const struct obf_array_copy *got = &fake.last_array_copy;
	CUDA_MEMCPY3D copy;
	CUarray array;

	begin();
	array = array_new(7, 5, 4); /* rows of 56 bytes */
	copy = box(array, src);
	OK(obf_cuMemcpy3D_v2(&copy, NULL));
	CHECK(!got->src && got->dst->handle == (uintptr_t)array && !got->flat.src_device);
	CHECK(got->flat.src == (uintptr_t)src + 2 * 4 * 64 + 64 + 8 && got->flat.src_pitch == 64 &&
		got->flat.src_slice == 256);
	CHECK(got->dst_at[0] == 16 && got->dst_at[1] == 3 && got->dst_at[2] == 1);
	CHECK(got->flat.width == 40 && got->flat.height == 2 && got->flat.depth == 3);
	fake.copies = 0;
	REFUSED(dstXInBytes = 24); /* one element too far */
	REFUSED(dstXInBytes = 4);  /* half an element */
	REFUSED(WidthInBytes = 44);
	REFUSED(dstY = 4);
	REFUSED(dstZ = 2);
	REFUSED(dstXInBytes = ~(size_t)7);
	REFUSED(dstY = SIZE_MAX);
	REFUSED(dstLOD = 1);
	REFUSED(dstArray = (CUarray)(uintptr_t)5);
	REFUSED(srcPitch = 8);
	REFUSED(srcMemoryType = CU_MEMORYTYPE_DEVICE);
	CHECK(fake.copies == 0);
	copy = box(array, src);
	copy.Depth = 0; /* nothing to be done */
	OK(obf_cuMemcpy3D_v2(&copy, NULL));
	CHECK(fake.copies == 0);
	OK(obf_cuArrayDestroy(array));
}

TEST(values)
{
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY }, got;
	CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(8, 8, 0, CUDA_ARRAY3D_SURFACE_LDST);
	CUDA_TEXTURE_DESC sampling = { .flags = 0 };
	CUtexObject first, second;
	CUsurfObject surface;
	CUarray array;

	begin();
	OK(obf_cuArray3DCreate_v2(&array, &desc));
	resource.res.array.hArray = array;
	fake.array_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuTexObjectCreate(&first, &resource, &sampling, NULL),
		CUDA_ERROR_OUT_OF_MEMORY);
	fake.array_result = CUDA_SUCCESS;
	fake.textures = 0;
	OK(obf_cuTexObjectCreate(&first, &resource, &sampling, NULL));
	OK(obf_cuTexObjectCreate(&second, &resource, &sampling, NULL));
	OK(obf_cuSurfObjectCreate(&surface, &resource));
	/* a texture and a surface may have the same value */
	CHECK(first == 1 && second == 2 && surface == 1);
	OK(obf_cuSurfObjectDestroy(surface));
	CHECK_INT(obf_cuSurfObjectDestroy(surface), INVALID);
	OK(obf_cuTexObjectGetResourceDesc(&got, first));
	OK(obf_cuTexObjectDestroy(first));
	CHECK_INT(obf_cuTexObjectGetResourceDesc(&got, first), INVALID);
	OK(obf_cuTexObjectDestroy(second));
	CHECK(fake.textures == 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
