/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Arrays: creation, parts, the end. */
#include "server/worker/ops/array.h"

#include <stdlib.h>

#include "base/check.h"
#include "server/layers/hold.h"
#include "server/layers/quota.h"
#include "server/worker/lane.h"
#include "server/worker/ops/ops.h"

_Static_assert(OBP_ARRAY_LEVELS_MAX == OB_ARRAY_LEVELS_MAX, "protocol/spec/array.api");
_Static_assert(OBP_ARRAY_ROWS_MAX == OB_ARRAY_EXTENT_MAX, "protocol/spec/array.api");

/* ---- objects ---- */

static struct obs_array *array_new(uint64_t id, struct obs_context *context)
{
	struct obs_array *array;

	if (!obs_hold_take(OBS_HOLD_HANDLES, sizeof *array))
		return NULL;
	array = calloc(1, sizeof *array);
	if (!array) {
		obs_hold_give(OBS_HOLD_HANDLES, sizeof *array);
		return NULL;
	}
	array->id = id;
	array->context = context;
	atomic_init(&array->users, 1);
	return array;
}

static void array_free(struct obs_array *array)
{
	if (array->charged)
		obs_quota_discharge(array->context->device, array->charged);
	obs_hold_give(OBS_HOLD_HANDLES, sizeof *array);
	free(array);
}

static struct obs_array *root_of(struct obs_array *array)
{
	while (array->parent)
		array = array->parent;
	return array;
}

void obs_array_use(struct obs_array *array)
{
	atomic_fetch_add(&root_of(array)->users, 1);
}

void obs_array_unuse(const struct obs_driver *drv, struct obs_array *array)
{
	struct obs_array *root = root_of(array), *part;

	if (atomic_fetch_sub(&root->users, 1) != 1)
		return;
	while ((part = root->parts) != NULL) {
		root->parts = part->next;
		array_free(part);
	}
	if (root->mipmap)
		drv->cuMipmappedArrayDestroy(root->mipmap);
	else
		drv->cuArrayDestroy(root->driver);
	array_free(root);
}

bool obs_array_get(
	struct obs_exec *x, const struct obp_record *rec, uint64_t id, struct obs_array **ret)
{
	struct obs_handle *handle;

	if (!obs_handle_use(x, rec, &x->session->arrays, id, &handle))
		return false;
	*ret = handle->driver;
	return true;
}

static bool is_inside(uint64_t at, uint64_t size, uint64_t end)
{
	return at <= end && size <= end - at;
}

bool obs_array_inside(const struct obs_exec *x, const struct obs_array_box *box)
{
	const struct obs_array *array = box->array;

	return array->driver && array->element && array->context == x->context &&
		is_inside(box->pos[0], box->width, array->desc.Width * array->element) &&
		is_inside(box->pos[1], box->height, ob_array_rows(&array->desc)) &&
		is_inside(box->pos[2], box->depth, ob_array_slices(&array->desc));
}

/* Enters the array under its id; the id is vacant. */
static void array_put(struct obs_exec *x, const struct obp_record *rec, struct obs_array *array)
{
	const struct obs_handle handle = { .driver = array, .context = array->context };

	if (!obs_handles_put(&x->session->arrays, array->id, &handle))
		obs_violation(x, rec, "there is no memory for its new handle");
}

/* ---- creation ---- */

/*
 * A GPU stores an array with two or three dimensions in blocks of 64 bytes by 8 rows, so one of a
 * single column takes 64 times the bytes of its elements. Any layer is charged one block at least.
 */
#define BLOCK_BYTES 64u
#define BLOCK_ROWS  8u

static uint64_t charge_of(const struct obs_array *array)
{
	CUDA_ARRAY3D_DESCRIPTOR blocks = array->desc;
	uint64_t bytes;

	if (array->element && blocks.Height && ob_array_bytes(&blocks, array->n_levels)) {
		blocks.Width = ob_round_up(blocks.Width, BLOCK_BYTES / array->element);
		blocks.Height = ob_round_up(blocks.Height, BLOCK_ROWS);
	}
	bytes = ob_array_bytes(&blocks, array->n_levels);
	return bytes ? ob_max(bytes, (uint64_t)BLOCK_BYTES * BLOCK_ROWS * ob_array_slices(&blocks))
		     : 0;
}

static CUresult array_make(struct obs_exec *x, struct obs_array *array)
{
	uint64_t bytes = charge_of(array);
	CUresult result;

	if (!bytes || (array->n_levels && !array->element))
		return CUDA_ERROR_INVALID_VALUE;
	result = obs_quota_charge(array->context->device, bytes);
	if (result != CUDA_SUCCESS)
		return result;
	array->charged = bytes;
	return array->n_levels
		? x->drv->cuMipmappedArrayCreate(&array->mipmap, &array->desc, array->n_levels)
		: x->drv->cuArray3DCreate_v2(&array->driver, &array->desc);
}

