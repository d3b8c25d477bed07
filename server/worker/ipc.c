/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/ipc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "protocol/obs_driver.h"
#include "server/layers/imports.h"
#include "server/layers/quota.h"
#include "server/worker/ask.h"

/* An exported allocation. */
struct range {
	uint64_t addr, size, id[2], offset, span;
};

/* An allocation of another session that is mapped here. */
struct opened {
	uint64_t addr;
	uint32_t n;
	uint64_t *sizes; /* of its mappings */
};

static struct {
	struct obs_session *session; /* NULL: it shares nothing */
	pthread_mutex_t lists;       /* all below */
	struct range *ranges;
	_Atomic uint32_t n_ranges;
	struct opened *opened;
	uint32_t n_opened;
} ipc = { .lists = PTHREAD_MUTEX_INITIALIZER };

/* What the session has exported apart from ranges. */
static struct {
	/* all below; taken last, also under the lock of the session's memory */
	pthread_mutex_t lock;
	_Atomic uint32_t n;
	struct {
		enum obs_ipc_kind kind;
		uint64_t name, id[2];
	} list[OBS_IPC_EXPORTS_MAX];
} exports = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool obs_ipc_offered(const struct obs_session *session)
{
	const struct obp_welcome *welcome = &session->welcome->welcome;

	if (session->channel < 0 || !welcome->vmm || session->lib.null)
		return false;
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		if (!welcome->devices[i].attr
				[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED])
			return false;
	return true;
}

static void memory_ended(CUmemGenericAllocationHandle handle)
{
	obs_ipc_ended(OBS_IPC_MEMORY, handle);
}

void obs_ipc_start(struct obs_session *session)
{
	obs_quota_handle_gone = memory_ended;
	obs_ask_start(session->channel);
	ipc.session = session;
	session->memory.shares = true;
	session->memory.unshared = obs_ask_drop;
}

/* ---- the end of what was exported ---- */

CUresult obs_ipc_exported(enum obs_ipc_kind kind, uint64_t name, const uint64_t id[2])
{
	uint32_t n;

	pthread_mutex_lock(&exports.lock);
	n = exports.n;
	if (n < OBS_IPC_EXPORTS_MAX) {
		exports.list[n].kind = kind;
		exports.list[n].name = name;
		memcpy(exports.list[n].id, id, sizeof exports.list[n].id);
		exports.n = n + 1;
	}
	pthread_mutex_unlock(&exports.lock);
	if (n < OBS_IPC_EXPORTS_MAX)
		return CUDA_SUCCESS;
	obs_ask_drop(id);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Takes one export of the object from the list. */
static bool export_take(enum obs_ipc_kind kind, uint64_t name, uint64_t ret_id[2])
{
	uint32_t i = 0;
	bool found;

	pthread_mutex_lock(&exports.lock);
	while (i < exports.n && (exports.list[i].kind != kind || exports.list[i].name != name))
		i++;
	found = i < exports.n;
	if (found) {
		memcpy(ret_id, exports.list[i].id, sizeof exports.list[i].id);
		exports.list[i] = exports.list[exports.n - 1];
		exports.n--;
	}
	pthread_mutex_unlock(&exports.lock);
	return found;
}

void obs_ipc_ended(enum obs_ipc_kind kind, uint64_t name)
{
	uint64_t id[2];

	if (ob_likely(atomic_load_explicit(&exports.n, memory_order_relaxed) == 0))
		return;
	while (export_take(kind, name, id))
		obs_ask_drop(id);
}

/* ---- memory of the driver ---- */

CUresult obs_ipc_memory(CUmemGenericAllocationHandle handle, uint64_t bytes, uint64_t ret_id[2])
{
	struct obs_ipc request = { .op = OBS_IPC_PUT, .kind = OBS_IPC_MEMORY, .size = bytes };
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_INVALID };
	CUresult result;
	int fd = -1;

	if (!ipc.session)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = ipc.session->drv->cuMemGetAllocationPropertiesFromHandle(&prop, handle);
	if (result == CUDA_SUCCESS)
		result = ipc.session->drv->cuMemExportToShareableHandle(
			&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (result != CUDA_SUCCESS)
		return result;
	request.device = (uint32_t)prop.location.id;
	result = obs_ask(&request, CUDA_ERROR_INVALID_VALUE, fd, NULL);
	close(fd);
	memcpy(ret_id, request.id, sizeof request.id);
	return result;
}

CUresult obs_ipc_fetch(
	const uint64_t id[2], uint64_t *ret_ticket, uint64_t *ret_bytes, uint32_t *ret_device)
{
	struct obs_ipc request = {
		.op = OBS_IPC_GET, .kind = OBS_IPC_MEMORY, .id = { id[0], id[1] }
	};
	int fd = -1;
	CUresult result = obs_ask(&request, CUDA_ERROR_INVALID_VALUE, -1, &fd);

	if (result == CUDA_SUCCESS && fd < 0)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		*ret_ticket = obs_imports_put(fd, request.size);
		*ret_bytes = request.size;
		*ret_device = request.device;
		fd = -1;
		result = *ret_ticket ? CUDA_SUCCESS : obs_quota_refused("imported memory");
	}
	obs_handoff_drop(&fd);
	return result;
}

