/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The files of `outboard msm`: lists of points and of scalars, raw or as text with one number per
 * line; and a second implementation of a product, for verification. The caller owns what is read
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
 * Reads points in the compressed or uncompressed form of ZCash and the IETF; the first byte
 * determines which. False: a message that names the item was printed.
 */
bool obx_points_read(const char *path, struct obx_list *ret, enum obk_point_format *ret_format);
/*
 * Reads scalars of 32 bytes, or as text: numbers of up to 64 hex digits, big-endian. *ret_text: the
 * file was text.
 */
bool obx_scalars_read(const char *path, struct obx_list *ret, bool *ret_text);
/* text: one line per item. False: a message was printed. */
bool obx_list_write(const char *path, const uint8_t *bytes, size_t n, size_t each, bool text);

/*
 * Computes the product independently of compute/msm: the digits are bytes of scalars, complete
 * additions are made one by one, with the reference in C for the field; no signs, no endomorphism,
 * no shared inversions, no vector instructions. Scalars are as obx_scalars_read returns them; be:
 * big-endian. False: out of memory, or an invalid point; a message was printed.
 */
bool obx_msm_second_way(const struct obx_list *points, enum obk_point_format format,
	const uint8_t *scalars, bool be, struct obk_pool *pool, struct obx_progress *progress,
	struct obk_g1_affine *ret);

#endif
