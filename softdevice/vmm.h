/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_vmm: address ranges that a program reserves in the lower half of the window, memory that it
 * creates, and the mappings between them. A server uses it to place memory at addresses that its
 * client has chosen.
 *
 * Memory comes from one sparse file per device, so that a piece can be mapped at several addresses.
 * Everything belongs to the process, not to a context. One lock; obd_vmm_inside takes none.
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
	struct obd_span span; /* its kind is OBD_SPAN_MAPPING */
	struct obd_physical *physical;
	_Atomic uint8_t access[OBD_DEVICE_MAX]; /* CU_MEM_ACCESS_FLAGS_*, by device */
	struct obd_mapping *next;               /* in order of addresses */
};

/* True if all of [addr, addr + size) is mapped and some device may read and write it. */
bool obd_vmm_inside(uint64_t addr, uint64_t size);

#endif
