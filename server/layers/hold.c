/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/hold.h"

#include <stdatomic.h>

#include "server/common/stats_page.h"

/*
 * Room is reserved before the memory is allocated, so that two threads cannot both take the last of
 * it.
 */
bool obs_hold_take(enum obs_purpose purpose, uint64_t bytes)
{
	uint64_t limit = obs_limits_now.host_memory,
		 now = obs_stats_page_read(&obs_stats_page->host_used);

	do {
		if (limit && (now > limit || bytes > limit - now))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&obs_stats_page->host_used, &now,
		now + bytes, memory_order_relaxed, memory_order_relaxed));
	atomic_fetch_add_explicit(&obs_stats_page->host[purpose], bytes, memory_order_relaxed);
	return true;
}

void obs_hold_add(enum obs_purpose purpose, uint64_t bytes)
{
	atomic_fetch_add_explicit(&obs_stats_page->host_used, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&obs_stats_page->host[purpose], bytes, memory_order_relaxed);
}

void obs_hold_give(enum obs_purpose purpose, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&obs_stats_page->host_used, bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&obs_stats_page->host[purpose], bytes, memory_order_relaxed);
}

bool obs_hold_room(uint64_t bytes)
{
	uint64_t limit = obs_limits_now.host_memory,
		 now = obs_stats_page_read(&obs_stats_page->host_used);

	return !limit || (now <= limit && bytes <= limit - now);
}
