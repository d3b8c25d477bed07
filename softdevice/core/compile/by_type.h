/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Operations that exist once for each width and sign, chosen by the type of a statement. */
#ifndef OBD_CORE_BY_TYPE_H
#define OBD_CORE_BY_TYPE_H

#include "softdevice/core/compile/lower.h"

/* Operations by width and sign. 0: there is no such operation. */
struct obd_by_type {
	uint16_t u16, s16, u32, s32, u64, s64, f32, f64;
};

/* Initialisers: one operation for each width; one for each width and sign. */
#define OBD_BY_WIDTH(o16, o32, o64)                                                   \
	{                                                                             \
		OBD_OP_##o16, OBD_OP_##o16, OBD_OP_##o32, OBD_OP_##o32, OBD_OP_##o64, \
			OBD_OP_##o64, 0, 0                                            \
	}
#define OBD_BY_SIGN(u16, s16, u32, s32, u64, s64)                                     \
	{                                                                             \
		OBD_OP_##u16, OBD_OP_##s16, OBD_OP_##u32, OBD_OP_##s32, OBD_OP_##u64, \
			OBD_OP_##s64, 0, 0                                            \
	}

/* The operation for type t. A type without one ends the load. */
uint32_t obd_by_type(struct obd_builder *b, const struct obd_stmt *s, const struct obd_by_type *ops,
	enum obd_type t);

#endif
