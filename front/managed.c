/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Managed memory: device memory that the program accesses too. The backend keeps both sides equal
 * (shared_alloc in front/backend.h). Devices report no CONCURRENT_MANAGED_ACCESS; advice and
 * prefetches are accepted all the same, because many programs make these calls without asking.
 */
#include <string.h>

#include "front/advice.h"
#include "front/captured.h"
#include "front/backend.h"
#include "front/memory.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

#define BATCH_MAX      (1u << 20) /* ranges of one batch */
#define ATTRIBUTES_MAX 64u

CUresult obf_cuMemAllocManaged(CUdeviceptr *ret, size_t size, unsigned flags)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t addr;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_capture_unsafe();
	if (result == CUDA_SUCCESS)
		result = obf_memory_share(ctx, size, OBF_SHARING_MANAGED, flags, &addr);
	if (result == CUDA_SUCCESS)
		*ret = addr;
	return obf_ctx_result(ctx, result);
}

/* The allocation that contains the whole range. */
static CUresult managed_find(uint64_t addr, uint64_t size, struct obf_mem *ret)
{
	struct obf_place place = obf_mem_classify(addr, size, ret);

	return place.kind == OBF_PLACE_DEVICE && ret->sharing == OBF_SHARING_MANAGED && size > 0 &&
			size <= place.left
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

static CUresult location_check(const CUmemLocation *location)
{
	switch ((int)location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return obf_device_valid(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return location->id >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The location that the calls before CUDA 12 name by a device number. */
static CUmemLocation location_of(CUdevice device)
{
	return (CUmemLocation){
		.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
						: CU_MEM_LOCATION_TYPE_DEVICE,
		.id = device == CU_DEVICE_CPU ? 0 : device,
	};
}

/* ---- advice ---- */

struct change {
	CUmem_advise advice;
	CUmemLocation location;
};

static void accessed_by(struct obf_advice *advice, const CUmemLocation *location, bool set)
{
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		advice->accessed_by_host = set;
	else if (set)
		advice->accessed_by |= 1ull << location->id;
	else
		advice->accessed_by &= ~(1ull << location->id);
}

static void advice_apply(void *user, struct obf_advice *advice)
{
	const struct change *change = user;

	switch (change->advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		advice->read_mostly = change->advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		advice->preferred = change->location;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		advice->preferred = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_INVALID };
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		accessed_by(
			advice, &change->location, change->advice == CU_MEM_ADVISE_SET_ACCESSED_BY);
		break;
	}
}

static CUresult advice_check(const struct change *change)
{
	switch ((int)change->advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		return CUDA_SUCCESS; /* the location is ignored */
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		return location_check(&change->location);
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		if (change->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
			change->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
			return CUDA_ERROR_INVALID_DEVICE;
		return location_check(&change->location);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult obf_cuMemAdvise_v2(
	CUdeviceptr addr, size_t size, CUmem_advise advice, CUmemLocation location)
{
	struct change change = { advice, location };
	CUresult result = obf_ready();
	struct obf_mem mem;

	if (result == CUDA_SUCCESS)
		result = managed_find(addr, size, &mem);
	if (result == CUDA_SUCCESS)
		result = advice_check(&change);
	if (result != CUDA_SUCCESS)
		return result;
	return obf_advice_change(addr, size, advice_apply, &change) ? CUDA_SUCCESS
								    : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obf_cuMemAdvise(CUdeviceptr addr, size_t size, CUmem_advise advice, CUdevice device)
{
	return obf_cuMemAdvise_v2(addr, size, advice, location_of(device));
}

/* ---- prefetch and discard ---- */

/* These calls cannot be captured. */
static CUresult stream_take(CUstream handle, struct obf_stream **ret)
{
	CUresult result = obf_stream_enter(handle, ret);

	return result == CUDA_SUCCESS && ob_unlikely((*ret)->capture != NULL)
		? obf_capture_refuse(*ret)
		: result;
}

static void prefetch_note(void *user, struct obf_advice *advice)
{
	advice->prefetch = *(const CUmemLocation *)user;
}

static CUresult prefetch(
	struct obf_stream *stream, CUdeviceptr addr, size_t size, CUmemLocation location)
{
	bool to_host = location.type != CU_MEM_LOCATION_TYPE_DEVICE;
	CUresult result = CUDA_SUCCESS;

	if (obf_process.backend->shared_move)
		result = obf_process.backend->shared_move(stream, addr, size, to_host);
	if (result == CUDA_SUCCESS && !obf_advice_change(addr, size, prefetch_note, &location))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return obf_ctx_result(stream->ctx, result);
}

CUresult obf_cuMemPrefetchAsync_v2(
	CUdeviceptr addr, size_t size, CUmemLocation location, unsigned flags, CUstream handle)
{
	struct obf_stream *stream;
	CUresult result = stream_take(handle, &stream);
	struct obf_mem mem;

	if (result == CUDA_SUCCESS)
		result = flags ? CUDA_ERROR_INVALID_VALUE : managed_find(addr, size, &mem);
	if (result == CUDA_SUCCESS)
		result = location_check(&location);
	return result == CUDA_SUCCESS ? prefetch(stream, addr, size, location) : result;
}

CUresult obf_cuMemPrefetchAsync(CUdeviceptr addr, size_t size, CUdevice device, CUstream stream)
{
	return obf_cuMemPrefetchAsync_v2(addr, size, location_of(device), 0, stream);
}

/* A batch: ranges, and locations each of which applies from one range on. */
struct batch {
	const CUdeviceptr *addrs;
	const size_t *sizes;
	size_t n;
	const CUmemLocation *locations;
	const size_t *firsts;
	size_t n_locations;
};

static CUresult ranges_check(const struct batch *batch)
{
	struct obf_mem mem;
	CUresult result = CUDA_SUCCESS;

	if (!batch->n || batch->n > BATCH_MAX || !batch->addrs || !batch->sizes)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < batch->n && result == CUDA_SUCCESS; i++)
		result = managed_find(batch->addrs[i], batch->sizes[i], &mem);
	return result;
}

static CUresult locations_check(const struct batch *batch)
{
	CUresult result = CUDA_SUCCESS;

	if (!batch->locations || !batch->firsts || !batch->n_locations ||
		batch->n_locations > batch->n || batch->firsts[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < batch->n_locations && result == CUDA_SUCCESS; i++) {
		if ((i > 0 && batch->firsts[i] <= batch->firsts[i - 1]) ||
			batch->firsts[i] >= batch->n)
			return CUDA_ERROR_INVALID_VALUE;
		result = location_check(&batch->locations[i]);
	}
	return result;
}

/* CUDA accepts a batch in any stream except the legacy stream. */
static CUresult batch_enter(CUstream handle, unsigned long long flags, struct obf_stream **ret)
{
	CUresult result = stream_take(handle, ret);

	if (result == CUDA_SUCCESS && ((*ret)->legacy || flags))
		return CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult obf_cuMemPrefetchBatchAsync(CUdeviceptr *addrs, size_t *sizes, size_t n,
	CUmemLocation *locations, size_t *firsts, size_t n_locations, unsigned long long flags,
	CUstream handle)
{
	struct batch batch = { addrs, sizes, n, locations, firsts, n_locations };
	struct obf_stream *stream;
	CUresult result = batch_enter(handle, flags, &stream);

	if (result == CUDA_SUCCESS)
		result = ranges_check(&batch);
	if (result == CUDA_SUCCESS)
		result = locations_check(&batch);
	for (size_t i = 0, at = 0; i < n && result == CUDA_SUCCESS; i++) {
		at += at + 1 < n_locations && firsts[at + 1] == i;
		result = prefetch(stream, addrs[i], sizes[i], locations[at]);
	}
	return result;
}

/* Reading discarded memory gives undefined bytes. Here they stay, which needs no work. */
CUresult obf_cuMemDiscardBatchAsync(
	CUdeviceptr *addrs, size_t *sizes, size_t n, unsigned long long flags, CUstream handle)
{
	struct batch batch = { .addrs = addrs, .sizes = sizes, .n = n };
	struct obf_stream *stream;
	CUresult result = batch_enter(handle, flags, &stream);

	return result == CUDA_SUCCESS ? ranges_check(&batch) : result;
}

CUresult obf_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *addrs, size_t *sizes, size_t n,
	CUmemLocation *locations, size_t *firsts, size_t n_locations, unsigned long long flags,
	CUstream stream)
{
	return obf_cuMemPrefetchBatchAsync(
		addrs, sizes, n, locations, firsts, n_locations, flags, stream);
}

/* ---- attributes of ranges ---- */

/* What all parts of a range have in common. */
struct common {
	bool seen, preferred_differs, prefetch_differs;
	struct obf_advice advice;
};

static bool same_place(const CUmemLocation *a, const CUmemLocation *b)
{
	return a->type == b->type && a->id == b->id;
}

static void common_see(void *user, const struct obf_advice *advice)
{
	struct common *common = user;

	if (!common->seen) {
		common->advice = *advice;
		common->seen = true;
		return;
	}
	common->advice.read_mostly &= advice->read_mostly;
	common->advice.accessed_by_host &= advice->accessed_by_host;
	common->advice.accessed_by &= advice->accessed_by;
	common->preferred_differs |= !same_place(&common->advice.preferred, &advice->preferred);
	common->prefetch_differs |= !same_place(&common->advice.prefetch, &advice->prefetch);
}

/* As the attributes from before CUDA 12 name it. */
static int device_number(const CUmemLocation *location)
{
	switch ((int)location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return location->id;
	case CU_MEM_LOCATION_TYPE_HOST:
		return CU_DEVICE_CPU;
	default:
		return CU_DEVICE_INVALID;
	}
}

static int location_type(const CUmemLocation *location)
{
	return (int)location->type;
}

static int location_id(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_DEVICE ||
			location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA
		? location->id
		: CU_DEVICE_INVALID;
}

/* Writes the devices of the set, as many as there is room for. */
static void accessed_by_list(const struct obf_advice *advice, int *ret, size_t capacity)
{
	size_t n = 0;

	if (advice->accessed_by_host && n < capacity)
		ret[n++] = CU_DEVICE_CPU;
	for (int device = 0; device < OBF_DEVICE_MAX && n < capacity; device++)
		if (advice->accessed_by >> device & 1)
			ret[n++] = device;
	while (n < capacity)
		ret[n++] = CU_DEVICE_INVALID;
}

static CUresult attribute_check(void *data, size_t size, CUmem_range_attribute attr)
{
	if (!data || attr < CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ||
		attr > CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return size && size % sizeof(int) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return size == sizeof(int) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void attribute_get(
	void *data, size_t size, CUmem_range_attribute attr, const struct common *common)
{
	static const CUmemLocation none = { .type = CU_MEM_LOCATION_TYPE_INVALID };
	const struct obf_advice *advice = &common->advice;
	const CUmemLocation *preferred = common->preferred_differs ? &none : &advice->preferred,
			    *prefetched = common->prefetch_differs ? &none : &advice->prefetch;
	int *ret = data;

	switch (attr) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*ret = advice->read_mostly;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*ret = device_number(preferred);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		accessed_by_list(advice, ret, size / sizeof *ret);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*ret = device_number(prefetched);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*ret = location_type(preferred);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*ret = location_id(preferred);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*ret = location_type(prefetched);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*ret = location_id(prefetched);
		break;
	}
}

CUresult obf_cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attrs,
	size_t n, CUdeviceptr addr, size_t size)
{
	struct common common = { .seen = false };
	CUresult result = obf_ready();
	struct obf_mem mem;

	if (result != CUDA_SUCCESS)
		return result;
	if (!data || !sizes || !attrs || n == 0 || n > ATTRIBUTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = attribute_check(data[i], sizes[i], attrs[i]);
	if (result == CUDA_SUCCESS)
		result = managed_find(addr, size, &mem);
	if (result != CUDA_SUCCESS)
		return result;
	obf_advice_see(addr, size, common_see, &common);
	for (size_t i = 0; i < n; i++)
		attribute_get(data[i], sizes[i], attrs[i], &common);
	return CUDA_SUCCESS;
}

CUresult obf_cuMemRangeGetAttribute(
	void *data, size_t size, CUmem_range_attribute attr, CUdeviceptr addr, size_t count)
{
	return obf_cuMemRangeGetAttributes(&data, &size, &attr, 1, addr, count);
}

/* ---- which work may access it ---- */

CUresult obf_cuStreamAttachMemAsync(
	CUstream handle, CUdeviceptr addr, size_t length, unsigned flags)
{
	struct obf_stream *stream;
	CUresult result = stream_take(handle, &stream);
	struct obf_mem mem;

	if (result != CUDA_SUCCESS)
		return result;
	if ((flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
		    flags != CU_MEM_ATTACH_SINGLE) ||
		(flags == CU_MEM_ATTACH_SINGLE && stream->legacy) ||
		managed_find(addr, 1, &mem) != CUDA_SUCCESS || mem.base != addr ||
		(length != 0 && length != mem.size))
		return CUDA_ERROR_INVALID_VALUE;
	/* A variable of a module is always attached to all streams. */
	if (!obf_process.backend->shared_attach || mem.is_global)
		return CUDA_SUCCESS;
	return obf_ctx_result(stream->ctx, obf_process.backend->shared_attach(stream, &mem, flags));
}
