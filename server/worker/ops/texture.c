/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Texture and surface objects. An entry of their tables has the driver's value in place of a pointer. */
#include <string.h>

#include "base/check.h"
#include "server/worker/lane.h"
#include "server/worker/ops/array.h"
#include "server/worker/ops/box.h"
#include "server/worker/ops/ops.h"

/* False: the memory is not the session's, or the numbers make no sense. */
static bool linear_get(
	struct obs_exec *x, const struct obp_texture_create_req *req, CUDA_RESOURCE_DESC *ret)
{
	const struct box box = { req->addr, 0, 0, req->width, 1, 1 };

	ret->res.linear.devPtr = req->addr;
	ret->res.linear.format = (CUarray_format)req->format;
	ret->res.linear.numChannels = req->channels;
	ret->res.linear.sizeInBytes = req->width;
	return req->width && box_inside(x, &box);
}

static bool pitch_get(
	struct obs_exec *x, const struct obp_texture_create_req *req, CUDA_RESOURCE_DESC *ret)
{
	uint64_t element = ob_array_element((CUarray_format)req->format, req->channels);
	struct box box = { req->addr, req->pitch, 0, 0, req->height, 1 };

	ret->res.pitch2D.devPtr = req->addr;
	ret->res.pitch2D.format = (CUarray_format)req->format;
	ret->res.pitch2D.numChannels = req->channels;
	ret->res.pitch2D.width = req->width;
	ret->res.pitch2D.height = req->height;
	ret->res.pitch2D.pitchInBytes = req->pitch;
	return element && req->height && !ob_mul_overflows(req->width, element, &box.width) &&
		box.width && box_inside(x, &box);
}

/* False: told. */
static bool resource_get(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_texture_create_req *req, CUDA_RESOURCE_DESC *ret)
{
	struct obs_array *array = NULL;
	bool ok = false;

	*ret = (CUDA_RESOURCE_DESC){ .resType = (CUresourcetype)req->type };
	if (req->type <= CU_RESOURCE_TYPE_MIPMAPPED_ARRAY &&
		!obs_array_get(x, rec, req->array, &array))
		return false;
	switch (req->type) {
	case CU_RESOURCE_TYPE_ARRAY:
		ret->res.array.hArray = array->driver;
		ok = array->driver && array->context == x->context;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		ret->res.mipmap.hMipmappedArray = array->mipmap;
		ok = array->mipmap && array->context == x->context;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		ok = linear_get(x, req, ret);
		break;
	case CU_RESOURCE_TYPE_PITCH2D:
		ok = pitch_get(x, req, ret);
		break;
	default:
		break;
	}
	if (!ok)
		obs_reply(x, rec, CUDA_ERROR_INVALID_VALUE, NULL, 0);
	return ok;
}

static CUDA_TEXTURE_DESC sampling_of(const struct obp_texture_create_req *req)
{
	CUDA_TEXTURE_DESC sampling = { .filterMode = (CUfilter_mode)req->filter,
		.flags = req->flags,
		.maxAnisotropy = req->anisotropy,
		.mipmapFilterMode = (CUfilter_mode)req->mip_filter,
		.mipmapLevelBias = req->mip_bias,
		.minMipmapLevelClamp = req->mip_min,
		.maxMipmapLevelClamp = req->mip_max };

	for (int i = 0; i < 3; i++)
		sampling.addressMode[i] = (CUaddress_mode)req->address[i];
	memcpy(sampling.borderColor, req->border, sizeof sampling.borderColor);
	return sampling;
}

static CUDA_RESOURCE_VIEW_DESC view_of(const struct obp_texture_create_req *req)
{
	return (CUDA_RESOURCE_VIEW_DESC){ .format = (CUresourceViewFormat)req->view_format,
		.width = req->view_extent[0],
		.height = req->view_extent[1],
		.depth = req->view_extent[2],
		.firstMipmapLevel = req->view_first_level,
		.lastMipmapLevel = req->view_last_level,
		.firstLayer = req->view_first_layer,
		.lastLayer = req->view_last_layer };
}

/* Enters the driver's value under the id, which is vacant. */
static void value_put(struct obs_exec *x, const struct obp_record *rec, struct obs_handles *table,
	uint64_t id, uint64_t value)
{
	const struct obs_handle handle = { .driver = (void *)(uintptr_t)value,
		.context = x->context };

	if (!obs_handles_put(table, id, &handle))
		obs_violation(x, rec, "there is no memory for its new handle");
}

void obs_op_texture_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_texture_create_req *req)
{
	const CUDA_TEXTURE_DESC sampling = sampling_of(req);
	const CUDA_RESOURCE_VIEW_DESC view = view_of(req);
	struct obp_texture_create_rep rep = { 0 };
	CUresult result = obs_handle_room(x);
	CUDA_RESOURCE_DESC resource;
	CUtexObject value = 0;

	if (!obs_handles_vacant(&x->session->textures, req->texture))
		obs_violation(x, rec, "the texture's id is in use or out of range");
	if (!resource_get(x, rec, req, &resource))
		return;
	if (result == CUDA_SUCCESS)
		result = x->drv->cuTexObjectCreate(
			&value, &resource, &sampling, req->has_view ? &view : NULL);
	if (result == CUDA_SUCCESS)
		value_put(x, rec, &x->session->textures, req->texture, value);
	rep.value = value;
	obs_reply(x, rec, result, &rep, sizeof rep);
}

void obs_op_surface_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_surface_create_req *req)
{
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY };
	struct obp_surface_create_rep rep = { 0 };
	CUresult result = obs_handle_room(x);
	struct obs_array *array;
	CUsurfObject value = 0;

	if (!obs_handles_vacant(&x->session->surfaces, req->surface))
		obs_violation(x, rec, "the surface's id is in use or out of range");
	if (!obs_array_get(x, rec, req->array, &array))
		return;
	if (!array->driver || array->context != x->context)
		result = CUDA_ERROR_INVALID_VALUE;
	resource.res.array.hArray = array->driver;
	if (result == CUDA_SUCCESS)
		result = x->drv->cuSurfObjectCreate(&value, &resource);
	if (result == CUDA_SUCCESS)
		value_put(x, rec, &x->session->surfaces, req->surface, value);
	rep.value = value;
	obs_reply(x, rec, result, &rep, sizeof rep);
}

/* The driver's value of an id that ends here, in its context. False: there is nothing to be done. */
static bool value_take(struct obs_exec *x, struct obs_handles *table, uint64_t id,
	uint64_t *ret_value, CUresult *ret_result)
{
	struct obs_handle handle;

	/* Unknown: it ended with its context, and the client's record was already on its way. */
	if (!obs_handles_remove(table, id, &handle) || !handle.driver)
		return false;
	*ret_value = (uintptr_t)handle.driver;
	*ret_result = obs_context_enter(x, handle.context);
	return true;
}

void obs_op_texture_destroy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_texture_destroy_req *req)
{
	uint64_t value;
	CUresult result;

	if (!value_take(x, &x->session->textures, req->texture, &value, &result))
		return;
	if (result == CUDA_SUCCESS)
		result = x->drv->cuTexObjectDestroy(value);
	obs_async_result(x, rec, result);
}

void obs_op_surface_destroy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_surface_destroy_req *req)
{
	uint64_t value;
	CUresult result;

	if (!value_take(x, &x->session->surfaces, req->surface, &value, &result))
		return;
	if (result == CUDA_SUCCESS)
		result = x->drv->cuSurfObjectDestroy(value);
	obs_async_result(x, rec, result);
}
