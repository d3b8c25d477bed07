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

#include <stdbool.h>
#include <stdint.h>

#include "protocol/obs_driver.h"

struct obs_driver_lib;

#define OBS_FAULTS_MAX 16

/* Sets lib->table from lib->bare. */
void obs_layers_wrap(struct obs_driver_lib *lib);

/* trace.c */
extern bool obs_trace_on;
void obs_trace_open(void);
void obs_trace_driver(unsigned call, CUresult result);
void obs_trace_record(
	uint64_t number, uint16_t lane, uint16_t opcode, const void *body, uint32_t size);

/* stats.c */
extern bool obs_stats_on;
void obs_stats_open(void);
void obs_stats_driver(unsigned call, CUresult result);
void obs_stats_print(void);

/* fault.c: NULL when no fault is asked for. */
const struct obs_layer_hooks *obs_fault_open(void);

#endif
