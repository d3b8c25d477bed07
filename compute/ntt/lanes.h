/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Several levels of a transform's network at once, eight independent columns a time: a tile of
 * 2^levels rows is read, goes through its levels in registers and the nearest cache, and is written
 * back reduced. Tiles of one pass touch different elements: any thread may take any of them.
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

/* The caller owns what it points to; read-only while tiles run, but for data. */
struct obk_ntt_pass {
	struct obk_fr *data; /* transforms of 2^log_n elements, one after the other */
	/*
	 * levels in OBK_NTT_TILE_MIN_LEVELS..OBK_NTT_TILE_MAX_LEVELS, but also fewer before the
	 * last ones
	 */
	unsigned log_n, level, levels;
	bool gather, inverse;       /* ntt.c says which network; inverse roots */
	const struct obk_fr *roots; /* obk_roots_get_lanes */
	unsigned log_roots;
	/* all elements are multiplied by it at the end; NULL: not */
	const struct obk_fr *scale;
};

/* Tile `item` of batch x 2^(log_n - levels - 3). */
typedef void obk_ntt_tile_fn(const struct obk_ntt_pass *pass, size_t item);

/* What this processor can run, NULL if nothing or under OUTBOARD_OPT=-ntt. */
obk_ntt_tile_fn *obk_ntt_tile_choose(void);
/* Root i of the network or its inverse times 2^280, the form tiles take. */
struct obk_fr obk_ntt_lanes_root(const struct obk_ntt_pass *pass, size_t i);

#endif
