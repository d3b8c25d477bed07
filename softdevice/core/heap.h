/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_heap: the memory that the text of programs makes the compiler use, in the sizes that the text
 * decides. Whoever loads the software device may count it and refuse more (a server's budget for
 * one session). Set once, before the first program is loaded; any thread afterwards.
 */
#ifndef OBD_CORE_HEAP_H
#define OBD_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int obd_heap_charge(uint64_t bytes); /* 0: refused */
typedef void obd_heap_discharge(uint64_t bytes);

void obd_heap_count(obd_heap_charge *charge, obd_heap_discharge *discharge);
/* Zero-filled, aligned to 16. NULL: out of memory, or refused. */
void *obd_heap_alloc(size_t size);
/* What obd_heap_alloc has given, or NULL. */
void obd_heap_free(void *p);

#endif
