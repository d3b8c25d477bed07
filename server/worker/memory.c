/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "protocol/obs_driver.h"
#include "server/layers/quota.h"

void obs_memory_init(
	struct obs_memory *memory, const struct obs_driver *drv, uint32_t n_devices, bool vmm)
{
	*memory = (struct obs_memory){ .drv = drv, .n_devices = n_devices, .vmm = vmm };
	pthread_mutex_init(&memory->lock, NULL);
	obs_slabs_init(&memory->slabs, drv);
}

static bool range_usable(const struct obp_range *range, uint32_t n_devices)
{
	uint64_t end;

	return range->base % OBS_MEMORY_ALIGN == 0 && range->base != 0 &&
		!ob_add_overflows(range->base, range->size, &end) && end <= 1ull << 56 &&
		range->size / n_devices >= OBS_MEMORY_ALIGN;
}

static void slices_cut(struct obs_memory *memory)
{
	uint64_t each = memory->range.size / memory->n_devices & ~(OBS_MEMORY_ALIGN - 1);

	for (uint32_t i = 0; i < memory->n_devices; i++) {
		memory->slices[i].base = memory->range.base + i * each;
		memory->slices[i].size = each;
		memory->slices[i].unit = OBP_MEMORY_UNIT_MAX;
	}
}

void obs_memory_set_total(struct obs_memory *memory, uint32_t device, uint64_t total)
{
	memory->slices[device].unit = obp_memory_unit(total);
}

bool obs_memory_choose(
	struct obs_memory *memory, const struct obp_range *ranges, uint32_t n, bool *ret_ok)
{
	CUdeviceptr p;

	for (uint32_t i = 0; i < n; i++) {
		if (!range_usable(&ranges[i], memory->n_devices))
			continue;
		p = 0;
		if (memory->drv->cuMemAddressReserve(&p, ranges[i].size, OBS_MEMORY_ALIGN,
			    ranges[i].base, 0) != CUDA_SUCCESS)
			continue;
		if (p == ranges[i].base) {
			memory->range = ranges[i];
			memory->reserved = *ret_ok = true;
			slices_cut(memory);
			return true;
		}
		memory->drv->cuMemAddressFree(p, ranges[i].size);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!range_usable(&ranges[i], memory->n_devices))
			continue;
		p = 0;
		if (memory->drv->cuMemAddressReserve(&p, ranges[i].size, OBS_MEMORY_ALIGN, 0, 0) ==
				CUDA_SUCCESS &&
			p) {
			memory->range = (struct obp_range){ .base = p, .size = ranges[i].size };
			memory->reserved = true;
			*ret_ok = false;
			slices_cut(memory);
			return true;
		}
	}
	return false;
}

/* Index of the first chunk that ends after addr. */
static uint32_t chunk_after(const struct obs_slice *slice, uint64_t addr)
{
	uint32_t low = 0, high = slice->n_chunks;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (slice->chunks[middle].base + slice->chunks[middle].size <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Room for one more element in a list of n. Returns the list, which may have moved; NULL: `most` are
 * there already, or no memory.
 */
static void *list_room(void *list, uint32_t n, uint32_t *capacity, uint32_t most, size_t size)
{
	uint32_t wanted = *capacity ? *capacity * 2 : 64;
	void *larger;

	if (n < *capacity)
		return list;
	larger = n < most ? realloc(list, wanted * size) : NULL;
	if (larger)
		*capacity = wanted;
	return larger;
}

static bool chunk_room(struct obs_slice *slice)
{
	void *list = list_room(slice->chunks, slice->n_chunks, &slice->capacity, OBS_CHUNKS_MAX,
		sizeof *slice->chunks);

	if (list)
		slice->chunks = list;
	return list != NULL;
}

/* Creates a chunk's memory, if possible so that other sessions can map it. */
static CUresult chunk_create(
	struct obs_memory *memory, uint64_t size, CUmemAllocationProp *prop, struct obs_chunk *ret)
{
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;

	ret->shareable = memory->shares && memory->n_shareable < OBS_SHAREABLE_MAX;
	if (ret->shareable) {
		prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		result = memory->drv->cuMemCreate(&ret->handle, size, prop, 0);
		if (result == CUDA_SUCCESS)
			memory->n_shareable++;
	}
	/* What the cap forbids is refused, and counted, once. */
	if (result == CUDA_SUCCESS ||
		(ret->shareable && !obs_quota_room((uint32_t)prop->location.id, size)))
		return result;
	ret->shareable = false;
	prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	return memory->drv->cuMemCreate(&ret->handle, size, prop, 0);
}

_Static_assert(OBP_DEVICE_MAX <= 64, "a bit for each device");

static CUresult chunk_open(struct obs_memory *memory, uint64_t base, uint64_t size, uint32_t device)
{
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)device },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	return memory->drv->cuMemSetAccess(base, size, &access, 1);
}

