/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/lower_pair.h"

#include <string.h>

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

struct operation {
	const char *name;
	uint16_t plain, flush;
	uint32_t sources;
};

static const struct operation *find(struct obd_builder *b, const struct obd_stmt *s)
{
	static const struct operation all[] = {
		{ "add", OBD_OP_add_f32, OBD_OP_add_ftz_f32, 2 },
		{ "sub", OBD_OP_sub_f32, OBD_OP_sub_ftz_f32, 2 },
		{ "mul", OBD_OP_mul_f32, OBD_OP_mul_ftz_f32, 2 },
		{ "fma", OBD_OP_fma_f32, OBD_OP_fma_ftz_f32, 3 },
	};

	for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strlen(all[i].name) == s->op_size &&
			memcmp(all[i].name, s->op, s->op_size) == 0)
			return &all[i];
	obd_unsupported(b, s, ".f32x2");
}

void obd_lower_pair(struct obd_builder *b, const struct obd_stmt *s)
{
	const struct operation *o = find(b, s);
	uint32_t source[3] = { N, N, N }, result[2];

	obd_operand_count(b, s, o->sources + 1, o->sources + 1);
	for (uint32_t high = 0; high < 2; high++) {
		for (uint32_t i = 0; i < o->sources; i++)
			source[i] = part(b, s, i + 1, high);
		result[high] = obd_temp(b, OBD_T_F32);
		b->round = obd_q(s, OBD_Q_rz) ? OBD_RZ
			: obd_q(s, OBD_Q_rm)  ? OBD_RM
			: obd_q(s, OBD_Q_rp)  ? OBD_RP
					      : OBD_RN;
		obd_emit(b, obd_q(s, OBD_Q_ftz) ? o->flush : o->plain, result[high], source[0],
			source[1], source[2]);
		b->round = OBD_RN;
	}
	obd_value_combine(b, obd_dst(b, s, 0, OBD_T_F32X2), 8, result, 2);
}
