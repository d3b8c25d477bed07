/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_array: an array of the client, a level or a plane, in the driver. An entry of session->arrays
 * points to it. An array is charged like other device memory, with the
 * bytes of the blocks that its elements lie in.
 *
 * A read that the completion thread continues may outlast the array's record of destruction, so an
 * array with its own memory counts its users: the driver's array ends with the last one. Parts have
 * no memory and use the count of their array. Executor, except obs_array_unuse.
 */
#ifndef OBS_ARRAY_H
#define OBS_ARRAY_H

#include <stdatomic.h>

#include "base/array_format.h"
#include "server/worker/session.h"

struct obs_array {
	uint64_t id;
	CUarray driver;          /* of an array or a part */
	CUmipmappedArray mipmap; /* of a mipmapped array; then `driver` is NULL */
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned element; /* bytes; 0: a planar format */
	unsigned n_levels;
	struct obs_context *context;
	struct obs_array *parent; /* NULL: it has its own memory */
	struct obs_array *parts;  /* list of the parts with an id */
	struct obs_array *next;   /* in parent->parts */
	uint64_t charged;         /* bytes */
	_Atomic uint32_t
		users; /* of an array with its own memory: its id and its parts, and reads */
};

/* Position and extent in an array: bytes of a row, rows, slices. */
struct obs_array_box {
	struct obs_array *array;
	uint64_t pos[3], width, height, depth;
};

/* The array with this id. False: told. */
bool obs_array_get(
	struct obs_exec *x, const struct obp_record *rec, uint64_t id, struct obs_array **ret);
/* True when the box lies in the array, which is of the current context and has elements. */
bool obs_array_inside(const struct obs_exec *x, const struct obs_array_box *box);
/* Keeps the driver's array alive. */
void obs_array_use(struct obs_array *array);
/* Any thread, with the array's context current. */
void obs_array_unuse(const struct obs_driver *drv, struct obs_array *array);
/* The context is about to be destroyed, with its arrays in the driver. */
void obs_arrays_forget(struct obs_session *session, struct obs_context *context);

#endif
