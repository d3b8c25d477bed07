/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Virtual memory management: cuMemAddressReserve, cuMemMap and their counterparts.
 *
 * A reservation of the program is a hole of a device's heap (obc_heap_reserve). The server has
 * reserved the whole range, so a reservation needs no request. Memory handles and access rights are
 * handled by the server's driver through generated calls. Mapped memory is entered in the map of
 * allocations, so that copies and pointer queries find it. One lock, which is held while the server
 * maps or unmaps. Any thread.
 */
#ifndef OBC_VMM_H
#define OBC_VMM_H

#include <stdbool.h>
#include <stdint.h>

struct obc_heap;

/*
 * The heaps in which programs may reserve addresses. Not called if the server's driver lacks these
 * calls.
 */
void obc_vmm_start(struct obc_heap *heaps, uint32_t n);
/* Whether programs may use these calls. */
bool obc_vmm_offered(void);

#endif
