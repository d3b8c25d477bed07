/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Asynchronous copies, which are executed synchronously, and instructions without effect: cache
 * hints and the like.
 */
#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/lower_bulk.h"
#include "softdevice/core/compile/lower_tensor.h"
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

/*
 * cp.async.mbarrier.arrive: the copies are already done. Without .noinc the instruction adds a
 * pending arrival and then arrives, which has no effect.
 */
static void arrive(struct obd_builder *b, const struct obd_stmt *s)
{
	uint32_t kind = obd_address_space(s), offset, address;
	struct obd_lin *l;

	obd_operand_count(b, s, 1, 1);
	if (!obd_q(s, OBD_Q_noinc))
		return;
	address = obd_address(b, &s->opd[0], 8, &kind, &offset);
	l = obd_emit(b, OBD_OP_mbarrier, N, address, obd_const32(b, 1), N);
	l->imm = offset;
	l->e_raw = (uint16_t)(OBD_MBAR_ARRIVE | (kind == OBD_KIND_SHARED ? 16 : 0));
}

/* The bytes to read; the rest of the copy's size is filled with zeros. */
static uint32_t source_bytes(struct obd_builder *b, const struct obd_stmt *s, uint32_t size)
{
	uint32_t bytes;

	if (s->n_opd <= 3 || obd_type_class(s->opd[3].type) == OBD_CLASS_64)
		return obd_const32(b, size);
	if (s->opd[3].kind != OBD_OPD_REG || s->opd[3].type != OBD_T_PRED)
		return obd_src(b, s, 3, OBD_T_U32);
	/* if the predicate is true, the source is ignored */
	bytes = obd_vreg_new(b, OBD_CLASS_32);
	obd_emit(b, OBD_OP_selp_32, bytes, obd_const32(b, 0), obd_const32(b, size),
		obd_pred_value(b, s, 3));
	return bytes;
}

static void lower_cp(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t dk = OBD_KIND_SHARED, sk = OBD_KIND_GLOBAL, doff, soff, n, bytes;

	(void)arg;
	if (obd_q(s, OBD_Q_async) && obd_q(s, OBD_Q_bulk)) {
		if (obd_word(s, "tensor"))
			obd_lower_tensor(b, s);
		else
			obd_lower_bulk(b, s);
		return;
	}
	if (!obd_q(s, OBD_Q_async))
		obd_unsupported(b, s, "a form other than cp.async of 4, 8 or 16 bytes");
	if (obd_q(s, OBD_Q_commit_group) || obd_q(s, OBD_Q_wait_group) || obd_q(s, OBD_Q_wait_all))
		return;
	if (obd_q(s, OBD_Q_arrive)) {
		arrive(b, s);
		return;
	}
	obd_operand_count(b, s, 3, 5);
	uint32_t d = obd_address(b, &s->opd[0], 0, &dk, &doff),
		 a = obd_address(b, &s->opd[1], 0, &sk, &soff);

	if (s->opd[2].kind != OBD_OPD_IMM || dk != OBD_KIND_SHARED || sk != OBD_KIND_GLOBAL)
		obd_invalid(b, s,
			"a copy must go from global to shared memory and have a constant size");
	n = (uint32_t)s->opd[2].value;
	if (n != 4 && n != 8 && n != 16)
		obd_invalid(b, s, "the copy size must be 4, 8 or 16 bytes");
	bytes = source_bytes(b, s, n);
	if (doff) {
		uint32_t w = obd_vreg_new(b, OBD_CLASS_32);

		obd_emit(b, OBD_OP_add_u32, w, d, obd_const32(b, doff), N);
		d = w;
	}
	if (soff) {
		uint32_t w = obd_vreg_new(b, OBD_CLASS_64);

		obd_emit(b, OBD_OP_add_u64, w, a,
			obd_const_new(b, OBD_CLASS_64, (uint64_t)(int64_t)(int32_t)soff, NULL), N);
		a = w;
	}
	struct obd_lin *l = obd_emit(b, OBD_OP_copy_async, N, a, bytes, N);

	l->d = d;
	l->flags |= OBD_USE_D;
	l->imm = n;
}

static void lower_nothing(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)b;
	(void)s;
	(void)arg;
}

const struct obd_opcode obd_opcodes_copy[] = {
	{ "cp", lower_cp, 0 },
	{ "prefetch", lower_nothing, 0 },
	{ "prefetchu", lower_nothing, 0 },
	{ "applypriority", lower_nothing, 0 },
	{ "discard", lower_nothing, 0 },
	{ "createpolicy", lower_nothing, 0 },
	{ "griddepcontrol", lower_nothing, 0 },
	{ "pmevent", lower_nothing, 0 },
	{ "setmaxnreg", lower_nothing, 0 },
	{ 0 },
};
