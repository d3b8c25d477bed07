/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Constants and structs that the host and the kernels for cell proofs share. The structs are passed
 * by value.
 */
#ifndef OBK_KZG_GPU_SHAPE_H
#define OBK_KZG_GPU_SHAPE_H

#include <stdint.h>

#define OBK_FK20_THREADS  128 /* threads in a block that computes sums */
#define OBK_FK20_RESIDENT 2   /* resident blocks per multiprocessor */
/*
 * quads (groups of four SIMD lanes) in a block of steps; the block is one warp, and all its quads
 * execute the same program
 */
#define OBK_FK20_QUADS    8
/* points that a program can store in addition to the two that it transforms */
#define OBK_FK20_SLOTS    9

/*
 * The sums of `columns` columns of `terms` products each, for `blobs` blobs.
 * table[window][column][term][digit - 1]
 */
struct obk_fk20_sums {
	uint32_t columns, terms, blobs;
	uint32_t each; /* terms added by one thread; terms / each is a power of two */
	uint32_t window, windows;
};

/*
 * A level of a transform. Blocks have 2 * half positions, and one program handles one block.
 * points[position][blob].
 */
struct obk_fk20_level {
	uint32_t half, blobs;
	uint32_t first; /* program of block 0; block i uses program first + i */
};

/*
 * A step of a program, in this order: set acc to slot `load` (0: leave it unchanged) or to
 * infinity; double it the given number of times; add slot `add`, optionally negated or with the
 * endomorphism applied; write acc to slot `store`. Slots are numbered from 1; the first two are the
 * two points of the level.
 */
#define OBK_FK20_LOAD_SHIFT   0
#define OBK_FK20_ADD_SHIFT    4
#define OBK_FK20_STORE_SHIFT  8
#define OBK_FK20_DOUBLE_SHIFT 12 /* 8 bits */
#define OBK_FK20_SLOT_MASK    15
#define OBK_FK20_DOUBLE_MASK  255
#define OBK_FK20_CLEAR        (1u << 20)
#define OBK_FK20_NEGATIVE     (1u << 21)
#define OBK_FK20_ENDO         (1u << 22)
#define OBK_FK20_LAST         (1u << 23)

#endif
