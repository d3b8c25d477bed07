/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A box of bytes in device memory: depth slices of height rows of width bytes. Any thread. */
#ifndef OBS_BOX_H
#define OBS_BOX_H

#include "base/check.h"
#include "server/worker/session.h"

struct box {
	uint64_t addr, pitch, slice, width, height, depth;
};

/* True when every byte of the box lies in the session's memory. An empty box always does. */
static inline bool box_inside(struct obs_exec *x, const struct box *box)
{
	uint64_t rows, slices, last;

	if (box->width == 0 || box->height == 0 || box->depth == 0)
		return true;
	if ((box->height > 1 && box->pitch < box->width) ||
		ob_mul_overflows(box->height - 1, box->pitch, &rows) ||
		ob_mul_overflows(box->depth - 1, box->slice, &slices) ||
		ob_add_overflows(rows, slices, &last) ||
		ob_add_overflows(last, box->width, &last) ||
		(box->depth > 1 && box->slice < rows + box->width))
		return false;
	return obs_memory_check(&x->session->memory, box->addr, last);
}

#endif
