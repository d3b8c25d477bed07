/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Atomic operations: atom and red. */
#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/strong.h"
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

uint32_t obd_atom_op(struct obd_builder *b, const struct obd_stmt *s)
{
	for (uint32_t i = 0; i < s->n_order; i++)
		switch (s->order[i]) {
		case OBD_Q_add:
			return OBD_ATOM_ADD;
		case OBD_Q_min:
			return OBD_ATOM_MIN;
		case OBD_Q_max:
			return OBD_ATOM_MAX;
		case OBD_Q_and:
			return OBD_ATOM_AND;
		case OBD_Q_or:
			return OBD_ATOM_OR;
		case OBD_Q_xor:
			return OBD_ATOM_XOR;
		case OBD_Q_inc:
			return OBD_ATOM_INC;
		case OBD_Q_dec:
			return OBD_ATOM_DEC;
		case OBD_Q_exch:
			return OBD_ATOM_EXCH;
		case OBD_Q_cas:
			return OBD_ATOM_CAS;
		default:
			break;
		}
	obd_invalid(b, s, "missing operation, such as .add");
}

static void check_atom(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t op, enum obd_type t)
{
	bool swap = op == OBD_ATOM_EXCH || op == OBD_ATOM_CAS, ok;

	switch (t) {
	case OBD_T_U32:
	case OBD_T_B32:
	case OBD_T_U64:
	case OBD_T_B64:
	case OBD_T_S32:
	case OBD_T_S64:
		ok = true;
		break;
	case OBD_T_B16:
	case OBD_T_U16:
		ok = op == OBD_ATOM_CAS;
		break;
	case OBD_T_B128:
		ok = swap;
		break;
	case OBD_T_F32:
	case OBD_T_F64:
		ok = op == OBD_ATOM_ADD;
		break;
	case OBD_T_F16:
	case OBD_T_BF16:
	case OBD_T_F16X2:
	case OBD_T_BF16X2:
		ok = op <= OBD_ATOM_MAX;
		break;
	default:
		ok = false;
		break;
	}
	if (t == OBD_T_F32 && obd_q(s, OBD_Q_v2))
		ok = op == OBD_ATOM_ADD;
	if (!ok)
		obd_invalid(b, s, "invalid operation for this type");
}

/* which: 0 atom, 1 red */
static void lower_atom(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t op = obd_atom_op(b, s), kind = obd_address_space(s), offset, at = which ? 0 : 1,
		 base, n, bytes = obd_type_bytes(t);
	const struct obd_operand *values, *results = NULL;

	bool async = obd_q(s, OBD_Q_async);

	if (obd_q(s, OBD_Q_bulk) || (async && !obd_q(s, OBD_Q_unsupported)))
		obd_unsupported(b, s, "an asynchronous reduction without an mbarrier");
	obd_operand_count(b, s, at + 2, at + 4);
	check_atom(b, s, op, t);
	values = obd_value_elements(b, s, at + 1, &n);
	if (!which)
		results = obd_value_elements(b, s, 0, &n);
	base = obd_address(b, &s->opd[at], n * bytes, &kind, &offset);
	if (kind == OBD_KIND_LOCAL) {
		uint32_t w = obd_vreg_new(b, OBD_CLASS_64);

		obd_emit(b, OBD_OP_cvta_local, w, base, N, N);
		base = w;
		kind = OBD_KIND_GLOBAL;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = obd_src_of(b, &values[i], t),
			 c = op == OBD_ATOM_CAS ? obd_src(b, s, at + 2, t) : N;
		uint32_t d = results && results[i].kind != OBD_OPD_SINK
			? obd_dst_of(b, &results[i], t)
			: N;

		if (n > 1 && d == base)
			obd_invalid(b, s, "a destination register is also the address register");
		struct obd_lin *l = obd_emit(b, OBD_OP_atom, d, base, v, c);

		l->imm = offset + i * bytes;
		l->e_raw =
			OBD_ATOM_CODE(op, t, kind == OBD_KIND_SHARED ? OBD_SP_SHARED : OBD_SP_FLAT);
	}
	if (async)
		obd_mbarrier_complete_tx(b, s, 2, n * bytes);
}

const struct obd_opcode obd_opcodes_atomic[] = { { "atom", lower_atom, 0 },
	{ "red", lower_atom, 1 }, { 0 } };
