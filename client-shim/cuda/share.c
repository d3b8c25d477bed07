/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/share.h"

#include <stdlib.h>

#include "client-shim/cuda/device.h"
#include "client-shim/cuda/vmm.h"
#include "client-shim/session/server.h"
#include "front/backend.h"
#include "front/event.h"
#include "protocol/obc_calls.h"

static OBC_PER_SERVER unsigned offered_first; /* OBF_SHARES_* */
#define offered OBC_HERE(offered_first)

/* Whether all devices have the attribute. */
static bool all_have(const struct obp_welcome *welcome, CUdevice_attribute attr)
{
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		if (!welcome->devices[i].attr[attr])
			return false;
	return true;
}

void obc_share_start(const struct obp_welcome *welcome)
{
	/* An older server reports what its driver can do, and passes nothing on. */
	if (obc_lines_known < OBP_LINE_share_settle || !obc_vmm_offered() ||
		!all_have(welcome, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
		return;
	offered = OBF_SHARES_VMM | OBF_SHARES_RANGES | OBF_SHARES_POOLS;
	if (all_have(welcome, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED))
		offered |= OBF_SHARES_EVENTS;
}

static unsigned offers(void)
{
	return offered;
}

/* ---- memory of cuMemCreate ---- */

static CUresult vmm_export(CUmemGenericAllocationHandle handle, int *ret_fd)
{
	OBC_CHOOSES_SERVER();
	struct obf_share share = { .size = 0 };
	uint64_t id;
	CUresult result = obc_wire_memory(handle, &id);
	int fd;

	if (result == CUDA_SUCCESS)
		result = obc_call_op_share_memory(id, share.id);
	if (result != CUDA_SUCCESS)
		return result;
	obf_share_seal(&share, OBF_SHARE_MEMORY);
	fd = obf_share_file(&share);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_fd = fd;
	return CUDA_SUCCESS;
}

static CUresult vmm_import(int fd, CUmemGenericAllocationHandle *ret)
{
	struct obf_share share;
	uint64_t ticket;
	CUresult result;

	if (!obf_share_file_read(fd, OBF_SHARE_MEMORY, &share))
		return CUDA_ERROR_INVALID_VALUE;
	result = obc_call_op_share_fetch(share.id, &ticket);
	return result == CUDA_SUCCESS
		? obc_call_cuMemImportFromShareableHandle(
			  ret, (void *)(uintptr_t)ticket, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		: result;
}

static CUresult vmm_retain(uint64_t addr, CUmemGenericAllocationHandle *ret)
{
	return obc_call_cuMemRetainAllocationHandle(ret, (void *)(uintptr_t)addr);
}

/* ---- allocations ---- */

static CUresult range_export(const struct obf_mem *mem, struct obf_share *ret)
{
	ret->size = mem->size;
	return obc_call_op_share_range(mem->base, mem->size, ret->id, &ret->offset, &ret->span);
}

/* Maps what `share` names at the reserved addresses. */
static CUresult reserved_map(
	const struct obf_reservation *r, const struct obf_share *share, int *ret_device)
{
	uint32_t number;
	CUresult result = obc_call_op_share_map(share->id, r->base, r->size, &number);

	if (result != CUDA_SUCCESS)
		return result;
	*ret_device = obc_program_device((int)number);
	if (*ret_device != CU_DEVICE_INVALID)
		return CUDA_SUCCESS;
	obc_call_op_share_unmap(r->base);
	return CUDA_ERROR_INVALID_DEVICE; /* the program does not see the memory's device */
}

static CUresult range_open(const struct obf_share *share, struct obf_mem *ret)
{
	struct obf_reservation *r;
	CUresult result;

	if (share->span == 0 || share->span > OBP_SHARE_SPAN_MAX || share->span % OBF_VMM_PAGE)
		return CUDA_ERROR_INVALID_HANDLE;
	r = calloc(1, sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->size = share->span;
	result = obc_vmm_reserve(r, OBF_VMM_PAGE, 0);
	if (result != CUDA_SUCCESS) {
		free(r);
		return result;
	}
	result = reserved_map(r, share, &ret->device);
	if (result != CUDA_SUCCESS) {
		obc_vmm_unreserve(r);
		free(r);
		return result;
	}
	ret->base = r->base + share->offset;
	ret->size = share->size;
	ret->backend = r;
	return CUDA_SUCCESS;
}

static CUresult range_close(const struct obf_mem *mem)
{
	struct obf_reservation *r = mem->backend;
	/* The record precedes those that use the addresses for something else. */
	CUresult result = obc_call_op_share_unmap(r->base);

	obc_vmm_unreserve(r);
	free(r);
	return result;
}

/* ---- events ---- */

static CUresult event_export(struct obf_event *event, struct obf_share *ret)
{
	return obc_call_op_share_event(event->handle, ret->id);
}

static CUresult event_import(struct obf_event *event, const struct obf_share *share)
{
	return obc_call_op_event_open(event->handle, share->id);
}

/* ---- pools ---- */

static CUresult pool_export(int device, struct obf_share *ret)
{
	return obc_call_op_share_pool(obc_device_number(device), ret->id);
}

static CUresult pool_import(const struct obf_share *share, int *ret_device)
{
	uint32_t number;
	CUresult result = obc_call_op_pool_open(share->id, &number);

	if (result != CUDA_SUCCESS)
		return result;
	*ret_device = obc_program_device((int)number);
	return *ret_device == CU_DEVICE_INVALID ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

const struct obf_sharing obc_sharing = {
	.offers = offers,
	.vmm_export = vmm_export,
	.vmm_import = vmm_import,
	.vmm_retain = vmm_retain,
	.range_export = range_export,
	.range_open = range_open,
	.range_close = range_close,
	.event_export = event_export,
	.event_import = event_import,
	.pool_export = pool_export,
	.pool_import = pool_import,
};
