/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_vmm: address ranges that a program reserves in the lower half of the window, memory that it
 * creates, and the mappings between them. A server uses it to place memory at addresses that its
 * client has chosen. The front end checks reservations and mappings (front/vmm.c); this file
 * chooses addresses and maps.
 *
 * Memory comes from one sparse file per device, so that a piece can be mapped at several addresses.
 * Everything belongs to the process, not to a context. One lock.
 */
#ifndef OBD_VMM_H
#define OBD_VMM_H

#include <stdint.h>

#include "front/backend.h"
#include "softdevice/window.h"

#define OBD_PHYSICAL_MAX (1u << 20) /* live handles of cuMemCreate */

/* NOLINTNEXTLINE(misc-redundant-expression): constants of two headers */
_Static_assert(OBF_VMM_PAGE == OBD_UNIT, "a mapping consists of units of the window");

/* The front end's backend table (front/backend.h). */
CUresult obd_vmm_reserve(struct obf_reservation *r, uint64_t align, uint64_t wanted);
void obd_vmm_unreserve(const struct obf_reservation *r);
CUresult obd_vmm_map(uint64_t addr, uint64_t size, uint64_t offset,
	CUmemGenericAllocationHandle handle, int *ret_device);
CUresult obd_vmm_unmap(uint64_t addr, uint64_t size);

#endif
