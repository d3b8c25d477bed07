/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_worker: one thread's share of a launch. A worker may hold several blocks and run them in
 * turn, so that blocks that wait for each other make progress.
 */
#ifndef OBD_CORE_WORKER_H
#define OBD_CORE_WORKER_H

#include "softdevice/core/engine/exec.h"

/*
 * Runs blocks of the launch until none is left or the launch is stopped. Catches the faults of the
 * calling thread.
 */
void obd_worker_run(struct obd_launch *l);

#endif
