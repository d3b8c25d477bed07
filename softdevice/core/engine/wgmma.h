/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * wgmma.mma_async: the product of a warpgroup. Each of its four warps computes its own 16 rows of D
 * when it executes the instruction, and reads shared memory then. wgmma.wait_group waits until all
 * four have done so (OBD_BAR_GROUP), because a program may reuse the memory after it. Compiled once
 * per instruction set.
 */
#ifndef OBD_CORE_WGMMA_H
#define OBD_CORE_WGMMA_H

#include "softdevice/core/engine/exec.h"

#define obd_wgmma OBD_FOR_ISA(obd_wgmma)

void obd_wgmma(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
