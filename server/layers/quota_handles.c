/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Memory with a handle: it stays until it is neither mapped nor held by its handle. */
#include <unistd.h>

#include "server/layers/imports.h"
#include "server/layers/quota.h"
#include "server/layers/quota_inside.h"

static CUresult mem_create(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	uint32_t device = prop->location.id >= 0 ? (uint32_t)prop->location.id : 0;
	CUresult result = obs_quota_charge(device, size);

	if (result != CUDA_SUCCESS)
		return result;
	result = obs_quota_next.cuMemCreate(handle, size, prop, flags);
	if (result == CUDA_SUCCESS && obs_quota_note(OBS_CHARGE_HANDLE, *handle, size, device))
		return result;
	obs_quota_discharge(device, size);
	if (result != CUDA_SUCCESS)
		return result;
	obs_quota_next.cuMemRelease(*handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult mem_release(CUmemGenericAllocationHandle handle)
{
	CUresult result = obs_quota_next.cuMemRelease(handle);
	struct obs_entry *entry, gone = { .kind = OBS_CHARGE_NONE };

	if (result != CUDA_SUCCESS)
		return result;
	/* Memory stays until it is neither mapped nor held by its handle. */
	pthread_mutex_lock(&obs_quota_lock);
	entry = obs_ledger_find(&obs_quota_ledger, OBS_CHARGE_HANDLE, handle);
	if (entry && entry->further)
		entry->further--;
	else if (entry && entry->mappings)
		entry->released = true;
	else if (entry)
		obs_ledger_take(&obs_quota_ledger, OBS_CHARGE_HANDLE, handle, &gone);
	pthread_mutex_unlock(&obs_quota_lock);
	obs_quota_give_back(&gone);
	return result;
}

uint64_t obs_quota_handle_bytes(CUmemGenericAllocationHandle handle)
{
	const struct obs_entry *entry;
	uint64_t bytes;

	pthread_mutex_lock(&obs_quota_lock);
	entry = obs_ledger_find(&obs_quota_ledger, OBS_CHARGE_HANDLE, handle);
	bytes = entry ? entry->bytes : 0;
	pthread_mutex_unlock(&obs_quota_lock);
	return bytes;
}

/* The driver gave a handle again: it must be released once more. False: it is a new one. */
static bool handle_again(CUmemGenericAllocationHandle handle)
{
	struct obs_entry *entry;

	pthread_mutex_lock(&obs_quota_lock);
	entry = obs_ledger_find(&obs_quota_ledger, OBS_CHARGE_HANDLE, handle);
	if (entry && entry->released)
		entry->released = false;
	else if (entry)
		entry->further++;
	pthread_mutex_unlock(&obs_quota_lock);
	return entry != NULL;
}

static CUresult mem_retain(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult result = obs_quota_next.cuMemRetainAllocationHandle(handle, addr);

	if (result == CUDA_SUCCESS)
		handle_again(*handle);
	return result;
}

static CUresult imported_enter(
	CUresult result, const CUmemGenericAllocationHandle *handle, uint64_t bytes)
{
	struct obs_entry *entry;

	if (result != CUDA_SUCCESS || handle_again(*handle)) {
		obs_imports_discharge(bytes);
		return result;
	}
	if (!obs_quota_note(OBS_CHARGE_HANDLE, *handle, bytes, 0)) {
		obs_imports_discharge(bytes);
		obs_quota_next.cuMemRelease(*handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&obs_quota_lock);
	entry = obs_ledger_find(&obs_quota_ledger, OBS_CHARGE_HANDLE, *handle);
	if (entry)
		entry->imported = true;
	pthread_mutex_unlock(&obs_quota_lock);
	return CUDA_SUCCESS;
}

/* os_handle: a ticket of imports.h. The driver gets the descriptor. */
static CUresult mem_import(
	CUmemGenericAllocationHandle *handle, void *os_handle, CUmemAllocationHandleType type)
{
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;
	uint64_t bytes;
	int fd = obs_imports_take((uint64_t)(uintptr_t)os_handle, &bytes);

	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		result = imported_enter(obs_quota_next.cuMemImportFromShareableHandle(
						handle, (void *)(intptr_t)fd, type),
			handle, bytes);
	else
		obs_imports_discharge(bytes);
	close(fd);
	return result;
}

static CUresult mem_map(CUdeviceptr addr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult result = obs_quota_next.cuMemMap(addr, size, offset, handle, flags);
	struct obs_entry *entry;

	if (result != CUDA_SUCCESS)
		return result;
	if (!obs_quota_note(OBS_CHARGE_MAPPING, addr, size, 0)) {
		obs_quota_next.cuMemUnmap(addr, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&obs_quota_lock);
	obs_ledger_find(&obs_quota_ledger, OBS_CHARGE_MAPPING, addr)->handle = handle;
	entry = obs_ledger_find(&obs_quota_ledger, OBS_CHARGE_HANDLE, handle);
	if (entry)
		entry->mappings++;
	pthread_mutex_unlock(&obs_quota_lock);
	return CUDA_SUCCESS;
}

/* The mapping at addr is gone. Its size; 0: there was none. */
static uint64_t mapping_gone(uint64_t addr)
{
	struct obs_entry mapping, memory = { .kind = OBS_CHARGE_NONE }, *entry;
	bool known;

	pthread_mutex_lock(&obs_quota_lock);
	known = obs_ledger_take(&obs_quota_ledger, OBS_CHARGE_MAPPING, addr, &mapping);
	entry = known ? obs_ledger_find(&obs_quota_ledger, OBS_CHARGE_HANDLE, mapping.handle)
		      : NULL;
	if (entry && entry->mappings && --entry->mappings == 0 && entry->released)
		obs_ledger_take(&obs_quota_ledger, OBS_CHARGE_HANDLE, mapping.handle, &memory);
	pthread_mutex_unlock(&obs_quota_lock);
	if (!known)
		return 0;
	obs_quota_give_back(&mapping);
	obs_quota_give_back(&memory);
	return mapping.bytes;
}

static CUresult mem_unmap(CUdeviceptr addr, size_t size)
{
	CUresult result = obs_quota_next.cuMemUnmap(addr, size);
	uint64_t end = addr + size, bytes = 1;

	/* It ends whole mappings, one or several in a row. */
	while (result == CUDA_SUCCESS && addr < end && bytes) {
		bytes = mapping_gone(addr);
		addr += bytes;
	}
	return result;
}

void obs_quota_handles_wrap(struct obs_driver *table)
{
	table->cuMemCreate = mem_create;
	table->cuMemRelease = mem_release;
	table->cuMemRetainAllocationHandle = mem_retain;
	table->cuMemImportFromShareableHandle = mem_import;
	table->cuMemMap = mem_map;
	table->cuMemUnmap = mem_unmap;
}
