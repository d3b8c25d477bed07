/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * NVIDIA's Multi-Process Service: a driver that is loaded while MPS's control daemon runs becomes a
 * client of it, with a percentage of each device's threads and a limit of its memory. Both are
 * settings of the environment that the driver reads when it starts, so they are those of the whole
 * process, and cannot follow what a client asks for later. One session per process, so one state.
 * Main thread, before the driver is loaded; obs_mps_share: any thread then.
 */
#ifndef OBS_MPS_H
#define OBS_MPS_H

#include <stdint.h>

#include "base/cause.h"

/* where the daemon listens unless CUDA_MPS_PIPE_DIRECTORY says otherwise */
#define OBS_MPS_DIRECTORY    "/tmp/nvidia-mps"
/* devices that the limit of memory names */
#define OBS_MPS_DEVICES_MAX  16u
#define OBS_MPS_PERCENT_UNIT 10000u /* millionths in a percent */

/*
 * If a control daemon answers, sets CUDA_MPS_ACTIVE_THREAD_PERCENTAGE to `share` (millionths, below
 * all), rounded up to whole percents, and CUDA_MPS_PINNED_DEVICE_MEM_LIMIT to `memory` bytes on each
 * device (0: no limit), rounded up to MiB. OB_ERR_DRIVER: nothing is set, and *ret_cause says why.
 */
enum ob_err obs_mps_begin(uint32_t share, uint64_t memory, struct ob_cause *ret_cause);
/* The share of this process in millionths, as given to obs_mps_begin; 0: MPS is not used. */
uint32_t obs_mps_share(void);

#endif
