/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_alloc: one piece of device memory. Small ones share a chunk (chunk.h); large ones lie alone,
 * with a page behind them that nothing may touch. memory.h has what is done with them.
 *
 * An allocation belongs to its context and goes with it. Any thread; the context's lock guards its
 * list. Structs are reused but never given back to malloc, so a look-up that races with a free (a
 * fault of the program) reads an allocation.
 */
#ifndef OBD_ALLOC_H
#define OBD_ALLOC_H

#include <stdint.h>

#include "softdevice/window.h"

enum obd_alloc_kind {
	OBD_ALLOC_USER = 1, /* cuMemAlloc, pools: in the front end's map */
	OBD_ALLOC_GLOBAL,   /* a module's variable: in the front end's map, not for cuMemFree */
	OBD_ALLOC_HEAP,     /* malloc in a kernel: only kernels may touch it */
};

struct obd_chunk;
struct obd_ctx;

struct obd_alloc {
	/* base and exact size; kind OBD_SPAN_ALLOC whether large or small */
	struct obd_span span;
	enum obd_alloc_kind kind;
	struct obd_ctx *ctx;
	struct obd_chunk *chunk; /* NULL: large */
	struct obd_alloc *next, *prev;
};

#endif
