/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard run --direct` uses no server: the devices are those of the software device in this
 * process, asked through the driver API of the libcuda.so.1 that the command has set up. The lock
 * of state.h is held.
 */
#ifndef OBC_NVML_DIRECT_H
#define OBC_NVML_DIRECT_H

#include "base/cause.h"
#include "protocol/load.h"

/* OB_ERR_DRIVER: there is no such library; *ret_cause. */
enum ob_err obc_nvml_direct(struct obp_load *ret, struct ob_cause *ret_cause);

#endif
