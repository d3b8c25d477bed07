/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_device: the server's device numbers for the devices that the program sees. The front end and
 * the program number the visible devices (front/visible.h). Records name a device by its index in
 * the server's welcome. Written once by cuInit, constant afterwards. Any thread.
 */
#ifndef OBC_DEVICE_H
#define OBC_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/control.h"

extern uint8_t obc_device_numbers[OBP_DEVICE_MAX];
extern bool obc_device_soft; /* one of the server's devices is the software device */

/* For struct obf_backend: device i of the program is device ordinals[i] of the server. */
void obc_devices_visible(const int *ordinals, int n);

/* The server's number of a device that the front end has checked. */
static inline uint32_t obc_device_number(int device)
{
	return obc_device_numbers[(unsigned)device % OBP_DEVICE_MAX];
}

#endif
