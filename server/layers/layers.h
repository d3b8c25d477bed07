/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Layers around the driver's table, each in its file, each off unless the environment asks for it:
 *
 *   OUTBOARD_TRACE=1           trace.c  one line for each record and each driver call
 *   OUTBOARD_STATS=1           stats.c  at the session's end, how often each driver call was
 *                              made and how many failed
 *   (always)                   quota.c  memory is charged and capped, launches take turns:
 *                              see quota.h
 *   OUTBOARD_FAULT=name:n=what fault.c  what happens at a worker's n-th call of that name; several, separated by commas
 *                                             code: it fails with that CUresult
 *                                             hold, hold@FILE: it is logged and held until FILE exists, two minutes at most. Tests kill a worker or
 *                                             its server there instead of guessing how long work takes
 *
 * Set up once before the driver is used; the hooks run on whichever thread calls the driver.
 */
#ifndef OBS_LAYERS_H
#define OBS_LAYERS_H

#include "protocol/obs_driver.h"

/*
 * *table becomes what the server calls: the driver `bare` with all layers around it. *faulty holds
 * the driver with the fault layer alone. All three stay where they are.
 */
void obs_layers_wrap(
	struct obs_driver *table, struct obs_driver *faulty, const struct obs_driver *bare);

#endif
