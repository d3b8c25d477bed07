/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * How a grid ends badly: the first fault of a launch is written down, the thread that met it jumps
 * out of its work, the others see launch->stop. Memory faults inside the window come as signals;
 * the handlers are installed once and hand on every signal that is not ours.
 */
#ifndef OBD_CORE_FAULT_H
#define OBD_CORE_FAULT_H

#include "softdevice/core/exec.h"

#define OBD_JUMP_FAULT  1
#define OBD_JUMP_SIGNAL 2

/* Between these two, faults on the calling thread belong to the worker. */
void obd_fault_enter(struct obd_worker *wk);
void obd_fault_leave(void);
/* After the jump: writes down the access that raised the signal. */
void obd_fault_from_signal(struct obd_worker *wk);
/* Without a place in the program. */
void obd_fault_abort(struct obd_launch *l);
void obd_fault_memory(struct obd_launch *l);

#endif
