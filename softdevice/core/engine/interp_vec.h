/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Handlers of the operations of ops_vector.h, two for each line: F_ writes all lanes, M_ those of
 * the mask. Included by interp.c.
 */

/* Writes the lanes of the mask. */
static inline void put_lanes(char *d, const vu *t, u32 m)
{
	vu *out = (vu *)(void *)d;
	const vu *bits = (const vu *)(const void *)lane_bit;

	for (unsigned i = 0; i < VECTORS; i++)
		out[i] = pick((vi)(bits[i] & m) == 0, out[i], t[i]);
}

#define BOTH_HANDLERS(name)                     \
	HANDLER(F_##name)                       \
	{                                       \
		C_##name(in, regs, REG(in->d)); \
		NEXT_F;                         \
	}                                       \
	HANDLER(M_##name)                       \
	{                                       \
		vu t[VECTORS];                  \
		C_##name(in, regs, (char *)t);  \
		put_lanes(REG(in->d), t, m);    \
		NEXT_M;                         \
	}
#define COMPUTE(name)                                           \
	static inline __attribute__((always_inline)) void name( \
		const struct obd_insn *in, char *regs, char *to)

#define HALF(name, format, value)                                               \
	COMPUTE(C_##name)                                                       \
	{                                                                       \
		const vh *pa UNUSED = (const vh *)(const void *)REG(in->a),     \
			     *pb UNUSED = (const vh *)(const void *)REG(in->b), \
			     *pc UNUSED = (const vh *)(const void *)REG(in->c); \
		for (unsigned i = 0; i < HALF_VECTORS; i++) {                   \
			vf a UNUSED = format##_unpack(pa[i]);                   \
			vf b UNUSED = format##_unpack(pb[i]);                   \
			vf c UNUSED = format##_unpack(pc[i]);                   \
			((vh *)(void *)to)[i] = format##_pack(value);           \
		}                                                               \
	}                                                                       \
	BOTH_HANDLERS(name)

/* Vectors of signed 16-bit halves. */
typedef i16 vhi __attribute__((vector_size(VECTOR_BYTES), may_alias));

static inline vhi splat_h(i32 x)
{
	return (vhi){ 0 } + (i16)x;
}

static inline vhi pick_h(vhi mask, vhi x, vhi y)
{
	return (mask & x) | (~mask & y);
}

static inline vhi nan_h(vhi x, i16 inf)
{
	return (x & 0x7fff) > inf;
}

/* A number with the order of the values; -0 is below +0. */
static inline vhi key_h(vhi x)
{
	return x ^ ((x >> 15) & 0x7fff);
}

#define HALFU(name, value)                                                    \
	COMPUTE(C_##name)                                                     \
	{                                                                     \
		const vhi *pa = (const vhi *)(const void *)REG(in->a);        \
		const vhi *pb UNUSED = (const vhi *)(const void *)REG(in->b); \
		const i16 inf UNUSED = in->e & 1 ? 0x7f80 : 0x7c00;           \
		const i16 one UNUSED = in->e & 1 ? 0x3f80 : 0x3c00;           \
		for (unsigned i = 0; i < VECTORS; i++) {                      \
			vhi a = pa[i], b UNUSED = pb[i];                      \
			((vhi *)(void *)to)[i] = value;                       \
		}                                                             \
	}                                                                     \
	BOTH_HANDLERS(name)

#define VEC(name, value)                                                    \
	COMPUTE(C_##name)                                                   \
	{                                                                   \
		const vu *pa = (const vu *)(const void *)REG(in->a),        \
			 *pb UNUSED = (const vu *)(const void *)REG(in->b); \
		for (unsigned i = 0; i < VECTORS; i++) {                    \
			vu a = pa[i], b UNUSED = pb[i];                     \
			((vu *)(void *)to)[i] = value;                      \
		}                                                           \
	}                                                                   \
	BOTH_HANDLERS(name)

static inline bool below_2_32(const u64 *a, const u64 *b)
{
	u64 bits = 0;

	LANES bits |= a[i] | b[i];
	return bits >> 32 == 0;
}

#define QUOT(name, narrow, wide)                                            \
	HANDLER(F_##name)                                                   \
	{                                                                   \
		const u64 *pa = (const u64 *)(const void *)REG(in->a);      \
		const u64 *pb = (const u64 *)(const void *)REG(in->b);      \
		u64 *d = (u64 *)(void *)REG(in->d);                         \
		if (LIKELY(below_2_32(pa, pb))) {                           \
			LOOP LANES                                          \
			{                                                   \
				u64 a = pa[i], b = pb[i];                   \
				d[i] = narrow;                              \
			}                                                   \
		} else {                                                    \
			LANES                                               \
			{                                                   \
				u64 a = pa[i], b = pb[i];                   \
				d[i] = wide;                                \
			}                                                   \
		}                                                           \
		NEXT_F;                                                     \
	}                                                                   \
	HANDLER(M_##name)                                                   \
	{                                                                   \
		const u64 *pa = (const u64 *)(const void *)REG(in->a);      \
		const u64 *pb = (const u64 *)(const void *)REG(in->b);      \
		u64 *d = (u64 *)(void *)REG(in->d);                         \
		if (LIKELY(below_2_32(pa, pb))) {                           \
			LOOP LANES                                          \
			{                                                   \
				u64 a = pa[i], b = pb[i], r = narrow;       \
				d[i] = (m & lane_bit[i]) ? r : d[i];        \
			}                                                   \
		} else {                                                    \
			for (u32 rest = m; rest; rest &= rest - 1) {        \
				unsigned i = (unsigned)__builtin_ctz(rest); \
				u64 a = pa[i], b = pb[i];                   \
				d[i] = wide;                                \
			}                                                   \
		}                                                           \
		NEXT_M;                                                     \
	}

#include "softdevice/core/ops_vector.h"
#include "softdevice/core/ops_undef.h"
