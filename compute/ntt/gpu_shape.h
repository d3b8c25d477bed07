/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the host and the kernels of a transform agree on. Plain numbers, passed by value. */
#ifndef OBK_NTT_GPU_SHAPE_H
#define OBK_NTT_GPU_SHAPE_H

#include <stdint.h>

#define OBK_NTT_TILE_LOG      10 /* elements of a tile: 32 KiB of shared memory */
#define OBK_NTT_THREADS       256
#define OBK_NTT_POWERS_LOG    10 /* entries of one of three tables of powers */
#define OBK_NTT_ROOTS_MAX_LOG 23 /* entries of the table of roots: all that 2^24 elements need */

/* Elements are multiplied, when a pass reads or when it writes them, by powers of a shift. */
enum {
	OBK_NTT_SCALE_NONE,
	OBK_NTT_SCALE_CONSTANT, /* by powers[0] */
	OBK_NTT_SCALE_NATURAL,  /* element j by powers of j */
	OBK_NTT_SCALE_REVERSED, /* by powers of j's bits in reverse */
};

/*
 * One pass over all data: the levels [level, level + levels) of a network over 2^log_n elements. An
 * index is, from its highest bit,
 *     level bits: the block of the first level | levels bits: in the pass | the rest, of which a tile has the lowest low_log
 */
struct obk_ntt_pass {
	uint32_t log_n, level, levels, low_log;
	uint32_t gather;  /* the mirror image, levels downwards */
	uint32_t inverse; /* with the roots' inverses */
	uint32_t scale_in, scale_out;
	uint32_t roots_log; /* of the table of roots */
};

#endif
