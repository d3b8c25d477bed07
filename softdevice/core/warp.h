/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a warp does when lanes part, meet, call, wait or end: everything a handler leaves to plain
 * C. One worker thread per warp. Functions that return an instruction return what the handler has
 * to return.
 */
#ifndef OBD_CORE_WARP_H
#define OBD_CORE_WARP_H

#include "softdevice/core/exec.h"

/* Lanes `taken` of the current path go to `target`, the others of it to `next`. */
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

/* Runs the warp until it is done, blocked at a barrier, or has used its turn. */
void obd_warp_run(struct obd_warp *w);
void obd_warp_start(struct obd_warp *w);

/*
 * sync.c: gather operands of `lanes` from one path's registers, compute over the joint mask,
 * scatter results.
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
 * For a lane that its own member mask leaves out (the PTX ISA does not define this; on GPUs such
 * lanes do not wait and take part in nothing): what the lanes of the mask that are on its path,
 * `members`, say. io as gathered; only the lane's results change.
 */
void obd_sync_compute_outside(
	const struct obd_insn *in, uint32_t lane, uint32_t members, struct obd_sync_io *io);
void obd_sync_scatter(
	const struct obd_insn *in, char *regs, uint32_t lanes, const struct obd_sync_io *io);
/* The member mask each lane names; true when it is one value (then *ret_one). */
void obd_sync_members(
	const struct obd_insn *in, const char *regs, uint32_t m, uint32_t *ret_members);

/* atomics.c: w->addr holds the addresses, already checked. */
void obd_atomic(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_load_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_store_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

/* sreg.c */
void obd_sreg(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m, bool wide);

/* cvt.c */
void obd_cvt(const struct obd_insn *in, char *regs, uint32_t m);

/* matrix.c */
void obd_mma(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
/* Rows' addresses are in w->addr, checked. */
void obd_ldmatrix(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_mbarrier(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

/* rt.c: the device runtime. args: the caller's argument words. */
void obd_rt_call(struct obd_warp *w, const struct obd_insn *in, const struct obd_func *f,
	char *regs, uint32_t m);

/* fault.c: none of these returns. */
_Noreturn void obd_fault_access(struct obd_warp *w, const struct obd_insn *in, uint32_t m,
	uint32_t size, bool write, uint32_t align_mask);
_Noreturn void obd_fault_raise(struct obd_warp *w, const struct obd_insn *in, uint32_t m,
	CUresult result, const char *what);
/*
 * OUTBOARD_SOFT_MEMCHECK: asks the environment about each lane's access; returns if all are good.
 */
void obd_fault_memcheck(
	struct obd_warp *w, const struct obd_insn *in, uint32_t m, uint32_t size, bool write);
void obd_fault_install(void);

/* Copies the lanes of m from src to a register. */
void obd_write32(char *dst, const uint32_t *src, uint32_t m);
void obd_write64(char *dst, const uint64_t *src, uint32_t m);

#endif
