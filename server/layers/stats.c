/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/stats.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

bool obs_stats_on;
static _Atomic uint64_t calls[OBS_DRIVER_CALLS], failures[OBS_DRIVER_CALLS];

void obs_stats_open(void)
{
	const char *text = getenv("OUTBOARD_STATS");

	obs_stats_on = text && *text && strcmp(text, "0") != 0;
}

void obs_stats_driver(unsigned call, CUresult result)
{
	atomic_fetch_add_explicit(&calls[call], 1, memory_order_relaxed);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		atomic_fetch_add_explicit(&failures[call], 1, memory_order_relaxed);
}

void obs_stats_print(void)
{
	if (!obs_stats_on)
		return;
	if (!ob_log_on(OB_LOG_INFO))
		ob_log_set_level(OB_LOG_INFO);
	for (unsigned i = 0; i < OBS_DRIVER_CALLS; i++) {
		uint64_t n = atomic_load_explicit(&calls[i], memory_order_relaxed);

		if (n)
			ob_info("stats: %10llu  %s (%llu failed)", (unsigned long long)n,
				obs_driver_names[i],
				(unsigned long long)atomic_load_explicit(
					&failures[i], memory_order_relaxed));
	}
}
