/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Handlers of the operations that work on each lane separately, two for each line of ops_elt.h and
 * ops_carry.h: F_ writes all lanes, M_ those of the mask. There is a macro for each number of
 * operands: a macro of C cannot repeat lines for each of its arguments. Included by interp.c.
 */

#define ELT1(name, td, ta, value)                                    \
	HANDLER(F_##name)                                            \
	{                                                            \
		td *d = (td *)(void *)REG(in->d);                    \
		const ta *pa = (const ta *)(const void *)REG(in->a); \
		LOOP LANES                                           \
		{                                                    \
			ta a = pa[i];                                \
			d[i] = (td)(value);                          \
		}                                                    \
		NEXT_F;                                              \
	}                                                            \
	HANDLER(M_##name)                                            \
	{                                                            \
		td *d = (td *)(void *)REG(in->d);                    \
		const ta *pa = (const ta *)(const void *)REG(in->a); \
		LOOP LANES                                           \
		{                                                    \
			ta a = pa[i];                                \
			td r = (td)(value);                          \
			d[i] = (m & lane_bit[i]) ? r : d[i];         \
		}                                                    \
		NEXT_M;                                              \
	}
#define ELT2(name, td, ta, tb, value)                                \
	HANDLER(F_##name)                                            \
	{                                                            \
		td *d = (td *)(void *)REG(in->d);                    \
		const ta *pa = (const ta *)(const void *)REG(in->a); \
		const tb *pb = (const tb *)(const void *)REG(in->b); \
		LOOP LANES                                           \
		{                                                    \
			ta a = pa[i];                                \
			tb b = pb[i];                                \
			d[i] = (td)(value);                          \
		}                                                    \
		NEXT_F;                                              \
	}                                                            \
	HANDLER(M_##name)                                            \
	{                                                            \
		td *d = (td *)(void *)REG(in->d);                    \
		const ta *pa = (const ta *)(const void *)REG(in->a); \
		const tb *pb = (const tb *)(const void *)REG(in->b); \
		LOOP LANES                                           \
		{                                                    \
			ta a = pa[i];                                \
			tb b = pb[i];                                \
			td r = (td)(value);                          \
			d[i] = (m & lane_bit[i]) ? r : d[i];         \
		}                                                    \
		NEXT_M;                                              \
	}
#define ELT3(name, td, ta, tb, tc, value)                            \
	HANDLER(F_##name)                                            \
	{                                                            \
		td *d = (td *)(void *)REG(in->d);                    \
		const ta *pa = (const ta *)(const void *)REG(in->a); \
		const tb *pb = (const tb *)(const void *)REG(in->b); \
		const tc *pc = (const tc *)(const void *)REG(in->c); \
		LOOP LANES                                           \
		{                                                    \
			ta a = pa[i];                                \
			tb b = pb[i];                                \
			tc c = pc[i];                                \
			d[i] = (td)(value);                          \
		}                                                    \
		NEXT_F;                                              \
	}                                                            \
	HANDLER(M_##name)                                            \
	{                                                            \
		td *d = (td *)(void *)REG(in->d);                    \
		const ta *pa = (const ta *)(const void *)REG(in->a); \
		const tb *pb = (const tb *)(const void *)REG(in->b); \
		const tc *pc = (const tc *)(const void *)REG(in->c); \
		LOOP LANES                                           \
		{                                                    \
			ta a = pa[i];                                \
			tb b = pb[i];                                \
			tc c = pc[i];                                \
			td r = (td)(value);                          \
			d[i] = (m & lane_bit[i]) ? r : d[i];         \
		}                                                    \
		NEXT_M;                                              \
	}
#define ELT4(name, td, ta, tb, tc, te, value)                        \
	HANDLER(F_##name)                                            \
	{                                                            \
		td *d = (td *)(void *)REG(in->d);                    \
		const ta *pa = (const ta *)(const void *)REG(in->a); \
		const tb *pb = (const tb *)(const void *)REG(in->b); \
		const tc *pc = (const tc *)(const void *)REG(in->c); \
		const te *pe = (const te *)(const void *)REG(in->e); \
		LOOP LANES                                           \
		{                                                    \
			ta a = pa[i];                                \
			tb b = pb[i];                                \
			tc c = pc[i];                                \
			te e = pe[i];                                \
			d[i] = (td)(value);                          \
		}                                                    \
		NEXT_F;                                              \
	}                                                            \
	HANDLER(M_##name)                                            \
	{                                                            \
		td *d = (td *)(void *)REG(in->d);                    \
		const ta *pa = (const ta *)(const void *)REG(in->a); \
		const tb *pb = (const tb *)(const void *)REG(in->b); \
		const tc *pc = (const tc *)(const void *)REG(in->c); \
		const te *pe = (const te *)(const void *)REG(in->e); \
		LOOP LANES                                           \
		{                                                    \
			ta a = pa[i];                                \
			tb b = pb[i];                                \
			tc c = pc[i];                                \
			te e = pe[i];                                \
			td r = (td)(value);                          \
			d[i] = (m & lane_bit[i]) ? r : d[i];         \
		}                                                    \
		NEXT_M;                                              \
	}
/* The condition of selp is the predicate in c, that of slct the sign of c. */
#define SEL(name, t)   SEL_##name(t)
#define SEL_selp_32(t) SELP(selp_32, t, t)
#define SEL_selp_64(t) SELP(selp_64, t, t)
#define SEL_slct_32(t) SLCT(slct_32, t)
#define SEL_slct_64(t) SLCT(slct_64, t)
#define SELP(name, t, unused)                                      \
	HANDLER(F_##name)                                          \
	{                                                          \
		t *d = (t *)(void *)REG(in->d);                    \
		const t *pa = (const t *)(const void *)REG(in->a), \
			*pb = (const t *)(const void *)REG(in->b); \
		u32 p = PRED(in->c);                               \
		LOOP LANES                                         \
		{                                                  \
			t a = pa[i], b = pb[i];                    \
			d[i] = (p & lane_bit[i]) ? a : b;          \
		}                                                  \
		NEXT_F;                                            \
	}                                                          \
	HANDLER(M_##name)                                          \
	{                                                          \
		t *d = (t *)(void *)REG(in->d);                    \
		const t *pa = (const t *)(const void *)REG(in->a), \
			*pb = (const t *)(const void *)REG(in->b); \
		u32 p = PRED(in->c);                               \
		LOOP LANES                                         \
		{                                                  \
			t a = pa[i], b = pb[i], old = d[i];        \
			t r = (p & lane_bit[i]) ? a : b;           \
			d[i] = (m & lane_bit[i]) ? r : old;        \
		}                                                  \
		NEXT_M;                                            \
	}
#define SLCT(name, t)                                                         \
	HANDLER(F_##name)                                                     \
	{                                                                     \
		t *d = (t *)(void *)REG(in->d);                               \
		const t *pa = (const t *)(const void *)REG(in->a),            \
			*pb = (const t *)(const void *)REG(in->b);            \
		const i32 *pc = (const i32 *)(const void *)REG(in->c);        \
		LANES d[i] = pc[i] >= 0 ? pa[i] : pb[i];                      \
		NEXT_F;                                                       \
	}                                                                     \
	HANDLER(M_##name)                                                     \
	{                                                                     \
		t *d = (t *)(void *)REG(in->d);                               \
		const t *pa = (const t *)(const void *)REG(in->a),            \
			*pb = (const t *)(const void *)REG(in->b);            \
		const i32 *pc = (const i32 *)(const void *)REG(in->c);        \
		LANES if (m & lane_bit[i]) d[i] = pc[i] >= 0 ? pa[i] : pb[i]; \
		NEXT_M;                                                       \
	}
#define CARRY(name, t, compute)                                                        \
	HANDLER(F_##name)                                                              \
	{                                                                              \
		t *d = (t *)(void *)REG(in->d);                                        \
		const t *pa = (const t *)(const void *)REG(in->a),                     \
			*pb = (const t *)(const void *)REG(in->b);                     \
		const t *pc UNUSED = (const t *)(const void *)REG(in->c);              \
		u32 *cc = w->cc;                                                       \
		LOOP LANES                                                             \
		{                                                                      \
			t a = pa[i], b = pb[i], c UNUSED = pc[i], r, k UNUSED = cc[i]; \
			compute;                                                       \
			d[i] = r;                                                      \
			cc[i] = (u32)k;                                                \
		}                                                                      \
		NEXT_F;                                                                \
	}                                                                              \
	HANDLER(M_##name)                                                              \
	{                                                                              \
		t *d = (t *)(void *)REG(in->d);                                        \
		const t *pa = (const t *)(const void *)REG(in->a),                     \
			*pb = (const t *)(const void *)REG(in->b);                     \
		const t *pc UNUSED = (const t *)(const void *)REG(in->c);              \
		u32 *cc = w->cc;                                                       \
		LOOP LANES                                                             \
		{                                                                      \
			t a = pa[i], b = pb[i], c UNUSED = pc[i], r, k UNUSED = cc[i]; \
			compute;                                                       \
			d[i] = (m & lane_bit[i]) ? r : d[i];                           \
			cc[i] = (m & lane_bit[i]) ? (u32)k : cc[i];                    \
		}                                                                      \
		NEXT_M;                                                                \
	}
/*
 * Long chains repeat the same operation. The handler executes the repetitions in a loop that keeps
 * the carries in processor registers, in one variable for each vector.
 */
#if VECTOR_BYTES == 64
#define EACH_VECTOR(step) step(0) step(1)
#elif VECTOR_BYTES == 32
#define EACH_VECTOR(step) step(0) step(1) step(2) step(3)
#else
#define EACH_VECTOR(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7)
#endif
#define CHAIN_STEP(v, compute)                                                               \
	{                                                                                    \
		enum { i = v };                                                              \
		vu a UNUSED = pa[i], b UNUSED = pb[i], c UNUSED = pc[i], r, k UNUSED = k##v; \
		compute;                                                                     \
		d[i] = r;                                                                    \
		k##v = k;                                                                    \
	}
#if VECTOR_BYTES == 64
/* clang-format off */
#define CHAIN_STEPS(compute) CHAIN_STEP(0, compute) CHAIN_STEP(1, compute)
/* clang-format on */
#elif VECTOR_BYTES == 32
/* clang-format off */
#define CHAIN_STEPS(compute) CHAIN_STEP(0, compute) CHAIN_STEP(1, compute) CHAIN_STEP(2, compute) CHAIN_STEP(3, compute)
/* clang-format on */
#else
/* clang-format off */
#define CHAIN_STEPS(compute) \
	CHAIN_STEP(0, compute) CHAIN_STEP(1, compute) CHAIN_STEP(2, compute) CHAIN_STEP(3, compute) \
	CHAIN_STEP(4, compute) CHAIN_STEP(5, compute) CHAIN_STEP(6, compute) CHAIN_STEP(7, compute)
/* clang-format on */
#endif
#define CHAIN_LOAD(v)  vu k##v = cc[v];
#define CHAIN_STORE(v) cc[v] = k##v;
#define CARRYV(name, changes, compute)                                              \
	HANDLER(F_##name)                                                           \
	{                                                                           \
		vu *cc = (vu *)(void *)w->cc;                                       \
		EACH_VECTOR(CHAIN_LOAD)                                             \
		do {                                                                \
			vu *d = (vu *)(void *)REG(in->d);                           \
			const vu *pa = (const vu *)(const void *)REG(in->a),        \
				 *pb = (const vu *)(const void *)REG(in->b);        \
			const vu *pc UNUSED = (const vu *)(const void *)REG(in->c); \
			CHAIN_STEPS(compute)                                        \
			in++;                                                       \
		} while ((uintptr_t)in < limit && in->op == OBD_OP_##name);         \
		if (changes) {                                                      \
			EACH_VECTOR(CHAIN_STORE)                                    \
		}                                                                   \
		GO_ON(in, full_table);                                              \
	}                                                                           \
	HANDLER(M_##name)                                                           \
	{                                                                           \
		vu *d = (vu *)(void *)REG(in->d), *cc = (vu *)(void *)w->cc;        \
		const vu *pa = (const vu *)(const void *)REG(in->a),                \
			 *pb = (const vu *)(const void *)REG(in->b);                \
		const vu *pc UNUSED = (const vu *)(const void *)REG(in->c),         \
			     *bits = (const vu *)(const void *)lane_bit;            \
		for (unsigned i = 0; i < VECTORS; i++) {                            \
			vu a UNUSED = pa[i], b UNUSED = pb[i], c UNUSED = pc[i], r, \
			     k UNUSED = cc[i], keep = (vu)((bits[i] & m) == 0);     \
			compute;                                                    \
			d[i] = (r & ~keep) | (d[i] & keep);                         \
			if (changes)                                                \
				cc[i] = (k & ~keep) | (cc[i] & keep);               \
		}                                                                   \
		NEXT_M;                                                             \
	}
#include "softdevice/core/ops_carry.h"
#include "softdevice/core/ops_elt.h"
#include "softdevice/core/ops_undef.h"
