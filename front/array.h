/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_array: a CUDA array, a mipmapped array, or a part of one: a level of a mipmapped array, or a
 * plane of an array with a planar format. Arrays and mipmapped arrays share one table of ids, so a
 * handle of the wrong kind is detected. A part lives as long as its array; the program cannot
 * destroy it. Arrays belong to a context and end with it.
 *
 * Extents are elements as in CUDA's descriptors; Height and Depth may be 0. The front end owns the
 * objects (object.h); any thread.
 */
#ifndef OBF_ARRAY_H
#define OBF_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array_format.h"
#include "front/front.h"
#include "front/object.h"

#define OBF_ARRAY_MAX (1u << 18) /* live arrays and parts of a process */

struct obf_stream;

struct obf_array {
	union {
		struct obf_object object;
		struct {
			struct obf_ctx *ctx; /* NULL: unused */
			uint64_t handle;     /* the id */
		};
	};
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned element;         /* bytes; 0: a planar format */
	unsigned n_levels;        /* of a mipmapped array; 0: it is an array */
	struct obf_array *parent; /* of a level or a plane; NULL: it has its own memory */
	unsigned part;            /* number of the level or of the plane */
	/* levels or planes that the program has asked for, by number; under a lock */
	struct obf_array *parts[OB_ARRAY_LEVELS_MAX];
	void *backend; /* owned by the backend */
};

/* A checked copy with an array on at least one side. */
struct obf_array_copy {
	struct obf_array *src, *dst; /* NULL: that side is memory */
	size_t src_at[3], dst_at[3]; /* in arrays: first byte of a row, row, slice or layer */
	/* the extent, and addresses and pitches of a side that is memory */
	struct obf_copy flat;
};

/* NULL: no such array, or a mipmapped one. */
struct obf_array *obf_array_find(CUarray handle);
struct obf_array *obf_mipmap_find(CUmipmappedArray handle);
/* The context has ended in the backend: ends its arrays. */
void obf_arrays_end(const struct obf_ctx *ctx);

/* Whether this side of a copy is an array, for each of the structs. */
#define OBF_COPY_HAS_ARRAY(copy)                         \
	((copy)->srcMemoryType == CU_MEMORYTYPE_ARRAY || \
		(copy)->dstMemoryType == CU_MEMORYTYPE_ARRAY)

/* The copies of the calls with these structs, if a side is an array. */
CUresult obf_array_copy_2d(struct obf_stream *stream, const CUDA_MEMCPY2D *params, bool blocking);
CUresult obf_array_copy_3d(struct obf_stream *stream, const CUDA_MEMCPY3D *params, bool blocking);
CUresult obf_array_copy_peer(struct obf_stream *stream, const CUDA_MEMCPY3D_PEER *params,
	struct obf_ctx *dst_ctx, struct obf_ctx *src_ctx, bool blocking);
/* Checks one copy of a batch, whose sides are arrays or pointers. */
CUresult obf_array_copy_from_batch(const CUDA_MEMCPY3D_BATCH_OP *op, struct obf_array_copy *ret);

#endif
