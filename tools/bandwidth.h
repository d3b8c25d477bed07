/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Copies of every size from 4 KiB up, both ways, beside the bare transport in turn; where the rate stops growing, in one sentence. */
#ifndef OBX_BANDWIDTH_H
#define OBX_BANDWIDTH_H

#include <stdbool.h>

#include "base/cuda_types.h"
#include "transport/url.h"

#define OBX_SWEEP_BYTES_MAX (64u << 20)

struct obx_bandwidth_calls {
	CUresult (*to_device)(CUdeviceptr, const void *, size_t);
	CUresult (*to_host)(void *, CUdeviceptr, size_t);
	CUresult (*synchronize)(void);
};

/* host and device have OBX_SWEEP_BYTES_MAX bytes. json, any_row, plot: as obx_latency_run. The exit code. */
int obx_bandwidth_run(const struct obx_bandwidth_calls *calls, CUdeviceptr device, void *host,
	const struct obt_url *url, unsigned rounds, bool json, bool any_row,
	const char *plot);

#endif