static CUresult chunk_map(
	struct obs_memory *memory, uint32_t device, uint32_t at, uint64_t base, uint64_t size)
{
	const struct obs_driver *drv = memory->drv;
	struct obs_slice *slice = &memory->slices[device];
	CUmemLocation where = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)device };
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = where };
	struct obs_chunk chunk = { .base = base, .size = size, .request = memory->requests };
	CUresult result;

	if (!chunk_room(slice))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = chunk_create(memory, size, &prop, &chunk);
	if (result != CUDA_SUCCESS)
		return result;
	result = drv->cuMemMap(base, size, 0, chunk.handle, 0);
	if (result != CUDA_SUCCESS)
		goto release;
	result = chunk_open(memory, base, size, device);
	for (uint32_t i = 0; i < memory->n_devices && result == CUDA_SUCCESS; i++)
		if (slice->readers & 1ull << i)
			result = chunk_open(memory, base, size, i);
	if (result != CUDA_SUCCESS)
		goto unmap;
	memmove(slice->chunks + at + 1, slice->chunks + at,
		(slice->n_chunks - at) * sizeof *slice->chunks);
	slice->chunks[at] = chunk;
	slice->n_chunks++;
	return CUDA_SUCCESS;

unmap:
	drv->cuMemUnmap(base, size);
release:
	memory->n_shareable -= chunk.shareable;
	drv->cuMemRelease(chunk.handle);
	return result;
}

static void chunk_unmap(struct obs_memory *memory, struct obs_slice *slice, uint32_t at)
{
	struct obs_chunk *chunk = &slice->chunks[at];

	if (chunk->share[0] | chunk->share[1])
		memory->unshared(chunk->share);
	memory->n_shareable -= chunk->shareable;
	memory->drv->cuMemUnmap(chunk->base, chunk->size);
	memory->drv->cuMemRelease(chunk->handle);
	slice->n_chunks--;
	memmove(chunk, chunk + 1, (slice->n_chunks - at) * sizeof *chunk);
}

/* Unmaps the chunks wholly inside [addr, end), of one request or (0) of all. */
static void chunks_drop(struct obs_memory *memory, struct obs_slice *slice, uint64_t addr,
	uint64_t end, uint64_t request)
{
	uint32_t at = chunk_after(slice, addr);

	while (at < slice->n_chunks && slice->chunks[at].base + slice->chunks[at].size <= end) {
		bool inside = slice->chunks[at].base >= addr;

		if (inside && (request == 0 || slice->chunks[at].request == request))
			chunk_unmap(memory, slice, at);
		else
			at++;
	}
}

/* The end of the unit in which addr lies; within the grant units are counted from the base. */
static uint64_t unit_end(const struct obs_slice *slice, uint64_t addr)
{
	uint64_t origin = slice->base;

	if (addr - slice->base >= slice->granted)
		origin += slice->granted;
	return addr + slice->unit - (addr - origin) % slice->unit;
}

/* Maps the holes of [addr, end), page-aligned. */
static CUresult holes_map(struct obs_memory *memory, uint32_t device, uint64_t addr, uint64_t end)
{
	struct obs_slice *slice = &memory->slices[device];
	uint32_t at = chunk_after(slice, addr);
	CUresult result;

	while (addr < end) {
		uint64_t stop = at < slice->n_chunks ? slice->chunks[at].base : end, size;

		if (stop <= addr) { /* already mapped */
			addr = slice->chunks[at].base + slice->chunks[at].size;
			at++;
			continue;
		}
		size = ob_min(ob_min(stop, end), unit_end(slice, addr)) - addr;
		result = chunk_map(memory, device, at, addr, size);
		if (result != CUDA_SUCCESS)
			return result;
		addr += size;
		at++;
	}
	return CUDA_SUCCESS;
}

