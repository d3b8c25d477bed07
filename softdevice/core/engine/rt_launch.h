/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The device runtime's launches, streams, events and copies (cuda_device_runtime_api.h), for each
 * lane after another. Only the worker that owns the warp.
 */
#ifndef OBD_CORE_RT_LAUNCH_H
#define OBD_CORE_RT_LAUNCH_H

#include "softdevice/core/engine/exec.h"

/* As obd_rt_call. */
bool obd_rt_launch_call(struct obd_warp *w, const struct obd_insn *in, const struct obd_func *f,
	char *regs, uint32_t m);

#endif
