/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_alloc: one allocation of device memory. Small allocations share a chunk (chunk.h). A large
 * one takes whole units of the window and is followed by an inaccessible guard page. The functions
 * are in memory.h.
 *
 * An allocation belongs to its context and is freed with it. Any thread; the context's lock guards
 * its list. Structs are reused but never returned to malloc, so that a look-up that races with a
 * free (an error in the program) still reads a struct obd_alloc.
 */
#ifndef OBD_ALLOC_H
#define OBD_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "softdevice/window.h"

enum obd_alloc_kind {
	OBD_ALLOC_USER = 1, /* cuMemAlloc and pools; the front end tracks it */
	OBD_ALLOC_GLOBAL,   /* a module's variable; the front end tracks it, cuMemFree refuses it */
	OBD_ALLOC_HEAP,     /* malloc in a kernel: only kernels may access it */
	OBD_ALLOC_WORD,     /* a condition: likewise, but a kernel cannot free it */
	OBD_ALLOC_ARRAY,    /* an array; programs have no pointer to it */
};

struct obd_chunk;
struct obd_ctx;

struct obd_alloc {
	/* base and exact size; the kind is always OBD_SPAN_ALLOC */
	struct obd_span span;
	enum obd_alloc_kind kind;
	struct obd_ctx *ctx;
	struct obd_chunk *chunk; /* NULL for a large allocation */
	bool shared;             /* the program accesses it: blocking copies and fills wait */
	struct obd_alloc *next, *prev;
};

#endif
