/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The barriers of a block (bar, barrier.cluster): paths wait until all threads that the barrier
 * expects have arrived. Only the worker that owns the block.
 */
#ifndef OBD_CORE_BARRIER_H
#define OBD_CORE_BARRIER_H

#include "softdevice/core/engine/exec.h"

/* The instruction bar. Returns the value that the handler must return. */
const struct obd_insn *obd_barrier(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
/* Makes the barrier one at which nobody has arrived. */
void obd_barrier_reset(struct obd_barrier *b);
/* Completes barrier `id` if all threads that it waits for have arrived. */
void obd_barrier_check(struct obd_cta *c, uint32_t id);

#endif
