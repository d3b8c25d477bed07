/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Barriers in shared memory. */
#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/lower.h"
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

static uint32_t operation(struct obd_builder *b, const struct obd_stmt *s)
{
	bool arrive = obd_q(s, OBD_Q_arrive), expect = obd_word(s, "expect_tx");

	if (obd_word(s, "init"))
		return OBD_MBAR_INIT;
	if (obd_word(s, "inval"))
		return OBD_MBAR_INVAL;
	if (obd_word(s, "pending_count"))
		return OBD_MBAR_PENDING;
	if (obd_word(s, "arrive_drop"))
		return expect ? OBD_MBAR_ARRIVE_DROP_TX : OBD_MBAR_ARRIVE_DROP;
	/* .noComplete: the program promises that the phase does not end */
	if (arrive)
		return expect ? OBD_MBAR_ARRIVE_TX : OBD_MBAR_ARRIVE;
	if (expect)
		return OBD_MBAR_EXPECT_TX;
	if (obd_word(s, "complete_tx"))
		return OBD_MBAR_COMPLETE_TX;
	if (obd_word(s, "test_wait") || obd_word(s, "try_wait"))
		return obd_word(s, "parity") ? OBD_MBAR_TEST_PARITY : OBD_MBAR_TEST;
	obd_unsupported(b, s, "this form");
}

/* The registers of an mbarrier operation; at: the number of the address operand. */
struct registers {
	uint32_t at, d, x, c;
};

static void arrive_registers(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t op, struct registers *r)
{
	bool tx = op == OBD_MBAR_ARRIVE_TX || op == OBD_MBAR_ARRIVE_DROP_TX;

	/* without a state operand the address is the first */
	r->at = s->n_opd && s->opd[0].kind == OBD_OPD_ADDRESS ? 0 : 1;
	obd_operand_count(b, s, r->at + (tx ? 2 : 1), r->at + 2);
	r->x = s->n_opd > r->at + 1 ? obd_src(b, s, r->at + 1, OBD_T_U32)
				    : obd_const_new(b, OBD_CLASS_32, 1, NULL);
	if (r->at && s->opd[0].kind != OBD_OPD_SINK)
		r->d = obd_dst(b, s, 0, OBD_T_B64);
}

static struct registers find_registers(struct obd_builder *b, const struct obd_stmt *s, uint32_t op)
{
	struct registers r = { .at = 0, .d = N, .x = N, .c = N };

	switch (op) {
	case OBD_MBAR_PENDING:
		obd_operand_count(b, s, 2, 2);
		r.d = obd_dst(b, s, 0, OBD_T_U32);
		r.c = obd_src(b, s, 1, OBD_T_B64);
		break;
	case OBD_MBAR_INVAL:
		obd_operand_count(b, s, 1, 1);
		break;
	case OBD_MBAR_INIT:
	case OBD_MBAR_EXPECT_TX:
	case OBD_MBAR_COMPLETE_TX:
		obd_operand_count(b, s, 2, 2);
		r.x = obd_src(b, s, 1, OBD_T_U32);
		break;
	case OBD_MBAR_TEST:
	case OBD_MBAR_TEST_PARITY: /* a time-out operand may follow; it is ignored */
		obd_operand_count(b, s, 3, 4);
		r.at = 1;
		r.d = obd_dst(b, s, 0, OBD_T_PRED);
		r.c = obd_src(b, s, 2, op == OBD_MBAR_TEST ? OBD_T_B64 : OBD_T_U32);
		break;
	default:
		arrive_registers(b, s, op, &r);
		break;
	}
	return r;
}

static void lower_mbarrier(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t op = operation(b, s), kind = obd_address_space(s), offset = 0, base = N;
	struct registers r = find_registers(b, s, op);

	(void)arg;
	if (op != OBD_MBAR_PENDING)
		base = obd_address(b, &s->opd[r.at], 8, &kind, &offset);
	if (kind == OBD_KIND_LOCAL)
		obd_invalid(b, s, "the barrier object must be in shared memory");
	struct obd_lin *l = obd_emit(b, OBD_OP_mbarrier, r.d, base, r.x, r.c);

	l->imm = offset;
	l->e_raw = (uint16_t)(op | (kind == OBD_KIND_SHARED ? 16 : 0));
}

void obd_mbarrier_complete_tx(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t bytes)
{
	uint32_t kind = obd_address_space(s), offset, base;
	struct obd_lin *l;

	obd_operand_count(b, s, i + 1, i + 1);
	base = obd_address(b, &s->opd[i], 8, &kind, &offset);
	l = obd_emit(b, OBD_OP_mbarrier, N, base, obd_const32(b, bytes), N);
	l->imm = offset;
	l->e_raw = (uint16_t)(OBD_MBAR_COMPLETE_TX | (kind == OBD_KIND_SHARED ? 16 : 0));
}

const struct obd_opcode obd_opcodes_mbarrier[] = {
	{ "mbarrier", lower_mbarrier, 0 },
	{ 0 },
};
