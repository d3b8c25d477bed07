/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Bulk copies of single lanes, with the completion of their transactions. */
#ifndef OBD_CORE_BULK_H
#define OBD_CORE_BULK_H

#include "softdevice/core/engine/exec.h"

/* d: destination, a: source, b: bytes, c: mbarrier; e: OBD_BULK_* */
void obd_copy_bulk(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
