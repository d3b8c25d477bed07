/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "protocol/call.h"

bool obs_trace_on;

void obs_trace_open(void)
{
	const char *text = getenv("OUTBOARD_TRACE");

	obs_trace_on = text && *text && strcmp(text, "0") != 0;
	/*
	 * For programs the variable names a file; the software device inside this worker must not
	 * open one.
	 */
	unsetenv("OUTBOARD_TRACE");
	if (obs_trace_on && !ob_log_on(OB_LOG_INFO))
		ob_log_set_level(OB_LOG_INFO);
}

void obs_trace_driver(unsigned call, CUresult result)
{
	ob_info("trace:   %s = %d", obs_driver_names[call], (int)result);
}

void obs_trace_record(
	uint64_t number, uint16_t lane, uint16_t opcode, const void *body, uint32_t size)
{
	char line[512];

	obp_print_call(line, sizeof line, opcode, body, size);
	ob_info("trace: #%llu lane %u %s", (unsigned long long)number, lane, line);
}
