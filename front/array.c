/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Arrays, mipmapped arrays, and their parts: objects and calls. The checks are in array_check.c. */
#include "front/array.h"

#include "front/array_check.h"
#include "front/mempool.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

static struct ob_ids array_ids = OB_IDS_INIT(OBF_KIND_ARRAY, OBF_ARRAY_MAX);
static struct obf_objects arrays = { .lock = PTHREAD_MUTEX_INITIALIZER, .chunk = 16 };
static pthread_mutex_t parts_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `parts` of all arrays */

/* ---- objects ---- */

static struct obf_array *array_get(uint64_t handle, bool mipmapped)
{
	struct obf_array *array = ob_ids_get(&array_ids, handle);

	return array && (array->n_levels > 0) == mipmapped ? array : NULL;
}

struct obf_array *obf_array_find(CUarray handle)
{
	return array_get((uintptr_t)handle, false);
}

struct obf_array *obf_mipmap_find(CUmipmappedArray handle)
{
	return array_get((uintptr_t)handle, true);
}

static CUresult array_new(struct obf_ctx *ctx, const CUDA_ARRAY3D_DESCRIPTOR *desc,
	unsigned n_levels, struct obf_array *parent, unsigned part, struct obf_array **ret)
{
	const struct obf_backend *backend = obf_process.backend;
	struct obf_array *array = obf_object_take(&arrays, sizeof *array, ctx);
	CUresult result;

	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->desc = *desc;
	array->element = ob_array_element(desc->Format, desc->NumChannels);
	array->n_levels = n_levels;
	array->parent = parent;
	array->part = part;
	array->handle = ob_ids_add(&array_ids, array);
	if (!array->handle)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		result = parent ? backend->array_part(array) : backend->array_create(array);
	if (result == CUDA_SUCCESS) {
		*ret = array;
		return CUDA_SUCCESS;
	}
	if (array->handle)
		ob_ids_remove(&array_ids, array->handle);
	obf_object_give(&arrays, &array->object);
	return result;
}

/* The handle is not live any more. */
static CUresult array_close(struct obf_array *array, bool ctx_ended)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < OB_ARRAY_LEVELS_MAX; i++)
		if (array->parts[i] && ob_ids_end(&array_ids, array->parts[i]->handle))
			array_close(array->parts[i], ctx_ended);
	result = obf_process.backend->array_destroy(array, ctx_ended);
	ob_ids_recycle(&array_ids, array->handle);
	obf_object_give(&arrays, &array->object);
	return result;
}

struct end {
	const struct obf_ctx *ctx;
	struct obf_object *list;
};

static void end_collect(void *user, uint64_t id, void *value)
{
	struct obf_array *array = value;
	struct end *end = user;

	(void)id;
	if (array->ctx != end->ctx || array->parent)
		return;
	array->object.next = end->list;
	end->list = &array->object;
}

void obf_arrays_end(const struct obf_ctx *ctx)
{
	struct end end = { .ctx = ctx };

	ob_ids_each(&array_ids, end_collect, &end);
	while (end.list) {
		struct obf_array *array = (struct obf_array *)(void *)end.list;

		end.list = array->object.next;
		if (ob_ids_end(&array_ids, array->handle))
			array_close(array, true);
	}
}

/* ---- creation ---- */

static CUresult array_create(struct obf_ctx *ctx, const CUDA_ARRAY3D_DESCRIPTOR *desc,
	unsigned n_levels, uint64_t *ret_handle)
{
	struct obf_array *array;
	CUresult result = obf_array_check(obf_ctx_device(ctx), desc, n_levels > 0);

	if (result == CUDA_SUCCESS)
		result = array_new(ctx, desc, n_levels, NULL, 0, &array);
	/* Memory that pools keep, or that the backend keeps for further allocations, is given back. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		obf_mempools_flush(ctx);
		if (obf_process.backend->mem_trim)
			obf_process.backend->mem_trim(ctx->device);
		result = array_new(ctx, desc, n_levels, NULL, 0, &array);
	}
	if (result == CUDA_SUCCESS)
		*ret_handle = array->handle;
	return obf_ctx_result(ctx, result);
}

CUresult obf_cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t handle = 0;

	if (result == CUDA_SUCCESS && (!ret || !desc))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = array_create(ctx, desc, 0, &handle);
	if (result == CUDA_SUCCESS)
		*ret = (CUarray)(uintptr_t)handle;
	return result;
}

/* The older calls: their descriptors lack layers, and some of the fields. */
#define CREATE(call, type, ...)                                                         \
	CUresult obf_##call(CUarray *ret, const type *desc)                             \
	{                                                                               \
		const CUDA_ARRAY3D_DESCRIPTOR full = { .Width = desc ? desc->Width : 0, \
			.Height = desc ? desc->Height : 0,                              \
			.Format = desc ? desc->Format : 0,                              \
			.NumChannels = desc ? desc->NumChannels : 0,                    \
			__VA_ARGS__ };                                                  \
                                                                                        \
		return obf_cuArray3DCreate_v2(ret, desc ? &full : NULL);                \
	}

CREATE(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, )
CREATE(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, )
CREATE(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, .Depth = desc ? desc->Depth : 0,
	.Flags = desc ? desc->Flags : 0)

CUresult obf_cuMipmappedArrayCreate(
	CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned n_levels)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t handle = 0;

	if (result == CUDA_SUCCESS && (!ret || !desc))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	n_levels = ob_min(ob_max(n_levels, 1u), ob_array_levels_max(desc));
	result = array_create(ctx, desc, n_levels, &handle);
	if (result == CUDA_SUCCESS)
		*ret = (CUmipmappedArray)(uintptr_t)handle;
	return result;
}

