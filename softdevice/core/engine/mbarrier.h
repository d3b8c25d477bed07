/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Barriers in shared memory: mbarrier. */
#ifndef OBD_CORE_MBARRIER_H
#define OBD_CORE_MBARRIER_H

#include "softdevice/core/engine/exec.h"

/* The addresses of the barriers are in w->addr and have been checked. */
void obd_mbarrier(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
/* Bytes of a transaction of the barrier have arrived. */
void obd_mbarrier_complete(uint64_t *bar, uint32_t bytes);

#endif