CUresult obs_memory_grow(struct obs_memory *memory, uint32_t device, uint64_t addr, uint64_t size)
{
	const struct obs_slice *slice;
	uint64_t end;
	CUresult result;

	if (!memory->vmm || device >= memory->n_devices || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	slice = &memory->slices[device];
	if (addr < slice->base || !ob_span_inside(addr - slice->base, size, slice->size))
		return CUDA_ERROR_INVALID_VALUE;
	/* A slice begins and ends on a page boundary, so the widened range stays inside. */
	end = ob_round_up(addr + size, OBS_MEMORY_ALIGN);
	addr &= ~(OBS_MEMORY_ALIGN - 1);
	pthread_mutex_lock(&memory->lock);
	memory->requests++;
	result = holes_map(memory, device, addr, end);
	if (result != CUDA_SUCCESS)
		chunks_drop(memory, &memory->slices[device], addr, end, memory->requests);
	pthread_mutex_unlock(&memory->lock);
	return result;
}

uint64_t obs_memory_grant(struct obs_memory *memory, uint32_t device, uint64_t bytes)
{
	bytes &= ~(OBS_MEMORY_ALIGN - 1);
	bytes = ob_min(bytes, memory->slices[device].size);
	while (bytes >= OBS_MEMORY_ALIGN) {
		if (obs_memory_grow(memory, device, memory->slices[device].base, bytes) ==
			CUDA_SUCCESS) {
			memory->slices[device].granted = bytes;
			return bytes;
		}
		bytes = bytes / 2 & ~(OBS_MEMORY_ALIGN - 1);
	}
	return 0;
}

CUresult obs_memory_chunks(struct obs_memory *memory, uint64_t addr, uint64_t size,
	CUresult (*fn)(void *user, struct obs_chunk *chunk), void *user, uint64_t *ret_first)
{
	int device = obs_memory_device(memory, addr);
	CUresult result = CUDA_SUCCESS;
	struct obs_slice *slice;
	uint64_t end, next = addr;

	if (device < 0 || size == 0 || ob_add_overflows(addr, size, &end))
		return CUDA_ERROR_INVALID_VALUE;
	slice = &memory->slices[device];
	pthread_mutex_lock(&memory->lock);
	for (uint32_t at = chunk_after(slice, addr); result == CUDA_SUCCESS && next < end; at++) {
		struct obs_chunk *chunk = at < slice->n_chunks ? &slice->chunks[at] : NULL;

		if (!chunk || chunk->base > next)
			result = CUDA_ERROR_INVALID_VALUE;
		else
			result = fn(user, chunk);
		if (result == CUDA_SUCCESS && next == addr)
			*ret_first = chunk->base;
		if (result == CUDA_SUCCESS)
			next = chunk->base + chunk->size;
	}
	pthread_mutex_unlock(&memory->lock);
	return result;
}

CUresult obs_memory_trim(struct obs_memory *memory, uint64_t addr, uint64_t size)
{
	int device = obs_memory_device(memory, addr);
	struct obs_slice *slice;

	if (device < 0)
		return CUDA_ERROR_INVALID_VALUE;
	slice = &memory->slices[device];
	if (!ob_span_inside(addr - slice->base, size, slice->size))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory->lock);
	chunks_drop(memory, slice, addr, addr + size, 0);
	pthread_mutex_unlock(&memory->lock);
	return CUDA_SUCCESS;
}

void obs_memory_abandon(struct obs_memory *memory)
{
	for (uint32_t i = 0; i < memory->n_devices; i++) {
		chunks_drop(memory, &memory->slices[i], memory->slices[i].base,
			memory->slices[i].base + memory->slices[i].size, 0);
		memory->slices[i].base = memory->slices[i].size = 0;
	}
	if (memory->reserved)
		memory->drv->cuMemAddressFree(memory->range.base, memory->range.size);
	memory->reserved = memory->vmm = false;
	memory->range = (struct obp_range){ 0 };
}

