/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_jit_logs: the log buffers among the options of cuModuleLoadDataEx and cuLink*. Options for
 * optimisation or debug information are accepted and ignored. Uses the caller's arrays during the
 * call; one thread.
 */
#ifndef OBF_JIT_H
#define OBF_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBF_JIT_OPTIONS_MAX 64u

struct obf_jit_logs {
	char *info, *error;           /* the program's buffers, or NULL */
	size_t info_size, error_size; /* bytes */
	/* receive the written sizes and the time; NULL: not requested */
	void **ret_info_size, **ret_error_size, **ret_wall_time;
	uint64_t started; /* ob_clock_ns */
};

/* Whether the arrays are there and all options are known. */
bool obf_jit_valid(unsigned n, const CUjit_option *options, void *const *values);
/* CUDA_ERROR_INVALID_VALUE: an unknown option. */
CUresult obf_jit_read(struct obf_jit_logs *jit, unsigned n, CUjit_option *options, void **values);
/* Writes the sizes and the time; `error` is the text for the error log and may be empty. */
void obf_jit_finish(struct obf_jit_logs *jit, const char *error);

#endif