static CUresult array_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_array_create_req *req)
{
	CUresult result = obs_handle_room(x);
	struct obs_array *array;

	if (result == CUDA_SUCCESS && !x->context)
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (result != CUDA_SUCCESS)
		return result;
	array = array_new(req->array, x->context);
	if (!array)
		return obs_quota_refused("host memory");
	array->desc = (CUDA_ARRAY3D_DESCRIPTOR){ .Width = req->width,
		.Height = req->height,
		.Depth = req->depth,
		.Format = (CUarray_format)req->format,
		.NumChannels = req->channels,
		.Flags = req->flags };
	array->element = ob_array_element(array->desc.Format, array->desc.NumChannels);
	array->n_levels = req->levels;
	result = array_make(x, array);
	if (result == CUDA_SUCCESS)
		array_put(x, rec, array);
	else
		array_free(array);
	return result;
}

void obs_op_array_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_array_create_req *req)
{
	if (!obs_handles_vacant(&x->session->arrays, req->array))
		obs_violation(x, rec, "the array's id is in use or out of range");
	obs_reply(x, rec, array_create(x, rec, req), NULL, 0);
}

/* ---- parts ---- */

static CUresult part_make(struct obs_exec *x, struct obs_array *part, unsigned number)
{
	const struct obs_array *parent = part->parent;
	CUresult result;

	if (parent->n_levels ? number >= parent->n_levels
			     : !ob_array_plane(&parent->desc, number, &part->desc))
		return CUDA_ERROR_INVALID_VALUE;
	if (parent->n_levels)
		part->desc = ob_array_level(&parent->desc, number);
	part->element = ob_array_element(part->desc.Format, part->desc.NumChannels);
	result = obs_context_enter(x, parent->context);
	if (result != CUDA_SUCCESS)
		return result;
	return parent->n_levels
		? x->drv->cuMipmappedArrayGetLevel(&part->driver, parent->mipmap, number)
		: x->drv->cuArrayGetPlane(&part->driver, parent->driver, number);
}

void obs_op_array_part(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_array_part_req *req)
{
	struct obs_array *parent, *part = NULL;
	CUresult result = obs_handle_room(x);

	if (!obs_handles_vacant(&x->session->arrays, req->part))
		obs_violation(x, rec, "the array's id is in use or out of range");
	if (!obs_array_get(x, rec, req->array, &parent))
		return;
	if (result == CUDA_SUCCESS) {
		part = array_new(req->part, parent->context);
		result = part ? CUDA_SUCCESS : obs_quota_refused("host memory");
	}
	if (part) {
		part->parent = parent;
		result = part_make(x, part, req->number);
	}
	if (result == CUDA_SUCCESS) {
		part->next = parent->parts;
		parent->parts = part;
		array_put(x, rec, part);
	} else {
		const struct obs_handle failed = { .context = parent->context };

		/* Calls that name it fail with CUDA_ERROR_INVALID_HANDLE. */
		obs_handles_put(&x->session->arrays, req->part, &failed);
		if (part)
			array_free(part);
	}
	obs_async_result(x, rec, result);
}

/* ---- the end ---- */

/* A part: the driver's array ends with its parent. The struct stays in the list until then. */
static void ids_remove(struct obs_session *session, const struct obs_array *array)
{
	obs_handles_remove(&session->arrays, array->id, NULL);
	for (const struct obs_array *part = array->parts; part; part = part->next)
		ids_remove(session, part);
}

void obs_op_array_destroy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_array_destroy_req *req)
{
	struct obs_handle *handle = obs_handles_find(&x->session->arrays, req->array);
	struct obs_array *array;
	CUresult result;

	/* Unknown: it ended with its context, and the client's record was already on its way. */
	if (!handle)
		return;
	array = handle->driver;
	if (!array || array->parent) {
		obs_handles_remove(&x->session->arrays, req->array, NULL);
		return;
	}
	ids_remove(x->session, array);
	result = obs_context_enter(x, array->context);
	obs_array_unuse(x->drv, array);
	obs_async_result(x, rec, result);
}

struct forget {
	struct obs_session *session;
	struct obs_context *context;
	struct obs_array *list; /* by `next`, which arrays with their own memory do not use */
};

static void forget_one(void *user, struct obs_handle *handle)
{
	struct forget *forget = user;
	struct obs_array *array = handle->driver;

	if (handle->context != forget->context)
		return;
	if (array && !array->parent) {
		array->next = forget->list;
		forget->list = array;
	}
	obs_handles_remove(&forget->session->arrays,
		atomic_load_explicit(&handle->id, memory_order_relaxed), NULL);
}

void obs_arrays_forget(struct obs_session *session, struct obs_context *context)
{
	struct forget forget = { .session = session, .context = context };

	obs_handles_each(&session->arrays, forget_one, &forget);
	while (forget.list) {
		struct obs_array *array = forget.list, *part;

		forget.list = array->next;
		while ((part = array->parts) != NULL) {
			array->parts = part->next;
			array_free(part);
		}
		array_free(array);
	}
}
