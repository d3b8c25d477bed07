/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Matrix products of a warp, matrix loads, and barriers in shared memory. The layout of fragments
 * in the lanes is that of the PTX manual. Products are summed in double precision and rounded once,
 * because the order of additions in the hardware is not documented.
 */
#include "softdevice/core/engine/matrix.h"

#include <math.h>
#include <string.h>

#include "softdevice/core/engine/fault.h"
#include "softdevice/core/half.h"
#include "softdevice/core/ops.h"

static uint32_t *reg32(char *regs, uint32_t slot)
{
	return (uint32_t *)(void *)(regs + (size_t)slot * OBD_SLOT_BYTES);
}

static uint64_t *reg64(char *regs, uint32_t slot)
{
	return (uint64_t *)(void *)(regs + (size_t)slot * OBD_SLOT_BYTES);
}

static const struct {
	uint8_t m, k;
} shapes[OBD_MMA_SHAPES] = { { 16, 4 }, { 16, 8 }, { 16, 16 }, { 16, 32 }, { 8, 4 }, { 8, 16 } };

static uint32_t element_bits(uint32_t t)
{
	switch (t) {
	case OBD_MMA_F16:
	case OBD_MMA_BF16:
		return 16;
	case OBD_MMA_E4M3:
	case OBD_MMA_E5M2:
	case OBD_MMA_S8:
	case OBD_MMA_U8:
		return 8;
	case OBD_MMA_F64:
		return 64;
	default:
		return 32;
	}
}

static double value(uint32_t t, uint64_t v)
{
	switch (t) {
	case OBD_MMA_F16:
		return obd_small_to_f64(&obd_format_f16, (uint32_t)v);
	case OBD_MMA_BF16:
		return obd_small_to_f64(&obd_format_bf16, (uint32_t)v);
	case OBD_MMA_E4M3:
		return obd_small_to_f64(&obd_format_e4m3, (uint32_t)v);
	case OBD_MMA_E5M2:
		return obd_small_to_f64(&obd_format_e5m2, (uint32_t)v);
	/* the lower bits are ignored */
	case OBD_MMA_TF32:
		return (double)obd_bits_f32((uint32_t)v & 0xffffe000u);
	case OBD_MMA_S8:
		return (double)(int8_t)v;
	case OBD_MMA_U8:
		return (double)(uint8_t)v;
	case OBD_MMA_S32:
		return (double)(int32_t)v;
	case OBD_MMA_F64:
		return obd_bits_f64(v);
	default:
		return (double)obd_bits_f32((uint32_t)v);
	}
}

static uint64_t element(char *regs, const uint16_t *list, uint32_t bits, uint32_t lane, uint32_t e)
{
	uint32_t per = bits == 64 ? 1 : 32 / bits;

	if (bits == 64)
		return reg64(regs, list[e])[lane];
	uint32_t word = reg32(regs, list[e / per])[lane] >> (e % per * bits);

	return bits == 32 ? word : word & ((1u << bits) - 1);
}

static void store_sum(
	char *regs, const uint16_t *list, uint32_t t, uint32_t lane, uint32_t e, double x, bool sat)
{
	if (t == OBD_MMA_F64) {
		reg64(regs, list[e])[lane] = obd_f64_bits(x);
	} else if (t == OBD_MMA_S32) { /* sums are exact in a double; wraps without .satfinite */
		int64_t v = (int64_t)x;

		if (sat)
			v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
		reg32(regs, list[e])[lane] = (uint32_t)(uint64_t)v;
	} else if (t == OBD_MMA_F16) {
		uint32_t *r = &reg32(regs, list[e / 2])[lane], shift = e % 2 * 16;

		*r = (*r & ~(0xffffu << shift)) |
			(obd_round_to(&obd_format_f16, x, OBD_RN, false) << shift);
	} else {
		reg32(regs, list[e])[lane] = obd_round_to(&obd_format_f32, x, OBD_RN, false);
	}
}

