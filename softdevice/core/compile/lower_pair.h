/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Arithmetic on pairs of f32 in a 64-bit register: .f32x2. */
#ifndef OBD_CORE_LOWER_PAIR_H
#define OBD_CORE_LOWER_PAIR_H

#include "softdevice/core/compile/lower.h"

/* add, sub, mul or fma */
void obd_lower_pair(struct obd_builder *b, const struct obd_stmt *s);

#endif
