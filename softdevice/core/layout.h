/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fragments: where the elements of a matrix are in the registers of a warp.
 *
 * A fragment is a list of blocks of 8 rows. A register of A or B is one block: lane l holds row l /
 * 4, and of its 128 bits (256 with f64) part l % 4. The memory of the register, over all lanes, is
 * therefore the block itself, row-major. B is transposed: its blocks have 8 columns of the matrix
 * as their rows. A block of C has 8 x 8 elements: one register with f16, otherwise two, which hold
 * the even and the odd columns.
 *
 * Blocks follow each other in this order, as in the figures of the PTX manual: in A, the two halves
 * of 16 rows, then along k, then the next 16 rows; in B along k, then the next 8 columns; in C, the
 * two halves of 16 rows, then the next 8 columns, then the next 16 rows. The fragments of wmma have
 * the same layout; the manual leaves it open.
 */
#ifndef OBD_CORE_LAYOUT_H
#define OBD_CORE_LAYOUT_H

#include "softdevice/core/ops.h"

enum obd_fragment { OBD_FRAGMENT_A, OBD_FRAGMENT_B, OBD_FRAGMENT_C };

struct obd_mma_shape {
	uint32_t m, n, k;
};

/* First row and column of a block in its matrix. */
struct obd_place {
	uint32_t row, column;
};

static inline uint32_t obd_element_bits(uint32_t t)
{
	static const uint8_t bits[OBD_MMA_TYPES] = { 16, 16, 32, 8, 8, 8, 8, 64, 32, 32, 4, 4, 1, 8,
		8, 8 };

	return bits[t];
}

/* Columns of a block of A or B (in B: rows of the matrix). */
static inline uint32_t obd_block_width(uint32_t bits)
{
	return bits == 64 ? 4 : 128u >> __builtin_ctz(bits);
}

static inline uint32_t obd_fragment_blocks(
	enum obd_fragment f, const struct obd_mma_shape *s, uint32_t width)
{
	uint32_t along = s->k >> __builtin_ctz(width);

	return f == OBD_FRAGMENT_A    ? s->m / 8 * along
		: f == OBD_FRAGMENT_B ? s->n / 8 * along
				      : s->m / 8 * (s->n / 8);
}

/* The place of the block after the one at p; that of the first is { 0, 0 }. */
static inline struct obd_place obd_fragment_next(
	enum obd_fragment f, const struct obd_mma_shape *s, uint32_t width, struct obd_place p)
{
	if (f == OBD_FRAGMENT_B) {
		p.row += width;
		if (p.row == s->k)
			p = (struct obd_place){ 0, p.column + 8 };
	} else if (s->m > 8 && !(p.row & 8)) {
		p.row += 8;
	} else {
		p = (struct obd_place){ p.row & ~8u, p.column + width };
		if (p.column == (f == OBD_FRAGMENT_C ? s->n : s->k))
			p = (struct obd_place){ p.row + 16, 0 };
	}
	return p;
}

#endif
