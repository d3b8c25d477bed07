/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_mapping: a piece of memory of cuMemCreate at an address. The functions are in vmm.h, whose
 * lock guards all but the access rights. Structs are reused but never returned to malloc, so that a
 * look-up that races with cuMemUnmap (an error in the program) still reads a struct obd_mapping.
 */
#ifndef OBD_MAPPING_H
#define OBD_MAPPING_H

#include <stdint.h>

#include "softdevice/config.h"
#include "softdevice/window.h"

struct obd_physical;

struct obd_mapping {
	struct obd_span span; /* its kind is OBD_SPAN_MAPPING */
	struct obd_physical *physical;
	_Atomic uint8_t access[OBD_DEVICE_MAX]; /* CU_MEM_ACCESS_FLAGS_*, by device */
	struct obd_mapping *next;               /* in order of addresses */
};

#endif