/* ---- exported allocations ---- */

/* The mappings of an allocation. */
struct parts {
	struct obs_ipc_part *list;
	uint32_t n;
	uint64_t span;
};

static CUresult part_add(void *user, struct obs_chunk *chunk)
{
	struct parts *parts = user;
	CUresult result = CUDA_SUCCESS;

	if (!chunk->shareable)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (parts->n == OBS_IPC_PARTS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!(chunk->share[0] | chunk->share[1]))
		result = obs_ipc_memory(chunk->handle, chunk->size, chunk->share);
	if (result != CUDA_SUCCESS) {
		memset(chunk->share, 0, sizeof chunk->share);
		return result;
	}
	parts->list[parts->n++] = (struct obs_ipc_part){ .id = { chunk->share[0], chunk->share[1] },
		.size = chunk->size };
	parts->span += chunk->size;
	return CUDA_SUCCESS;
}

/* Registers the list of mappings, as a file that nobody can change. */
static CUresult parts_put(const struct parts *parts, struct range *range)
{
	struct obs_ipc request = { .op = OBS_IPC_PUT, .kind = OBS_IPC_RANGE, .size = parts->span };
	OB_CLEANUP(ob_closep)
	int fd = memfd_create("outboard-range", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t bytes = parts->n * sizeof *parts->list;
	CUresult result;

	if (fd < 0 || write(fd, parts->list, bytes) != (ssize_t)bytes ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obs_ask(&request, CUDA_ERROR_INVALID_VALUE, fd, NULL);
	memcpy(range->id, request.id, sizeof range->id);
	range->span = parts->span;
	return result;
}

/* Under the lock of the lists; n_ranges: not found. */
static uint32_t range_at(uint64_t addr)
{
	uint32_t i = 0;

	while (i < ipc.n_ranges && ipc.ranges[i].addr != addr)
		i++;
	return i;
}

static CUresult range_export(uint64_t addr, uint64_t size, struct range *ret)
{
	struct parts parts = { .n = 0 };
	uint64_t first = 0;
	CUresult result;

	if (ipc.n_ranges == OBS_IPC_RANGES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!ipc.ranges)
		ipc.ranges = calloc(OBS_IPC_RANGES_MAX, sizeof *ipc.ranges);
	parts.list = calloc(OBS_IPC_PARTS_MAX, sizeof *parts.list);
	result = ipc.ranges && parts.list
		? obs_memory_chunks(&ipc.session->memory, addr, size, part_add, &parts, &first)
		: CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (struct range){ .addr = addr, .size = size, .offset = addr - first };
	if (result == CUDA_SUCCESS)
		result = parts_put(&parts, ret);
	free(parts.list);
	if (result == CUDA_SUCCESS)
		ipc.ranges[ipc.n_ranges++] = *ret;
	return result;
}

/* A pool may have given the memory out again with another size: the old export ends. */
static CUresult range_replace(uint32_t at, uint64_t addr, uint64_t size, struct range *ret)
{
	if (at < ipc.n_ranges) {
		obs_ask_drop(ipc.ranges[at].id);
		ipc.ranges[at] = ipc.ranges[--ipc.n_ranges];
	}
	return range_export(addr, size, ret);
}

CUresult obs_ipc_range(
	uint64_t addr, uint64_t size, uint64_t ret_id[2], uint64_t *ret_offset, uint64_t *ret_span)
{
	CUresult result = CUDA_SUCCESS;
	struct range range;
	uint32_t at;

	if (!ipc.session || !ipc.session->memory.vmm)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&ipc.lists);
	at = range_at(addr);
	if (at < ipc.n_ranges && ipc.ranges[at].size == size)
		range = ipc.ranges[at];
	else
		result = range_replace(at, addr, size, &range);
	pthread_mutex_unlock(&ipc.lists);
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(ret_id, range.id, sizeof range.id);
	*ret_offset = range.offset;
	*ret_span = range.span;
	return CUDA_SUCCESS;
}

void obs_ipc_range_freed(uint64_t addr)
{
	uint64_t id[2] = { 0, 0 };
	uint32_t at;

	if (ob_likely(atomic_load_explicit(&ipc.n_ranges, memory_order_relaxed) == 0))
		return;
	pthread_mutex_lock(&ipc.lists);
	at = range_at(addr);
	if (at < ipc.n_ranges) {
		memcpy(id, ipc.ranges[at].id, sizeof id);
		ipc.ranges[at] = ipc.ranges[--ipc.n_ranges];
	}
	pthread_mutex_unlock(&ipc.lists);
	if (id[0] | id[1])
		obs_ask_drop(id);
}

/* ---- allocations of other sessions ---- */

static void parts_unmap(uint64_t addr, const uint64_t *sizes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		ipc.session->drv->cuMemUnmap(addr, sizes[i]);
		addr += sizes[i];
	}
}

