/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Memory with an address, on the device or pinned on the host; and the heap of kernels. */
#include "base/check.h"
#include "server/layers/hold.h"
#include "server/layers/quota.h"
#include "server/layers/quota_inside.h"

/* ---- device memory ---- */

/* *addr is what the driver returned, if it succeeded. */
static CUresult after_alloc(
	CUresult result, const CUdeviceptr *addr, uint64_t bytes, uint32_t device)
{
	if (result == CUDA_SUCCESS && obs_quota_note(OBS_CHARGE_ADDRESS, *addr, bytes, device))
		return result;
	obs_quota_discharge(device, bytes);
	if (result != CUDA_SUCCESS)
		return result;
	obs_quota_next.cuMemFree_v2(*addr);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult mem_alloc(CUdeviceptr *addr, size_t bytes)
{
	uint32_t device = obs_quota_device();
	CUresult result = obs_quota_charge(device, bytes);

	return result == CUDA_SUCCESS
		? after_alloc(obs_quota_next.cuMemAlloc_v2(addr, bytes), addr, bytes, device)
		: result;
}

/*
 * The driver chooses the pitch. Charges for rows rounded up to 512 bytes first, then corrects the
 * charge to what the driver took.
 */
static CUresult mem_alloc_pitch(
	CUdeviceptr *addr, size_t *pitch, size_t width, size_t height, unsigned element)
{
	uint32_t device = obs_quota_device();
	uint64_t most, bytes;
	CUresult result;

	if (ob_mul_overflows(ob_round_up(width, 512), height, &most))
		return CUDA_ERROR_INVALID_VALUE;
	result = obs_quota_charge(device, most);
	if (result != CUDA_SUCCESS)
		return result;
	result = obs_quota_next.cuMemAllocPitch_v2(addr, pitch, width, height, element);
	bytes = result == CUDA_SUCCESS ? ob_min((uint64_t)*pitch * height, most) : most;
	obs_quota_discharge(device, most - bytes);
	return after_alloc(result, addr, bytes, device);
}

static CUresult mem_alloc_async(CUdeviceptr *addr, size_t bytes, CUstream stream)
{
	uint32_t device = obs_quota_device();
	CUresult result = obs_quota_charge(device, bytes);

	return result == CUDA_SUCCESS
		? after_alloc(
			  obs_quota_next.cuMemAllocAsync(addr, bytes, stream), addr, bytes, device)
		: result;
}

static CUresult mem_alloc_pool(CUdeviceptr *addr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	uint32_t device = obs_quota_device();
	CUresult result = obs_quota_charge(device, bytes);

	return result == CUDA_SUCCESS
		? after_alloc(obs_quota_next.cuMemAllocFromPoolAsync(addr, bytes, pool, stream),
			  addr, bytes, device)
		: result;
}

static CUresult mem_free(CUdeviceptr addr)
{
	CUresult result = obs_quota_next.cuMemFree_v2(addr);

	/* Also when the driver no longer knows the address because its context was destroyed. */
	obs_quota_forget(OBS_CHARGE_ADDRESS, addr);
	return result;
}

static CUresult mem_free_async(CUdeviceptr addr, CUstream stream)
{
	CUresult result = obs_quota_next.cuMemFreeAsync(addr, stream);

	obs_quota_forget(OBS_CHARGE_ADDRESS, addr);
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
	uint32_t device = ob_min(obs_quota_device(), OBP_DEVICE_MAX - 1);
	uint64_t *mine = &held[device][limit == CU_LIMIT_PRINTF_FIFO_SIZE], more;
	CUresult result;

	if (limit != CU_LIMIT_MALLOC_HEAP_SIZE && limit != CU_LIMIT_PRINTF_FIFO_SIZE)
		return obs_quota_next.cuCtxSetLimit(limit, value);
	more = value > *mine ? value - *mine : 0;
	result = obs_quota_charge(device, more);
	if (result != CUDA_SUCCESS)
		return result;
	result = obs_quota_next.cuCtxSetLimit(limit, value);
	if (result != CUDA_SUCCESS) {
		obs_quota_discharge(device, more);
		return result;
	}
	obs_quota_discharge(device, *mine + more - value);
	*mine = value;
	return result;
}

/* ---- host memory; registered memory is counted where it is allocated ---- */

static CUresult host_charge(uint64_t bytes)
{
	return obs_quota_host(OBS_HOLD_PINNED, bytes);
}

static CUresult after_host(CUresult result, void *const *host, uint64_t bytes)
{
	if (result == CUDA_SUCCESS &&
		obs_quota_note(OBS_CHARGE_HOST, (uint64_t)(uintptr_t)*host, bytes, 0))
		return result;
	obs_hold_give(OBS_HOLD_PINNED, bytes);
	if (result != CUDA_SUCCESS)
		return result;
	obs_quota_next.cuMemFreeHost(*host);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult host_alloc(void **host, size_t bytes, unsigned flags)
{
	CUresult result = host_charge(bytes);

	return result == CUDA_SUCCESS
		? after_host(obs_quota_next.cuMemHostAlloc(host, bytes, flags), host, bytes)
		: result;
}

static CUresult host_alloc_plain(void **host, size_t bytes)
{
	CUresult result = host_charge(bytes);

	return result == CUDA_SUCCESS
		? after_host(obs_quota_next.cuMemAllocHost_v2(host, bytes), host, bytes)
		: result;
}

static CUresult host_free(void *host)
{
	obs_quota_forget(OBS_CHARGE_HOST, (uint64_t)(uintptr_t)host);
	return obs_quota_next.cuMemFreeHost(host);
}

/* ---- the table ---- */

void obs_quota_memory_wrap(struct obs_driver *table)
{
	table->cuMemAlloc_v2 = mem_alloc;
	table->cuMemAllocPitch_v2 = mem_alloc_pitch;
	table->cuMemAllocAsync = mem_alloc_async;
	table->cuMemAllocFromPoolAsync = mem_alloc_pool;
	table->cuMemFree_v2 = mem_free;
	table->cuMemFreeAsync = mem_free_async;
	table->cuCtxSetLimit = ctx_set_limit;
	table->cuMemHostAlloc = host_alloc;
	table->cuMemAllocHost_v2 = host_alloc_plain;
	table->cuMemFreeHost = host_free;
}
