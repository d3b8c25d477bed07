/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and tensormap, executed synchronously. */
#ifndef OBD_CORE_LOWER_TENSOR_H
#define OBD_CORE_LOWER_TENSOR_H

#include "softdevice/core/compile/lower.h"

/* Lowers a cp with the qualifier .tensor. */
void obd_lower_tensor(struct obd_builder *b, const struct obd_stmt *s);

#endif
