/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Handlers of comparisons, predicates and general conversions; included by interp.c. */

/* Sets `p` to the lanes for which the comparison is true, of operands of type t. */
#if defined(__AVX512F__)
#define FLAGS(name, t, test)                                               \
	u32 p = 0;                                                         \
	for (unsigned i = 0; i < OBD_LANES; i += VECTOR_BYTES / sizeof(t)) \
		p |= (u32)TEST_##name(pa + i, pb + i) << i;
#define TEST_eq_32(x, y)   _mm512_cmpeq_epi32_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_lt_u32(x, y)  _mm512_cmplt_epu32_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_le_u32(x, y)  _mm512_cmple_epu32_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_lt_s32(x, y)  _mm512_cmplt_epi32_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_le_s32(x, y)  _mm512_cmple_epi32_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_eq_64(x, y)   _mm512_cmpeq_epi64_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_lt_u64(x, y)  _mm512_cmplt_epu64_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_le_u64(x, y)  _mm512_cmple_epu64_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_lt_s64(x, y)  _mm512_cmplt_epi64_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_le_s64(x, y)  _mm512_cmple_epi64_mask(_mm512_load_si512(x), _mm512_load_si512(y))
#define TEST_eq_f32(x, y)  _mm512_cmp_ps_mask(_mm512_load_ps(x), _mm512_load_ps(y), _CMP_EQ_OQ)
#define TEST_lt_f32(x, y)  _mm512_cmp_ps_mask(_mm512_load_ps(x), _mm512_load_ps(y), _CMP_LT_OQ)
#define TEST_le_f32(x, y)  _mm512_cmp_ps_mask(_mm512_load_ps(x), _mm512_load_ps(y), _CMP_LE_OQ)
#define TEST_un_f32(x, y)  _mm512_cmp_ps_mask(_mm512_load_ps(x), _mm512_load_ps(y), _CMP_UNORD_Q)
#define TEST_equ_f32(x, y) _mm512_cmp_ps_mask(_mm512_load_ps(x), _mm512_load_ps(y), _CMP_EQ_UQ)
#define TEST_eq_f64(x, y)  _mm512_cmp_pd_mask(_mm512_load_pd(x), _mm512_load_pd(y), _CMP_EQ_OQ)
#define TEST_lt_f64(x, y)  _mm512_cmp_pd_mask(_mm512_load_pd(x), _mm512_load_pd(y), _CMP_LT_OQ)
#define TEST_le_f64(x, y)  _mm512_cmp_pd_mask(_mm512_load_pd(x), _mm512_load_pd(y), _CMP_LE_OQ)
#define TEST_un_f64(x, y)  _mm512_cmp_pd_mask(_mm512_load_pd(x), _mm512_load_pd(y), _CMP_UNORD_Q)
#define TEST_equ_f64(x, y) _mm512_cmp_pd_mask(_mm512_load_pd(x), _mm512_load_pd(y), _CMP_EQ_UQ)
#else
#define FLAGS(name, t, test)             \
	_Alignas(64) u32 v[OBD_LANES];   \
	LOOP LANES                       \
	{                                \
		t a = pa[i], b = pb[i];  \
		v[i] = (test) ? ~0u : 0; \
	}                                \
	u32 p = lanes_to_mask(v);
#endif
HANDLER(H_bra_p);

#define COMPARE(name, t, test) COMPARE_WITH(name, name, t, test, )
/* `with`: an operator and the predicate with which the result is combined, or nothing */
#define COMPARE_WITH(name, compare, t, test, with)                           \
	HANDLER(H_##name)                                                    \
	{                                                                    \
		const t *pa = (const t *)(const void *)REG(in->a),           \
			*pb = (const t *)(const void *)REG(in->b);           \
		FLAGS(compare, t, test)                                      \
		p = (p ^ (in->e ? ~0u : 0)) with;                            \
		PRED(in->d) = (PRED(in->d) & ~m) | (p & m);                  \
		if ((uintptr_t)(in + 1) < limit && in[1].op == OBD_OP_bra_p) \
			TAIL return H_bra_p(in + 1, regs, m, w, limit);      \
		NEXT_H;                                                      \
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

#define COMPARE_COMBINED(name, t, test)                       \
	COMPARE_WITH(name##_or, name, t, test, | PRED(in->c)) \
	COMPARE_WITH(name##_and, name, t, test, &PRED(in->c))
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

HANDLER(H_cvt_narrow)
{
	OUTSIDE();
	obd_cvt_narrow(in, regs, m);
	NEXT_H;
}

HANDLER(H_cvt)
{
	OUTSIDE();
	obd_cvt(in, regs, m);
	NEXT_H;
}
