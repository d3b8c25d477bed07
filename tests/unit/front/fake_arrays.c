/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The fake backend's arrays, textures and references. */
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

CUresult fake_texref_open(const struct obf_texref *ref)
{
	fake.last_texref = ref;
	fake.texrefs += fake.texref_result == CUDA_SUCCESS;
	return fake.texref_result;
}

CUresult fake_texref_close(const struct obf_texref *ref)
{
	fake.last_texref = ref;
	fake.texrefs--;
	return CUDA_SUCCESS;
}

CUresult fake_texref_set(const struct obf_texref *ref, const struct obf_texref_state *next,
	unsigned setting, unsigned dimension)
{
	fake.last_texref = ref;
	fake.last_texref_state = *next;
	fake.last_setting = setting;
	fake.last_dimension = dimension;
	fake.texref_sets++;
	return fake.texref_result;
}

CUresult fake_texref_param(const struct obf_texref *ref, const struct obf_func *func)
{
	(void)func;
	fake.last_texref = ref;
	fake.texref_params++;
	return fake.texref_result;
}
