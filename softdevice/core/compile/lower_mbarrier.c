/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Barriers in shared memory. */
#include <string.h>

#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/lower.h"

#define N OBD_NONE

static bool has_word(const struct obd_stmt *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_words; i++)
		if (s->words[i].size == strlen(name) &&
			memcmp(s->words[i].text, name, s->words[i].size) == 0)
			return true;
	return false;
}

static void lower_mbarrier(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t op, kind = obd_q(s, OBD_Q_shared), offset = 0, base = N, d = N, x = N, c = N,
		     at = 1;
	bool parity = has_word(s, "parity");

	(void)arg;
	if (has_word(s, "init"))
		op = OBD_MBAR_INIT;
	else if (has_word(s, "inval"))
		op = OBD_MBAR_INVAL;
	else if (has_word(s, "arrive_drop"))
		op = OBD_MBAR_ARRIVE_DROP;
	else if (obd_q(s, OBD_Q_arrive))
		op = OBD_MBAR_ARRIVE;
	else if (has_word(s, "test_wait") || has_word(s, "try_wait"))
		op = parity ? OBD_MBAR_TEST_PARITY : OBD_MBAR_TEST;
	else if (has_word(s, "pending_count"))
		op = OBD_MBAR_PENDING;
	else
		obd_unsupported(b, s, "this form");
	if (has_word(s, "expect_tx"))
		obd_unsupported(b, s, "a transaction count");
	switch (op) {
	case OBD_MBAR_PENDING:
		obd_operand_count(b, s, 2, 2);
		d = obd_dst(b, s, 0, OBD_T_U32);
		c = obd_src(b, s, 1, OBD_T_B64);
		break;
	case OBD_MBAR_INIT:
	case OBD_MBAR_INVAL:
		at = 0;
		obd_operand_count(b, s, op == OBD_MBAR_INIT ? 2 : 1, op == OBD_MBAR_INIT ? 2 : 1);
		if (op == OBD_MBAR_INIT)
			x = obd_src(b, s, 1, OBD_T_U32);
		break;
	case OBD_MBAR_ARRIVE:
	case OBD_MBAR_ARRIVE_DROP:
		/* the state operand is optional when the result is a sink */
		at = s->n_opd && s->opd[0].kind == OBD_OPD_ADDRESS ? 0 : 1;
		obd_operand_count(b, s, at + 1, at + 2);
		x = s->n_opd > at + 1 ? obd_src(b, s, at + 1, OBD_T_U32)
				      : obd_const_new(b, OBD_CLASS_32, 1, NULL);
		if (at && s->opd[0].kind != OBD_OPD_SINK)
			d = obd_dst(b, s, 0, OBD_T_B64);
		break;
	default: /* a time-out operand may follow; it is ignored */
		obd_operand_count(b, s, 3, 4);
		d = obd_dst(b, s, 0, OBD_T_PRED);
		c = obd_src(b, s, 2, parity ? OBD_T_U32 : OBD_T_B64);
		break;
	}
	if (op != OBD_MBAR_PENDING)
		base = obd_address(b, &s->opd[at], &kind, &offset);
	if (kind > 1)
		obd_invalid(b, s, "the barrier object must be in shared memory");
	struct obd_lin *l = obd_emit(b, OBD_OP_mbarrier, d, base, x, c);

	l->imm = offset;
	l->e_raw = (uint16_t)(op | kind << 4);
}

const struct obd_opcode obd_opcodes_mbarrier[] = {
	{ "mbarrier", lower_mbarrier, 0 },
	{ 0 },
};
