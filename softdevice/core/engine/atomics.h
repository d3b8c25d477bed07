/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Atomic operations and accesses that other threads may observe. */
#ifndef OBD_CORE_ATOMICS_H
#define OBD_CORE_ATOMICS_H

#include "softdevice/core/engine/exec.h"

/* The addresses are in w->addr and have been checked. */
void obd_atomic(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_load_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_store_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
