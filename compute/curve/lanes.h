/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Many independent additions of affine points at once, with one inversion for all of them
 * (batch-affine: 5 products and a square each). Each implementation keeps points in slots with its
 * own format. The caller owns the slot arrays. Additions are complete: infinity, equal and opposite
 * operands give correct results without a large slowdown. Any thread; each needs its own workspace.
 */
#ifndef OBK_LANES_H
#define OBK_LANES_H

#include "compute/curve/g1.h"

#define OBK_LANES_MAX_PAIRS 8192
/* Slot arrays are aligned to this many bytes. */
#define OBK_LANES_ALIGN     64

/* A reference to a point: its index in one of two arrays, and a sign. */
#define OBK_REF_NEGATIVE 0x80000000u
#define OBK_REF_SCRATCH  0x40000000u
#define OBK_REF_INDEX    0x3fffffffu

/* Slot `out` of the scratch array = a + b. No other pair of the same call may read that slot. */
struct obk_pair {
	uint32_t a, b, out;
};

struct obk_lanes {
	const char *name;
	bool (*usable)(void);
	size_t slot_bytes;
	/* for calls with up to this many pairs; aligned like slots */
	size_t (*workspace_bytes)(size_t pairs);
	void (*load)(void *slots, const struct obk_g1_affine *points, size_t n);
	void (*store)(struct obk_g1_affine *points, const void *slots, size_t n);
	void (*set_infinity)(void *slot);
	/* 1 <= n <= OBK_LANES_MAX_PAIRS. scratch must not overlap base. */
	void (*add)(const void *base, void *scratch, const struct obk_pair *pairs, size_t n,
		void *workspace);
};

/* All implementations in this build, the plain one first; ends with NULL. */
extern const struct obk_lanes *const obk_lanes_list[];
/*
 * The fastest implementation that this processor can run; the plain one with OUTBOARD_OPT=-lanes.
 */
const struct obk_lanes *obk_lanes_choose(void);

#endif
