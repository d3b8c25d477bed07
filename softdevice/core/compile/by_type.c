/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/by_type.h"

uint32_t obd_by_type(struct obd_builder *b, const struct obd_stmt *s, const struct obd_by_type *o,
	enum obd_type t)
{
	uint32_t op = 0;

	switch (t) {
	case OBD_T_U16:
	case OBD_T_B16:
		op = o->u16;
		break;
	case OBD_T_S16:
		op = o->s16;
		break;
	case OBD_T_U32:
	case OBD_T_B32:
		op = o->u32;
		break;
	case OBD_T_S32:
		op = o->s32;
		break;
	case OBD_T_U64:
	case OBD_T_B64:
		op = o->u64;
		break;
	case OBD_T_S64:
		op = o->s64;
		break;
	case OBD_T_F32:
		op = o->f32;
		break;
	case OBD_T_F64:
		op = o->f64;
		break;
	default:
		break;
	}
	if (!op && !(o->u16 == 0 && t == OBD_T_NONE))
		obd_invalid(b, s, "invalid type for this instruction");
	return op;
}