/* Maps one piece at addr. The mapping keeps the memory. */
static CUresult part_map(const struct obs_ipc_part *part, uint64_t addr, uint32_t *ret_device)
{
	const struct obs_driver *drv = ipc.session->drv;
	CUmemGenericAllocationHandle handle = 0;
	CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	uint64_t ticket, bytes;
	CUresult result = obs_ipc_fetch(part->id, &ticket, &bytes, ret_device);

	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	if (result != CUDA_SUCCESS || bytes != part->size ||
		*ret_device >= ipc.session->memory.n_devices)
		return CUDA_ERROR_INVALID_HANDLE;
	result = drv->cuMemImportFromShareableHandle(
		&handle, (void *)(uintptr_t)ticket, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (result != CUDA_SUCCESS)
		return result;
	access.location.id = (int)*ret_device;
	result = drv->cuMemMap(addr, part->size, 0, handle, 0);
	drv->cuMemRelease(handle);
	if (result != CUDA_SUCCESS)
		return result;
	result = drv->cuMemSetAccess(addr, part->size, &access, 1);
	if (result != CUDA_SUCCESS)
		drv->cuMemUnmap(addr, part->size);
	return result;
}

/* Reads the list of mappings, which another session has written. NULL: it is not usable. */
static struct obs_ipc_part *parts_read(int fd, uint64_t span, uint32_t *ret_n)
{
	struct obs_ipc_part *list;
	uint64_t sum = 0;
	struct stat stat;
	size_t bytes;

	if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) || stat.st_size <= 0 ||
		stat.st_size % (off_t)sizeof *list ||
		stat.st_size / (off_t)sizeof *list > (off_t)OBS_IPC_PARTS_MAX)
		return NULL;
	bytes = (size_t)stat.st_size;
	list = malloc(bytes);
	if (list && pread(fd, list, bytes, 0) != (ssize_t)bytes) {
		free(list);
		return NULL;
	}
	*ret_n = (uint32_t)(bytes / sizeof *list);
	for (uint32_t i = 0; list && i < *ret_n; i++)
		if (list[i].size == 0 || list[i].size % OBS_MEMORY_ALIGN ||
			ob_add_overflows(sum, list[i].size, &sum))
			sum = UINT64_MAX;
	if (list && sum == span)
		return list;
	free(list);
	return NULL;
}

