/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard run --direct` uses no server: the devices are those of the software device in this
 * process, asked through the driver API of the libcuda.so.1 that the command has set up. NVML must
 * not initialise CUDA: a program that counts its GPUs may fork afterwards and use CUDA in its
 * children. Before the program has done it, a short-lived child process asks. CUDA_VISIBLE_DEVICES
 * applies, which it does not to other NVML. The lock of state.h is held.
 */
#ifndef OBC_NVML_DIRECT_H
#define OBC_NVML_DIRECT_H

#include <stdbool.h>

#include "base/cause.h"
#include "protocol/load.h"

/* This thread is in the fork of obc_nvml_direct, and has the lock. */
extern _Thread_local bool obc_nvml_forking;
/* OB_ERR_DRIVER: there is no such library; *ret_cause. */
enum ob_err obc_nvml_direct(struct obp_load *ret, struct ob_cause *ret_cause);

#endif
