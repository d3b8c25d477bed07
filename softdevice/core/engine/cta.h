/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Blocks. A block belongs to one worker from its start to its end, and only that worker's thread
 * calls these functions.
 */
#ifndef OBD_CORE_CTA_H
#define OBD_CORE_CTA_H

#include "softdevice/core/engine/exec.h"

/* Memory for one block of the worker's launch. NULL: out of memory. */
struct obd_cta *obd_cta_new(struct obd_worker *wk);
void obd_cta_free(struct obd_cta *c);
/* Starts the block with this index: all threads are at the kernel's first instruction. */
void obd_cta_start(struct obd_cta *c, uint64_t index);

enum obd_cta_turn {
	OBD_TURN_DONE, /* all threads have exited */
	OBD_TURN_MORE, /* the turn is over; another block may run */
	OBD_TURN_STOP, /* the launch was stopped */
};
/* Runs all warps of the block for one turn. */
enum obd_cta_turn obd_cta_run(struct obd_cta *c);

#endif
