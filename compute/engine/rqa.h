/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the recurrence calls share: options behind their public name, and the kernel's outcomes as
 * ours. Any thread.
 */
#ifndef OBV_RQA_H
#define OBV_RQA_H

#include "compute/engine/outboard.h"
#include "compute/rqa/rqa.h"

struct outboard_rqa_options {
	struct obk_rqa_options o;
};

/* "l1", "l2", "max"; -1: none of these. */
int obv_rqa_norm(const char *name);
int obv_rqa_status(int status);
/*
 * Seconds that one run of a synthetic series of that length takes on a device; negative: it failed.
 */
double obv_rqa_seconds(struct outboard *context, unsigned device, uint64_t length);
/* The kernel's error; `series` is the index of item 0 in the caller's set. */
int obv_rqa_fail(struct outboard_error *error, const struct obk_rqa_error *e, uint64_t series);

#endif
