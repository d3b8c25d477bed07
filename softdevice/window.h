/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_window: the one range of addresses that holds all device memory of the process, so that a
 * device pointer is told from a host pointer by its value and a kernel's access is checked with one
 * subtraction and one comparison.
 *
 *   base                     half                        end
 *   |  addresses that         |  allocations, variables,  |
 *   |  programs reserve (VMM) |  shared and local memory  |
 *
 * The upper half is handed out in units of 2 MiB. A table says for each unit what lies there
 * (obd_span), or nothing. The window is made once and lives as long as the process. Taking and
 * giving back units takes a lock; looking up takes none.
 */
#ifndef OBD_WINDOW_H
#define OBD_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBD_UNIT        (2ull << 20)
#define OBD_PAGE        4096ull
#define OBD_WINDOW_BASE 0x200000000000ull
#define OBD_WINDOW_SIZE (4ull << 40)
#define OBD_WINDOW_MIN  (16ull << 30)

enum obd_span_kind {
	OBD_SPAN_CHUNK = 1, /* struct obd_chunk: many small allocations */
	OBD_SPAN_ALLOC,     /* struct obd_alloc: one large allocation */
	OBD_SPAN_SCRATCH,   /* the interpreter's own; no pointer of a program's */
	OBD_SPAN_MAPPING,   /* struct obd_mapping: cuMemMap */
};

/*
 * First member of everything the table points to. Such objects are never given back to malloc: a
 * look-up may race with a free.
 */
struct obd_span {
	enum obd_span_kind kind;
	uint64_t base, size; /* bytes in use, from the first unit's start or within it */
};

struct obd_window {
	uint64_t base, size, half; /* half: where the upper half begins */
};

extern struct obd_window obd_window;

/*
 * Reserves the window at `wanted` (0: the usual place), or anywhere when that is taken. False: no
 * room for even a small one.
 */
bool obd_window_start(uint64_t wanted);

static inline bool obd_window_holds(uint64_t addr)
{
	return addr - obd_window.base < obd_window.size;
}

/*
 * Takes enough units of the upper half for `size` bytes and a guard page behind them, makes the
 * bytes readable and writable (they are zero) and enters `span` for them. Returns the address, 0
 * when out of memory or of addresses.
 */
uint64_t obd_window_take(struct obd_span *span, uint64_t size);
/* Gives the units and their memory back. */
void obd_window_give(struct obd_span *span);

/* What lies at addr; NULL: nothing. Lock-free. */
struct obd_span *obd_window_span(uint64_t addr);
/* For the lower half: enters `span` (NULL: clears) for each unit of [base, base + size). */
void obd_window_mark(uint64_t base, uint64_t size, struct obd_span *span);

#endif
