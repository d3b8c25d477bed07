/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Products of the matrices in a warp's registers: mma and wmma.mma. Compiled once per instruction
 * set.
 */
#ifndef OBD_CORE_MATRIX_H
#define OBD_CORE_MATRIX_H

#include "softdevice/core/engine/exec.h"

#define obd_mma OBD_FOR_ISA(obd_mma)

/* Raises a fault if not all lanes are active. */
void obd_mma(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
