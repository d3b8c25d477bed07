/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Blocks and the worker that runs them. A block belongs to one worker from its start to its end. A
 * worker may hold several blocks and run them in turn, so that blocks that wait for each other make
 * progress.
 */
#ifndef OBD_CORE_CTA_H
#define OBD_CORE_CTA_H

#include "softdevice/core/exec.h"

/* Completes barrier `id` if all threads that it waits for have arrived. */
void obd_cta_barrier_check(struct obd_cta *c, uint32_t id);

/* A frame for f, with its constants filled in. NULL: out of memory. */
struct obd_frame *obd_worker_get_frame(struct obd_worker *wk, const struct obd_func *f);
void obd_worker_put_frame(struct obd_worker *wk, struct obd_frame *f);

/*
 * Runs blocks of the launch until none is left or the launch is stopped. Catches the faults of the
 * calling thread.
 */
void obd_worker_run(struct obd_launch *l);

#endif
