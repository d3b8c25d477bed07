/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The metadata of sparse matrices of mma.sp and wgmma.sp. Pure functions. */
#ifndef OBD_CORE_SPARSE_H
#define OBD_CORE_SPARSE_H

#include <stdint.h>

/*
 * The metadata of a sparse A: for each stored element, its column. A group of 4 columns (8 with
 * 4-bit types, 2 with tf32) has 4 bits: the places of its two elements (pairs of elements with
 * 4-bit types; for tf32 4 and 14 stand for the first and the second column).
 *
 * Types of 16 and 32 bits: a lane has 4 groups of row l / 4 in its lower half and 4 of row l / 4 +
 * 8 in its upper half. Others: it has 8 groups of one row. The selector names the lanes of each
 * four that have the metadata: one, or a pair; if all have it, it is 0.
 */
static inline void obd_sparse_rows(
	const uint32_t *meta, uint32_t bits, uint32_t k, uint32_t selector, uint8_t *rows)
{
	uint32_t group = bits == 32 ? 2 : bits == 4 ? 8 : 4, groups = k / group, kept = group / 2;

	for (uint32_t i = 0; i < 16; i++)
		for (uint32_t g = 0; g < groups; g++) {
			uint8_t *to = rows + i * (k / 2) + g * kept;
			uint32_t lane = 4 * (i % 8), code;

			if (bits >= 16) {
				lane += groups == 4 ? selector : (2 * selector + g / 4) % 4;
				code = meta[lane] >> (i / 8 * 16 + g % 4 * 4);
			} else {
				lane += groups == 8 ? (2 * selector + i / 8) % 4
						    : g / 8 * 2 + i / 8;
				code = meta[lane] >> (g % 8 * 4);
			}
			code &= 15;
			for (uint32_t e = 0; e < kept; e++)
				to[e] = (uint8_t)(g * group +
					(bits == 32 ? code >> 3
							: bits == 4
							? (code >> (e / 2 * 2) & 3) * 2 + e % 2
							: (code >> (e * 2)) & 3));
		}
}

#endif
