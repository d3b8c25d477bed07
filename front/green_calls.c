/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuGreenCtx*, cuDevResource* and cuDevSmResourceSplitByCount. A CUdevResource says in its padding
 * which part of which split it is. Only the backend can make the split, so a green context is
 * created from that description.
 */
#include <string.h>

#include "base/ids.h"
#include "front/green.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

#define MAGIC       0x4f424452u /* "OBDR" */
#define INDEX_WHOLE UINT32_MAX
#define INDEX_REST  (UINT32_MAX - 1)
#define DESCS_MAX   1024u /* descriptors of a process: CUDA has no call that destroys one */
#define SPLIT_FLAGS                                                   \
	((unsigned)(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | \
		CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE))

/* In CUdevResource._internal_padding, which is not aligned. */
struct inside {
	uint64_t base, serial; /* green context; number of the split */
	uint32_t magic, device, groups, flags, least, index;
	struct obf_sms sms;
};

_Static_assert(sizeof(struct inside) <= sizeof(((CUdevResource *)0)->_internal_padding), "it fits");

static struct ob_ids desc_ids = OB_IDS_INIT(OBF_KIND_RESOURCES, DESCS_MAX);
static pthread_mutex_t desc_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obf_sm_share descs[DESCS_MAX]; /* under desc_lock until published by an id */
static unsigned n_descs;
static uint64_t desc_handles[DESCS_MAX];
static _Atomic uint64_t next_serial = 1;

/* ---- resources ---- */

static void resource_fill(CUdevResource *ret, const struct obf_split *split, uint64_t serial,
	uint32_t index, struct obf_sms sms)
{
	struct inside inside = { .magic = MAGIC,
		.base = split->base,
		.serial = serial,
		.device = (uint32_t)split->device,
		.groups = split->groups,
		.flags = split->flags,
		.least = split->least,
		.index = index,
		.sms = sms };

	memset(ret, 0, sizeof *ret);
	memcpy(ret->_internal_padding, &inside, sizeof inside);
	if (!sms.count)
		return; /* of type CU_DEV_RESOURCE_TYPE_INVALID: nothing is left */
	ret->type = CU_DEV_RESOURCE_TYPE_SM;
	ret->sm.smCount = sms.count;
	ret->sm.minSmPartitionSize = sms.least;
	ret->sm.smCoscheduledAlignment = sms.alignment;
}

static CUresult resource_read(const CUdevResource *resource, struct inside *ret)
{
	if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	memcpy(ret, resource->_internal_padding, sizeof *ret);
	return ret->magic == MAGIC && obf_device_valid((CUdevice)ret->device)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

static CUresult backend_split(const struct obf_split *split, struct obf_split_made *ret)
{
	/* The green context that was split may have ended. */
	if (split->base && !obf_green_find((CUgreenCtx)(uintptr_t)split->base))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	return obf_process.backend->green_split ? obf_process.backend->green_split(split, ret)
						: CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult whole_get(
	int device, const struct obf_green *green, CUdevResource *ret, CUdevResourceType type)
{
	struct obf_split split = { .device = device,
		.least = OBF_GREEN_NO_SPLIT,
		.base = green ? (uint64_t)(uintptr_t)green->handle : 0 };
	struct obf_split_made made;
	CUresult result;

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	result = backend_split(&split, &made);
	if (result == CUDA_SUCCESS)
		resource_fill(ret, &split, 0, INDEX_WHOLE, made.whole);
	return result;
}

CUresult obf_cuDeviceGetDevResource(CUdevice device, CUdevResource *ret, CUdevResourceType type)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	return obf_device_valid(device) ? whole_get(device, NULL, ret, type)
					: CUDA_ERROR_INVALID_DEVICE;
}

CUresult obf_cuCtxGetDevResource(CUcontext handle, CUdevResource *ret, CUdevResourceType type)
{
	struct obf_context *context;
	CUresult result = obf_ready();

	if (result == CUDA_SUCCESS)
		result = obf_context_find(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	return whole_get(context->pub.device,
		obf_green_find((CUgreenCtx)(handle ? handle : obf_stack_handle())), ret, type);
}

/* Resolves a green context for a call that needs no current one. */
static CUresult green_enter(CUgreenCtx handle, struct obf_green **ret)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	*ret = obf_green_find(handle);
	if (*ret)
		return obf_ctx_report(&(*ret)->primary->pub);
	return ob_id_kind((uint64_t)(uintptr_t)handle) == OBF_KIND_GREEN
		? CUDA_ERROR_CONTEXT_IS_DESTROYED
		: CUDA_ERROR_INVALID_CONTEXT;
}

CUresult obf_cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *ret, CUdevResourceType type)
{
	struct obf_green *green;
	CUresult result = green_enter(handle, &green);

	return result == CUDA_SUCCESS ? whole_get(green->primary->pub.device, green, ret, type)
				      : result;
}

CUresult obf_cuDevSmResourceSplitByCount(CUdevResource *ret, unsigned *n,
	const CUdevResource *input, CUdevResource *rest, unsigned flags, unsigned least)
{
	struct obf_split_made made;
	struct obf_split split;
	struct inside inside;
	uint64_t serial;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!n || !input || (ret && !*n) || flags & ~SPLIT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	result = resource_read(input, &inside);
	if (result != CUDA_SUCCESS)
		return result;
	/* Parts can be split only as the whole of a green context. */
	if (inside.index != INDEX_WHOLE)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (least > inside.sms.count)
		return CUDA_ERROR_INVALID_VALUE;
	split = (struct obf_split){ .base = inside.base,
		.device = (int)inside.device,
		.groups = ret ? ob_min(*n, OBF_GREEN_GROUPS) : 0,
		.flags = flags,
		.least = least };
	result = backend_split(&split, &made);
	if (result != CUDA_SUCCESS)
		return result;
	serial = atomic_fetch_add(&next_serial, 1);
	for (unsigned i = 0; ret && i < made.groups && i < split.groups; i++)
		resource_fill(&ret[i], &split, serial, i, made.group);
	if (rest && ret)
		resource_fill(rest, &split, serial, INDEX_REST, made.rest);
	/* No more than were written. */
	*n = ret ? ob_min(made.groups, split.groups) : ob_min(made.groups, OBF_GREEN_GROUPS);
	return CUDA_SUCCESS;
}

