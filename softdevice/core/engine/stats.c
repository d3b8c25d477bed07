/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/stats.h"

#include <stdatomic.h>

#include "softdevice/core/program.h"

static _Atomic uint64_t lane_instructions, longest_instructions;

void obd_stats_add(uint64_t n)
{
	atomic_fetch_add_explicit(&lane_instructions, n, memory_order_relaxed);
}

void obd_stats_launched(uint64_t longest)
{
	atomic_fetch_add_explicit(&longest_instructions, longest, memory_order_relaxed);
}

uint64_t obd_core_longest_instructions(void)
{
	return atomic_load_explicit(&longest_instructions, memory_order_relaxed);
}

uint64_t obd_core_lane_instructions(void)
{
	return atomic_load_explicit(&lane_instructions, memory_order_relaxed);
}
