/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* One line for each record and each driver call, with OUTBOARD_TRACE=1. Any thread. */
#ifndef OBS_TRACE_H
#define OBS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/obs_driver.h"

extern bool obs_trace_on;
void obs_trace_open(void);
void obs_trace_driver(unsigned call, CUresult result);
void obs_trace_record(
	uint64_t number, uint16_t lane, uint16_t opcode, const void *body, uint32_t size);

#endif
