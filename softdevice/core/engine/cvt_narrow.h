/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cvt between pairs of floats of 4 and 6 bits, or of powers of two (ue8m0), and wider ones, one
 * SIMD lane after another.
 */
#ifndef OBD_CORE_CVT_NARROW_H
#define OBD_CORE_CVT_NARROW_H

#include "softdevice/core/engine/exec.h"

void obd_cvt_narrow(const struct obd_insn *in, char *regs, uint32_t m);

#endif
