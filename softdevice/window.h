/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_window: one range of addresses that contains all device memory of the process. A device
 * pointer is distinguished from a host pointer by its value, and an access of a kernel is checked
 * with one subtraction and one comparison.
 *
 *   base                     half                        end
 *   |  addresses that         |  allocations, variables,  |
 *   |  programs reserve (VMM) |  shared and local memory  |
 *
 * The upper half is allocated in units of 2 MiB. A table holds for each unit a pointer to what lies
 * there (obd_span), or NULL. The window is created once and exists as long as the process. Taking
 * and returning units takes a lock; look-ups take none.
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
	OBD_SPAN_SCRATCH,   /* memory of the interpreter; programs have no pointer to it */
	OBD_SPAN_MAPPING,   /* struct obd_mapping: cuMemMap */
};

/*
 * First member of every object in the table. These objects are never returned to malloc, because a
 * look-up may race with a free.
 */
struct obd_span {
	enum obd_span_kind kind;
	uint64_t base, size; /* bytes in use; base lies at or after the start of the first unit */
};

struct obd_window {
	uint64_t base, size, half; /* half: where the upper half begins */
};

extern struct obd_window obd_window;

/*
 * Reserves the window at `wanted` (0: OBD_WINDOW_BASE), or at any other address if that range is
 * taken. False: not even OBD_WINDOW_MIN bytes could be reserved.
 */
bool obd_window_start(uint64_t wanted);

static inline bool obd_window_holds(uint64_t addr)
{
	return addr - obd_window.base < obd_window.size;
}

/*
 * Allocates units of the upper half for `size` bytes and a guard page after them, makes the bytes
 * readable and writable, and enters `span` in the table. The bytes are zero. Returns the address,
 * or 0 when memory or addresses are exhausted.
 */
uint64_t obd_window_take(struct obd_span *span, uint64_t size);
/* Returns the units and their memory to the system. */
void obd_window_give(struct obd_span *span);

/* The object at addr; NULL: none. Lock-free. */
struct obd_span *obd_window_span(uint64_t addr);
/*
 * For the lower half: enters `span` for each unit of [base, base + size); NULL clears the entries.
 */
void obd_window_mark(uint64_t base, uint64_t size, struct obd_span *span);

#endif
