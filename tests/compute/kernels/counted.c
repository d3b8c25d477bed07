/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/program.h"

__attribute__((visibility("default"))) uint64_t counted_longest(void);
__attribute__((visibility("default"))) uint64_t counted_all(void);

uint64_t counted_longest(void)
{
	return obd_core_longest_instructions();
}

uint64_t counted_all(void)
{
	return obd_core_lane_instructions();
}
