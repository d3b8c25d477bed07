/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/address.h"

#include <stdatomic.h>

#include "front/front.h"
#include "softdevice/alloc.h"
#include "softdevice/chunk.h"
#include "softdevice/mapping.h"
#include "softdevice/window.h"

static struct obd_address outside_classify(uint64_t addr, uint64_t size)
{
	struct obf_place place = obf_mem_classify(addr, size, NULL);
	struct obd_address at = { .kind = OBD_ADDRESS_HOST };

	if (place.kind == OBF_PLACE_PINNED) {
		at.kind = OBD_ADDRESS_PINNED;
		at.left = place.left;
	} else if (place.kind == OBF_PLACE_INVALID) {
		at.kind = OBD_ADDRESS_INVALID;
	}
	return at;
}

static enum obd_address_kind kind_of(enum obd_alloc_kind kind)
{
	switch (kind) {
	case OBD_ALLOC_HEAP:
	case OBD_ALLOC_WORD:
		return OBD_ADDRESS_HEAP;
	case OBD_ALLOC_ARRAY:
		return OBD_ADDRESS_ARRAY;
	default:
		return OBD_ADDRESS_MEMORY;
	}
}

static struct obd_address alloc_classify(struct obd_alloc *alloc, uint64_t addr)
{
	struct obd_address at = { .kind = OBD_ADDRESS_UNUSED };
	uint64_t offset;

	if (!alloc)
		return at;
	offset = addr - alloc->span.base;
	if (offset >= alloc->span.size)
		return at;
	at.kind = kind_of(alloc->kind);
	at.left = alloc->span.size - offset;
	at.alloc = alloc;
	return at;
}

static bool is_accessible(const struct obd_mapping *mapping)
{
	for (unsigned i = 0; i < OBD_DEVICE_MAX; i++)
		if (atomic_load_explicit(&mapping->access[i], memory_order_relaxed))
			return true;
	return false;
}

static struct obd_address mapping_classify(
	struct obd_mapping *mapping, uint64_t addr, uint64_t size)
{
	uint64_t end = mapping->span.base + mapping->span.size;
	struct obd_address at = {
		.kind = OBD_ADDRESS_NO_ACCESS, .left = end - addr, .mapping = mapping
	};
	const struct obd_span *next;

	if (!is_accessible(mapping))
		return at;
	at.kind = OBD_ADDRESS_MAPPED;
	while (at.left < size) {
		next = obd_window_span(end);
		if (!next || next->kind != OBD_SPAN_MAPPING ||
			!is_accessible((const struct obd_mapping *)next))
			break;
		end = next->base + next->size;
		at.left = end - addr;
	}
	return at;
}

struct obd_address obd_address_classify(uint64_t addr, uint64_t size)
{
	struct obd_address at = { .kind = OBD_ADDRESS_UNUSED };
	struct obd_span *span;

	if (!obd_window_holds(addr))
		return outside_classify(addr, size);
	span = obd_window_span(addr);
	if (!span)
		return at;
	switch (span->kind) {
	case OBD_SPAN_CHUNK:
		return alloc_classify(obd_chunk_find((struct obd_chunk *)span, addr), addr);
	case OBD_SPAN_ALLOC:
		return alloc_classify((struct obd_alloc *)span, addr);
	case OBD_SPAN_MAPPING:
		return mapping_classify((struct obd_mapping *)span, addr, size);
	case OBD_SPAN_SCRATCH:
		if (addr - span->base < span->size)
			at = (struct obd_address){ .kind = OBD_ADDRESS_SCRATCH,
				.left = span->size - (addr - span->base),
				.span = span };
		break;
	}
	return at;
}

CUresult obd_address_check(uint64_t addr, uint64_t size)
{
	struct obd_address at;

	if (size == 0)
		return CUDA_SUCCESS;
	at = obd_address_classify(addr, size);
	return (at.kind == OBD_ADDRESS_MEMORY || at.kind == OBD_ADDRESS_MAPPED) && size <= at.left
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

bool obd_address_kernel_may_access(uint64_t addr, uint64_t size)
{
	struct obd_address at = obd_address_classify(addr, size);

	switch (at.kind) {
	case OBD_ADDRESS_MEMORY:
	case OBD_ADDRESS_HEAP:
	case OBD_ADDRESS_SCRATCH:
	case OBD_ADDRESS_MAPPED:
		return size <= at.left;
	default:
		return false;
	}
}

bool obd_address_texture_may_access(uint64_t addr, uint64_t size)
{
	struct obd_address at = obd_address_classify(addr, size);

	return (at.kind == OBD_ADDRESS_ARRAY && size <= at.left) ||
		obd_address_kernel_may_access(addr, size);
}
