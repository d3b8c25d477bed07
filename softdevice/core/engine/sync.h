/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operations among the lanes of a warp: shuffles, votes, matches, reductions. The operands of some
 * lanes are gathered from the registers of one path, the results are computed over the joint mask
 * and scattered to the registers.
 */
#ifndef OBD_CORE_SYNC_H
#define OBD_CORE_SYNC_H

#include "softdevice/core/engine/exec.h"

struct obd_sync_io {
	uint32_t a[OBD_LANES], b[OBD_LANES], c[OBD_LANES], out[OBD_LANES], pred;
	uint64_t a64[OBD_LANES];
	uint32_t pin; /* predicate input */
};
void obd_sync_gather(
	const struct obd_insn *in, const char *regs, uint32_t lanes, struct obd_sync_io *io);
void obd_sync_compute(const struct obd_insn *in, uint32_t mask, struct obd_sync_io *io);
/*
 * For a lane that is not in its own member mask. The PTX ISA does not define this case; on GPUs
 * such a lane does not wait and does not contribute. The lane receives the result computed from
 * `members`, the lanes of the mask that are on its path. `io` holds the gathered operands; only the
 * results of this lane change.
 */
void obd_sync_compute_outside(
	const struct obd_insn *in, uint32_t lane, uint32_t members, struct obd_sync_io *io);
void obd_sync_scatter(
	const struct obd_insn *in, char *regs, uint32_t lanes, const struct obd_sync_io *io);
/* Stores the member mask that each lane names. Without a mask operand it is m. */
void obd_sync_members(
	const struct obd_insn *in, const char *regs, uint32_t m, uint32_t *ret_members);

#endif
