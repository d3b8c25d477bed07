/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The values of one set of CUDA headers: every enumerator, struct size and member offset of
 * base/cuda_types.h as that set defines it. Built once with our header and once with cuda.h,
 * because one translation unit must not include both. Constant data.
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
