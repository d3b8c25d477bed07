/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/device.h"

#include "front/front.h"
#include "protocol/obc_calls.h"

uint8_t obc_device_numbers[OBP_DEVICE_MAX];
bool obc_device_soft;

void obc_devices_visible(const int *ordinals, int n)
{
	for (int i = 0; i < n && i < (int)OBP_DEVICE_MAX; i++)
		obc_device_numbers[i] = (uint8_t)ordinals[i];
}

CUresult obc_wire_device(CUdevice device, uint32_t *ret_number)
{
	if (!obf_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!obf_device_at(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_number = obc_device_number(device);
	return CUDA_SUCCESS;
}

CUdevice obc_program_device(int number)
{
	for (int i = 0; i < obf_device_count() && i < (int)OBP_DEVICE_MAX; i++)
		if (obc_device_numbers[i] == number)
			return i;
	return CU_DEVICE_INVALID;
}
