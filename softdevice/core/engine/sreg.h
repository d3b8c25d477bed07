/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Reads of special registers: %tid, %clock64 and the like. */
#ifndef OBD_CORE_SREG_H
#define OBD_CORE_SREG_H

#include "softdevice/core/engine/exec.h"

void obd_sreg(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m, bool wide);

#endif
