/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Reads of special registers: %tid, %clock64 and the like. */
#ifndef OBD_CORE_SREG_H
#define OBD_CORE_SREG_H

#include "softdevice/core/engine/exec.h"

/* The value of a register that is the same in the whole warp. `which` is an enum obd_sreg. */
uint64_t obd_sreg_uniform(const struct obd_warp *w, uint32_t which);
/* The values of %laneid or a %lanemask in the 32 lanes. */
void obd_sreg_lanes(uint32_t which, uint32_t *ret);

#endif
