/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Frames: the registers of one call of a function. A worker keeps the frames that it has used, by
 * function, so that a call allocates only when the recursion gets deeper. Only the worker's thread.
 */
#ifndef OBD_CORE_FRAME_H
#define OBD_CORE_FRAME_H

#include "softdevice/core/engine/exec.h"

/*
 * A frame for f, which the warp w starts or calls, with its constants filled in and its prologue
 * executed. NULL: out of memory.
 */
struct obd_frame *obd_frame_get(struct obd_warp *w, const struct obd_func *f);
/* Returns the frame to the worker. */
void obd_frame_put(struct obd_worker *wk, struct obd_frame *f);
/* Frees all frames of the worker. */
void obd_frame_free_all(struct obd_worker *wk);

#endif
