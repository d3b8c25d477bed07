/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/vmm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "front/front.h"
#include "protocol/obd_locals.h"
#include "softdevice/address.h"
#include "softdevice/bitmap.h"
#include "softdevice/context.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/device.h"
#include "softdevice/mapping.h"
#include "softdevice/sched.h"
#include "softdevice/vmm_inside.h"

#define KIND_PHYSICAL 0x40 /* kind of the ids; greater than all of enum obf_kind */

struct reservation {
	uint64_t base, size;
	struct reservation *next; /* in order of addresses */
};

static struct {
	pthread_mutex_t lock;
	struct reservation *reservations;
	struct obd_mapping *mappings;
	struct obd_mapping *spare; /* never returned to malloc, because look-ups take no lock */
} vmm = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct ob_ids handles = OB_IDS_INIT(KIND_PHYSICAL, OBD_PHYSICAL_MAX);

/* ---- the devices' files; callers hold the lock ---- */

bool obd_file_size_allowed(uint64_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur) {
		errno = EFBIG;
		return false;
	}
	return true;
}

static bool backing_open(struct obd_device *device)
{
	uint64_t units = device->total / OBD_UNIT;

	if (device->backing >= 0)
		return true;
	device->backing_map = calloc(OBD_BITMAP_WORDS(units), sizeof *device->backing_map);
	if (!device->backing_map)
		return false;
	device->backing = memfd_create("outboard-softdevice", MFD_CLOEXEC);
	if (device->backing >= 0 && obd_file_size_allowed(device->total) &&
		ftruncate(device->backing, (off_t)device->total) == 0)
		return true;
	ob_error("cannot create the file that holds the software device's memory (memfd_create: "
		 "%s): cuMemCreate fails. Raise the limits on address space and file size "
		 "(ulimit -v, -f)",
		strerror(errno));
	if (device->backing >= 0)
		close(device->backing);
	device->backing = -1;
	free(device->backing_map);
	return false;
}

/*
 * Allocates a contiguous piece of the device's file. The caller has charged `size` to the device,
 * so the file has enough free bytes, but they may not be contiguous. In that case returns
 * UINT64_MAX.
 */
static uint64_t backing_take(struct obd_device *device, uint64_t size)
{
	uint64_t n = size / OBD_UNIT;
	uint64_t first = obd_bitmap_find(device->backing_map, 0, device->total / OBD_UNIT, n);

	if (first == OBD_BITMAP_NONE)
		return UINT64_MAX;
	obd_bitmap_set(device->backing_map, first, n, true);
	return first * OBD_UNIT;
}

static void backing_give(struct obd_device *device, uint64_t offset, uint64_t size)
{
	obd_bitmap_set(device->backing_map, offset / OBD_UNIT, size / OBD_UNIT, false);
}

static void physical_unref(struct obd_physical *physical)
{
	struct obd_device *device = physical->device;

	if (--physical->refs > 0)
		return;
	if (physical->fd >= 0) {
		close(physical->fd);
		if (!physical->imported)
			obd_device_credit(device, physical->size);
		free(physical);
		return;
	}
	fallocate(device->backing, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)physical->offset, (off_t)physical->size);
	backing_give(device, physical->offset, physical->size);
	obd_device_credit(device, physical->size);
	free(physical);
}

/* ---- reservations ---- */

static uint64_t gap_after(const struct reservation *r)
{
	uint64_t from = r ? r->base + r->size : obd_window.base;
	const struct reservation *next = r ? r->next : vmm.reservations;

	return (next ? next->base : obd_window.half) - from;
}

/*
 * Finds the gap that contains [wanted, wanted + size). *ret_after is the reservation before it
 * (NULL: the gap at the start of the window). False: the range is taken or out of bounds.
 */
static bool place_wanted(uint64_t wanted, uint64_t size, struct reservation **ret_after)
{
	struct reservation *after = NULL;

	if (wanted < obd_window.base || wanted >= obd_window.half ||
		size > obd_window.half - wanted)
		return false;
	for (struct reservation *r = vmm.reservations; r && r->base <= wanted; r = r->next)
		after = r;
	if (after && after->base + after->size > wanted)
		return false;
	*ret_after = after;
	return wanted + size <=
		(after ? after->base + after->size : obd_window.base) + gap_after(after);
}

/*
 * Chooses the highest free address, so that the low addresses stay free for programs that request
 * specific ones.
 */
static uint64_t place_any(uint64_t size, uint64_t align, struct reservation **ret_after)
{
	struct reservation *after = NULL, *r = NULL;
	uint64_t best = 0;

	do {
		uint64_t from = r ? r->base + r->size : obd_window.base, gap = gap_after(r);
		uint64_t at = gap >= size ? (from + gap - size) & ~(align - 1) : 0;

		if (at >= from && at > best) {
			best = at;
			after = r;
		}
		r = r ? r->next : vmm.reservations;
	} while (r);
	*ret_after = after;
	return best;
}

