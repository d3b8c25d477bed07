/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Chooses how the session is kept within its share of a device: by MPS (mps.h), by a green context
 * (partition.h), or by holding its launches back (share.h), in the order that the server's
 * --share-by says. Holding back is always possible, and is used for what a green context does not
 * reach: graphs, whose kernels run where they were recorded, and contexts of the program's own. One
 * session per process, so one state, which the stats page shows. Chosen by the main thread; any
 * thread then.
 */
#ifndef OBS_KEEP_H
#define OBS_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "protocol/load.h"
#include "server/common/limits.h"

struct obs_driver;

/*
 * Chooses for `limits` and the devices 0 to n_devices - 1 of `drv`. The log says why a method that
 * comes first in the list cannot be used.
 */
void obs_keep_choose(
	const struct obs_driver *drv, uint32_t n_devices, const struct obs_limits *limits);
enum obp_share_by obs_keep_by(void);
/*
 * What a device offers, as in struct obp_load_device: what --share-by names and the device can do.
 * Needs no context.
 */
uint32_t obs_keep_offered(
	const struct obs_driver *drv, int device, const struct obs_limits *limits);
/* The green context of a device could not be made: launches are held back from now on. */
void obs_keep_fall_back(const struct ob_cause *cause);
/* The program makes a context of its own: launches are held back as well from now on. */
void obs_keep_further_context(void);
/* Whether a launch of this kind must be held back. */
bool obs_keep_holds(bool graph);

#endif
