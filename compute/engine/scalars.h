/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Argument checks that MSMs and transforms share; defined in msm.c. Any thread. */
#ifndef OBV_SCALARS_H
#define OBV_SCALARS_H

#include "compute/engine/outboard.h"

/*
 * Finds the first of n scalars that is not below r: OUTBOARD_ARGUMENT, "<what> 7 is not below r".
 */
int obv_scalars_check(const void *scalars, uint64_t n, uint32_t format, const char *what,
	struct outboard_error *error);
/* Checks that memory is OUTBOARD_HOST or OUTBOARD_ON(index of a GPU). */
int obv_memory_check(struct outboard *context, uint32_t memory, struct outboard_error *error);

#endif
