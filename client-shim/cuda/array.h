/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arrays, and texture and surface objects. Arrays are named by the front end's ids on the wire. An
 * array is created with a round trip, so that running out of memory is reported by the call that
 * CUDA documents. Its copies carry packed rows, in order with the other records; they do not use
 * the cache of uploads, stripes or the background. Objects are created with a round trip, because
 * kernels use the driver's value. References are records without a reply (texref.c). No state; any
 * thread.
 */
#ifndef OBC_ARRAY_H
#define OBC_ARRAY_H

#include "front/array.h"
#include "front/texref.h"
#include "front/texture.h"

/* For struct obf_backend. */
CUresult obc_array_create(struct obf_array *array);
CUresult obc_array_destroy(struct obf_array *array, bool ctx_ended);
CUresult obc_array_part(struct obf_array *array);
CUresult obc_array_copy(
	struct obf_stream *stream, const struct obf_array_copy *copy, bool blocking);
CUresult obc_texture_create(struct obf_texture *texture);
CUresult obc_texture_destroy(struct obf_texture *texture, bool ctx_ended);
CUresult obc_texref_open(const struct obf_texref *ref);
CUresult obc_texref_close(const struct obf_texref *ref);
CUresult obc_texref_set(const struct obf_texref *ref, const struct obf_texref_state *next,
	unsigned setting, unsigned dimension);
CUresult obc_texref_param(const struct obf_texref *ref, const struct obf_func *func);

#endif
