/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard msm tune` and `outboard msm calibrate`: measure this machine and keep the result. They
 * print what was measured, as text or as one JSON object, and return an exit code.
 */
#ifndef OBX_MSM_PROFILE_H
#define OBX_MSM_PROFILE_H

#include "compute/command/devices.h"

/* Measures the windows of the CPU with the threads asked for, for sizes up to 2^largest. */
int obx_msm_tune(const struct obx_devices *devices, unsigned largest, bool as_json);
/* Measures all devices for about `seconds`. Opens and closes them. */
int obx_msm_calibrate(struct obx_devices *devices, double seconds, bool as_json);

#endif