/* Maps the pieces and enters them in the list; under the lock of the lists. */
static CUresult parts_map(
	const struct obs_ipc_part *list, uint32_t n, uint64_t addr, uint32_t *ret_device)
{
	struct opened opened = { .addr = addr, .sizes = calloc(n, sizeof *opened.sizes) };
	CUresult result = opened.sizes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t at = addr;

	for (; result == CUDA_SUCCESS && opened.n < n; opened.n++) {
		result = part_map(&list[opened.n], at, ret_device);
		if (result != CUDA_SUCCESS)
			break;
		opened.sizes[opened.n] = list[opened.n].size;
		at += list[opened.n].size;
	}
	if (result == CUDA_SUCCESS) {
		ipc.opened[ipc.n_opened++] = opened;
		return result;
	}
	parts_unmap(addr, opened.sizes, opened.n);
	free(opened.sizes);
	return result;
}

CUresult obs_ipc_map(const uint64_t id[2], uint64_t addr, uint64_t span, uint32_t *ret_device)
{
	struct obs_ipc request = {
		.op = OBS_IPC_GET, .kind = OBS_IPC_RANGE, .id = { id[0], id[1] }
	};
	OB_CLEANUP(ob_freep) struct obs_ipc_part *list = NULL;
	OB_CLEANUP(ob_closep) int fd = -1;
	uint32_t n = 0;
	CUresult result;

	if (!ipc.session || !ipc.session->memory.vmm)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (addr % OBS_MEMORY_ALIGN || span == 0 ||
		!obs_memory_check(&ipc.session->memory, addr, span))
		return CUDA_ERROR_INVALID_VALUE;
	result = obs_ask(&request, CUDA_ERROR_INVALID_HANDLE, -1, &fd);
	if (result == CUDA_SUCCESS && request.own)
		result = CUDA_ERROR_INVALID_CONTEXT; /* as CUDA answers the exporting process */
	if (result != CUDA_SUCCESS)
		return result;
	list = fd >= 0 ? parts_read(fd, span, &n) : NULL;
	if (!list)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&ipc.lists);
	if (!ipc.opened)
		ipc.opened = calloc(OBS_IPC_OPEN_MAX, sizeof *ipc.opened);
	result = ipc.opened && ipc.n_opened < OBS_IPC_OPEN_MAX
		? parts_map(list, n, addr, ret_device)
		: CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&ipc.lists);
	return result;
}

CUresult obs_ipc_unmap(uint64_t addr)
{
	struct opened opened = { .n = 0 };
	uint32_t i = 0;

	pthread_mutex_lock(&ipc.lists);
	while (i < ipc.n_opened && ipc.opened[i].addr != addr)
		i++;
	if (i < ipc.n_opened) {
		opened = ipc.opened[i];
		ipc.opened[i] = ipc.opened[--ipc.n_opened];
	}
	pthread_mutex_unlock(&ipc.lists);
	if (!opened.n)
		return CUDA_ERROR_INVALID_VALUE;
	parts_unmap(addr, opened.sizes, opened.n);
	free(opened.sizes);
	return CUDA_SUCCESS;
}
