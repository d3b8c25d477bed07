/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Every enumerator, struct size and member offset of base/cuda_types.h, as our header defines it
 * (ours) and as cuda.h does (theirs). There are two source files, because one translation unit
 * cannot include both headers. Constant data.
 */
#ifndef CHECK_CUDA_LAYOUT_H
#define CHECK_CUDA_LAYOUT_H

#include <stddef.h>

struct layout_row {
	const char *name;
	long long value;
};

extern const struct layout_row layout_ours[], layout_theirs[];
extern const size_t layout_ours_count, layout_theirs_count;

#endif
