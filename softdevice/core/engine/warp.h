/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operations of a warp that are too complex for a handler: divergence and reconvergence of lanes,
 * calls, waits, exits. Only the worker that owns the warp calls them. A function that returns an
 * instruction returns the value that the handler must return.
 */
#ifndef OBD_CORE_WARP_H
#define OBD_CORE_WARP_H

#include "softdevice/core/exec.h"

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
const struct obd_insn *obd_warp_barrier(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
const struct obd_insn *obd_warp_sync(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_warp_drop_frame(struct obd_warp *w, struct obd_frame *f);

/* Runs the warp until it is done, is blocked at a barrier, or has used its turn. */
void obd_warp_run(struct obd_warp *w);
void obd_warp_start(struct obd_warp *w);

/*
 * sync.c: gathers the operands of `lanes` from the registers of one path, computes over the joint
 * mask, and scatters the results.
 */
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

/* atomics.c: the addresses are in w->addr and have been checked. */
void obd_atomic(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_load_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_store_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

/* sreg.c */
void obd_sreg(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m, bool wide);

/* cvt.c */
void obd_cvt(const struct obd_insn *in, char *regs, uint32_t m);

/* matrix.c */
void obd_mma(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
/* The addresses of the rows are in w->addr and have been checked. */
void obd_ldmatrix(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_mbarrier(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

/*
 * rt.c: calls a function of the device runtime. Its arguments are words in the caller's registers.
 */
void obd_rt_call(struct obd_warp *w, const struct obd_insn *in, const struct obd_func *f,
	char *regs, uint32_t m);

/* fault.c: these two do not return. */
_Noreturn void obd_fault_access(struct obd_warp *w, const struct obd_insn *in, uint32_t m,
	uint32_t size, bool write, uint32_t align_mask);
_Noreturn void obd_fault_raise(struct obd_warp *w, const struct obd_insn *in, uint32_t m,
	CUresult result, const char *what);
/* OUTBOARD_SOFT_MEMCHECK: checks each lane's access by obd_env.check. Returns if all are valid. */
void obd_fault_memcheck(
	struct obd_warp *w, const struct obd_insn *in, uint32_t m, uint32_t size, bool write);
void obd_fault_install(void);

/* Copies the lanes of m from src to a register. */
void obd_write32(char *dst, const uint32_t *src, uint32_t m);
void obd_write64(char *dst, const uint64_t *src, uint32_t m);

#endif
