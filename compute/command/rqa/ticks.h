/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Positions of the ticks of an axis: at multiples of 1, 2 or 5 times a power of ten. No state; any
 * thread.
 */
#ifndef OBX_RQA_TICKS_H
#define OBX_RQA_TICKS_H

#include <stdint.h>

#define OBX_TICKS_MAX 24

struct obx_tick {
	double at; /* position along the axis, 0..1 */
	char text[24];
};

/*
 * Ticks of a continuous axis from low to high, about `wanted` of them (2..OBX_TICKS_MAX / 2), all
 * inside it; a single one in the middle if low equals high. Returns their number.
 */
unsigned obx_ticks_range(
	double low, double high, unsigned wanted, struct obx_tick ret_ticks[OBX_TICKS_MAX]);
/*
 * Ticks of an axis of `count` cells with ascending values, at the centres of cells, at most `most`
 * of them (1..OBX_TICKS_MAX): all cells, or every 2nd, 5th, 10th ... If the values are equidistant,
 * ticks are at multiples of that step.
 */
unsigned obx_ticks_cells(const double *values, uint32_t count, unsigned most,
	struct obx_tick ret_ticks[OBX_TICKS_MAX]);

#endif
