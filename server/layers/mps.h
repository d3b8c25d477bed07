/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * NVIDIA's Multi-Process Service: a driver that is loaded while MPS's control daemon runs becomes a
 * client of it, with a percentage of each device's threads. That is a setting of the environment
 * that the driver reads when it starts, so it is that of the whole process, and cannot follow what
 * a client asks for later. One session per process, so one state. Main thread, in the order below;
 * obs_mps_check: any thread then.
 */
#ifndef OBS_MPS_H
#define OBS_MPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"

struct obs_driver;

/* where the daemon listens unless CUDA_MPS_PIPE_DIRECTORY says otherwise */
#define OBS_MPS_DIRECTORY    "/tmp/nvidia-mps"
#define OBS_MPS_PERCENT_UNIT 10000u /* millionths in a percent */

/*
 * Before the driver is loaded. If a control daemon answers, sets CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
 * to `share` (millionths), rounded up to whole percents. A lower value that is set stays.
 * OB_ERR_DRIVER: nothing is set, and *ret_cause says why.
 */
enum ob_err obs_mps_begin(uint32_t share, struct ob_cause *ret_cause);
bool obs_mps_begun(void);
/*
 * When the driver has started: asks it whether its contexts are shared by MPS on all devices, since
 * a driver that cannot reach the daemon may start without it. OB_ERR_DRIVER: it did.
 */
enum ob_err obs_mps_confirm(
	const struct obs_driver *drv, int n_devices, struct ob_cause *ret_cause);
/* MPS is not used, because of *cause. */
void obs_mps_refuse(const struct ob_cause *cause);
/* Whether MPS keeps this share, in millionths. OB_ERR_DRIVER: *ret_cause says why not. */
enum ob_err obs_mps_check(uint32_t share, struct ob_cause *ret_cause);

#endif
