/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/lower_bulk.h"

#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

uint32_t obd_bulk_place(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t space)
{
	bool shared = space == OBD_KIND_SHARED;
	uint32_t kind = space, offset, base = obd_address(b, &s->opd[i], 0, &kind, &offset), sum;

	if (kind != space)
		obd_invalid(b, s, "an address is not in the space that the instruction states");
	if (!offset)
		return base;
	sum = obd_vreg_new(b, shared ? OBD_CLASS_32 : OBD_CLASS_64);
	obd_emit(b, shared ? OBD_OP_add_u32 : OBD_OP_add_u64, sum, base,
		shared ? obd_const32(b, offset)
		       : obd_const_new(b, OBD_CLASS_64, (uint64_t)(int64_t)(int32_t)offset, NULL),
		N);
	return sum;
}

bool obd_bulk_reduces(uint32_t op, enum obd_type t)
{
	switch (t) {
	case OBD_T_U32:
		return op <= OBD_ATOM_DEC;
	case OBD_T_S32:
	case OBD_T_U64:
	case OBD_T_S64:
	case OBD_T_B32:
	case OBD_T_B64:
		return op < OBD_ATOM_INC;
	case OBD_T_F16:
	case OBD_T_BF16:
		return op <= OBD_ATOM_MAX;
	default:
		return (t == OBD_T_F32 || t == OBD_T_F64) && op == OBD_ATOM_ADD;
	}
}

/*
 * The completion mechanism tells the direction: with a bulk group the destination is global memory,
 * with an mbarrier it is shared memory.
 */
void obd_lower_bulk(struct obd_builder *b, const struct obd_stmt *s)
{
	bool group = obd_word(s, "bulk_group"), barrier = obd_q(s, OBD_Q_unsupported);
	uint32_t to = group ? OBD_KIND_GLOBAL : OBD_KIND_SHARED,
		 from = group || !obd_q(s, OBD_Q_global) ? OBD_KIND_SHARED : OBD_KIND_GLOBAL;

	if (obd_q(s, OBD_Q_commit_group) || obd_q(s, OBD_Q_wait_group))
		return;
	if (obd_word(s, "multicast::cluster") || obd_word(s, "cp_mask"))
		obd_unsupported(b, s, "this form of a bulk copy");
	if (obd_word(s, "prefetch"))
		return;
	if (group == barrier)
		obd_unsupported(b, s, "this form of a bulk copy");
	/* a cache policy may follow */
	obd_operand_count(b, s, barrier ? 4 : 3, barrier ? 5 : 4);
	uint32_t d = obd_bulk_place(b, s, 0, to), a = obd_bulk_place(b, s, 1, from),
		 bytes = obd_src(b, s, 2, OBD_T_U32),
		 bar = barrier ? obd_bulk_place(b, s, 3, OBD_KIND_SHARED) : N;
	struct obd_lin *l = obd_emit(b, OBD_OP_copy_bulk, N, a, bytes, bar);

	l->d = d;
	l->flags |= OBD_USE_D;
	l->e_raw = (uint16_t)((to == OBD_KIND_SHARED ? OBD_BULK_TO_SHARED : 0) |
		(from == OBD_KIND_SHARED ? OBD_BULK_FROM_SHARED : 0) |
		(barrier ? OBD_BULK_BARRIER : 0));
	if (obd_word(s, "reduce")) {
		enum obd_type t = obd_type_at(b, s, 0);

		l->e_raw |= OBD_BULK_REDUCE;
		l->imm = OBD_ATOM_CODE(obd_atom_op(b, s), t, OBD_SP_FLAT);
		if (!obd_bulk_reduces(obd_atom_op(b, s), t))
			obd_invalid(b, s, "invalid operation for this type");
	}
}
