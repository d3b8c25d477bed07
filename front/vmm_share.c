/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Memory of cuMemCreate and other processes, and the handles of mapped memory. */
#include "front/backend.h"
#include "front/private.h"
#include "front/share.h"
#include "protocol/obf_calls.h"

static CUresult enter(void)
{
	CUresult result = obf_ready();

	if (result == CUDA_SUCCESS && !(obf_shares() & OBF_SHARES_VMM))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return result;
}

CUresult obf_cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	CUresult result = enter();
	int fd;

	if (result != CUDA_SUCCESS)
		return result;
	result = ret && !flags ? obf_share_type_check(type) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	result = obf_process.backend->sharing->vmm_export(handle, &fd);
	if (result == CUDA_SUCCESS)
		*(int *)ret = fd;
	return result;
}

CUresult obf_cuMemImportFromShareableHandle(
	CUmemGenericAllocationHandle *ret, void *os_handle, CUmemAllocationHandleType type)
{
	CUresult result = enter();

	if (result != CUDA_SUCCESS)
		return result;
	result = ret ? obf_share_type_check(type) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	return obf_process.backend->sharing->vmm_import((int)(intptr_t)os_handle, ret);
}

CUresult obf_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *addr)
{
	const struct obf_sharing *sharing = obf_process.backend->sharing;
	CUresult result = obf_ready();
	struct obf_mem mem;

	if (result != CUDA_SUCCESS)
		return result;
	if (!sharing || !sharing->vmm_retain)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!ret || !obf_mem_find((uint64_t)(uintptr_t)addr, &mem) || !mem.joins)
		return CUDA_ERROR_INVALID_VALUE;
	return sharing->vmm_retain((uint64_t)(uintptr_t)addr, ret);
}
