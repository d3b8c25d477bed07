/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Assigns slots to the virtual registers of a function. */
#ifndef OBD_CORE_REGALLOC_H
#define OBD_CORE_REGALLOC_H

#include "softdevice/core/compile/builder.h"

/* Assigns a slot to every vreg. Returns the number of slots used, from `first_slot` on. */
uint32_t obd_regalloc(struct obd_builder *b, uint32_t first_slot);

#endif
