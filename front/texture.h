/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_texture: a texture object or a surface object. The program gets its value, which the backend
 * chooses, because kernels use it: it is unique among the objects of a context only. `handle` is
 * the id that the backend may use as its name. Objects belong to a context and end with it. The
 * front end owns them (object.h); any thread.
 */
#ifndef OBF_TEXTURE_H
#define OBF_TEXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/array.h"

#define OBF_TEXTURE_MAX (1u << 20) /* live objects of a process */

#define OBF_TEXTURE_FLAGS                                                                     \
	((unsigned)(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | \
		CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP))

struct obf_texture {
	union {
		struct obf_object object;
		struct {
			struct obf_ctx *ctx; /* NULL: unused */
			uint64_t handle;     /* the id */
		};
	};
	uint64_t value; /* what the program holds; set by the backend */
	bool surface;
	bool has_view;
	/*
	 * Linear memory: what exists of it. The program may have named more, which cannot be read;
	 * `named` is its size.
	 */
	CUDA_RESOURCE_DESC resource;
	size_t named;
	CUDA_TEXTURE_DESC sampling; /* not of a surface */
	CUDA_RESOURCE_VIEW_DESC view;
	struct obf_array *array;  /* of the resource; NULL: it is linear memory */
	struct obf_texture *next; /* in the table of values */
	void *backend;            /* owned by the backend */
};

/* The context has ended in the backend: ends its objects. */
void obf_textures_end(const struct obf_ctx *ctx);

/* ---- checks (texture_check.c); error: CUDA_ERROR_INVALID_VALUE ---- */

/* The resource of a texture, in the current context. *ret_array: NULL for linear memory. */
/* Ends linear memory where the allocation ends. */
void obf_texture_linear_clip(CUDA_RESOURCE_DESC *resource);
CUresult obf_texture_resource_check(const struct obf_ctx *ctx, const CUDA_RESOURCE_DESC *resource,
	struct obf_array **ret_array);
CUresult obf_texture_sampling_check(
	const CUDA_TEXTURE_DESC *sampling, const struct obf_array *array);
CUresult obf_texture_view_check(const CUDA_RESOURCE_VIEW_DESC *view, const struct obf_array *array);
CUresult obf_surface_resource_check(const struct obf_ctx *ctx, const CUDA_RESOURCE_DESC *resource,
	struct obf_array **ret_array);

#endif
