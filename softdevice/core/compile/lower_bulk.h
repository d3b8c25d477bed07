/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cp.async.bulk: copies of any size between global and shared memory, executed synchronously. */
#ifndef OBD_CORE_LOWER_BULK_H
#define OBD_CORE_LOWER_BULK_H

#include "softdevice/core/compile/lower.h"

/* The register of operand i, an address of the space, with its offset added. */
uint32_t obd_bulk_place(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t space);
/* Is there a reduction of bulk copies with this OBD_ATOM_* and type? */
bool obd_bulk_reduces(uint32_t op, enum obd_type t);
void obd_lower_bulk(struct obd_builder *b, const struct obd_stmt *s);

#endif
