/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_event: a name for the op that it was last recorded with. A wait or a query means that op,
 * however often the event is recorded afterwards.
 *
 * Belongs to its context; references: the handle and each caller that looked it up. Any thread.
 */
#ifndef OBD_EVENT_H
#define OBD_EVENT_H

#include <stdint.h>

#include "base/cuda_types.h"

#define OBD_EVENT_MAX (1u << 20) /* live events in the process */

struct obd_ctx;
struct obd_op;

struct obd_event {
	CUevent handle;
	struct obd_ctx *ctx;
	unsigned flags;
	int refs;                      /* this and op: the table's lock */
	struct obd_op *op;             /* referenced; NULL: never recorded */
	struct obd_event *next, *prev; /* in ctx->events; the context's lock */
};

/* The context goes: its events' handles are no longer known. */
void obd_event_forget(struct obd_ctx *ctx);

#endif
