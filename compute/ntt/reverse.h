/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Bit reversal: of an index, and of the order of a transform's elements. The caller owns the data
 * and the pool.
 */
#ifndef OBK_NTT_REVERSE_H
#define OBK_NTT_REVERSE_H

#include "compute/field/fr.h"
#include "compute/pool/pool.h"

/* Many transforms, one after the other. False: stop returned true, and some elements have not been moved. */
bool obk_ntt_reverse_batch(struct obk_fr *data, unsigned log_n, size_t batch, struct obk_pool *pool,
	const struct obk_stop *stop);

/* Swaps element i with the element at the index that has the lowest log_n bits of i reversed. */
void obk_ntt_reverse(struct obk_fr *data, unsigned log_n);

/* The lowest `bits` bits of i reversed, bits <= 32. */
static inline uint32_t obk_ntt_reverse_bits(uint32_t i, unsigned bits)
{
	i = (i & 0x55555555) << 1 | (i >> 1 & 0x55555555);
	i = (i & 0x33333333) << 2 | (i >> 2 & 0x33333333);
	i = (i & 0x0f0f0f0f) << 4 | (i >> 4 & 0x0f0f0f0f);
	i = __builtin_bswap32(i);
	return bits ? i >> (32 - bits) : 0;
}

#endif
