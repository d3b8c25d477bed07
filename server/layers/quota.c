/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/quota.h"

#include <pthread.h>
#include <unistd.h>

#include "base/check.h"
#include "protocol/control.h"
#include "protocol/obs_driver.h"
#include "server/common/reservation_page.h"
#include "server/common/stats_page.h"
#include "server/layers/throttle.h"
#include "server/layers/hold.h"
#include "server/layers/imports.h"
#include "server/layers/keep.h"
#include "server/layers/ledger.h"
#include "server/layers/share.h"

static struct obs_driver next; /* the table inside this layer */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct obs_ledger ledger; /* under lock */
void (*obs_quota_handle_gone)(CUmemGenericAllocationHandle handle);
static uint64_t reserved; /* bytes on each device, for the whole reservation; 0: no limit */

/* ---- charging ---- */

CUresult obs_quota_refused(const char *what)
{
	obs_throttle_refused(what);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Reserves before the driver is called, so that two threads cannot both take the last of it. */
static bool take(_Atomic uint64_t *used, uint64_t cap, uint64_t bytes)
{
	uint64_t now = atomic_load(used);

	do {
		if (cap && (now > cap || bytes > cap - now))
			return false;
	} while (!atomic_compare_exchange_weak(used, &now, now + bytes));
	return true;
}

/*
 * The reservation is charged first and discharged last. A process that is killed between the two
 * leaves the reservation with too much charged, never with too little; the page is cleared when it
 * has no session.
 */
CUresult obs_quota_charge(uint32_t device, uint64_t bytes)
{
	struct obs_reservation_page *all = obs_reservation_page;

	if (device >= OBP_DEVICE_MAX || (all && !take(&all->used[device], reserved, bytes)))
		return obs_quota_refused("device memory");
	if (take(&obs_stats_page->used[device], obs_limits_now.memory, bytes))
		return CUDA_SUCCESS;
	if (all)
		atomic_fetch_sub(&all->used[device], bytes);
	return obs_quota_refused("device memory");
}

static bool fits(const _Atomic uint64_t *used, uint64_t cap, uint64_t bytes)
{
	uint64_t now = obs_stats_page_read(used);

	return !cap || (now <= cap && bytes <= cap - now);
}

bool obs_quota_room(uint32_t device, uint64_t bytes)
{
	return device < OBP_DEVICE_MAX &&
		fits(&obs_stats_page->used[device], obs_limits_now.memory, bytes) &&
		(!obs_reservation_page ||
			fits(&obs_reservation_page->used[device], reserved, bytes));
}

void obs_quota_discharge(uint32_t device, uint64_t bytes)
{
	if (device >= OBP_DEVICE_MAX)
		return;
	atomic_fetch_sub(&obs_stats_page->used[device], bytes);
	if (obs_reservation_page)
		atomic_fetch_sub(&obs_reservation_page->used[device], bytes);
}

void obs_quota_reserve(uint64_t memory)
{
	reserved = memory;
	if (memory)
		obs_limits_now.memory =
			obs_limits_now.memory ? ob_min(obs_limits_now.memory, memory) : memory;
	/* What the session was charged with before it was known to belong to a reservation. */
	for (uint32_t i = 0; obs_reservation_page && i < OBP_DEVICE_MAX; i++)
		atomic_fetch_add(&obs_reservation_page->used[i],
			obs_stats_page_read(&obs_stats_page->used[i]));
}

static void give_back(const struct obs_entry *entry)
{
	if (entry->kind == OBS_CHARGE_NONE)
		return;
	/* First: what others could still map must not be given back. */
	if (entry->kind == OBS_CHARGE_HANDLE && obs_quota_handle_gone)
		obs_quota_handle_gone(entry->name);
	if (entry->kind == OBS_CHARGE_HOST)
		obs_hold_give(OBS_HOLD_PINNED, entry->bytes);
	else if (entry->imported)
		obs_imports_discharge(entry->bytes);
	else if (entry->kind != OBS_CHARGE_MAPPING)
		obs_quota_discharge(entry->device, entry->bytes);
	obs_hold_give(OBS_HOLD_HANDLES, OBS_ALLOCATION_BYTES);
}

/*
 * Enters what the driver has allocated, under its name. False: it cannot be entered, and must be
 * freed again.
 */
static bool note(enum obs_charge kind, uint64_t name, uint64_t bytes, uint32_t device)
{
	const struct obs_entry entry = {
		.name = name, .bytes = bytes, .device = device, .kind = kind
	};
	struct obs_entry old;
	bool noted;

	if (!obs_hold_take(OBS_HOLD_HANDLES, OBS_ALLOCATION_BYTES))
		return false;
	pthread_mutex_lock(&lock);
	noted = obs_ledger_put(&ledger, &entry, &old);
	pthread_mutex_unlock(&lock);
	if (noted)
		give_back(&old);
	else
		obs_hold_give(OBS_HOLD_HANDLES, OBS_ALLOCATION_BYTES);
	return noted;
}

static void forget(enum obs_charge kind, uint64_t name)
{
	struct obs_entry entry;
	bool known;

	pthread_mutex_lock(&lock);
	known = obs_ledger_take(&ledger, kind, name, &entry);
	pthread_mutex_unlock(&lock);
	if (known)
		give_back(&entry);
}

static uint32_t current_device(void)
{
	CUdevice device = 0;

	return next.cuCtxGetDevice(&device) == CUDA_SUCCESS && device >= 0 ? (uint32_t)device : 0;
}

/* ---- device memory ---- */

/* *addr is what the driver returned, if it succeeded. */
static CUresult after_alloc(
	CUresult result, const CUdeviceptr *addr, uint64_t bytes, uint32_t device)
{
	if (result == CUDA_SUCCESS && note(OBS_CHARGE_ADDRESS, *addr, bytes, device))
		return result;
	obs_quota_discharge(device, bytes);
	if (result != CUDA_SUCCESS)
		return result;
	next.cuMemFree_v2(*addr);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult mem_alloc(CUdeviceptr *addr, size_t bytes)
{
	uint32_t device = current_device();
	CUresult result = obs_quota_charge(device, bytes);

	return result == CUDA_SUCCESS
		? after_alloc(next.cuMemAlloc_v2(addr, bytes), addr, bytes, device)
		: result;
}

/*
 * The driver chooses the pitch. Charges for rows rounded up to 512 bytes first, then corrects the
 * charge to what the driver took.
 */
static CUresult mem_alloc_pitch(
	CUdeviceptr *addr, size_t *pitch, size_t width, size_t height, unsigned element)
{
	uint32_t device = current_device();
	uint64_t most, bytes;
	CUresult result;

	if (ob_mul_overflows(ob_round_up(width, 512), height, &most))
		return CUDA_ERROR_INVALID_VALUE;
	result = obs_quota_charge(device, most);
	if (result != CUDA_SUCCESS)
		return result;
	result = next.cuMemAllocPitch_v2(addr, pitch, width, height, element);
	bytes = result == CUDA_SUCCESS ? ob_min((uint64_t)*pitch * height, most) : most;
	obs_quota_discharge(device, most - bytes);
	return after_alloc(result, addr, bytes, device);
}

static CUresult mem_alloc_async(CUdeviceptr *addr, size_t bytes, CUstream stream)
{
	uint32_t device = current_device();
	CUresult result = obs_quota_charge(device, bytes);

	return result == CUDA_SUCCESS
		? after_alloc(next.cuMemAllocAsync(addr, bytes, stream), addr, bytes, device)
		: result;
}

static CUresult mem_alloc_pool(CUdeviceptr *addr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	uint32_t device = current_device();
	CUresult result = obs_quota_charge(device, bytes);

	return result == CUDA_SUCCESS
		? after_alloc(next.cuMemAllocFromPoolAsync(addr, bytes, pool, stream), addr, bytes,
			  device)
		: result;
}

static CUresult mem_free(CUdeviceptr addr)
{
	CUresult result = next.cuMemFree_v2(addr);

	/* Also when the driver no longer knows the address because its context was destroyed. */
	forget(OBS_CHARGE_ADDRESS, addr);
	return result;
}

static CUresult mem_free_async(CUdeviceptr addr, CUstream stream)
{
	CUresult result = next.cuMemFreeAsync(addr, stream);

	forget(OBS_CHARGE_ADDRESS, addr);
	return result;
}

static CUresult mem_create(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	uint32_t device = prop->location.id >= 0 ? (uint32_t)prop->location.id : 0;
	CUresult result = obs_quota_charge(device, size);

	if (result != CUDA_SUCCESS)
		return result;
	result = next.cuMemCreate(handle, size, prop, flags);
	if (result == CUDA_SUCCESS && note(OBS_CHARGE_HANDLE, *handle, size, device))
		return result;
	obs_quota_discharge(device, size);
	if (result != CUDA_SUCCESS)
		return result;
	next.cuMemRelease(*handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult mem_release(CUmemGenericAllocationHandle handle)
{
	CUresult result = next.cuMemRelease(handle);
	struct obs_entry *entry, gone = { .kind = OBS_CHARGE_NONE };

	if (result != CUDA_SUCCESS)
		return result;
	/* Memory stays until it is neither mapped nor held by its handle. */
	pthread_mutex_lock(&lock);
	entry = obs_ledger_find(&ledger, OBS_CHARGE_HANDLE, handle);
	if (entry && entry->further)
		entry->further--;
	else if (entry && entry->mappings)
		entry->released = true;
	else if (entry)
		obs_ledger_take(&ledger, OBS_CHARGE_HANDLE, handle, &gone);
	pthread_mutex_unlock(&lock);
	give_back(&gone);
	return result;
}

uint64_t obs_quota_handle_bytes(CUmemGenericAllocationHandle handle)
{
	const struct obs_entry *entry;
	uint64_t bytes;

	pthread_mutex_lock(&lock);
	entry = obs_ledger_find(&ledger, OBS_CHARGE_HANDLE, handle);
	bytes = entry ? entry->bytes : 0;
	pthread_mutex_unlock(&lock);
	return bytes;
}

/* The driver gave a handle again: it must be released once more. False: it is a new one. */
static bool handle_again(CUmemGenericAllocationHandle handle)
{
	struct obs_entry *entry;

	pthread_mutex_lock(&lock);
	entry = obs_ledger_find(&ledger, OBS_CHARGE_HANDLE, handle);
	if (entry && entry->released)
		entry->released = false;
	else if (entry)
		entry->further++;
	pthread_mutex_unlock(&lock);
	return entry != NULL;
}

static CUresult mem_retain(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult result = next.cuMemRetainAllocationHandle(handle, addr);

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
	if (!note(OBS_CHARGE_HANDLE, *handle, bytes, 0)) {
		obs_imports_discharge(bytes);
		next.cuMemRelease(*handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&lock);
	entry = obs_ledger_find(&ledger, OBS_CHARGE_HANDLE, *handle);
	if (entry)
		entry->imported = true;
	pthread_mutex_unlock(&lock);
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
		result = imported_enter(
			next.cuMemImportFromShareableHandle(handle, (void *)(intptr_t)fd, type),
			handle, bytes);
	else
		obs_imports_discharge(bytes);
	close(fd);
	return result;
}

static CUresult mem_map(CUdeviceptr addr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult result = next.cuMemMap(addr, size, offset, handle, flags);
	struct obs_entry *entry;

	if (result != CUDA_SUCCESS)
		return result;
	if (!note(OBS_CHARGE_MAPPING, addr, size, 0)) {
		next.cuMemUnmap(addr, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&lock);
	obs_ledger_find(&ledger, OBS_CHARGE_MAPPING, addr)->handle = handle;
	entry = obs_ledger_find(&ledger, OBS_CHARGE_HANDLE, handle);
	if (entry)
		entry->mappings++;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* The mapping at addr is gone. Its size; 0: there was none. */
static uint64_t mapping_gone(uint64_t addr)
{
	struct obs_entry mapping, memory = { .kind = OBS_CHARGE_NONE }, *entry;
	bool known;

	pthread_mutex_lock(&lock);
	known = obs_ledger_take(&ledger, OBS_CHARGE_MAPPING, addr, &mapping);
	entry = known ? obs_ledger_find(&ledger, OBS_CHARGE_HANDLE, mapping.handle) : NULL;
	if (entry && entry->mappings && --entry->mappings == 0 && entry->released)
		obs_ledger_take(&ledger, OBS_CHARGE_HANDLE, mapping.handle, &memory);
	pthread_mutex_unlock(&lock);
	if (!known)
		return 0;
	give_back(&mapping);
	give_back(&memory);
	return mapping.bytes;
}

static CUresult mem_unmap(CUdeviceptr addr, size_t size)
{
	CUresult result = next.cuMemUnmap(addr, size);
	uint64_t end = addr + size, bytes = 1;

	/* It ends whole mappings, one or several in a row. */
	while (result == CUDA_SUCCESS && addr < end && bytes) {
		bytes = mapping_gone(addr);
		addr += bytes;
	}
	return result;
}

/*
 * The heap of device-side malloc and the buffer of printf are device memory too, of any size that a
 * program asks for. The last size set on each device is charged; further contexts of a device are
 * not charged again.
 */
static CUresult ctx_set_limit(CUlimit limit, size_t value)
{
	static uint64_t held[OBP_DEVICE_MAX][2];
	uint32_t device = ob_min(current_device(), OBP_DEVICE_MAX - 1);
	uint64_t *mine = &held[device][limit == CU_LIMIT_PRINTF_FIFO_SIZE], more;
	CUresult result;

	if (limit != CU_LIMIT_MALLOC_HEAP_SIZE && limit != CU_LIMIT_PRINTF_FIFO_SIZE)
		return next.cuCtxSetLimit(limit, value);
	more = value > *mine ? value - *mine : 0;
	result = obs_quota_charge(device, more);
	if (result != CUDA_SUCCESS)
		return result;
	result = next.cuCtxSetLimit(limit, value);
	if (result != CUDA_SUCCESS) {
		obs_quota_discharge(device, more);
		return result;
	}
	obs_quota_discharge(device, *mine + more - value);
	*mine = value;
	return result;
}

/* ---- what the device reports ---- */

static uint64_t capped(uint64_t bytes)
{
	return obs_limits_now.memory ? ob_min(bytes, obs_limits_now.memory) : bytes;
}

static CUresult mem_get_info(size_t *ret_free, size_t *ret_total)
{
	CUresult result = next.cuMemGetInfo_v2(ret_free, ret_total);
	uint32_t device = ob_min(current_device(), OBP_DEVICE_MAX - 1);
	uint64_t used = obs_stats_page_read(&obs_stats_page->used[device]);

	if (result != CUDA_SUCCESS || !obs_limits_now.memory)
		return result;
	*ret_total = capped(*ret_total);
	*ret_free = ob_min(*ret_free, *ret_total > used ? *ret_total - used : 0);
	if (obs_reservation_page && reserved) {
		used = obs_stats_page_read(&obs_reservation_page->used[device]);
		*ret_free = ob_min(*ret_free, reserved > used ? reserved - used : 0);
	}
	return result;
}

static CUresult device_total_mem(size_t *ret, CUdevice device)
{
	CUresult result = next.cuDeviceTotalMem_v2(ret, device);

	if (result == CUDA_SUCCESS)
		*ret = capped(*ret);
	return result;
}

/* ---- host memory; registered memory is counted where it is allocated ---- */

CUresult obs_quota_host(enum obs_purpose purpose, uint64_t bytes)
{
	return obs_hold_take(purpose, bytes) ? CUDA_SUCCESS : obs_quota_refused("host memory");
}

static CUresult host_charge(uint64_t bytes)
{
	return obs_quota_host(OBS_HOLD_PINNED, bytes);
}

static CUresult after_host(CUresult result, void *const *host, uint64_t bytes)
{
	if (result == CUDA_SUCCESS && note(OBS_CHARGE_HOST, (uint64_t)(uintptr_t)*host, bytes, 0))
		return result;
	obs_hold_give(OBS_HOLD_PINNED, bytes);
	if (result != CUDA_SUCCESS)
		return result;
	next.cuMemFreeHost(*host);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult host_alloc(void **host, size_t bytes, unsigned flags)
{
	CUresult result = host_charge(bytes);

	return result == CUDA_SUCCESS
		? after_host(next.cuMemHostAlloc(host, bytes, flags), host, bytes)
		: result;
}

static CUresult host_alloc_plain(void **host, size_t bytes)
{
	CUresult result = host_charge(bytes);

	return result == CUDA_SUCCESS ? after_host(next.cuMemAllocHost_v2(host, bytes), host, bytes)
				      : result;
}

static CUresult host_free(void *host)
{
	forget(OBS_CHARGE_HOST, (uint64_t)(uintptr_t)host);
	return next.cuMemFreeHost(host);
}

/* ---- launches ---- */

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	CUresult result;

	obs_share_wait(stream, false);
	result = next.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
	obs_share_launched(stream, result);
	return result;
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	CUresult result;

	obs_share_wait(config->hStream, false);
	result = next.cuLaunchKernelEx(config, f, params, extra);
	obs_share_launched(config->hStream, result);
	return result;
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
	CUresult result;

	obs_share_wait(stream, true);
	result = next.cuGraphLaunch(exec, stream);
	obs_share_launched(stream, result);
	return result;
}

static CUresult ctx_destroy(CUcontext ctx)
{
	obs_share_forget();
	return next.cuCtxDestroy_v2(ctx);
}

static CUresult primary_reset(CUdevice device)
{
	obs_share_forget();
	return next.cuDevicePrimaryCtxReset_v2(device);
}

/* ---- the layer ---- */

void obs_quota_wrap(struct obs_driver *table)
{
	next = *table;
	table->cuMemAlloc_v2 = mem_alloc;
	table->cuMemAllocPitch_v2 = mem_alloc_pitch;
	table->cuMemAllocAsync = mem_alloc_async;
	table->cuMemAllocFromPoolAsync = mem_alloc_pool;
	table->cuMemFree_v2 = mem_free;
	table->cuMemFreeAsync = mem_free_async;
	table->cuMemCreate = mem_create;
	table->cuMemRelease = mem_release;
	table->cuMemRetainAllocationHandle = mem_retain;
	table->cuMemImportFromShareableHandle = mem_import;
	table->cuMemMap = mem_map;
	table->cuMemUnmap = mem_unmap;
	table->cuCtxSetLimit = ctx_set_limit;
	table->cuMemGetInfo_v2 = mem_get_info;
	table->cuDeviceTotalMem_v2 = device_total_mem;
	table->cuMemHostAlloc = host_alloc;
	table->cuMemAllocHost_v2 = host_alloc_plain;
	table->cuMemFreeHost = host_free;
}

void obs_quota_hello(struct obs_driver *table, struct obp_welcome *welcome,
	const struct obp_hello *hello, uint32_t most_priority)
{
	struct obs_limits *limits = &obs_limits_now;

	obs_limits_lower(limits, hello);
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		welcome->devices[i].total_mem = capped(welcome->devices[i].total_mem);
		welcome->devices[i].free_mem = capped(welcome->devices[i].free_mem);
	}
	obs_keep_choose(&next, welcome, limits);
	/*
	 * A session that may have to yield to others needs the hook too; one of the highest
	 * priority never yields.
	 */
	if (limits->share < OBP_SHARE_ALL || limits->measure || most_priority > limits->priority) {
		obs_share_open(&next, limits->share);
		table->cuLaunchKernel = launch;
		table->cuLaunchKernelEx = launch_ex;
		table->cuGraphLaunch = graph_launch;
		table->cuCtxDestroy_v2 = ctx_destroy;
		table->cuDevicePrimaryCtxReset_v2 = primary_reset;
	}
	obs_stats_page->memory_limit = limits->memory;
	obs_stats_page->share = limits->share;
	obs_stats_page->priority = limits->priority;
	obs_stats_page->pid = hello->pid;
	for (size_t i = 0; i + 1 < sizeof obs_stats_page->program && hello->program[i]; i++)
		obs_stats_page->program[i] = hello->program[i];
	atomic_store_explicit(&obs_stats_page->introduced, true, memory_order_release);
}
