/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Accesses that other threads may observe: strong loads and stores.
 *
 * A vector of up to 16 bytes is accessed as one unit. The memory model guarantees atomicity only
 * for its elements, but every GPU does this, and decoupled look-back (CUB's scan, sort, select)
 * depends on it: the status and the value of a tile are written as one vector.
 */
#ifndef OBD_CORE_STRONG_H
#define OBD_CORE_STRONG_H

#include "softdevice/core/compile/address.h"

/*
 * An access: n elements of `type` at base + offset in `space` (enum
 * obd_kind, not local).
 */
struct obd_strong {
	uint32_t base, offset, space, n;
	enum obd_type type;
};

/* Must this ld or st of n elements be atomic as a whole? */
bool obd_strong_is(const struct obd_stmt *s, uint32_t n);
void obd_strong_load(struct obd_builder *b, const struct obd_stmt *s, const struct obd_strong *a,
	const struct obd_operand *list);
void obd_strong_store(struct obd_builder *b, const struct obd_stmt *s, const struct obd_strong *a,
	const struct obd_operand *list);

#endif
