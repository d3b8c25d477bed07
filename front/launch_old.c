/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The launch calls of CUDA before 4.0: shape, shared memory and parameters are set on the function,
 * one by one, and a launch uses what was set last. As in CUDA, threads that set and launch the same
 * function at the same time get a mixture.
 */
#include <stdlib.h>
#include <string.h>

#include "front/launch_old.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define PARAMS_MAX 4096u /* bytes, as in CUDA before 12.1 */

struct obf_launch_old {
	size_t size; /* of the parameters, in bytes */
	uint32_t block[3], shared;
	uint8_t params[PARAMS_MAX];
};

/* Returns what was set on the function, or NULL with *ret_error. */
static struct obf_launch_old *old_of(CUfunction handle, CUresult *ret_error)
{
	struct obf_launch_old *old, *none = NULL;
	struct obf_function *function;

	*ret_error = obf_function_enter(handle, &function);
	if (*ret_error != CUDA_SUCCESS)
		return NULL;
	old = atomic_load_explicit(&function->old, memory_order_acquire);
	if (old)
		return old;
	old = calloc(1, sizeof *old);
	if (!old)
		*ret_error = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!atomic_compare_exchange_strong(&function->old, &none, old)) {
		free(old);
		old = none;
	}
	return old;
}

CUresult obf_cuFuncSetBlockShape(CUfunction func, int x, int y, int z)
{
	CUresult result;
	struct obf_launch_old *old = old_of(func, &result);

	if (!old)
		return result;
	if (x < 1 || y < 1 || z < 1)
		return CUDA_ERROR_INVALID_VALUE;
	old->block[0] = (uint32_t)x;
	old->block[1] = (uint32_t)y;
	old->block[2] = (uint32_t)z;
	return CUDA_SUCCESS;
}

CUresult obf_cuFuncSetSharedSize(CUfunction func, unsigned bytes)
{
	CUresult result;
	struct obf_launch_old *old = old_of(func, &result);

	if (old)
		old->shared = bytes;
	return result;
}

CUresult obf_cuParamSetSize(CUfunction func, unsigned bytes)
{
	CUresult result;
	struct obf_launch_old *old = old_of(func, &result);

	if (!old)
		return result;
	if (bytes > PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	old->size = bytes;
	return CUDA_SUCCESS;
}

CUresult obf_cuParamSetv(CUfunction func, int offset, void *p, unsigned bytes)
{
	CUresult result;
	struct obf_launch_old *old = old_of(func, &result);

	if (!old)
		return result;
	if (offset < 0 || bytes > PARAMS_MAX || (unsigned)offset > PARAMS_MAX - bytes ||
		(!p && bytes > 0))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > 0)
		memcpy(old->params + offset, p, bytes);
	return CUDA_SUCCESS;
}

CUresult obf_cuParamSeti(CUfunction func, int offset, unsigned value)
{
	return obf_cuParamSetv(func, offset, &value, sizeof value);
}

CUresult obf_cuParamSetf(CUfunction func, int offset, float value)
{
	return obf_cuParamSetv(func, offset, &value, sizeof value);
}

CUresult obf_launch_old_take(
	CUfunction func, int width, int height, struct obf_launch *ret, void *ret_extra[5])
{
	CUresult result;
	struct obf_launch_old *old = old_of(func, &result);

	if (!old)
		return result;
	if (width < 1 || height < 1)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct obf_launch){
		.grid = { (uint32_t)width, (uint32_t)height, 1 },
		.block = { old->block[0], old->block[1], old->block[2] },
		.dynamic_shared = old->shared,
	};
	ret_extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	ret_extra[1] = old->params;
	ret_extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	ret_extra[3] = &old->size;
	ret_extra[4] = CU_LAUNCH_PARAM_END;
	return CUDA_SUCCESS;
}
