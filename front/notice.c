/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuDeviceRegisterAsyncNotification. The only notification of CUDA says that the process uses more
 * device memory than its budget. Only Windows gives processes such a budget, so no callback is ever
 * called, here as with NVIDIA's driver for Linux.
 */
#include <stdlib.h>

#include "base/ids.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define NOTICES_MAX 1024u /* registered callbacks of a process */

static struct ob_ids notices = OB_IDS_INIT(OBF_KIND_NOTICE, NOTICES_MAX);

static CUresult device_check(CUdevice device)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	return obf_device_valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult obf_cuDeviceRegisterAsyncNotification(
	CUdevice device, CUasyncCallback callback, void *user, CUasyncCallbackHandle *ret)
{
	CUresult result = device_check(device);
	uint64_t id;

	(void)user;
	if (result != CUDA_SUCCESS)
		return result;
	if (!callback || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	id = ob_ids_add(&notices, &obf_process.devices[device]);
	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (CUasyncCallbackHandle)(uintptr_t)id; /* NOLINT(performance-no-int-to-ptr) */
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle handle)
{
	uint64_t id = (uint64_t)(uintptr_t)handle;
	CUresult result = device_check(device);

	if (result != CUDA_SUCCESS)
		return result;
	if (ob_ids_get(&notices, id) != &obf_process.devices[device])
		return CUDA_ERROR_INVALID_VALUE;
	return ob_ids_remove(&notices, id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
