/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * How often each driver call was made and how many failed, with OUTBOARD_STATS=1. Any thread.
 */
#ifndef OBS_STATS_H
#define OBS_STATS_H

#include <stdbool.h>

#include "protocol/obs_driver.h"

extern bool obs_stats_on;
void obs_stats_open(void);
void obs_stats_driver(unsigned call, CUresult result);
void obs_stats_print(void);

#endif