/* ---- the end ---- */

static CUresult array_destroy(uint64_t handle, bool mipmapped)
{
	struct obf_array *array;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx), waited;

	if (result != CUDA_SUCCESS)
		return result;
	array = array_get(handle, mipmapped);
	/* Ended before the wait: of two threads that destroy it one gets an error. */
	if (!array || array->parent || !ob_ids_end(&array_ids, handle))
		return CUDA_ERROR_INVALID_HANDLE;
	waited = obf_ctx_settle(array->ctx);
	result = obf_ctx_result(ctx, array_close(array, false));
	return waited != CUDA_SUCCESS ? waited : result;
}

CUresult obf_cuArrayDestroy(CUarray handle)
{
	return array_destroy((uintptr_t)handle, false);
}

CUresult obf_cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
	return array_destroy((uintptr_t)handle, true);
}

/* ---- parts ---- */

static CUresult part_get(
	struct obf_array *array, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned number, CUarray *ret)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&parts_lock);
	if (!array->parts[number])
		result = array_new(array->ctx, desc, 0, array, number, &array->parts[number]);
	if (result == CUDA_SUCCESS)
		*ret = (CUarray)(uintptr_t)array->parts[number]->handle;
	pthread_mutex_unlock(&parts_lock);
	return obf_ctx_result(array->ctx, result);
}

CUresult obf_cuMipmappedArrayGetLevel(CUarray *ret, CUmipmappedArray handle, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	struct obf_array *array;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	array = obf_mipmap_find(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret || level >= array->n_levels)
		return CUDA_ERROR_INVALID_VALUE;
	desc = ob_array_level(&array->desc, level);
	return part_get(array, &desc, level, ret);
}

CUresult obf_cuArrayGetPlane(CUarray *ret, CUarray handle, unsigned plane)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	struct obf_array *array;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	array = obf_array_find(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret || !ob_array_plane(&array->desc, plane, &desc))
		return CUDA_ERROR_INVALID_VALUE;
	return part_get(array, &desc, plane, ret);
}

/* ---- queries ---- */

/* For queries of an array: *ret is the array. */
static CUresult query_enter(
	uint64_t handle, bool mipmapped, const void *ret, struct obf_array **ret_array)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	*ret_array = array_get(handle, mipmapped);
	if (!*ret_array)
		return CUDA_ERROR_INVALID_HANDLE;
	return ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray handle)
{
	struct obf_array *array;
	CUresult result = query_enter((uintptr_t)handle, false, ret, &array);

	if (result == CUDA_SUCCESS)
		*ret = array->desc;
	return result;
}

/* The fields that the three older descriptors have; layers and flags are left out. */
#define GET_DESCRIPTOR(call, type, width_type)                                        \
	CUresult obf_##call(type *ret, CUarray handle)                                \
	{                                                                             \
		struct obf_array *array;                                              \
		CUresult result = query_enter((uintptr_t)handle, false, ret, &array); \
                                                                                      \
		if (result == CUDA_SUCCESS)                                           \
			*ret = (type){ .Width = (width_type)array->desc.Width,        \
				.Height = (width_type)array->desc.Height,             \
				.Format = array->desc.Format,                         \
				.NumChannels = array->desc.NumChannels };             \
		return result;                                                        \
	}

GET_DESCRIPTOR(cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR, size_t)
GET_DESCRIPTOR(cuArrayGetDescriptor, CUDA_ARRAY_DESCRIPTOR_v1, unsigned)

CUresult obf_cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *ret, CUarray handle)
{
	struct obf_array *array;
	CUresult result = query_enter((uintptr_t)handle, false, ret, &array);

	if (result == CUDA_SUCCESS)
		*ret = (CUDA_ARRAY3D_DESCRIPTOR_v1){ .Width = (unsigned)array->desc.Width,
			.Height = (unsigned)array->desc.Height,
			.Depth = (unsigned)array->desc.Depth,
			.Format = array->desc.Format,
			.NumChannels = array->desc.NumChannels,
			.Flags = array->desc.Flags };
	return result;
}

/*
 * The queries of memory to be mapped: CUDA answers them for sparse arrays and for arrays with
 * deferred mapping, of which none can be created here.
 */
static CUresult memory_query(uint64_t handle, bool mipmapped, const void *ret)
{
	struct obf_array *array;
	CUresult result = query_enter(handle, mipmapped, ret, &array);

	return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult obf_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUarray handle)
{
	return memory_query((uintptr_t)handle, false, ret);
}

CUresult obf_cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUmipmappedArray handle)
{
	return memory_query((uintptr_t)handle, true, ret);
}

CUresult obf_cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray handle, CUdevice device)
{
	(void)device;
	return memory_query((uintptr_t)handle, false, ret);
}

CUresult obf_cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUmipmappedArray handle, CUdevice device)
{
	(void)device;
	return memory_query((uintptr_t)handle, true, ret);
}
