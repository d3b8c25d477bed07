/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies of tiles of tensors between global and shared memory, as tensor maps describe them, and
 * changes of tensor maps. Single lanes of one warp.
 */
#ifndef OBD_CORE_TENSOR_H
#define OBD_CORE_TENSOR_H

#include "softdevice/core/engine/exec.h"

/* a: the map, b: shared memory, c: mbarrier; e: OBD_TENSOR_CODE */
void obd_tensor(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);

#endif
