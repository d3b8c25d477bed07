/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <string.h>

#include "client-shim/cuda/array.h"
#include "client-shim/session/log.h"
#include "protocol/obc_calls.h"

/* The part of a request that names what is read. */
static void resource_put(const struct obf_texture *texture, struct obp_texture_create_req *req)
{
	const CUDA_RESOURCE_DESC *resource = &texture->resource;

	req->type = (uint32_t)resource->resType;
	if (texture->array) {
		req->array = texture->array->handle;
	} else if (resource->resType == CU_RESOURCE_TYPE_LINEAR) {
		req->addr = resource->res.linear.devPtr;
		req->format = (uint32_t)resource->res.linear.format;
		req->channels = resource->res.linear.numChannels;
		req->width = resource->res.linear.sizeInBytes;
	} else {
		req->addr = resource->res.pitch2D.devPtr;
		req->format = (uint32_t)resource->res.pitch2D.format;
		req->channels = resource->res.pitch2D.numChannels;
		req->width = resource->res.pitch2D.width;
		req->height = resource->res.pitch2D.height;
		req->pitch = resource->res.pitch2D.pitchInBytes;
	}
}

static void sampling_put(const CUDA_TEXTURE_DESC *sampling, struct obp_texture_create_req *req)
{
	for (int i = 0; i < 3; i++)
		req->address[i] = (uint32_t)sampling->addressMode[i];
	req->filter = (uint32_t)sampling->filterMode;
	req->flags = sampling->flags;
	req->anisotropy = sampling->maxAnisotropy;
	req->mip_filter = (uint32_t)sampling->mipmapFilterMode;
	req->mip_bias = sampling->mipmapLevelBias;
	req->mip_min = sampling->minMipmapLevelClamp;
	req->mip_max = sampling->maxMipmapLevelClamp;
	memcpy(req->border, sampling->borderColor, sizeof req->border);
}

static void view_put(const CUDA_RESOURCE_VIEW_DESC *view, struct obp_texture_create_req *req)
{
	req->has_view = 1;
	req->view_format = (uint32_t)view->format;
	req->view_extent[0] = view->width;
	req->view_extent[1] = view->height;
	req->view_extent[2] = view->depth;
	req->view_first_level = view->firstMipmapLevel;
	req->view_last_level = view->lastMipmapLevel;
	req->view_first_layer = view->firstLayer;
	req->view_last_layer = view->lastLayer;
}

static CUresult texture_make(struct obf_texture *texture)
{
	struct obp_texture_create_req req = { .texture = texture->handle }, *slot_req;
	struct obp_texture_create_rep rep;
	struct obc_slot slot;
	uint32_t got = 0;
	CUresult result;

	resource_put(texture, &req);
	sampling_put(&texture->sampling, &req);
	if (texture->has_view)
		view_put(&texture->view, &req);
	slot_req = obc_log_begin(&slot, OBP_OP_TEXTURE_CREATE, sizeof req);
	if (!slot_req)
		return obc_log_error();
	memcpy(slot_req, &req, sizeof req);
	result = obc_log_call(&slot, &rep, sizeof rep, &got);
	if (got != sizeof rep)
		return result ? result : CUDA_ERROR_UNKNOWN;
	texture->value = rep.value;
	return result;
}

CUresult obc_texture_create(struct obf_texture *texture)
{
	return texture->surface ? obc_call_op_surface_create(
					  texture->handle, texture->array->handle, &texture->value)
				: texture_make(texture);
}

CUresult obc_texture_destroy(struct obf_texture *texture, bool ctx_ended)
{
	/* The server ends the objects of a context with the context. */
	if (ctx_ended)
		return CUDA_SUCCESS;
	return texture->surface ? obc_call_op_surface_destroy(texture->handle)
				: obc_call_op_texture_destroy(texture->handle);
}
