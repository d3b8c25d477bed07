/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/quota.h"

#include "base/check.h"
#include "protocol/control.h"
#include "server/common/reservation_page.h"
#include "server/common/stats_page.h"
#include "server/layers/hold.h"
#include "server/layers/imports.h"
#include "server/layers/keep.h"
#include "server/layers/quota_inside.h"
#include "server/layers/share.h"
#include "server/layers/throttle.h"

struct obs_driver obs_quota_next;
pthread_mutex_t obs_quota_lock = PTHREAD_MUTEX_INITIALIZER;
struct obs_ledger obs_quota_ledger;
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

CUresult obs_quota_host(enum obs_purpose purpose, uint64_t bytes)
{
	return obs_hold_take(purpose, bytes) ? CUDA_SUCCESS : obs_quota_refused("host memory");
}

/* ---- what the session has ---- */

void obs_quota_give_back(const struct obs_entry *entry)
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

bool obs_quota_note(enum obs_charge kind, uint64_t name, uint64_t bytes, uint32_t device)
{
	const struct obs_entry entry = {
		.name = name, .bytes = bytes, .device = device, .kind = kind
	};
	struct obs_entry old;
	bool noted;

	if (!obs_hold_take(OBS_HOLD_HANDLES, OBS_ALLOCATION_BYTES))
		return false;
	pthread_mutex_lock(&obs_quota_lock);
	noted = obs_ledger_put(&obs_quota_ledger, &entry, &old);
	pthread_mutex_unlock(&obs_quota_lock);
	if (noted)
		obs_quota_give_back(&old);
	else
		obs_hold_give(OBS_HOLD_HANDLES, OBS_ALLOCATION_BYTES);
	return noted;
}

void obs_quota_forget(enum obs_charge kind, uint64_t name)
{
	struct obs_entry entry;
	bool known;

	pthread_mutex_lock(&obs_quota_lock);
	known = obs_ledger_take(&obs_quota_ledger, kind, name, &entry);
	pthread_mutex_unlock(&obs_quota_lock);
	if (known)
		obs_quota_give_back(&entry);
}

uint32_t obs_quota_device(void)
{
	CUdevice device = 0;

	return obs_quota_next.cuCtxGetDevice(&device) == CUDA_SUCCESS && device >= 0
		? (uint32_t)device
		: 0;
}

/* ---- what the device reports ---- */

static uint64_t capped(uint64_t bytes)
{
	return obs_limits_now.memory ? ob_min(bytes, obs_limits_now.memory) : bytes;
}

static CUresult mem_get_info(size_t *ret_free, size_t *ret_total)
{
	CUresult result = obs_quota_next.cuMemGetInfo_v2(ret_free, ret_total);
	uint32_t device = ob_min(obs_quota_device(), OBP_DEVICE_MAX - 1);
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
	CUresult result = obs_quota_next.cuDeviceTotalMem_v2(ret, device);

	if (result == CUDA_SUCCESS)
		*ret = capped(*ret);
	return result;
}

/* ---- the layer ---- */

void obs_quota_wrap(struct obs_driver *table)
{
	obs_quota_next = *table;
	obs_quota_memory_wrap(table);
	obs_quota_handles_wrap(table);
	table->cuMemGetInfo_v2 = mem_get_info;
	table->cuDeviceTotalMem_v2 = device_total_mem;
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
	obs_keep_choose(&obs_quota_next, welcome, limits);
	/*
	 * A session that may have to yield to others needs the hook too; one of the highest
	 * priority never yields.
	 */
	if (limits->share < OBP_SHARE_ALL || limits->measure || most_priority > limits->priority) {
		obs_share_open(&obs_quota_next, limits->share);
		obs_quota_launch_wrap(table);
	}
	obs_stats_page->memory_limit = limits->memory;
	obs_stats_page->share = limits->share;
	obs_stats_page->priority = limits->priority;
	obs_stats_page->pid = hello->pid;
	for (size_t i = 0; i + 1 < sizeof obs_stats_page->program && hello->program[i]; i++)
		obs_stats_page->program[i] = hello->program[i];
	atomic_store_explicit(&obs_stats_page->introduced, true, memory_order_release);
}
