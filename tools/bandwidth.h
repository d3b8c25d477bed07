/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies of every size from 4 KiB up, both ways, in turn: the bare transport (of this machine,
 * whatever the way to the server is), and a session each that copies plainly, that packs where it
 * pays, and that uses stripes. Which of them is best for this link, and where the rate stops
 * growing, in sentences.
 */
#ifndef OBX_BANDWIDTH_H
#define OBX_BANDWIDTH_H

#include <stdbool.h>

#include "tools/lines.h"
#include "transport/url.h"

enum obx_way { OBX_PLAIN, OBX_PACKED, OBX_STRIPED, OBX_WAYS };

struct obx_bandwidth {
	struct obx_line ways[OBX_WAYS];
	void *host;
};

/* Before this process has a session; OUTBOARD_SERVER names the server. False: errno. */
bool obx_bandwidth_start(struct obx_bandwidth *bandwidth);
/* json, any_row, plot: as obx_latency_run. The exit code. */
int obx_bandwidth_run(struct obx_bandwidth *bandwidth, const struct obt_url *url, unsigned rounds,
	bool json, bool any_row, const char *plot);
void obx_bandwidth_stop(struct obx_bandwidth *bandwidth);

#endif
