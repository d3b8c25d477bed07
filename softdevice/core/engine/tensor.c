/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Source of the meaning of the fields: CUDA Driver API, "Tensor Map Object Management"; of the
 * swizzle: CUDA Programming Guide, "TMA Swizzle": parts of 16 bytes are exchanged by bits 7 to 9 of
 * the address in shared memory. Rows of a tile follow each other without gaps. What these leave
 * open: a NaN that fills is the canonical one; f32 with FTZ is flushed when it is read.
 */
#include "softdevice/core/engine/tensor.h"

#include <string.h>

#include "softdevice/core/engine/bulk.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/fragment.h"
#include "softdevice/core/ops.h"
#include "softdevice/core/tensor_map.h"

#define MAP_BYTES 128u
#define MAP_ALIGN 63u
#define ROW_BYTES (OBD_TENSOR_BOX_MAX * 8)
/* offset in the shared memory of a block, as an address of shared::cluster has it */
#define OFFSET    0xffffffu

struct job {
	struct obd_warp *w;
	const struct obd_insn *in;
	uint32_t lane;
	struct obd_tensor_map map;
	uint32_t rank, bits, parts; /* parts: 16 bytes, after which the swizzle repeats */
	uint32_t row_bytes, count[OBD_TENSOR_RANK_MAX];
	uint64_t rows;
	int64_t at[OBD_TENSOR_RANK_MAX];
};

static _Noreturn void refuse(const struct job *j, const char *what)
{
	obd_fault_raise(j->w, j->in, 1u << j->lane, CUDA_ERROR_ILLEGAL_INSTRUCTION, what);
}

static uint32_t element_bits(uint32_t type)
{
	switch (type) {
	case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
		return 4;
	case CU_TENSOR_MAP_DATA_TYPE_UINT8:
		return 8;
	case CU_TENSOR_MAP_DATA_TYPE_UINT16:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
	case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
		return 16;
	case CU_TENSOR_MAP_DATA_TYPE_UINT64:
	case CU_TENSOR_MAP_DATA_TYPE_INT64:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
		return 64;
	case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
	case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
		return 0;
	default:
		return type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ ? 32 : 0;
	}
}

