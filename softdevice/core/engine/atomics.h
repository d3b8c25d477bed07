/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Atomic operations and accesses that other threads may observe. */
#ifndef OBD_CORE_ATOMICS_H
#define OBD_CORE_ATOMICS_H

#include "softdevice/core/engine/exec.h"
#include "softdevice/core/ops.h"

/* Size of an element of this obd_type in an atomic operation or a bulk reduction. */
static inline uint32_t obd_atom_bytes(uint32_t type)
{
	switch (type) {
	case OBD_T_U16:
	case OBD_T_B16:
	case OBD_T_F16:
	case OBD_T_BF16:
		return 2;
	case OBD_T_U64:
	case OBD_T_S64:
	case OBD_T_B64:
	case OBD_T_F64:
		return 8;
	case OBD_T_B128:
		return 16;
	default:
		return 4;
	}
}

/* The addresses are in w->addr and have been checked. */
void obd_atomic(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_load_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
void obd_store_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
