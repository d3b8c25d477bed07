/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/lower_pair.h"

#include "softdevice/core/compile/lower_float.h"
#include "softdevice/core/compile/value.h"

#define N OBD_NONE

/* One value of the pair in operand i. */
static uint32_t part(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t high)
{
	uint32_t v = obd_src(b, s, i, OBD_T_F32X2), w = obd_temp(b, OBD_T_B32);
	struct obd_lin *l;

	if (!high) {
		obd_emit(b, OBD_OP_lo_64, w, v, N, N);
		return w;
	}
	l = obd_emit(b, OBD_OP_bits_64, w, v, N, N);
	l->e_raw = 32;
	l->imm = ~0u;
	return w;
}

void obd_lower_pair(struct obd_builder *b, const struct obd_stmt *s, uint32_t which)
{
	static const uint16_t plain[] = { [OBD_ARITH_ADD] = OBD_OP_add_f32,
		[OBD_ARITH_SUB] = OBD_OP_sub_f32,
		[OBD_ARITH_MUL] = OBD_OP_mul_f32,
		[OBD_ARITH_FMA] = OBD_OP_fma_f32 };
	static const uint16_t flush[] = { [OBD_ARITH_ADD] = OBD_OP_add_ftz_f32,
		[OBD_ARITH_SUB] = OBD_OP_sub_ftz_f32,
		[OBD_ARITH_MUL] = OBD_OP_mul_ftz_f32,
		[OBD_ARITH_FMA] = OBD_OP_fma_ftz_f32 };
	uint32_t n = which == OBD_ARITH_FMA ? 3 : 2, source[3] = { N, N, N }, result[2];

	obd_operand_count(b, s, n + 1, n + 1);
	for (uint32_t high = 0; high < 2; high++) {
		for (uint32_t i = 0; i < n; i++)
			source[i] = part(b, s, i + 1, high);
		result[high] = obd_temp(b, OBD_T_F32);
		b->round = obd_q(s, OBD_Q_rz) ? OBD_RZ
			: obd_q(s, OBD_Q_rm)  ? OBD_RM
			: obd_q(s, OBD_Q_rp)  ? OBD_RP
					      : OBD_RN;
		obd_emit(b, obd_q(s, OBD_Q_ftz) ? flush[which] : plain[which], result[high],
			source[0], source[1], source[2]);
		b->round = OBD_RN;
	}
	obd_value_combine(b, obd_dst(b, s, 0, OBD_T_F32X2), 8, result, 2);
}
