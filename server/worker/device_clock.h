/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_device_clock: converts the times of a context's events to the server's monotonic clock. From
 * time to time an event is recorded in a stream of its own, which has no other work, and polled for
 * at most OBS_DEVICE_CLOCK_SPIN_NS: an anchor. Its time on the device lies between the server's
 * clock before and after, and the middle of the two is taken. Times between the last two anchors
 * are interpolated, so that clocks that drift are followed.
 *
 * The context must be current. One thread at a time.
 */
#ifndef OBS_DEVICE_CLOCK_H
#define OBS_DEVICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBS_DEVICE_CLOCK_SPIN_NS  100000u     /* the longest wait for an anchor */
#define OBS_DEVICE_CLOCK_RENEW_NS 250000000u  /* age at which another anchor is tried */
#define OBS_DEVICE_CLOCK_RETRY_NS 1000000u    /* between tries */
#define OBS_DEVICE_CLOCK_OLD_NS   5000000000u /* age at which a less exact anchor is taken */

struct obs_driver;

struct obs_device_clock {
	CUstream stream; /* NULL: not begun */
	CUevent events[2];
	uint64_t at[2], width[2]; /* ns: server's time, and by how much it may be wrong in all */
	unsigned last, n;         /* index of the last anchor; number of anchors */
	unsigned count; /* anchors taken so far; times by different ones differ a little */
	uint64_t tried; /* ns */
	double rate;    /* server's time to device's time between the two anchors */
};

/* Takes the first anchor. False: the driver cannot, nothing was made. */
bool obs_device_clock_init(struct obs_device_clock *clock, const struct obs_driver *drv);
void obs_device_clock_fini(struct obs_device_clock *clock, const struct obs_driver *drv);
/*
 * Another anchor, in three steps, so that the second one needs no lock: it changes nothing that the
 * other functions read. now: server's clock, ns.
 */
bool obs_device_clock_due(struct obs_device_clock *clock, uint64_t now);
bool obs_device_clock_take(struct obs_device_clock *clock, const struct obs_driver *drv);
/* taken: the result of the second step. */
void obs_device_clock_settle(
	struct obs_device_clock *clock, const struct obs_driver *drv, bool taken);
/*
 * The server's time of a complete event. *ret_far: it is so far from the anchor that the driver's
 * numbers are too coarse for differences. False: there is no anchor, or the driver reports an
 * error.
 */
bool obs_device_clock_time(const struct obs_device_clock *clock, const struct obs_driver *drv,
	CUevent event, uint64_t *ret_ns, bool *ret_far);

#endif
