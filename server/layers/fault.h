/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Faults that OUTBOARD_FAULT asks for; layers.h has the syntax. */
#ifndef OBS_FAULT_H
#define OBS_FAULT_H

#include "protocol/obs_driver.h"

#define OBS_FAULTS_MAX 16

/* Reads the setting. NULL when no fault is asked for. */
const struct obs_layer_hooks *obs_fault_open(void);

#endif
