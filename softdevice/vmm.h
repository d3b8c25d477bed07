/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_vmm: addresses that a program reserves in the lower half of the window, memory it creates,
 * and mappings of one into the other. A server places memory at addresses that its client has
 * chosen in this way.
 *
 * Memory comes from one sparse file of each device, so that a piece can be mapped in several
 * places. All belongs to the process, not to a context. One lock; obd_vmm_inside takes none.
 */
#ifndef OBD_VMM_H
#define OBD_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "softdevice/config.h"
#include "softdevice/window.h"

#define OBD_PHYSICAL_MAX (1u << 20) /* live handles of cuMemCreate */

struct obd_physical;

struct obd_mapping {
	struct obd_span span; /* OBD_SPAN_MAPPING */
	struct obd_physical *physical;
	_Atomic uint8_t access[OBD_DEVICE_MAX]; /* CU_MEM_ACCESS_FLAGS_*, by device */
	struct obd_mapping *next;               /* by address */
};

/* All of [addr, addr + size) is mapped and may be read and written by some device. */
bool obd_vmm_inside(uint64_t addr, uint64_t size);

#endif
