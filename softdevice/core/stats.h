/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Counters of the whole process; any thread. */
#ifndef OBD_CORE_STATS_H
#define OBD_CORE_STATS_H

#include <stdint.h>

void obd_stats_add(uint64_t lane_instructions);
/* Of a launch that is over: the instructions of its longest warp. */
void obd_stats_launched(uint64_t longest);

#endif