void obd_mma(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint16_t *list = w->cur->frame->func->call_ops + in->u.imm;
	uint32_t at = in->e & 15, bt = (in->e >> 4) & 15, ct = (in->e >> 8) & 15,
		 shape = (in->e >> 12) & 7;
	bool sat = in->e >> 15;
	uint32_t rows = shapes[shape].m, depth = shapes[shape].k, bits = element_bits(at),
		 per = bits == 64 ? 1 : 32 / bits;
	uint32_t na = rows * depth / 32, nb = 8 * depth / 32, nc = rows * 8 / 32, half = rows / 8;
	const uint16_t *la = list + 2, *lb = la + na / per, *lc = lb + nb / per,
		       *ld = lc + (ct == OBD_MMA_F16 ? nc / 2 : nc);
	double a[16][32], b[32][8], c[16][8];

	if (m != OBD_FULL_MASK)
		obd_fault_raise(w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION,
			"mma executed by fewer than 32 lanes of the warp");
	for (uint32_t lane = 0; lane < OBD_LANES; lane++) {
		uint32_t group = lane / 4, quad = lane % 4;

		/* registers alternate between the upper and the lower half of the rows */
		for (uint32_t e = 0; e < na; e++) {
			uint32_t r = e / per;

			a[group + 8 * (r % half)][quad * per + e % per + 4 * per * (r / half)] =
				value(at, element(regs, la, bits, lane, e));
		}
		for (uint32_t e = 0; e < nb; e++)
			b[quad * per + e % per + 4 * per * (e / per)][group] =
				value(bt, element(regs, lb, bits, lane, e));
		for (uint32_t e = 0; e < nc; e++)
			c[group + 8 * (e / 2)][quad * 2 + e % 2] = value(ct,
				element(regs, lc, ct == OBD_MMA_F16 ? 16 : element_bits(ct), lane,
					e));
	}
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < 8; j++)
			for (uint32_t k = 0; k < depth; k++)
				c[i][j] = ct == OBD_MMA_F64 ? fma(a[i][k], b[k][j], c[i][j])
							    : c[i][j] + a[i][k] * b[k][j];
	for (uint32_t lane = 0; lane < OBD_LANES; lane++)
		for (uint32_t e = 0; e < nc; e++)
			store_sum(regs, ld, ct, lane, e,
				c[lane / 4 + 8 * (e / 2)][lane % 4 * 2 + e % 2], sat);
}

void obd_ldmatrix(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint16_t *list = w->cur->frame->func->call_ops + in->u.imm + 2;
	uint32_t n = in->e & 7;
	bool trans = in->e & 8, store = in->e & 16;

	if (m != OBD_FULL_MASK)
		obd_fault_raise(w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION,
			"ldmatrix or stmatrix executed by fewer than 32 lanes of the warp");
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t lane = 0; lane < OBD_LANES; lane++) {
			uint32_t *word = &reg32(regs, list[k])[lane], v = 0;

			for (uint32_t e = 0; e < 2; e++) {
				uint32_t row = lane / 4, column = lane % 4 * 2 + e;
				uint16_t *cell = (uint16_t *)(uintptr_t)
							 w->addr[8 * k + (trans ? column : row)] +
					(trans ? row : column);

				if (store)
					*cell = (uint16_t)(*word >> (16 * e));
				else
					v |= (uint32_t)*cell << (16 * e);
			}
			if (!store)
				*word = v;
		}
}

/*
 * The 64 bits of an mbarrier, which are opaque to programs:
 *   0-19 pending arrivals, 20-39 arrivals per phase, 40-63 number of the phase
 * The token that an arrival returns is the value before it.
 */
#define COUNT_MASK 0xfffffu

static uint64_t arrive(uint64_t v, uint32_t count)
{
	uint64_t pending = v & COUNT_MASK, expected = (v >> 20) & COUNT_MASK, phase = v >> 40;

	pending = pending > count ? pending - count : 0;
	if (!pending) {
		pending = expected;
		phase++;
	}
	return pending | expected << 20 | phase << 40;
}

void obd_mbarrier(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	uint32_t op = in->e & 15, done = 0;

	for (uint32_t rest = m; rest; rest &= rest - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(rest),
			 count = in->b != OBD_NO_SLOT ? reg32(regs, in->b)[i] & COUNT_MASK : 0;
		uint64_t *bar = (uint64_t *)(uintptr_t)w->addr[i];
		uint64_t v = op == OBD_MBAR_PENDING ? 0 : *bar;

		switch (op) {
		case OBD_MBAR_INIT:
			*bar = (uint64_t)count | (uint64_t)count << 20;
			break;
		case OBD_MBAR_INVAL:
			*bar = 0;
			break;
		case OBD_MBAR_PENDING:
			reg32(regs, in->d)[i] = (uint32_t)(reg64(regs, in->c)[i] & COUNT_MASK);
			break;
		case OBD_MBAR_TEST:
			done |= v >> 40 != reg64(regs, in->c)[i] >> 40 ? 1u << i : 0;
			break;
		case OBD_MBAR_TEST_PARITY:
			done |= ((v >> 40) & 1) != (reg32(regs, in->c)[i] & 1) ? 1u << i : 0;
			break;
		default:
			if (in->d != OBD_NO_SLOT)
				reg64(regs, in->d)[i] = v;
			if (op == OBD_MBAR_ARRIVE_DROP) {
				uint64_t expected = (v >> 20) & COUNT_MASK;

				expected = expected > count ? expected - count : 0;
				v = (v & ~((uint64_t)COUNT_MASK << 20)) | expected << 20;
			}
			*bar = arrive(v, count);
			break;
		}
	}
	if (op == OBD_MBAR_TEST || op == OBD_MBAR_TEST_PARITY) {
		uint32_t *p = (uint32_t *)(void *)regs + in->d;

		*p = (*p & ~m) | done;
	}
}
