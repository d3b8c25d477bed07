/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Counters of the process. Any thread. */
#ifndef OBD_CORE_STATS_H
#define OBD_CORE_STATS_H

#include <stdint.h>

void obd_stats_add(uint64_t lane_instructions);
/* Adds the number of instructions of the longest warp of a finished launch. */
void obd_stats_launched(uint64_t longest);

#endif
