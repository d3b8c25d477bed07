/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The fake backend's arrays and textures. */
#include "fake.h"

CUresult fake_array_make(struct obf_array *array)
{
	if (fake.array_result == CUDA_SUCCESS) {
		array->backend = &fake;
		fake.arrays++;
	}
	return fake.array_result;
}

CUresult fake_array_destroy(struct obf_array *array, bool ctx_ended)
{
	fake.arrays -= array->backend == &fake;
	fake.last_ctx_ended = ctx_ended;
	return CUDA_SUCCESS;
}

CUresult fake_array_copy(
	struct obf_stream *stream, const struct obf_array_copy *what, bool blocking)
{
	(void)stream;
	(void)blocking;
	fake.last_array_copy = *what;
	fake.copies++;
	return CUDA_SUCCESS;
}

/* Each second object has the value of another one, as in drivers that number them by context. */
CUresult fake_texture_create(struct obf_texture *texture)
{
	texture->value = 1 + (uint64_t)(++fake.textures - 1) % 2;
	return fake.array_result;
}

CUresult fake_texture_destroy(struct obf_texture *texture, bool ctx_ended)
{
	(void)texture;
	fake.last_ctx_ended = ctx_ended;
	fake.textures--;
	return CUDA_SUCCESS;
}