int obs_memory_device(const struct obs_memory *memory, uint64_t addr)
{
	for (uint32_t i = 0; i < memory->n_devices; i++)
		if (addr - memory->slices[i].base < memory->slices[i].size)
			return (int)i;
	return -1;
}

/* Index of the first extra whose base is above addr. */
static uint32_t extra_after(const struct obs_memory *memory, uint64_t addr)
{
	uint32_t low = 0, high = memory->n_extras;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (memory->extras[middle].base <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool extra_room(struct obs_memory *memory)
{
	void *list = list_room(memory->extras, memory->n_extras, &memory->extras_capacity,
		OBS_EXTRA_MAX, sizeof *memory->extras);

	if (list)
		memory->extras = list;
	return list != NULL;
}

static void extra_drop(struct obs_memory *memory, uint32_t at)
{
	memory->n_extras--;
	memmove(memory->extras + at, memory->extras + at + 1,
		(memory->n_extras - at) * sizeof *memory->extras);
}

bool obs_memory_extra_add(struct obs_memory *memory, uint64_t base, uint64_t size, uint64_t owner)
{
	bool added = false;
	uint32_t at;

	pthread_mutex_lock(&memory->lock);
	at = extra_after(memory, base);
	if (at > 0 && memory->extras[at - 1].base == base &&
		memory->extras[at - 1].owner == owner) {
		memory->extras[at - 1].size = size; /* the same variable was asked for again */
		added = true;
	} else if (extra_room(memory)) {
		memmove(memory->extras + at + 1, memory->extras + at,
			(memory->n_extras - at) * sizeof *memory->extras);
		memory->extras[at] =
			(struct obs_extra){ .base = base, .size = size, .owner = owner };
		memory->n_extras++;
		added = true;
	}
	pthread_mutex_unlock(&memory->lock);
	return added;
}

bool obs_memory_extra_remove(struct obs_memory *memory, uint64_t base, uint64_t owner)
{
	bool removed = false;
	uint32_t at;

	pthread_mutex_lock(&memory->lock);
	at = extra_after(memory, base);
	if (at > 0 && memory->extras[at - 1].base == base &&
		memory->extras[at - 1].owner == owner) {
		extra_drop(memory, at - 1);
		removed = true;
	}
	pthread_mutex_unlock(&memory->lock);
	return removed;
}

void obs_memory_extra_remove_owner(struct obs_memory *memory, uint64_t owner)
{
	pthread_mutex_lock(&memory->lock);
	for (uint32_t i = memory->n_extras; i-- > 0;)
		if (memory->extras[i].owner == owner)
			extra_drop(memory, i);
	pthread_mutex_unlock(&memory->lock);
}

bool obs_memory_check(struct obs_memory *memory, uint64_t addr, uint64_t size)
{
	bool inside;
	uint32_t at;

	if (size == 0)
		return true;
	if (ob_likely(addr - memory->range.base < memory->range.size))
		return ob_span_inside(addr - memory->range.base, size, memory->range.size);
	pthread_mutex_lock(&memory->lock);
	at = extra_after(memory, addr);
	inside = at > 0 &&
		ob_span_inside(
			addr - memory->extras[at - 1].base, size, memory->extras[at - 1].size);
	pthread_mutex_unlock(&memory->lock);
	return inside || obs_slabs_check(&memory->slabs, addr, size);
}

CUresult obs_memory_share(struct obs_memory *memory, uint32_t device, uint32_t reader)
{
	struct obs_slice *slice = &memory->slices[device];
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&memory->lock);
	if (memory->vmm && device != reader && !(slice->readers & 1ull << reader)) {
		for (uint32_t i = 0; i < slice->n_chunks && result == CUDA_SUCCESS; i++)
			result = chunk_open(
				memory, slice->chunks[i].base, slice->chunks[i].size, reader);
		if (result == CUDA_SUCCESS)
			slice->readers |= 1ull << reader;
	}
	pthread_mutex_unlock(&memory->lock);
	return result;
}
