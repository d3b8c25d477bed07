/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/layers.h"

#include <stddef.h>

#include "server/layers/fault.h"
#include "server/layers/quota.h"
#include "server/layers/stats.h"
#include "server/layers/trace.h"

static void watch(unsigned call, CUresult result)
{
	if (obs_stats_on)
		obs_stats_driver(call, result);
	if (obs_trace_on)
		obs_trace_driver(call, result);
}

void obs_layers_wrap(
	struct obs_driver *table, struct obs_driver *faulty, const struct obs_driver *bare)
{
	static const struct obs_layer_hooks watching = { .after = watch };
	const struct obs_layer_hooks *fault = obs_fault_open();
	static struct obs_driver devices;
	const struct obs_driver *inner = &devices;

	obs_devices_wrap(&devices, bare);
	obs_trace_open();
	obs_stats_open();
	if (fault) {
		obs_layer_wrap(faulty, 0, inner, fault);
		inner = faulty;
	}
	if (obs_trace_on || obs_stats_on)
		obs_layer_wrap(table, 1, inner, &watching);
	else
		*table = *inner;
	obs_quota_wrap(table);
}
