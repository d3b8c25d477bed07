/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/device.h"

#include <math.h>

#include "base/check.h"

#define GIB           (1024.0 * 1024 * 1024)
/* Slow start: one session in the first second, one more for each further second. */
#define SLOW_START_MS 30000u

double obl_device_score(const struct obl_server *server, uint32_t index)
{
	const struct obl_device *device = &server->devices[index];
	/*
	 * Geometric mean: both compute and memory count, and neither makes up for a lack of the
	 * other.
	 */
	double compute = sqrt(ob_max(device->units, 1u) * (ob_max(device->clock_mhz, 1u) / 1000.0));
	double memory = sqrt(ob_max((double)device->total / GIB, 1.0));
	double score = compute * memory;

	/*
	 * A round trip of 100 us halves the score, as it does the speed of a program with many
	 * short calls; so does a rate of 1 GB/s, for large copies.
	 */
	if (server->link_ns)
		score *= 2.0 / (1.0 + (double)server->link_ns / 100e3);
	if (server->link_bytes_s)
		score *= 2.0 / (1.0 + 1e9 / (double)server->link_bytes_s);
	return device->kind == OBL_SOFTWARE ? score / 100 : score;
}

void obl_server_score(struct obl_server *server)
{
	for (uint32_t i = 0; i < ob_min(server->n_devices, OBL_DEVICES_MAX); i++)
		server->devices[i].score = (float)obl_device_score(server, i);
}

void obl_device_take(struct obl_device *device, uint64_t memory, uint32_t share, bool exclusive)
{
	device->reserved =
		memory > UINT64_MAX - device->reserved ? UINT64_MAX : device->reserved + memory;
	device->share = share > UINT32_MAX - device->share ? UINT32_MAX : device->share + share;
	device->sharers += device->sharers < UINT32_MAX;
	device->held |= exclusive;
}

void obl_device_give(struct obl_device *device, uint64_t memory, uint32_t share, bool exclusive)
{
	device->reserved -= ob_min(memory, device->reserved);
	device->share -= ob_min(share, device->share);
	device->sharers -= device->sharers > 0;
	if (exclusive)
		device->held = false;
}

uint32_t obl_slow_start(uint64_t age_ms)
{
	return age_ms >= SLOW_START_MS ? 0 : 1 + (uint32_t)(age_ms / 1000);
}

const char *obl_kind_name(unsigned kind)
{
	static const char *const names[OBL_KINDS] = { "gpu", "mig", "software" };

	return kind < OBL_KINDS ? names[kind] : "?";
}
