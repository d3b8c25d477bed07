/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Constants and structs that the host and the NTT kernels share. The structs are passed by value.
 */
#ifndef OBK_NTT_GPU_SHAPE_H
#define OBK_NTT_GPU_SHAPE_H

#include <stdint.h>

#define OBK_NTT_TILE_LOG      10 /* log2 of the elements in a tile: 32 KiB of shared memory */
#define OBK_NTT_THREADS       256
#define OBK_NTT_POWERS_LOG    10 /* log2 of the entries in each of three tables of powers */
/* log2 of the most entries in the table of roots: enough for 2^24 elements */
#define OBK_NTT_ROOTS_MAX_LOG 23

/* How a pass multiplies elements by powers of a shift, when it reads or when it writes them. */
enum {
	OBK_NTT_SCALE_NONE,
	OBK_NTT_SCALE_CONSTANT, /* all elements by powers[0] */
	OBK_NTT_SCALE_NATURAL,  /* element j by powers of j */
	OBK_NTT_SCALE_REVERSED, /* element j by powers of the bit-reversed j */
};

/*
 * One pass over all data: the levels [level, level + levels) of a network over 2^log_n elements.
 * From its highest bit, an index consists of
 *     level bits     the block of the first level
 *     levels bits    the position within the pass
 *     the rest       of which a tile has the lowest low_log bits
 */
struct obk_ntt_pass {
	uint32_t log_n, level, levels, low_log;
	uint32_t gather;  /* use the mirrored network, with levels in descending order */
	uint32_t inverse; /* use the inverses of the roots */
	uint32_t scale_in, scale_out;
	uint32_t roots_log; /* log2 of the entries in the table of roots */
};

#endif
