/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The files of `outboard msm`: lists of points and of scalars, raw or as text with one number a
 * line, and a second way to compute a product, to verify with. What is read belongs to the caller
 * (free). Main thread only.
 */
#ifndef OBX_MSM_FILES_H
#define OBX_MSM_FILES_H

#include "compute/command/progress.h"
#include "compute/msm/msm.h"

struct obx_list {
	uint8_t *bytes; /* n items, packed */
	size_t n, each;
};

/*
 * Points in the compressed or uncompressed form of ZCash and the IETF, whichever the first byte
 * says. False: said why, naming the item.
 */
bool obx_points_read(const char *path, struct obx_list *ret, enum obk_point_format *ret_format);
/*
 * Scalars of 32 bytes; text: numbers of up to 64 hex digits, the highest first. *ret_text: it was
 * text.
 */
bool obx_scalars_read(const char *path, struct obx_list *ret, bool *ret_text);
/* text: a line an item. False: said why. */
bool obx_list_write(const char *path, const uint8_t *bytes, size_t n, size_t each, bool text);

/*
 * The product by other means than compute/msm: bytes of scalars as digits, complete additions one
 * by one, the field's reference in C; no signs, no endomorphism, no shared inversions, no vector
 * instructions. Scalars as obx_scalars_read leaves them, be: highest byte first. False: no memory,
 * or a point is no point; said so.
 */
bool obx_msm_second_way(const struct obx_list *points, enum obk_point_format format,
	const uint8_t *scalars, bool be, struct obk_pool *pool, struct obx_progress *progress,
	struct obk_g1_affine *ret);

#endif
