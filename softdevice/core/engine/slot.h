/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Masked writes of registers. */
#ifndef OBD_CORE_SLOT_H
#define OBD_CORE_SLOT_H

#include "softdevice/core/engine/exec.h"

/* Copies the lanes of m from src to a register. */
void obd_write32(char *dst, const uint32_t *src, uint32_t m);
void obd_write64(char *dst, const uint64_t *src, uint32_t m);

#endif
