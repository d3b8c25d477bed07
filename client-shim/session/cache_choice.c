/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/cache_choice.h"

uint64_t obc_cache_copy_min(bool forced)
{
	return forced ? OBC_CACHE_CHUNK_MIN : OBC_CACHE_COPY_MIN;
}

bool obc_cache_room(const struct obc_cache_view *view)
{
	return view->stored < view->capacity - view->capacity / 8;
}

enum obc_cache_way obc_cache_pays(const struct obc_cache_view *view, size_t size)
{
	if (!view->capacity || size < obc_cache_copy_min(view->forced))
		return OBC_CACHE_PLAIN;
	if (view->forced)
		return OBC_CACHE_ASK;
	if (!obc_cache_room(view) && view->hits < view->misses / 3)
		return OBC_CACHE_PLAIN;
	if (view->unmeasured >= (view->link > 0 ? OBC_CACHE_STALE : OBC_CACHE_BLIND) &&
		size >= 2 * OBC_CACHE_PROBE)
		return OBC_CACHE_MEASURE;
	if (view->link > 0 &&
		(view->link > OBC_CACHE_GAIN * view->naming ||
			(double)size / view->link < 2 * view->rtt_s))
		return OBC_CACHE_PLAIN;
	return OBC_CACHE_ASK;
}
