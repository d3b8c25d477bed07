/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The numbers of one set of CUDA headers: every enumerator, struct size and member offset that
 * base/cuda_types.h has, as that set sees it. Built once with our header and once with cuda.h,
 * which must not meet in one translation unit. Constant data.
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
