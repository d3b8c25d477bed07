/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/texture.h"

#include "front/private.h"
#include "protocol/obf_calls.h"

#define BUCKETS 1024u

static struct ob_ids texture_ids = OB_IDS_INIT(OBF_KIND_TEXTURE, OBF_TEXTURE_MAX);
static struct obf_objects textures = { .lock = PTHREAD_MUTEX_INITIALIZER, .chunk = 64 };

/* All objects by their values. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct obf_texture *buckets[BUCKETS];

/* ---- the table of values ---- */

static struct obf_texture **bucket_of(uint64_t value)
{
	return &buckets[(value ^ value >> 20 ^ value >> 40) % BUCKETS];
}

/* The link to the object; it is NULL if there is none. Under the lock. */
static struct obf_texture **link_find(const struct obf_ctx *ctx, uint64_t value, bool surface)
{
	struct obf_texture **link = bucket_of(value);

	while (*link &&
		((*link)->value != value || (*link)->ctx != ctx || (*link)->surface != surface))
		link = &(*link)->next;
	return link;
}

static void table_add(struct obf_texture *texture)
{
	struct obf_texture **bucket = bucket_of(texture->value);

	pthread_mutex_lock(&lock);
	texture->next = *bucket;
	*bucket = texture;
	pthread_mutex_unlock(&lock);
}

static struct obf_texture *table_take(const struct obf_ctx *ctx, uint64_t value, bool surface)
{
	struct obf_texture **link, *texture;

	pthread_mutex_lock(&lock);
	link = link_find(ctx, value, surface);
	texture = *link;
	if (texture)
		*link = texture->next;
	pthread_mutex_unlock(&lock);
	return texture;
}

/* ---- objects ---- */

/* `made` has the descriptors and the array. */
static CUresult texture_new(
	struct obf_ctx *ctx, const struct obf_texture *made, uint64_t *ret_value)
{
	struct obf_texture *texture = obf_object_take(&textures, sizeof *texture, ctx);
	struct obf_object object;
	CUresult result;

	if (!texture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object = texture->object;
	*texture = *made;
	texture->object = object;
	texture->handle = ob_ids_add(&texture_ids, texture);
	result = texture->handle ? obf_process.backend->texture_create(texture)
				 : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		table_add(texture);
		*ret_value = texture->value;
		return CUDA_SUCCESS;
	}
	if (texture->handle)
		ob_ids_remove(&texture_ids, texture->handle);
	obf_object_give(&textures, &texture->object);
	return result;
}

/* It is not in the table of values any more. */
static CUresult texture_close(struct obf_texture *texture, bool ctx_ended)
{
	uint64_t handle = texture->handle;
	CUresult result;

	ob_ids_end(&texture_ids, handle);
	result = obf_process.backend->texture_destroy(texture, ctx_ended);
	ob_ids_recycle(&texture_ids, handle);
	obf_object_give(&textures, &texture->object);
	return result;
}

void obf_textures_end(const struct obf_ctx *ctx)
{
	struct obf_texture *list = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct obf_texture **link = &buckets[i], *texture;
			(texture = *link) != NULL;) {
			if (texture->ctx != ctx) {
				link = &texture->next;
				continue;
			}
			*link = texture->next;
			texture->next = list;
			list = texture;
		}
	pthread_mutex_unlock(&lock);
	while (list) {
		struct obf_texture *texture = list;

		list = texture->next;
		texture_close(texture, true);
	}
}

/* ---- calls ---- */

CUresult obf_cuTexObjectCreate(CUtexObject *ret, const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *sampling, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct obf_texture made = { .has_view = view != NULL };
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t value = 0;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !resource || !sampling)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_texture_resource_check(ctx, resource, &made.array);
	if (result == CUDA_SUCCESS)
		result = obf_texture_sampling_check(sampling, made.array);
	if (result == CUDA_SUCCESS && view)
		result = obf_texture_view_check(view, made.array);
	if (result != CUDA_SUCCESS)
		return result;
	made.resource = *resource;
	if (resource->resType == CU_RESOURCE_TYPE_LINEAR) {
		made.named = resource->res.linear.sizeInBytes;
		obf_texture_linear_clip(&made.resource);
	}
	made.sampling = *sampling;
	if (view)
		made.view = *view;
	result = texture_new(ctx, &made, &value);
	if (result == CUDA_SUCCESS)
		*ret = value;
	return obf_ctx_result(ctx, result);
}

CUresult obf_cuSurfObjectCreate(CUsurfObject *ret, const CUDA_RESOURCE_DESC *resource)
{
	struct obf_texture made = { .surface = true };
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t value = 0;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !resource)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_surface_resource_check(ctx, resource, &made.array);
	if (result != CUDA_SUCCESS)
		return result;
	made.resource = *resource;
	result = texture_new(ctx, &made, &value);
	if (result == CUDA_SUCCESS)
		*ret = value;
	return obf_ctx_result(ctx, result);
}

/*
 * Kernels that are under way may use the object: the backend ends it after them, as it does with
 * memory.
 */
static CUresult value_destroy(uint64_t value, bool surface)
{
	struct obf_texture *texture;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	/* not documented, but NVIDIA's sample volumeFiltering destroys no surface */
	if (surface && !value)
		return CUDA_SUCCESS;
	texture = table_take(ctx, value, surface);
	return texture ? obf_ctx_result(ctx, texture_close(texture, false))
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuTexObjectDestroy(CUtexObject value)
{
	return value_destroy(value, false);
}

CUresult obf_cuSurfObjectDestroy(CUsurfObject value)
{
	return value_destroy(value, true);
}

/* Copies the object of the value to *ret. */
static CUresult value_get(
	uint64_t value, bool surface, const void *program_ret, struct obf_texture *ret)
{
	const struct obf_texture *texture;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!program_ret)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	texture = *link_find(ctx, value, surface);
	if (texture)
		*ret = *texture;
	pthread_mutex_unlock(&lock);
	return texture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret, CUtexObject value)
{
	struct obf_texture texture;
	CUresult result = value_get(value, false, ret, &texture);

	if (result == CUDA_SUCCESS)
		*ret = texture.resource;
	if (result == CUDA_SUCCESS && ret->resType == CU_RESOURCE_TYPE_LINEAR)
		ret->res.linear.sizeInBytes = texture.named;
	return result;
}

CUresult obf_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *ret, CUtexObject value)
{
	struct obf_texture texture;
	CUresult result = value_get(value, false, ret, &texture);

	if (result == CUDA_SUCCESS)
		*ret = texture.sampling;
	return result;
}

CUresult obf_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *ret, CUtexObject value)
{
	struct obf_texture texture;
	CUresult result = value_get(value, false, ret, &texture);

	if (result != CUDA_SUCCESS)
		return result;
	if (!texture.has_view)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = texture.view;
	return CUDA_SUCCESS;
}

CUresult obf_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret, CUsurfObject value)
{
	struct obf_texture texture;
	CUresult result = value_get(value, true, ret, &texture);

	if (result == CUDA_SUCCESS)
		*ret = texture.resource;
	return result;
}
