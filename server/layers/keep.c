/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/keep.h"

#include <stdatomic.h>

#include "base/log.h"
#include "server/common/stats_page.h"
#include "server/layers/mps.h"
#include "server/layers/partition.h"

static _Atomic uint32_t by; /* enum obp_share_by */
static _Atomic bool further;

static void settle(enum obp_share_by choice)
{
	atomic_store(&by, (uint32_t)choice);
	atomic_store_explicit(&obs_stats_page->share_by, (uint32_t)choice, memory_order_relaxed);
}

static enum ob_err mps_check(const struct obs_limits *limits, struct ob_cause *ret_cause)
{
	if (!obs_mps_share())
		return ob_cause_set(
			ret_cause, OB_ERR_DRIVER, "this worker's driver is not a client of MPS");
	if (obs_mps_share() != limits->share)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"MPS keeps the share of the server's --share, which is %u millionths, and "
			"this session's is %u",
			obs_mps_share(), limits->share);
	return OB_ERR_NONE;
}

static enum ob_err green_check(const struct obs_driver *drv, uint32_t n_devices,
	const struct obs_limits *limits, struct ob_cause *ret_cause)
{
	enum ob_err err = OB_ERR_NONE;

	for (uint32_t i = 0; i < n_devices && !err; i++)
		err = obs_partition_check(drv, (CUdevice)i, limits->share, ret_cause);
	return err;
}

void obs_keep_choose(
	const struct obs_driver *drv, uint32_t n_devices, const struct obs_limits *limits)
{
	enum obp_share_by choice;
	struct ob_cause cause;
	enum ob_err err;

	atomic_store(&further, false);
	if (limits->share >= OBP_SHARE_ALL) {
		settle(OBP_SHARE_BY_NONE);
		return;
	}
	for (unsigned i = 0; (choice = obs_limits_share_by(limits, i)) != OBP_SHARE_BY_NONE; i++) {
		err = OB_ERR_NONE;
		if (choice == OBP_SHARE_BY_MPS)
			err = mps_check(limits, &cause);
		else if (choice == OBP_SHARE_BY_GREEN)
			err = green_check(drv, n_devices, limits, &cause);
		if (!err) {
			settle(choice);
			return;
		}
		ob_warn("the session's share is not kept by %s: %s", obp_share_by_name(choice),
			cause.text);
	}
	settle(OBP_SHARE_BY_THROTTLE);
}

enum obp_share_by obs_keep_by(void)
{
	return (enum obp_share_by)atomic_load_explicit(&by, memory_order_relaxed);
}

uint32_t obs_keep_offered(const struct obs_driver *drv, int device, const struct obs_limits *limits)
{
	uint32_t offered = 1u << OBP_SHARE_BY_THROTTLE;
	enum obp_share_by choice;

	for (unsigned i = 0; (choice = obs_limits_share_by(limits, i)) != OBP_SHARE_BY_NONE; i++)
		/* the smallest share: a device that cannot be divided does not offer it */
		if (choice == OBP_SHARE_BY_GREEN ? !obs_partition_check(drv, device, 1, NULL)
						 : obs_mps_share() != 0)
			offered |= 1u << choice;
	return offered;
}

void obs_keep_fall_back(const struct ob_cause *cause)
{
	ob_warn("the session's share is not kept by green: %s; its launches are held back instead",
		cause->text);
	settle(OBP_SHARE_BY_THROTTLE);
}

void obs_keep_further_context(void)
{
	atomic_store_explicit(&further, true, memory_order_relaxed);
}

bool obs_keep_holds(bool graph)
{
	switch (obs_keep_by()) {
	case OBP_SHARE_BY_THROTTLE:
		return true;
	case OBP_SHARE_BY_GREEN:
		return graph || atomic_load_explicit(&further, memory_order_relaxed);
	default:
		return false;
	}
}
