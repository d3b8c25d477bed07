/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fragments of matrices in the registers of a warp: loads, stores and transposition. layout.h has
 * the places of the elements.
 */
#ifndef OBD_CORE_FRAGMENT_H
#define OBD_CORE_FRAGMENT_H

#include "softdevice/core/engine/exec.h"
#include "softdevice/core/layout.h"

static inline uint32_t *obd_reg32(char *regs, uint32_t slot)
{
	return (uint32_t *)(void *)(regs + (size_t)slot * OBD_SLOT_BYTES);
}

static inline uint64_t *obd_reg64(char *regs, uint32_t slot)
{
	return (uint64_t *)(void *)(regs + (size_t)slot * OBD_SLOT_BYTES);
}

/* The operand list of a matrix instruction: two counts, then slots. */
static inline const uint16_t *obd_operand_list(const struct obd_warp *w, const struct obd_insn *in)
{
	return w->cur->frame->func->call_ops + in->u.imm;
}

/* Raises a fault unless all lanes are active. */
void obd_fragment_whole(struct obd_warp *w, const struct obd_insn *in, uint32_t m);

/* ldmatrix, stmatrix: the addresses of the rows are in w->addr and have been checked. */
void obd_ldmatrix(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_movmatrix(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
/*
 * wmma.load, wmma.store: writes the addresses of the rows (or columns) of the matrix in memory to
 * w->addr. Returns their number, at most 32; *ret_bytes: the size of each. The address and the
 * stride are those of lane 0: they must be the same in all lanes.
 */
uint32_t obd_wmma_rows(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m, uint32_t *ret_bytes);
/* Loads or stores the fragment. The rows are in w->addr and have been checked. */
void obd_wmma_move(struct obd_warp *w, const struct obd_insn *in, char *regs);

#endif
