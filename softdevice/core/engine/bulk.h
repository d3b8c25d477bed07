/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Bulk copies of single lanes, with the completion of their transactions. */
#ifndef OBD_CORE_BULK_H
#define OBD_CORE_BULK_H

#include "softdevice/core/engine/exec.h"

/*
 * The memory at an address of global memory, or of shared::cluster. It is checked for at least one
 * byte and for the mask of its alignment; the fault is one of the lane.
 */
char *obd_bulk_global(struct obd_warp *w, const struct obd_insn *in, uint32_t lane, uint64_t at,
	uint32_t bytes, bool write, uint32_t align);
char *obd_bulk_shared(struct obd_warp *w, const struct obd_insn *in, uint32_t lane, uint32_t number,
	uint32_t bytes, bool write, uint32_t align);
/* Elements at `to`, each changed by an atomic operation (OBD_ATOM_CODE). Overwrites w->addr. */
void obd_bulk_reduce(struct obd_warp *w, uint32_t code, char *to, const char *from, uint32_t bytes);
/* Completes the transactions of the bytes at the mbarrier. */
void obd_bulk_complete(struct obd_warp *w, const struct obd_insn *in, uint32_t lane,
	uint32_t barrier, uint32_t bytes);
/* d: destination, a: source, b: bytes, c: mbarrier; e: OBD_BULK_* */
void obd_copy_bulk(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
