/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_device: the servers, and the servers' device numbers, of the devices that the program sees.
 * The front end and the program number the visible devices (front/visible.h), which are those of
 * server 0, then those of server 1, and so on. Records name a device by its index in its server's
 * welcome. Written once by cuInit, constant afterwards. Any thread.
 */
#ifndef OBC_DEVICE_H
#define OBC_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"
#include "protocol/control.h"

#include "client-shim/session/server.h"

extern uint8_t obc_device_numbers[OBF_DEVICE_MAX];
extern bool obc_device_soft_first; /* one of the server's devices is the software device */
#define obc_device_soft OBC_HERE(obc_device_soft_first)

/* The joined list is empty. */
void obc_devices_begin(void);
/* Device `number` of the current server is the next one of the list. */
void obc_devices_add(uint32_t number);
/* For struct obf_backend: device i of the program is device ordinals[i] of the joined list. */
void obc_devices_visible(const int *ordinals, int n);

extern uint8_t obc_device_servers[OBF_DEVICE_MAX];

/* The server of a device that the front end has checked. */
static inline uint32_t obc_device_server(int device)
{
	return obc_device_servers[(unsigned)device % OBF_DEVICE_MAX];
}

/* The server's number of a device that the front end has checked. */
static inline uint32_t obc_device_number(int device)
{
	return obc_device_numbers[(unsigned)device % OBF_DEVICE_MAX];
}

#endif
