/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures copies of sizes from 4 KiB up in both directions. The bare transport (between two
 * processes of this machine, whatever connects it to the server) alternates with three sessions:
 * one that copies plainly, one that compresses where that is faster, and one that uses stripes.
 * Prints in sentences which of them is best for this link and at which size the rate stops growing.
 */
#ifndef OBX_BANDWIDTH_H
#define OBX_BANDWIDTH_H

#include <stdbool.h>

#include "base/json.h"
#include "tools/lines.h"
#include "transport/url.h"

enum obx_way { OBX_PLAIN, OBX_PACKED, OBX_STRIPED, OBX_WAYS };

struct obx_bandwidth {
	struct obx_line ways[OBX_WAYS];
	void *host;
};

/*
 * To be called before this process has a session. OUTBOARD_SERVER names the server. False: errno.
 */
bool obx_bandwidth_start(struct obx_bandwidth *bandwidth);
/* json, plot: as for obx_latency_run. Returns the exit code. */
int obx_bandwidth_run(struct obx_bandwidth *bandwidth, const struct obt_url *url, unsigned rounds,
	struct ob_json *json, const char *plot);
void obx_bandwidth_stop(struct obx_bandwidth *bandwidth);

#endif
