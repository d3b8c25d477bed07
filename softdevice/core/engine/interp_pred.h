/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Handlers of comparisons, predicates and general conversions; included by interp.c. */

#define COMPARE(name, t, test) COMPARE_WITH(name, t, test, )
/* `with`: an operator and the predicate with which the result is combined, or nothing */
#define COMPARE_WITH(name, t, test, with)                            \
	HANDLER(H_##name)                                            \
	{                                                            \
		const t *pa = (const t *)(const void *)REG(in->a),   \
			*pb = (const t *)(const void *)REG(in->b);   \
		_Alignas(64) u32 v[OBD_LANES];                       \
		LOOP LANES                                           \
		{                                                    \
			t a = pa[i], b = pb[i];                      \
			v[i] = (test) ? ~0u : 0;                     \
		}                                                    \
		u32 p = (lanes_to_mask(v) ^ (in->e ? ~0u : 0)) with; \
		PRED(in->d) = (PRED(in->d) & ~m) | (p & m);          \
		NEXT_H;                                              \
	}
COMPARE(eq_32, u32, a == b)
COMPARE(lt_u32, u32, a < b)
COMPARE(le_u32, u32, a <= b)
COMPARE(lt_s32, i32, a < b)
COMPARE(le_s32, i32, a <= b)
COMPARE(eq_64, u64, a == b)
COMPARE(lt_u64, u64, a < b)
COMPARE(le_u64, u64, a <= b)
COMPARE(lt_s64, i64, a < b)
COMPARE(le_s64, i64, a <= b)
COMPARE(eq_f32, f32, a == b)
COMPARE(lt_f32, f32, a < b)
COMPARE(le_f32, f32, a <= b)
COMPARE(un_f32, f32, (a != a) | (b != b))
COMPARE(equ_f32, f32, (a == b) | (a != a) | (b != b))
COMPARE(eq_f64, f64, a == b)
COMPARE(lt_f64, f64, a < b)
COMPARE(le_f64, f64, a <= b)
COMPARE(un_f64, f64, (a != a) | (b != b))
COMPARE(equ_f64, f64, (a == b) | (a != a) | (b != b))

#define COMPARE_COMBINED(name, t, test)                 \
	COMPARE_WITH(name##_or, t, test, | PRED(in->c)) \
	COMPARE_WITH(name##_and, t, test, &PRED(in->c))
COMPARE_COMBINED(eq_32, u32, a == b)
COMPARE_COMBINED(lt_u32, u32, a < b)
COMPARE_COMBINED(le_u32, u32, a <= b)
COMPARE_COMBINED(lt_s32, i32, a < b)
COMPARE_COMBINED(le_s32, i32, a <= b)

#define PREDICATE(name, value)                                                   \
	HANDLER(H_##name)                                                        \
	{                                                                        \
		u32 a UNUSED = PRED(in->a), b UNUSED = PRED(in->b), p = (value); \
		PRED(in->d) = (PRED(in->d) & ~m) | (p & m);                      \
		NEXT_H;                                                          \
	}
PREDICATE(pset, in->u.imm)
PREDICATE(pmov, a)
PREDICATE(pnot, ~a)
PREDICATE(pand, a &b)
PREDICATE(por, a | b)
PREDICATE(pxor, a ^ b)

/* e: 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal; +8: f64 */
HANDLER(H_testp)
{
	u32 p = 0;

	LANES
	{
		f64 x = in->e & 8 ? ((f64 *)(void *)REG(in->a))[i]
				  : (f64)((f32 *)(void *)REG(in->a))[i];
		f64 mag = x < 0 ? -x : x, least = in->e & 8 ? 0x1p-1022 : 0x1p-126;
		bool r;

		switch (in->e & 7) {
		case 0:
			r = mag < INFINITY;
			break;
		case 1:
			r = mag == INFINITY;
			break;
		case 2:
			r = x == x;
			break;
		case 3:
			r = x != x;
			break;
		/* zero counts as normal */
		case 4:
			r = (mag >= least && mag < INFINITY) || mag == 0;
			break;
		default:
			r = mag > 0 && mag < least;
			break;
		}
		p |= r ? lane_bit[i] : 0;
	}
	PRED(in->d) = (PRED(in->d) & ~m) | (p & m);
	NEXT_H;
}

HANDLER(H_cvt)
{
	OUTSIDE();
	obd_cvt(in, regs, m);
	NEXT_H;
}
