/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cp.async.bulk: copies of any size between global and shared memory, executed synchronously. */
#ifndef OBD_CORE_LOWER_BULK_H
#define OBD_CORE_LOWER_BULK_H

#include "softdevice/core/compile/lower.h"

void obd_lower_bulk(struct obd_builder *b, const struct obd_stmt *s);

#endif
