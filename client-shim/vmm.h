/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Virtual memory management: cuMemAddressReserve, cuMemMap and their counterparts.
 *
 * A program's reservation is a hole of a device's heap (obc_heap_reserve): the server has reserved
 * the whole range, so nothing is asked of it. Memory handles and access rights are the server's
 * driver's, by generated calls. What is mapped stands in the map of allocations, so that copies and
 * pointer queries know it. One lock, which is held while the server maps or unmaps. Any thread.
 */
#ifndef OBC_VMM_H
#define OBC_VMM_H

#include <stdbool.h>
#include <stdint.h>

struct obc_heap;

/* The heaps whose holes programs may have; none: the server's driver has no such calls. */
void obc_vmm_start(struct obc_heap *heaps, uint32_t n);
/* Programs may use these calls. */
bool obc_vmm_offered(void);

#endif
