/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_device: one software device and the account of its memory. The descriptions that programs see
 * are filled in once, for the front end. Owned by the process, created when the driver is
 * initialised, never freed. The account takes the device's lock; any thread.
 */
#ifndef OBD_DEVICE_H
#define OBD_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"

struct obd_chunk;

struct obd_device {
	pthread_mutex_t lock; /* guards all fields below */
	unsigned ordinal;
	uint64_t total, used;     /* bytes */
	struct obd_chunk *chunks; /* small allocations */
	/* descriptor of the file that backs cuMemCreate; -1 until first used (vmm.c) */
	int backing;
	uint64_t *backing_map; /* allocated parts of the file, one bit for each 2 MiB */
};

extern struct obd_device obd_devices[];

/* Creates the devices and fills in the front end's descriptions of them. */
void obd_device_start(struct obf_device *ret_devices, int *ret_count);

/*
 * Charges `size` bytes to the device. False: the device has less than that left. The caller of
 * these functions must not hold the device's lock.
 */
bool obd_device_charge(struct obd_device *device, uint64_t size);
void obd_device_credit(struct obd_device *device, uint64_t size);
void obd_device_account(struct obd_device *device, uint64_t *ret_free, uint64_t *ret_total);

#endif
