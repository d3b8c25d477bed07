/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Several levels of a transform's network at once, for eight independent columns at a time. A tile
 * of 2^levels rows is read, goes through its levels in registers and the L1 cache, and is written
 * back reduced. Tiles of one pass touch different elements, so that threads may process them
 * concurrently.
 *
 *     level + levels < log n    the columns are eight neighbours, rows lie 2^(log n - level -
 *                               levels) >= 8 elements apart, all columns share roots
 *     level + levels = log n    the columns are eight blocks of 2^levels elements, each with its
 *                               own roots
 */
#ifndef OBK_NTT_LANES_H
#define OBK_NTT_LANES_H

#include <stdbool.h>
#include <stddef.h>

#include "compute/field/fr.h"

#define OBK_NTT_LANES           8
#define OBK_NTT_LANES_LOG       3
#define OBK_NTT_TILE_MAX_LEVELS 6
#define OBK_NTT_TILE_MIN_LEVELS 3

/* The caller owns the memory that the pointers refer to. While tiles run, only data is written. */
struct obk_ntt_pass {
	struct obk_fr *data; /* transforms of 2^log_n elements, one after the other */
	/*
	 * levels is in OBK_NTT_TILE_MIN_LEVELS..OBK_NTT_TILE_MAX_LEVELS; smaller values are allowed
	 * if other levels follow
	 */
	unsigned log_n, level, levels;
	/* gather: the network (see ntt.c); inverse: use inverse roots */
	bool gather, inverse;
	const struct obk_fr *roots; /* from obk_roots_get_lanes */
	unsigned log_roots;
	/* factor for all elements at the end; NULL: none */
	const struct obk_fr *scale;
};

/* Processes tile `item` of batch x 2^(log_n - levels - 3). */
typedef void obk_ntt_tile_fn(const struct obk_ntt_pass *pass, size_t item);

/* The implementation for this processor; NULL: there is none, or OUTBOARD_OPT=-ntt disables it. */
obk_ntt_tile_fn *obk_ntt_tile_choose(void);
/* Root i of the network, or its inverse, times 2^280, the form that tiles use. */
struct obk_fr obk_ntt_lanes_root(const struct obk_ntt_pass *pass, size_t i);

#endif
