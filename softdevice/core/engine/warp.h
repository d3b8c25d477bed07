/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operations of a warp that are too complex for a handler: divergence and reconvergence of lanes,
 * calls, waits, exits. Only the worker that owns the warp calls them. A function that returns an
 * instruction returns the value that the handler must return.
 */
#ifndef OBD_CORE_WARP_H
#define OBD_CORE_WARP_H

#include "softdevice/core/engine/exec.h"

#define OBD_TURN_SLICES 125 /* short turns of a warp that take as long as a long one */

/* The lanes `taken` of the current path continue at `target`, its other lanes at `next`. */
const struct obd_insn *obd_warp_branch(struct obd_warp *w, const struct obd_insn *target,
	uint32_t taken, const struct obd_insn *next);
/* brx: each lane has its own target. */
const struct obd_insn *obd_warp_branch_table(
	struct obd_warp *w, const struct obd_insn *in, const uint32_t *index, uint32_t m);
const struct obd_insn *obd_warp_call(struct obd_warp *w, const struct obd_insn *in, char *regs,
	uint32_t m, const struct obd_func *f);
const struct obd_insn *obd_warp_call_indirect(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
const struct obd_insn *obd_warp_return(struct obd_warp *w, const struct obd_insn *in, uint32_t m);
const struct obd_insn *obd_warp_exit(struct obd_warp *w, const struct obd_insn *in, uint32_t m);
const struct obd_insn *obd_warp_sync(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

/* Runs the warp until it is done, is blocked at a barrier, or has used its turn. */
void obd_warp_run(struct obd_warp *w);

#endif
