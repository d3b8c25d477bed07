/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuTensorMap*: checks the arguments as the CUDA driver API documents for cuTensorMapEncode*, and
 * writes an obd_tensor_map. Plain functions; any thread. Source of the limits: CUDA Driver API,
 * "Tensor Map Object Management".
 */
#include <string.h>

#include "base/check.h"
#include "protocol/obd_locals.h"
#include "softdevice/context.h"
#include "softdevice/core/tensor_map.h"

#define DIM_MAX    (1ull << 32)
#define STRIDE_END (1ull << 40)
#define PIXELS_MAX 1024u

/* Bits of an element; packed: 16 values of 4 or 6 bits in a unit. */
static const struct {
	uint8_t bits;
	bool is_float, packed16;
} types[] = {
	[CU_TENSOR_MAP_DATA_TYPE_UINT8] = { 8, false, false },
	[CU_TENSOR_MAP_DATA_TYPE_UINT16] = { 16, false, false },
	[CU_TENSOR_MAP_DATA_TYPE_UINT32] = { 32, false, false },
	[CU_TENSOR_MAP_DATA_TYPE_INT32] = { 32, false, false },
	[CU_TENSOR_MAP_DATA_TYPE_UINT64] = { 64, false, false },
	[CU_TENSOR_MAP_DATA_TYPE_INT64] = { 64, false, false },
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = { 16, true, false },
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = { 32, true, false },
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = { 64, true, false },
	[CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = { 16, true, false },
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = { 32, true, false },
	[CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = { 32, true, false },
	[CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = { 32, true, false },
	[CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B] = { 4, false, false },
	[CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B] = { 4, false, true },
	[CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B] = { 6, false, true },
};

/* The arguments that all kinds have. */
struct request {
	enum obd_tensor_kind kind;
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *dims, *strides;
	const cuuint32_t *element_strides;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
};

static bool words_valid(const struct request *r)
{
	if ((unsigned)r->type >= ob_count(types) ||
		(unsigned)r->interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
		(unsigned)r->swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B ||
		(unsigned)r->promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
		(unsigned)r->fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
		return false;
	if (r->fill && !types[r->type].is_float)
		return false;
	if (r->interleave == CU_TENSOR_MAP_INTERLEAVE_32B &&
		r->swizzle != CU_TENSOR_MAP_SWIZZLE_32B)
		return false;
	return r->type != CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B || !r->interleave;
}

static bool shape_valid(const struct request *r)
{
	uint64_t align =
		r->interleave == CU_TENSOR_MAP_INTERLEAVE_32B || types[r->type].packed16 ? 32 : 16;

	if (r->rank == 0 || r->rank > OBD_TENSOR_RANK_MAX)
		return false;
	if (r->rank < 3 && (r->interleave || r->kind != OBD_TENSOR_TILED))
		return false;
	if (!r->address || (uintptr_t)r->address % align || !r->dims || !r->element_strides ||
		(r->rank > 1 && !r->strides))
		return false;
	for (cuuint32_t i = 0; i < r->rank; i++) {
		if (r->dims[i] == 0 || r->dims[i] > DIM_MAX)
			return false;
		if (r->element_strides[i] == 0 || r->element_strides[i] > OBD_TENSOR_STEP_MAX)
			return false;
		if (i > 0 && (r->strides[i - 1] % align || r->strides[i - 1] >= STRIDE_END))
			return false;
	}
	if (types[r->type].packed16)
		return r->dims[0] % 128 == 0;
	return r->type != CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B || r->dims[0] % 2 == 0;
}

/* Whether `n` elements fit into the bytes that the swizzling pattern repeats after. */
static bool swizzle_valid(const struct request *r, uint64_t n)
{
	static const uint16_t spans[] = {
		[CU_TENSOR_MAP_SWIZZLE_32B] = 32, [CU_TENSOR_MAP_SWIZZLE_64B] = 64
	};
	uint64_t span;

	if (r->interleave || !r->swizzle)
		return true;
	span = (unsigned)r->swizzle < ob_count(spans) ? spans[r->swizzle] : 128;
	return n * types[r->type].bits / 8 <= span;
}

static CUresult begin(const struct request *r, CUtensorMap *map, struct obd_tensor_map *ret)
{
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	if (!map || !words_valid(r) || !shape_valid(r))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct obd_tensor_map){ .magic = OBD_TENSOR_MAGIC,
		.kind = (uint8_t)r->kind,
		.type = (uint8_t)r->type,
		.rank = (uint8_t)r->rank,
		.interleave = (uint8_t)r->interleave,
		.swizzle = (uint8_t)r->swizzle,
		.promotion = (uint8_t)r->promotion,
		.fill = (uint8_t)r->fill,
		.address = (uintptr_t)r->address };
	for (cuuint32_t i = 0; i < r->rank; i++) {
		ret->last[i] = (uint32_t)(r->dims[i] - 1);
		ret->element_strides[i] = (uint8_t)r->element_strides[i];
		if (i > 0)
			ret->strides16[i - 1] = (uint32_t)(r->strides[i - 1] / 16);
	}
	return CUDA_SUCCESS;
}

static void end(const struct obd_tensor_map *made, CUtensorMap *ret)
{
	memset(ret, 0, sizeof *ret);
	memcpy(ret, made, sizeof *made);
}

CUresult obd_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
	const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	const struct request r = { OBD_TENSOR_TILED, type, rank, address, dims, strides,
		element_strides, interleave, swizzle, promotion, fill };
	struct obd_tensor_map made;
	CUresult result = begin(&r, map, &made);

	if (result)
		return result;
	if (!box)
		return CUDA_ERROR_INVALID_VALUE;
	for (cuuint32_t i = 0; i < rank; i++) {
		if (box[i] == 0 || box[i] > OBD_TENSOR_BOX_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		made.box[i] = (uint16_t)box[i];
	}
	if (types[type].packed16 ? box[0] != 128
				 : !interleave && box[0] * types[type].bits / 8 % 16 != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!swizzle_valid(&r, box[0]))
		return CUDA_ERROR_INVALID_VALUE;
	end(&made, map);
	return CUDA_SUCCESS;
}

/* Corners of the bounding box: the more dimensions, the fewer bits each coordinate has. */
static bool corner_valid(cuuint32_t rank, int64_t lower, int64_t upper)
{
	int64_t limit = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;

	return lower >= -limit && lower < limit && upper >= -limit && upper < limit;
}

static bool im2col_valid(const struct request *r, cuuint32_t channels, cuuint32_t pixels)
{
	if (channels == 0 || channels > OBD_TENSOR_BOX_MAX || pixels > PIXELS_MAX)
		return false;
	if (types[r->type].packed16 && channels != 128)
		return false;
	return swizzle_valid(r, channels);
}

CUresult obd_cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dims, const cuuint64_t *strides, const int *lower,
	const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *element_strides,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	const struct request r = { OBD_TENSOR_IM2COL, type, rank, address, dims, strides,
		element_strides, interleave, swizzle, promotion, fill };
	struct obd_tensor_map made;
	CUresult result = begin(&r, map, &made);

	if (result)
		return result;
	if (!lower || !upper || !im2col_valid(&r, channels, pixels))
		return CUDA_ERROR_INVALID_VALUE;
	made.channels = (uint16_t)channels;
	made.pixels = (uint16_t)pixels;
	for (cuuint32_t i = 0; i < rank - 2; i++) {
		if (!corner_valid(rank, lower[i], upper[i]))
			return CUDA_ERROR_INVALID_VALUE;
		made.lower[i] = (int16_t)lower[i];
		made.upper[i] = (int16_t)upper[i];
	}
	end(&made, map);
	return CUDA_SUCCESS;
}

CUresult obd_cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type,
	cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides,
	int lower_width, int upper_width, cuuint32_t channels, cuuint32_t pixels,
	const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
	CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	const struct request r = { OBD_TENSOR_IM2COL_WIDE, type, rank, address, dims, strides,
		element_strides, interleave, swizzle, promotion, fill };
	struct obd_tensor_map made;
	CUresult result = begin(&r, map, &made);

	if (result)
		return result;
	if ((unsigned)mode > CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 ||
		!corner_valid(3, lower_width, upper_width) ||
		!im2col_valid(
			&r, channels, mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 ? 0 : pixels))
		return CUDA_ERROR_INVALID_VALUE;
	/* the modes that this form documents */
	if (swizzle < CU_TENSOR_MAP_SWIZZLE_64B || swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B)
		return CUDA_ERROR_INVALID_VALUE;
	made.mode = (uint8_t)mode;
	made.channels = (uint16_t)channels;
	made.pixels = (uint16_t)ob_min(pixels, PIXELS_MAX);
	made.lower[0] = (int16_t)lower_width;
	made.upper[0] = (int16_t)upper_width;
	end(&made, map);
	return CUDA_SUCCESS;
}

CUresult obd_cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct obd_tensor_map made;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	if (!map || !address)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&made, map, sizeof made);
	if (made.magic != OBD_TENSOR_MAGIC || made.type >= ob_count(types) ||
		(uintptr_t)address %
			(made.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ||
						types[made.type].packed16
					? 32
					: 16))
		return CUDA_ERROR_INVALID_VALUE;
	made.address = (uintptr_t)address;
	end(&made, map);
	return CUDA_SUCCESS;
}
