/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tensor maps: what is encoded and what is refused. With a number as argument the same two maps are
 * encoded that often, which is to cost the server's answers only once.
 */
#include "driver.h"

#include <string.h>

static CUtensorMap map __attribute__((aligned(64)));
static const cuuint64_t dims[5] = { 256, 128, 8, 4, 2 };
static const cuuint64_t strides[4] = { 512, 65536, 524288, 2097152 };
static const cuuint32_t box[5] = { 64, 64, 1, 1, 1 }, steps[5] = { 1, 1, 1, 1, 1 };

struct tiled {
	CUtensorMapDataType type;
	cuuint32_t rank;
	cuuint64_t offset;
	const cuuint64_t *dims, *strides;
	const cuuint32_t *box, *steps;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
};

static CUdeviceptr memory;

static const struct tiled usual = { CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, 0, dims, strides, box,
	steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
	CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };

static CUresult encode(const struct tiled *t)
{
	return cuTensorMapEncodeTiled(&map, t->type, t->rank, (void *)(memory + t->offset), t->dims,
		t->strides, t->box, t->steps, t->interleave, t->swizzle, t->promotion, t->fill);
}

#define REFUSED(change)                                       \
	do {                                                  \
		struct tiled t = usual;                       \
		t.change;                                     \
		EXPECT(CUDA_ERROR_INVALID_VALUE, encode(&t)); \
	} while (0)

static void right(void)
{
	CUtensorMap first, again;
	struct tiled t = usual;

	CU(encode(&usual));
	first = map;
	memset(&map, 0xee, sizeof map);
	CU(encode(&usual));
	OK(memcmp(&map, &first, sizeof map) == 0);
	t.offset = 1024;
	CU(encode(&t));
	OK(memcmp(&map, &first, sizeof map) != 0);
	again = first;
	CU(cuTensorMapReplaceAddress(&again, (void *)(memory + 1024)));
	OK(memcmp(&map, &again, sizeof map) == 0);
	for (cuuint32_t rank = 1; rank <= 5; rank++) {
		t = usual;
		t.rank = rank;
		CU(encode(&t));
	}
	t = usual;
	t.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
	t.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
	t.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
	CU(encode(&t));
}

static void wrong(void)
{
	static const cuuint64_t zero_dims[2] = { 256, 0 }, odd_strides[1] = { 520 },
				long_strides[1] = { 1ull << 40 };
	static const cuuint32_t large_box[2] = { 64, 257 }, zero_box[2] = { 64, 0 },
				odd_box[2] = { 4, 64 }, wide_box[2] = { 128, 64 },
				large_steps[2] = { 1, 9 }, zero_steps[2] = { 1, 0 };

	REFUSED(rank = 0);
	REFUSED(rank = 6);
	REFUSED(offset = 8);
	REFUSED(dims = zero_dims);
	REFUSED(strides = odd_strides);
	REFUSED(strides = long_strides);
	REFUSED(box = large_box);
	REFUSED(box = zero_box);
	REFUSED(box = odd_box);
	REFUSED(box = wide_box); /* 256 bytes in a swizzle of 128 */
	REFUSED(steps = large_steps);
	REFUSED(steps = zero_steps);
	REFUSED(interleave = CU_TENSOR_MAP_INTERLEAVE_16B); /* needs three dimensions */
	REFUSED(type = (CUtensorMapDataType)99);
	REFUSED(swizzle = (CUtensorMapSwizzle)99);
	REFUSED(promotion = (CUtensorMapL2promotion)99);
	REFUSED(fill = (CUtensorMapFloatOOBfill)99);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(&map, (void *)(memory + 8)));
}

static void im2col(void)
{
	static const int lower[2] = { -1, -1 }, upper[2] = { -1, -1 }, far[2] = { -129, -1 };

	CU(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)memory, dims,
		strides, lower, upper, 64, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)memory,
			dims, strides, far, upper, 64, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
			CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
			CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)memory,
			dims, strides, lower, upper, 64, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
			CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
			CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)memory,
			dims, strides, lower, upper, 257, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
			CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
			CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

int main(int argc, char **argv)
{
	CUcontext ctx;
	CUdevice device;
	int major = 0;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&ctx, device));
	CU(cuCtxSetCurrent(ctx));
	CU(cuMemAlloc(&memory, 8 << 20));
	CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	if (argc > 1) {
		struct tiled other = usual;

		other.offset = 4096;
		for (int i = (int)strtol(argv[1], NULL, 10); i > 0; i--) {
			CU(encode(&usual));
			CU(encode(&other));
		}
	} else if (major >= 9) {
		right();
		wrong();
		im2col();
	}
	CU(cuMemFree(memory));
	CU(cuDevicePrimaryCtxRelease(device));
	return verdict("driver_tensor_maps");
}