CUresult obd_vmm_reserve(struct obf_reservation *front, uint64_t align, uint64_t wanted)
{
	struct reservation *r = calloc(1, sizeof *r), *after;
	uint64_t base;

	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&vmm.lock);
	base = wanted && place_wanted(wanted, front->size, &after)
		? wanted
		: place_any(front->size, align, &after);
	if (base) {
		r->base = base;
		r->size = front->size;
		r->next = after ? after->next : vmm.reservations;
		*(after ? &after->next : &vmm.reservations) = r;
	}
	pthread_mutex_unlock(&vmm.lock);
	if (!base) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	front->base = base;
	front->backend = r;
	return CUDA_SUCCESS;
}

void obd_vmm_unreserve(const struct obf_reservation *front)
{
	struct reservation *r = front->backend, **link;

	pthread_mutex_lock(&vmm.lock);
	for (link = &vmm.reservations; *link != r; link = &(*link)->next)
		;
	*link = r->next;
	pthread_mutex_unlock(&vmm.lock);
	free(r);
}

/* ---- memory ---- */

static CUresult prop_check(const CUmemAllocationProp *prop, struct obd_device **ret)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
		prop->location.type == CU_MEM_LOCATION_TYPE_INVALID)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		(prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
			prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (prop->location.id < 0 || prop->location.id >= obf_device_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = &obd_devices[prop->location.id];
	return CUDA_SUCCESS;
}

CUresult obd_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct obd_physical *physical;
	struct obd_device *device;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	if (!handle || size == 0 || size % OBD_UNIT || flags)
		return CUDA_ERROR_INVALID_VALUE;
	result = prop_check(prop, &device);
	if (result)
		return result;
	if (!obd_device_charge(device, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical = calloc(1, sizeof *physical);
	if (physical) {
		*physical = (struct obd_physical){ .device = device,
			.prop = *prop,
			.offset = UINT64_MAX,
			.size = size,
			.fd = -1,
			.refs = 1 };
		pthread_mutex_lock(&vmm.lock);
		if (prop->requestedHandleTypes) {
			if (obd_physical_file(physical))
				physical->offset = 0;
		} else if (backing_open(device)) {
			physical->offset = backing_take(device, size);
		}
		if (physical->offset != UINT64_MAX) {
			*handle = ob_ids_add(&handles, physical);
			if (*handle) {
				pthread_mutex_unlock(&vmm.lock);
				return CUDA_SUCCESS;
			}
			if (physical->fd < 0)
				backing_give(device, physical->offset, size);
		}
		pthread_mutex_unlock(&vmm.lock);
		if (physical->fd >= 0)
			close(physical->fd);
		free(physical);
	}
	obd_device_credit(device, size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obd_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct obd_physical *physical;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	pthread_mutex_lock(&vmm.lock);
	physical = ob_ids_remove(&handles, handle);
	if (physical)
		physical_unref(physical);
	pthread_mutex_unlock(&vmm.lock);
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int obd_physical_dup(CUmemGenericAllocationHandle handle, bool *ret_known)
{
	const struct obd_physical *physical;
	int fd = -1;

	pthread_mutex_lock(&vmm.lock);
	physical = ob_ids_get(&handles, handle);
	*ret_known = physical && physical->fd >= 0;
	if (*ret_known)
		fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&vmm.lock);
	return fd;
}

CUmemGenericAllocationHandle obd_physical_enter(struct obd_physical *physical)
{
	uint64_t id;

	pthread_mutex_lock(&vmm.lock);
	id = ob_ids_add(&handles, physical);
	pthread_mutex_unlock(&vmm.lock);
	return id;
}

CUmemGenericAllocationHandle obd_physical_retain(uint64_t addr)
{
	struct obd_mapping *m;
	uint64_t id = 0;

	pthread_mutex_lock(&vmm.lock);
	for (m = vmm.mappings; m && addr - m->span.base >= m->span.size; m = m->next)
		;
	if (m)
		id = ob_ids_add(&handles, m->physical);
	if (id)
		m->physical->refs++;
	pthread_mutex_unlock(&vmm.lock);
	return id;
}

CUresult obd_cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	const struct obd_physical *physical;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm.lock);
	physical = ob_ids_get(&handles, handle);
	if (physical)
		*prop = physical->prop;
	pthread_mutex_unlock(&vmm.lock);
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult obd_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	struct obd_device *device;
	CUresult result = obd_ctx_none();

	if (!result &&
		(!granularity ||
			(option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
				option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = prop_check(prop, &device);
	if (!result)
		*granularity = OBD_UNIT;
	return result;
}

/* ---- mappings ---- */

static struct obd_mapping *mapping_new(void)
{
	struct obd_mapping *m = vmm.spare;

	if (m)
		vmm.spare = m->next;
	else
		m = calloc(1, sizeof *m);
	for (unsigned i = 0; m && i < OBD_DEVICE_MAX; i++)
		atomic_store_explicit(&m->access[i], 0, memory_order_relaxed);
	return m;
}

static void mapping_free(struct obd_mapping *m)
{
	m->next = vmm.spare;
	vmm.spare = m;
}

static void mapping_enter(struct obd_mapping *m)
{
	struct obd_mapping **link = &vmm.mappings;

	while (*link && (*link)->span.base < m->span.base)
		link = &(*link)->next;
	m->next = *link;
	*link = m;
	obd_window_mark(m->span.base, m->span.size, &m->span);
}

CUresult obd_vmm_map(uint64_t addr, uint64_t size, uint64_t offset,
	CUmemGenericAllocationHandle handle, int *ret_device)
{
	struct obd_physical *physical;
	struct obd_mapping *m = NULL;
	CUresult result = CUDA_SUCCESS;

	obd_fault_install(); /* the memory may be unmapped while a copy uses it */
	pthread_mutex_lock(&vmm.lock);
	physical = ob_ids_get(&handles, handle);
	if (!physical || !ob_span_inside(offset, size, physical->size)) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (!(m = mapping_new())) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (mmap((void *)addr, size, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
			   physical->fd >= 0 ? physical->fd : physical->device->backing,
			   (off_t)(physical->offset + offset)) == MAP_FAILED) {
		mapping_free(m);
		result = CUDA_ERROR_MAP_FAILED;
	} else {
		m->span = (struct obd_span){ .kind = OBD_SPAN_MAPPING, .base = addr, .size = size };
		m->physical = physical;
		physical->refs++;
		mapping_enter(m);
		*ret_device = (int)physical->device->ordinal;
	}
	pthread_mutex_unlock(&vmm.lock);
	return result;
}

/*
 * Finds mappings that together cover exactly [base, base + size). Returns the link to the first
 * one; NULL: there are none. Called with the lock held.
 */
static struct obd_mapping **mappings_exact(uint64_t base, uint64_t size)
{
	struct obd_mapping **first = &vmm.mappings, *m;
	uint64_t at = base;

	while (*first && (*first)->span.base < base)
		first = &(*first)->next;
	for (m = *first; m && m->span.base == at && at < base + size; m = m->next)
		at += m->span.size;
	return size && at == base + size ? first : NULL;
}

CUresult obd_vmm_unmap(uint64_t addr, uint64_t size)
{
	struct obd_mapping **link, *m;
	CUresult result = CUDA_SUCCESS;

	obd_sched_copies_wait();
	pthread_mutex_lock(&vmm.lock);
	link = mappings_exact(addr, size);
	assert(link); /* checked by the front end */
	obd_window_mark(addr, size, NULL);
	if (mmap((void *)addr, size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
		for (m = *link; m && m->span.base < addr + size; m = m->next)
			obd_window_mark(m->span.base, m->span.size, &m->span);
		result = CUDA_ERROR_UNMAP_FAILED;
	}
	while (result == CUDA_SUCCESS && (m = *link) && m->span.base < addr + size) {
		*link = m->next;
		physical_unref(m->physical);
		mapping_free(m);
	}
	pthread_mutex_unlock(&vmm.lock);
	return result;
}

static int protection_of(const struct obd_mapping *m)
{
	unsigned all = 0;

	for (unsigned i = 0; i < OBD_DEVICE_MAX; i++)
		all |= atomic_load_explicit(&m->access[i], memory_order_relaxed);
	return (all & 1 ? PROT_READ : 0) | (all & 2 ? PROT_WRITE : 0);
}

static CUresult place_check(const CUmemLocation *location)
{
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	return location->id >= 0 && location->id < obf_device_count() ? CUDA_SUCCESS
								      : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult access_check(const CUmemAccessDesc *desc)
{
	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	return place_check(&desc->location);
}

CUresult obd_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	struct obd_mapping **link, *m;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	if (!desc || count == 0 || count > OBD_DEVICE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++)
		result = access_check(&desc[i]);
	if (result)
		return result;
	pthread_mutex_lock(&vmm.lock);
	link = mappings_exact(ptr, size);
	for (m = link ? *link : NULL; m && m->span.base < ptr + size; m = m->next) {
		for (size_t i = 0; i < count; i++)
			atomic_store_explicit(&m->access[desc[i].location.id],
				(uint8_t)desc[i].flags, memory_order_relaxed);
		if (mprotect((void *)m->span.base, m->span.size, protection_of(m)) != 0)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&vmm.lock);
	return link ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult obd_cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct obd_address at;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	result = flags && location ? place_check(location) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	at = obd_address_classify(ptr, 1);
	if (at.kind != OBD_ADDRESS_MAPPED && at.kind != OBD_ADDRESS_NO_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = atomic_load_explicit(&at.mapping->access[location->id], memory_order_relaxed);
	return CUDA_SUCCESS;
}
