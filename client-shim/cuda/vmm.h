/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Virtual memory management: the client's part of cuMemAddressReserve, cuMemMap and their
 * counterparts. The front end (front/vmm.c) checks the arguments and keeps the reservations.
 *
 * A reservation of the program is a hole of a device's heap (obc_heap_reserve). The server has
 * reserved the whole range, so a reservation needs no request. Memory handles and access rights are
 * handled by the server's driver through generated calls. Any thread.
 */
#ifndef OBC_VMM_H
#define OBC_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "front/backend.h"

struct obc_heap;

/*
 * The heaps in which programs may reserve addresses. Not called if the server's driver lacks these
 * calls.
 */
void obc_vmm_start(struct obc_heap *heaps, uint32_t n);
/* Whether programs may use these calls. */
bool obc_vmm_offered(void);

/* The front end's backend table (front/backend.h). */
CUresult obc_vmm_reserve(struct obf_reservation *r, uint64_t align, uint64_t wanted);
void obc_vmm_unreserve(const struct obf_reservation *r);
CUresult obc_vmm_map(uint64_t addr, uint64_t size, uint64_t offset,
	CUmemGenericAllocationHandle handle, int *ret_device);
CUresult obc_vmm_unmap(uint64_t addr, uint64_t size);

#endif
