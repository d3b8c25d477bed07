/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Transposition of eight rows of eight 64-bit words, for the AVX-512 implementations only. */
#ifndef OBK_LANES_TRANSPOSE_H
#define OBK_LANES_TRANSPOSE_H

#if defined(__AVX512F__)
#include <immintrin.h>

#define LANES 8

/* Moves the word in row i and column j to row j and column i. */
static inline void transpose(__m512i v[LANES])
{
	__m512i t[LANES], u[LANES];

	for (unsigned i = 0; i < 4; i++) {
		t[2 * i] = _mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]);
		t[2 * i + 1] = _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]);
	}
	/* t[2i + b] holds columns b, 2 + b, 4 + b, 6 + b of rows 2i and 2i + 1 */
	for (unsigned b = 0; b < 2; b++) {
		/* columns b, 4 + b of rows 0..3 */
		u[b] = _mm512_shuffle_i64x2(t[b], t[2 + b], 0x88);
		/* columns 2 + b, 6 + b */
		u[2 + b] = _mm512_shuffle_i64x2(t[b], t[2 + b], 0xdd);
		u[4 + b] = _mm512_shuffle_i64x2(t[4 + b], t[6 + b], 0x88); /* rows 4..7 */
		u[6 + b] = _mm512_shuffle_i64x2(t[4 + b], t[6 + b], 0xdd);
	}
	for (unsigned b = 0; b < 2; b++) {
		v[b] = _mm512_shuffle_i64x2(u[b], u[4 + b], 0x88);
		v[4 + b] = _mm512_shuffle_i64x2(u[b], u[4 + b], 0xdd);
		v[2 + b] = _mm512_shuffle_i64x2(u[2 + b], u[6 + b], 0x88);
		v[6 + b] = _mm512_shuffle_i64x2(u[2 + b], u[6 + b], 0xdd);
	}
}
#endif

#endif
