/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Layers around the driver's table, one file each. All but quota and devices are off unless the environment
 * asks for them:
 *
 *   OUTBOARD_TRACE=1           trace.c  one line for each record and each driver call
 *   OUTBOARD_STATS=1           stats.c  at the session's end: calls of each driver function, and
 *                                       how many failed
 *   (always)                   quota.c  memory is charged and capped, launches take turns (quota.h)
 *   (always)                   devices.c  innermost: only the devices of the session's ticket
 *   OUTBOARD_FAULT=name:n=what fault.c  injects a fault at the n-th call of that name, or with * at
 *                                       every one; several with commas between them. what: a
 *                                       number: the call fails with that CUresult; hold or
 *                                       hold@FILE: the call is logged and held until FILE exists,
 *                                       two minutes at most. Tests kill a worker or its server
 *                                       there instead of guessing how long work takes.
 *
 * Set up once before the driver is used. The hooks run on the thread that calls the driver.
 */
#ifndef OBS_LAYERS_H
#define OBS_LAYERS_H

#include "protocol/obs_driver.h"

/*
 * Makes *table the driver `bare` with all layers around it, and *faulty the driver with the fault
 * layer alone. All three must stay at their addresses.
 */
void obs_layers_wrap(
	struct obs_driver *table, struct obs_driver *faulty, const struct obs_driver *bare);

#endif
