/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the host and the kernels of cell proofs agree on. Plain numbers, passed by value. */
#ifndef OBK_KZG_GPU_SHAPE_H
#define OBK_KZG_GPU_SHAPE_H

#include <stdint.h>

#define OBK_FK20_THREADS  128 /* of a block of sums */
#define OBK_FK20_RESIDENT 2   /* such blocks of a processor */
/* of a block of steps, which is one warp: its quads go by one program */
#define OBK_FK20_QUADS    8
#define OBK_FK20_SLOTS    9 /* points that a program may keep, beside the two it works on */

/*
 * Sums of `columns` columns of `terms` products each, of `blobs` blobs.
 * table[window][column][term][digit - 1]
 */
struct obk_fk20_sums {
	uint32_t columns, terms, blobs;
	uint32_t each; /* terms of a thread; terms / each is a power of two */
	uint32_t window, windows;
};

/*
 * A level of a transform: blocks of 2 half positions, one program a block; points[position][blob].
 */
struct obk_fk20_level {
	uint32_t half, blobs;
	uint32_t first; /* the program of block 0, block i has first + i */
};

/*
 * A step of a program: acc = slot `load` (0: as it is) or infinity; doubled so many times; plus
 * slot `add`, negated, by the endomorphism; kept in slot `store`. Slots are counted from 1; the
 * first two are the level's two points.
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
