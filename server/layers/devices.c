/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/devices.h"

#include <string.h>

#include "base/check.h"
#include "protocol/control.h"

static struct {
	uint32_t n; /* 0: no restriction */
	uint8_t numbers[OBP_DEVICE_MAX];
} devices;

void obs_devices_restrict(const uint8_t *numbers, uint32_t n)
{
	devices.n = ob_min(n, OBP_DEVICE_MAX);
	memcpy(devices.numbers, numbers, devices.n);
}

void obs_devices_all(void)
{
	devices.n = 0;
}

bool obs_device_restricted(void)
{
	return devices.n != 0;
}

CUresult obs_device_to_driver(int *number)
{
	if (devices.n == 0)
		return CUDA_SUCCESS;
	if (*number < 0 || (uint32_t)*number >= devices.n)
		return CUDA_ERROR_INVALID_DEVICE;
	*number = devices.numbers[*number];
	return CUDA_SUCCESS;
}

int obs_device_to_session(int number)
{
	if (devices.n == 0)
		return number;
	for (uint32_t i = 0; i < devices.n; i++)
		if (devices.numbers[i] == number)
			return (int)i;
	return CU_DEVICE_INVALID;
}
