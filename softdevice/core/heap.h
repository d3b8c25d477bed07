/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_heap: memory whose size the program decides: data of the PTX compiler, ops, device output.
 * The process that loads the software device may install a callback that counts this memory and
 * refuses more (a server's budget for one session). The callback is set once, before the first
 * program is loaded. Any thread afterwards.
 */
#ifndef OBD_CORE_HEAP_H
#define OBD_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int obd_heap_charge(uint64_t bytes); /* 0: refused */
typedef void obd_heap_discharge(uint64_t bytes);

void obd_heap_count(obd_heap_charge *charge, obd_heap_discharge *discharge);
/* Zero-filled, aligned to 16. NULL: out of memory, or refused by the callback. */
void *obd_heap_alloc(size_t size);
/* p is a result of obd_heap_alloc, or NULL. */
void obd_heap_free(void *p);

#endif
