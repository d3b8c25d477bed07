/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Conversions between all numeric types (cvt). */
#ifndef OBD_CORE_CVT_H
#define OBD_CORE_CVT_H

#include "softdevice/core/engine/exec.h"

void obd_cvt(const struct obd_insn *in, char *regs, uint32_t m);

#endif
