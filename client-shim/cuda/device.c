/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/device.h"

#include "front/front.h"
#include "protocol/obc_calls.h"

uint8_t obc_device_numbers[OBF_DEVICE_MAX], obc_device_servers[OBF_DEVICE_MAX];
OBC_PER_SERVER bool obc_device_soft_first;

/* The joined list of all servers' devices. */
static struct {
	uint8_t number, server;
} joined[OBF_DEVICE_MAX];
static uint32_t n_joined;

void obc_devices_begin(void)
{
	n_joined = 0;
}

void obc_devices_add(uint32_t number)
{
	if (n_joined == OBF_DEVICE_MAX)
		return;
	joined[n_joined].number = (uint8_t)number;
	joined[n_joined++].server = (uint8_t)obc_server_number();
}

void obc_devices_visible(const int *ordinals, int n)
{
	for (int i = 0; i < n && i < OBF_DEVICE_MAX; i++) {
		obc_device_numbers[i] = joined[ordinals[i]].number;
		obc_device_servers[i] = joined[ordinals[i]].server;
	}
}

CUresult obc_wire_device(CUdevice device, uint32_t *ret_number)
{
	if (!obf_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!obf_device_at(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_number = obc_device_number(device);
	return obc_server_choose(obc_device_server(device));
}

CUdevice obc_program_device(int number)
{
	for (int i = 0; i < obf_device_count() && i < OBF_DEVICE_MAX; i++)
		if (obc_device_numbers[i] == number && obc_device_server(i) == obc_server_number())
			return i;
	return CU_DEVICE_INVALID;
}
