/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_device: one software device: its memory account. The descriptions that programs see are
 * filled in once for the front end. Owned by the process, made when the driver is initialised, never
 * freed. The account takes the device's lock; any thread.
 */
#ifndef OBD_DEVICE_H
#define OBD_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"

struct obd_chunk;

struct obd_device {
	pthread_mutex_t lock; /* all below */
	unsigned ordinal;
	uint64_t total, used;     /* bytes */
	struct obd_chunk *chunks; /* small allocations */
	/* descriptor of the memory that cuMemCreate hands out; -1 until first used: vmm.c */
	int backing;
	uint64_t *backing_map; /* one bit for each 2 MiB of it */
};

extern struct obd_device obd_devices[];

/* Fills the front end's descriptions and makes the devices. */
void obd_device_start(struct obf_device *ret_devices, int *ret_count);

/*
 * Charges `size` bytes to the device; false: it has not that much left. The caller holds the lock
 * in neither.
 */
bool obd_device_charge(struct obd_device *device, uint64_t size);
void obd_device_credit(struct obd_device *device, uint64_t size);
void obd_device_account(struct obd_device *device, uint64_t *ret_free, uint64_t *ret_total);

#endif
