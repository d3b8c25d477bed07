/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Chooses how the session is kept within its share of a device: by MPS (mps.h), by a green context
 * (partition.h), or by holding its launches back (share.h), in the order that the server's
 * --share-by says. Holding back is always possible. It also bounds what a session of the other
 * methods launches outside its part of the device: with a green context those are graphs, whose
 * kernels run where they were recorded, and contexts of the program's own. One session per process,
 * so one state, which the stats page shows. Chosen by the main thread; any thread then.
 */
#ifndef OBS_KEEP_H
#define OBS_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "base/cuda_types.h"
#include "protocol/load.h"
#include "server/common/limits.h"

struct obp_welcome;
struct obs_driver;

/*
 * Chooses for `limits` and the devices of the welcome. The log says why a method that comes first
 * in the list cannot be used. With green contexts the welcome's devices get the number of
 * multiprocessors of their parts, since programs size grids by it.
 */
void obs_keep_choose(
	const struct obs_driver *drv, struct obp_welcome *welcome, const struct obs_limits *limits);
enum obp_share_by obs_keep_by(void);
/*
 * What a device offers, as in struct obp_load_device: what --share-by names and the device can do.
 * Needs no context. *ret_cause: why the first method is not offered; else as before.
 */
uint32_t obs_keep_offered(const struct obs_driver *drv, int device, const struct obs_limits *limits,
	struct ob_cause *ret_cause);
/* The primary context `ctx` has its part now; no longer. */
void obs_keep_part_made(CUcontext ctx);
void obs_keep_part_ended(CUcontext ctx);
/* The green context of a device could not be made: launches there are held back. */
void obs_keep_fall_back(const struct ob_cause *cause);
/* Whether a launch in this context, of this kind, has no more of the device than the share. */
bool obs_keep_inside(CUcontext ctx, bool graph);

#endif
