/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Functions that the recurrence calls share: access to the options behind their public name, and
 * conversion of the kernel's status values. Any thread.
 */
#ifndef OBV_RQA_H
#define OBV_RQA_H

#include "compute/engine/outboard.h"
#include "compute/rqa/rqa.h"

struct outboard_rqa_options {
	struct obk_rqa_options o;
};

/* For "l1", "l2", "max"; -1: another name. */
int obv_rqa_norm(const char *name);
int obv_rqa_status(int status);
/*
 * Seconds that a device needs for one run of a synthetic series of this length; negative: the run
 * failed.
 */
double obv_rqa_seconds(struct outboard *context, unsigned device, uint64_t length);
/* Converts an error of the RQA kernel; `series` is the index of item 0 in the caller's set. */
int obv_rqa_fail(struct outboard_error *error, const struct obk_rqa_error *e, uint64_t series);

#endif
