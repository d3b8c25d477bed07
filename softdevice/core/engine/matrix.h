/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Matrix products and loads of a warp, and barriers in shared memory. */
#ifndef OBD_CORE_MATRIX_H
#define OBD_CORE_MATRIX_H

#include "softdevice/core/engine/exec.h"

void obd_mma(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
/* The addresses of the rows are in w->addr and have been checked. */
void obd_ldmatrix(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_mbarrier(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