/* ---- descriptors ---- */

/* Adds a resource to the share. The first one determines the split. */
static CUresult share_add(struct obf_sm_share *share, const struct inside *inside,
	const struct inside *first, bool alone)
{
	uint32_t i = inside->index;

	if (inside->device != first->device || inside->base != first->base ||
		inside->serial != first->serial || (i == INDEX_WHOLE && !alone))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (i == INDEX_REST) {
		if (share->rest)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		share->rest = true;
	} else if (i != INDEX_WHOLE) {
		if (i >= inside->groups || share->chosen[i / 64] & 1ull << i % 64)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		share->chosen[i / 64] |= 1ull << i % 64;
	}
	share->sms.count += inside->sms.count;
	share->sms.least = inside->sms.least;
	share->sms.alignment = inside->sms.alignment;
	return CUDA_SUCCESS;
}

static bool share_equal(const struct obf_sm_share *a, const struct obf_sm_share *b)
{
	return a->split.base == b->split.base && a->split.device == b->split.device &&
		a->split.groups == b->split.groups && a->split.flags == b->split.flags &&
		a->split.least == b->split.least && a->rest == b->rest &&
		memcmp(a->chosen, b->chosen, sizeof a->chosen) == 0;
}

/* Returns the descriptor of a share: an earlier one if there is one. 0: too many. */
static uint64_t desc_of(const struct obf_sm_share *share)
{
	uint64_t handle = 0;

	pthread_mutex_lock(&desc_lock);
	for (unsigned i = 0; i < n_descs && !handle; i++)
		if (share_equal(&descs[i], share))
			handle = desc_handles[i];
	if (!handle && n_descs < DESCS_MAX) {
		descs[n_descs] = *share;
		handle = desc_handles[n_descs] = ob_ids_add(&desc_ids, &descs[n_descs]);
		n_descs += handle != 0;
	}
	pthread_mutex_unlock(&desc_lock);
	return handle;
}

CUresult obf_cuDevResourceGenerateDesc(CUdevResourceDesc *ret, CUdevResource *resources, unsigned n)
{
	struct inside first = { 0 }, inside;
	struct obf_sm_share share;
	uint64_t handle;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !resources || !n || n > OBF_GREEN_GROUPS + 1)
		return CUDA_ERROR_INVALID_VALUE;
	memset(&share, 0, sizeof share); /* with its padding: shares are compared as bytes */
	for (unsigned i = 0; i < n; i++) {
		result = resource_read(&resources[i], &inside);
		if (result == CUDA_SUCCESS && i == 0)
			first = inside;
		if (result == CUDA_SUCCESS)
			result = share_add(&share, &inside, &first, n == 1);
		if (result != CUDA_SUCCESS)
			return result;
	}
	share.split.base = first.base;
	share.split.device = (int)first.device;
	share.split.groups = first.index == INDEX_WHOLE ? 0 : first.groups;
	share.split.flags = first.flags;
	share.split.least = first.least;
	handle = desc_of(&share);
	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (CUdevResourceDesc)(uintptr_t)handle;
	return CUDA_SUCCESS;
}

/* ---- green contexts ---- */

CUresult obf_cuGreenCtxCreate(
	CUgreenCtx *ret, CUdevResourceDesc desc, CUdevice device, unsigned flags)
{
	const struct obf_sm_share *share;
	struct obf_green *green;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!obf_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	share = ob_ids_get(&desc_ids, (uint64_t)(uintptr_t)desc);
	if (!ret || flags != CU_GREEN_CTX_DEFAULT_STREAM || !share || share->split.device != device)
		return CUDA_ERROR_INVALID_VALUE;
	if (share->split.base && !obf_green_find((CUgreenCtx)(uintptr_t)share->split.base))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	result = obf_green_new(share, &green);
	if (result == CUDA_SUCCESS)
		*ret = green->handle;
	return result;
}

CUresult obf_cuGreenCtxDestroy(CUgreenCtx handle)
{
	CUresult result = obf_ready();

	return result == CUDA_SUCCESS ? obf_green_end(handle) : result;
}

CUresult obf_cuCtxFromGreenCtx(CUcontext *ret, CUgreenCtx handle)
{
	struct obf_green *green;
	CUresult result = green_enter(handle, &green);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = obf_green_context(green);
	return CUDA_SUCCESS;
}

CUresult obf_cuGreenCtxStreamCreate(CUstream *ret, CUgreenCtx handle, unsigned flags, int priority)
{
	struct obf_stream *stream;
	struct obf_green *green;
	CUresult result = green_enter(handle, &green);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_stream_new(&green->primary->pub, green, flags, priority, &stream);
	if (result == CUDA_SUCCESS)
		*ret = (CUstream)(uintptr_t)stream->handle;
	return obf_ctx_result(&green->primary->pub, result);
}

CUresult obf_cuGreenCtxGetId(CUgreenCtx handle, unsigned long long *ret)
{
	struct obf_green *green;
	CUresult result = green_enter(handle ? handle : (CUgreenCtx)obf_stack_handle(), &green);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = green->id;
	return CUDA_SUCCESS;
}
