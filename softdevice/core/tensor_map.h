/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_tensor_map: what the software device writes into a CUtensorMap, and its kernels read. The
 * layout of NVIDIA's driver is not documented and programs must not look into it, so this one is
 * our own. A kernel may change it (tensormap.replace), and any bytes may be passed as one.
 */
#ifndef OBD_CORE_TENSOR_MAP_H
#define OBD_CORE_TENSOR_MAP_H

#include <stdint.h>

#include "base/cuda_types.h"

#define OBD_TENSOR_BOX_MAX  256u /* elements along one dimension */
#define OBD_TENSOR_STEP_MAX 8u
#define OBD_TENSOR_RANK_MAX 5u
#define OBD_TENSOR_MAGIC    0x50414d54u /* "TMAP" */

enum obd_tensor_kind { OBD_TENSOR_TILED = 1, OBD_TENSOR_IM2COL, OBD_TENSOR_IM2COL_WIDE };

struct obd_tensor_map {
	uint32_t magic;
	uint8_t kind, type, rank, interleave, swizzle, promotion, fill, mode;
	uint8_t element_strides[OBD_TENSOR_RANK_MAX]; /* 1 to 8 */
	uint64_t address;
	uint32_t last[OBD_TENSOR_RANK_MAX];          /* size of each dimension minus 1 */
	uint32_t strides16[OBD_TENSOR_RANK_MAX - 1]; /* bytes / 16 */
	uint16_t box[OBD_TENSOR_RANK_MAX];           /* elements; tiled */
	uint16_t channels, pixels;                   /* im2col */
	int16_t lower[OBD_TENSOR_RANK_MAX - 2], upper[OBD_TENSOR_RANK_MAX - 2]; /* pixels; im2col */
};

_Static_assert(sizeof(struct obd_tensor_map) <= sizeof(CUtensorMap), "it lies in a CUtensorMap");

#endif
