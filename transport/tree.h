/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The name of a chunk in the upload cache: SHA-256 in sixteen SIMD lanes, which is several times as
 * fast as SHA-256 of the bytes in sequence.
 *
 *     the bytes      as little-endian 32-bit numbers, padded with zeros to a multiple of 1024
 *                    bytes
 *     lane k         numbers k, k + 16, k + 32 ...: SHA-256's compression from its initial state,
 *                    16 numbers a block, no padding
 *     the name       SHA-256 of: the states of the 16 lanes (each 8 numbers, first the first of all
 *                    lanes), the size in bytes as a 64-bit number
 *
 * Two chunks with one name are two inputs with one SHA-256, or two chains of equal length that
 * SHA-256's compression does not tell apart: either would be a collision of SHA-256. No state; any
 * thread.
 */
#ifndef OBT_TREE_H
#define OBT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/digest.h"

#define OBT_TREE_LANES 16u
#define OBT_TREE_BLOCK 1024u /* bytes per step of all lanes */

void obt_tree_digest(const void *data, size_t size, uint8_t ret_name[OBT_SHA256_BYTES]);

/* The implementation; the widest available by default. For tests. */
enum obt_tree_isa { OBT_TREE_PLAIN, OBT_TREE_AVX2, OBT_TREE_AVX512, OBT_TREE_ISAS };
/* False: not available on this processor. */
bool obt_tree_can(enum obt_tree_isa isa);
void obt_tree_digest_by(
	enum obt_tree_isa isa, const void *data, size_t size, uint8_t ret_name[OBT_SHA256_BYTES]);

#endif
