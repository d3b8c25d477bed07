/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The device runtime: functions that code from nvcc calls and that no module defines, such as
 * vprintf and malloc.
 */
#ifndef OBD_CORE_RT_H
#define OBD_CORE_RT_H

#include "softdevice/core/engine/exec.h"

/*
 * Calls the function. Its arguments are words in the caller's registers. True: it cannot run now;
 * the path must yield and call it again.
 */
bool obd_rt_call(struct obd_warp *w, const struct obd_insn *in, const struct obd_func *f,
	char *regs, uint32_t m);

#endif