static void read_map(struct job *j, uint64_t at)
{
	struct obd_tensor_map *map = &j->map;

	memcpy(map, obd_bulk_global(j->w, j->in, j->lane, at, MAP_BYTES, false, MAP_ALIGN),
		sizeof(*map));
	j->bits = element_bits(map->type);
	if (map->magic != OBD_TENSOR_MAGIC)
		refuse(j, "the operand is not a tensor map of cuTensorMapEncode*");
	if (map->kind != OBD_TENSOR_TILED || map->rank != j->rank)
		refuse(j, "the tensor map is not tiled, or its dimension is not the instruction's");
	if (!j->bits || map->interleave || map->swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
		refuse(j,
			"the tensor map has a type, interleaving or swizzle that the software "
			"device does not support");
	if (map->address % 16)
		refuse(j, "the tensor's address is not a multiple of 16");
	j->parts = 1u << map->swizzle;
	j->rows = 1;
	for (uint32_t i = 0; i < j->rank; i++) {
		uint32_t step = i ? map->element_strides[i] : 1;

		if (!map->box[i] || map->box[i] > OBD_TENSOR_BOX_MAX || !step)
			refuse(j,
				"the tensor map has a box of 0 or more than 256 elements, or an "
				"element stride of 0");
		j->count[i] = (map->box[i] + step - 1) / step;
		j->rows *= i ? j->count[i] : 1;
	}
	j->row_bytes = j->count[0] * j->bits / 8;
	if (j->row_bytes % 16)
		refuse(j, "the size of the box's rows is not a multiple of 16 bytes");
}

/*
 * The part of the row inside the tensor, in elements of the row. Returns its address in global
 * memory, or 0 if there is none.
 */
static uint64_t inside(const struct job *j, uint64_t row, uint32_t *ret_first, uint32_t *ret_count)
{
	const struct obd_tensor_map *map = &j->map;
	int64_t first = j->at[0] < 0 ? -j->at[0] : 0, end = (int64_t)map->last[0] + 1 - j->at[0];
	uint64_t at = map->address;

	end = end < j->count[0] ? end : j->count[0];
	if (first >= end)
		return 0;
	for (uint32_t i = 1; i < j->rank; row /= j->count[i++]) {
		int64_t x = j->at[i] + (int64_t)(row % j->count[i]) * map->element_strides[i];

		if (x < 0 || x > map->last[i])
			return 0;
		at += (uint64_t)x * map->strides16[i - 1] * 16;
	}
	*ret_first = (uint32_t)first;
	*ret_count = (uint32_t)(end - first);
	return at + (uint64_t)(j->at[0] + first) * j->bits / 8;
}

/* A row of zeros, or of NaNs if the map asks for them. */
static void fill_row(const struct job *j, char *row)
{
	static const uint16_t f16 = 0x7fff;
	static const uint32_t f32 = 0x7fffffff;
	static const uint64_t f64 = 0x7fffffffffffffff;
	uint32_t size = j->bits / 8;

	memset(row, 0, j->row_bytes);
	for (uint32_t i = 0; i < j->count[0] && j->map.fill && size; i++)
		memcpy(row + i * size,
			size == 2           ? (const void *)&f16
				: size == 4 ? (const void *)&f32
					    : (const void *)&f64,
			size);
}

static void flush(const struct job *j, char *row)
{
	uint32_t v;

	if (j->map.type != CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ &&
		j->map.type != CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ)
		return;
	for (uint32_t i = 0; i < j->row_bytes; i += 4) {
		memcpy(&v, row + i, 4);
		v = v & 0x7f800000 ? v : v & 0x80000000;
		memcpy(row + i, &v, 4);
	}
}

/* Copies between the row and its place in the tile, which begins at the offset in shared memory. */
static void move_row(
	const struct job *j, char *tile, uint32_t offset, uint64_t row, char *bytes, bool to_tile)
{
	uint32_t at = (uint32_t)row * j->row_bytes;

	for (uint32_t i = 0; i < j->row_bytes; i += 16) {
		uint32_t o = offset + at + i;
		char *cell = tile + ((o ^ ((o >> 7 & (j->parts - 1)) << 4)) - offset);

		memcpy(to_tile ? cell : bytes + i, to_tile ? bytes + i : cell, 16);
	}
}

/* The bytes of the tile, checked; number: its address of shared::cluster. */
static char *tile_at(const struct job *j, uint32_t number, bool write)
{
	uint64_t bytes = j->rows * j->row_bytes, whole = j->parts * 16;

	/* the swizzle may move parts of the last row in this area */
	bytes = (bytes + whole - 1) / whole * whole;
	return obd_bulk_shared(j->w, j->in, j->lane, number,
		bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes, write, 127);
}

static void load_tile(const struct job *j, char *tile, uint32_t offset)
{
	char bytes[ROW_BYTES];

	for (uint64_t row = 0; row < j->rows; row++) {
		uint32_t first, count;
		uint64_t at = inside(j, row, &first, &count);

		fill_row(j, bytes);
		if (at) {
			memcpy(bytes + first * j->bits / 8,
				obd_bulk_global(
					j->w, j->in, j->lane, at, count * j->bits / 8, false, 0),
				count * j->bits / 8);
			flush(j, bytes);
		}
		move_row(j, tile, offset, row, bytes, true);
	}
}

/* reduce: OBD_ATOM_CODE, or 0 for a store */
static void store_tile(
	const struct job *j, char *tile, uint32_t offset, uint32_t reduce, bool store)
{
	char bytes[ROW_BYTES], *to;

	for (uint64_t row = 0; row < j->rows; row++) {
		uint32_t first, count;
		uint64_t at = inside(j, row, &first, &count);

		if (!at)
			continue;
		move_row(j, tile, offset, row, bytes, false);
		to = obd_bulk_global(j->w, j->in, j->lane, at, count * j->bits / 8, true, 0);
		if (store)
			memcpy(to, bytes + first * j->bits / 8, count * j->bits / 8);
		else
			obd_bulk_reduce(
				j->w, reduce, to, bytes + first * j->bits / 8, count * j->bits / 8);
	}
}

/* Into the block itself, or the memory at the same offset of each block of the mask. */
static void load(const struct job *j, uint32_t number, uint32_t barrier, uint32_t mask)
{
	uint32_t bytes = (uint32_t)(j->rows * j->row_bytes);

	if (!(j->in->e & OBD_TENSOR_MULTICAST)) {
		load_tile(j, tile_at(j, number, true), number & OFFSET);
		obd_bulk_complete(j->w, j->in, j->lane, barrier, bytes);
		return;
	}
	for (uint32_t rest = mask & 0xffff; rest; rest &= rest - 1) {
		uint32_t block = ((uint32_t)__builtin_ctz(rest) + 1) << 24;

		load_tile(j, tile_at(j, (number & OFFSET) | block, true), number & OFFSET);
		obd_bulk_complete(j->w, j->in, j->lane, (barrier & OFFSET) | block, bytes);
	}
}

/* The type of the map as one of a reduction. OBD_T_NONE: there is none. */
static uint32_t reduced_type(uint32_t type)
{
	static const uint8_t types[] = {
		[CU_TENSOR_MAP_DATA_TYPE_UINT32] = OBD_T_U32,
		[CU_TENSOR_MAP_DATA_TYPE_INT32] = OBD_T_S32,
		[CU_TENSOR_MAP_DATA_TYPE_UINT64] = OBD_T_U64,
		[CU_TENSOR_MAP_DATA_TYPE_INT64] = OBD_T_S64,
		[CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = OBD_T_F16,
		[CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = OBD_T_F32,
		[CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = OBD_T_F64,
		[CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = OBD_T_BF16,
		[CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = OBD_T_F32,
	};

	return type < sizeof(types) ? types[type] : OBD_T_NONE;
}

/* The atomic operation of a reduction. */
static uint32_t reduction(const struct job *j)
{
	uint32_t op = j->in->e >> 8, type = reduced_type(j->map.type);
	bool fits = type == OBD_T_F32 || type == OBD_T_F64 ? op == OBD_ATOM_ADD
		: type == OBD_T_F16 || type == OBD_T_BF16  ? op <= OBD_ATOM_MAX
		: op == OBD_ATOM_INC || op == OBD_ATOM_DEC ? type == OBD_T_U32
							   : type && op < OBD_ATOM_INC;

	if (!fits)
		refuse(j, "the tensor map has no type for this reduction");
	return OBD_ATOM_CODE(op, type, OBD_SP_FLAT);
}

/* ---- changes of a map ---- */

/* The numbers of .elemtype differ from those of CUtensorMapDataType. */
static uint8_t type_of_number(uint64_t n)
{
	static const uint8_t types[] = { CU_TENSOR_MAP_DATA_TYPE_UINT8,
		CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_DATA_TYPE_UINT32,
		CU_TENSOR_MAP_DATA_TYPE_INT32, CU_TENSOR_MAP_DATA_TYPE_UINT64,
		CU_TENSOR_MAP_DATA_TYPE_INT64, CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
		CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
		CU_TENSOR_MAP_DATA_TYPE_FLOAT64, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
		CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
		CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
		CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B };

	return n < sizeof(types) ? types[n] : UINT8_MAX;
}

/* Programs build a map from 128 bytes of zeros, and do not set what is zero: one dimension, u8. */
static void replace(const struct job *j, char *at, uint32_t index, uint64_t value)
{
	struct obd_tensor_map map;

	memcpy(&map, at, sizeof(map));
	if (!map.magic && !map.kind) {
		map.magic = OBD_TENSOR_MAGIC;
		map.kind = OBD_TENSOR_TILED;
		map.rank = 1;
	}
	switch (j->in->e >> 8) {
	case OBD_FIELD_ADDRESS:
		map.address = value;
		break;
	case OBD_FIELD_RANK: /* minus 1 */
		map.rank = (uint8_t)(value < OBD_TENSOR_RANK_MAX ? value + 1 : 0);
		break;
	case OBD_FIELD_BOX:
		map.box[index] = (uint16_t)(value <= OBD_TENSOR_BOX_MAX ? value : 0);
		break;
	case OBD_FIELD_DIM:
		map.last[index] = (uint32_t)value - 1;
		break;
	case OBD_FIELD_STRIDE:
		if (index < OBD_TENSOR_RANK_MAX - 1)
			map.strides16[index] = (uint32_t)(value / 16);
		break;
	case OBD_FIELD_STEP:
		map.element_strides[index] = (uint8_t)(value <= OBD_TENSOR_STEP_MAX ? value : 0);
		break;
	case OBD_FIELD_TYPE:
		map.type = type_of_number(value);
		break;
	case OBD_FIELD_INTERLEAVE:
		map.interleave = (uint8_t)value;
		break;
	case OBD_FIELD_SWIZZLE:
		map.swizzle = (uint8_t)value;
		break;
	default:
		map.fill = (uint8_t)value;
		break;
	}
	memcpy(at, &map, sizeof(map));
}

static void change(struct job *j, char *regs, const uint16_t *list)
{
	uint32_t field = j->in->e >> 8, index = j->in->e >> 4 & 7, lane = j->lane;
	bool wide = field == OBD_FIELD_ADDRESS || field == OBD_FIELD_STRIDE;

	replace(j,
		obd_bulk_global(j->w, j->in, lane, obd_reg64(regs, j->in->a)[lane], MAP_BYTES, true,
			MAP_ALIGN),
		index, wide ? obd_reg64(regs, list[0])[lane] : obd_reg32(regs, list[0])[lane]);
}

static void copy(struct job *j, char *regs)
{
	char *to = obd_bulk_global(j->w, j->in, j->lane, obd_reg64(regs, j->in->a)[j->lane],
		MAP_BYTES, true, MAP_ALIGN);

	memmove(to,
		obd_bulk_global(j->w, j->in, j->lane, obd_reg64(regs, j->in->b)[j->lane], MAP_BYTES,
			false, MAP_ALIGN),
		MAP_BYTES);
}

static void transfer(struct job *j, char *regs, const uint16_t *list, uint32_t op)
{
	uint32_t number = obd_reg32(regs, j->in->b)[j->lane], lane = j->lane;

	j->rank = j->in->e >> 4 & 7;
	for (uint32_t i = 0; i < j->rank; i++)
		j->at[i] = (int32_t)obd_reg32(regs, list[i])[lane];
	read_map(j, obd_reg64(regs, j->in->a)[lane]);
	if (j->bits == 4 && j->at[0] % 2)
		refuse(j, "the first coordinate must be even with elements of 4 bits");
	if (op == OBD_TENSOR_LOAD)
		load(j, number, obd_reg32(regs, j->in->c)[lane],
			j->in->e & OBD_TENSOR_MULTICAST ? obd_reg32(regs, list[j->rank])[lane] : 0);
	else
		store_tile(j, tile_at(j, number, false), number & OFFSET,
			op == OBD_TENSOR_REDUCE ? reduction(j) : 0, op == OBD_TENSOR_STORE);
}

void obd_tensor(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	uint32_t op = in->e & 15;

	for (uint32_t rest = m; rest; rest &= rest - 1) {
		struct job j = { .w = w, .in = in, .lane = (uint32_t)__builtin_ctz(rest) };

		if (op == OBD_TENSOR_COPY)
			copy(&j, regs);
		else if (op == OBD_TENSOR_REPLACE)
			change(&j, regs, obd_operand_list(w, in) + 2);
		else
			transfer(&j, regs, obd_operand_list(w, in) + 2, op);
		if (op == OBD_TENSOR_COPY)
			break;
	}
}
