/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/jit.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"

bool obf_jit_valid(unsigned n, const CUjit_option *options, void *const *values)
{
	if (n > CU_JIT_NUM_OPTIONS || (n > 0 && (!options || !values)))
		return false;
	for (unsigned i = 0; i < n; i++)
		if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
			return false;
	return true;
}

CUresult obf_jit_read(struct obf_jit_logs *jit, unsigned n, CUjit_option *options, void **values)
{
	*jit = (struct obf_jit_logs){ .started = ob_clock_ns() };
	if (n > OBF_JIT_OPTIONS_MAX || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++) {
		switch (options[i]) {
		case CU_JIT_WALL_TIME:
			jit->ret_wall_time = &values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER:
			jit->info = values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			jit->info_size = (uint32_t)(uintptr_t)values[i];
			jit->ret_info_size = &values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER:
			jit->error = values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			jit->error_size = (uint32_t)(uintptr_t)values[i];
			jit->ret_error_size = &values[i];
			break;
		default:
			if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
				return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return CUDA_SUCCESS;
}

static void log_write(char *buffer, size_t size, void **ret_size, const char *text)
{
	size_t n = 0;

	if (buffer && size) {
		n = ob_min(strlen(text), size - 1);
		memcpy(buffer, text, n);
		buffer[n] = '\0';
	}
	if (ret_size)
		*ret_size = (void *)(uintptr_t)n;
}

void obf_jit_finish(struct obf_jit_logs *jit, const char *error)
{
	float ms = (float)((double)(ob_clock_ns() - jit->started) / 1e6);

	log_write(jit->info, jit->info_size, jit->ret_info_size, "");
	log_write(jit->error, jit->error_size, jit->ret_error_size, error);
	if (jit->ret_wall_time)
		memcpy(jit->ret_wall_time, &ms, sizeof ms);
}
