/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/keep.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/log.h"
#include "protocol/control.h"
#include "server/common/stats_page.h"
#include "server/layers/mps.h"
#include "server/layers/partition.h"

static _Atomic uint32_t by; /* enum obp_share_by */
/* The primary contexts that have parts. NULL: none; written by the thread that makes the parts. */
static _Atomic(CUcontext) parts[OBP_DEVICE_MAX];

static void settle(enum obp_share_by choice)
{
	atomic_store(&by, (uint32_t)choice);
	atomic_store_explicit(&obs_stats_page->share_by, (uint32_t)choice, memory_order_relaxed);
}

/* Puts each device's part into ret_units. */
static enum ob_err green_check(const struct obs_driver *drv, uint32_t n_devices,
	const struct obs_limits *limits, uint32_t ret_units[OBP_DEVICE_MAX],
	struct ob_cause *ret_cause)
{
	enum ob_err err = OB_ERR_NONE;

	for (uint32_t i = 0; i < n_devices && !err; i++)
		err = obs_partition_check(
			drv, (CUdevice)i, limits->share, &ret_units[i], ret_cause);
	return err;
}

static void units_tell(struct obp_welcome *welcome, const uint32_t units[OBP_DEVICE_MAX])
{
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		welcome->devices[i].attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] =
			(int32_t)units[i];
}

void obs_keep_choose(
	const struct obs_driver *drv, struct obp_welcome *welcome, const struct obs_limits *limits)
{
	uint32_t units[OBP_DEVICE_MAX] = { 0 };
	enum obp_share_by choice;
	struct ob_cause cause;
	enum ob_err err;

	if (limits->share >= OBP_SHARE_ALL) {
		settle(OBP_SHARE_BY_NONE);
		return;
	}
	for (unsigned i = 0; (choice = obs_limits_share_by(limits, i)) != OBP_SHARE_BY_NONE; i++) {
		err = OB_ERR_NONE;
		if (choice == OBP_SHARE_BY_MPS)
			err = obs_mps_check(limits->share, &cause);
		else if (choice == OBP_SHARE_BY_GREEN)
			err = green_check(drv, welcome->n_devices, limits, units, &cause);
		if (!err) {
			settle(choice);
			if (choice == OBP_SHARE_BY_GREEN)
				units_tell(welcome, units);
			return;
		}
		/* no warning: the supervisor warns once, and of the server as a whole */
		ob_info("the session's share is not kept by %s: %s", obp_share_by_name(choice),
			cause.text);
	}
	settle(OBP_SHARE_BY_THROTTLE);
}

enum obp_share_by obs_keep_by(void)
{
	return (enum obp_share_by)atomic_load_explicit(&by, memory_order_relaxed);
}

uint32_t obs_keep_offered(const struct obs_driver *drv, int device, const struct obs_limits *limits,
	struct ob_cause *ret_cause)
{
	uint32_t offered = 1u << OBP_SHARE_BY_THROTTLE;
	enum obp_share_by choice;
	struct ob_cause cause;
	enum ob_err err;

	for (unsigned i = 0; (choice = obs_limits_share_by(limits, i)) != OBP_SHARE_BY_NONE; i++) {
		err = OB_ERR_NONE;
		if (choice == OBP_SHARE_BY_MPS)
			err = obs_mps_check(limits->share, &cause);
		else if (choice == OBP_SHARE_BY_GREEN)
			/* the smallest share: a device that cannot be divided does not offer it */
			err = obs_partition_check(drv, device, 1, NULL, &cause);
		if (!err)
			offered |= 1u << choice;
		else if (i == 0)
			*ret_cause = cause;
	}
	return offered;
}

/* Replaces the first entry that is `old`. */
static void part_put(CUcontext old, CUcontext ctx)
{
	for (unsigned i = 0; i < ob_count(parts); i++)
		if (atomic_load_explicit(&parts[i], memory_order_relaxed) == old) {
			atomic_store_explicit(&parts[i], ctx, memory_order_relaxed);
			return;
		}
}

void obs_keep_part_made(CUcontext ctx)
{
	part_put(NULL, ctx);
}

void obs_keep_part_ended(CUcontext ctx)
{
	part_put(ctx, NULL);
}

void obs_keep_fall_back(const struct ob_cause *cause)
{
	ob_warn("the session's share is not kept by green: %s; its launches are held back instead",
		cause->text);
	settle(OBP_SHARE_BY_THROTTLE);
}

bool obs_keep_inside(CUcontext ctx, bool graph)
{
	if (obs_keep_by() == OBP_SHARE_BY_MPS)
		return true;
	if (graph || !ctx)
		return false;
	for (unsigned i = 0; i < ob_count(parts); i++)
		if (atomic_load_explicit(&parts[i], memory_order_relaxed) == ctx)
			return true;
	return false;
}
