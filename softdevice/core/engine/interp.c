/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The handlers: one function per operation, for 32 SIMD lanes. The file is compiled once per
 * instruction set with OBD_ISA set to its name. It exports only obd_isa_<name>.
 *
 * Each operation that works on each lane separately has two handlers. The F handler writes every
 * lane and is used when all live lanes are active; the registers of dead lanes may have any value.
 * The M handler keeps the lanes outside the mask.
 */
#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "softdevice/core/engine/atomics.h"
#include "softdevice/core/engine/barrier.h"
#include "softdevice/core/engine/cvt.h"
#include "softdevice/core/engine/exec.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/lane.h"
#include "softdevice/core/engine/matrix.h"
#include "softdevice/core/engine/sreg.h"
#include "softdevice/core/engine/sync.h"
#include "softdevice/core/engine/warp.h"
#include "softdevice/core/ops.h"

#define CAT2(a, b) a##b
#define CAT(a, b)  CAT2(a, b)
#define STR2(a)    #a
#define STR(a)     STR2(a)

#if defined(__clang__)
#define LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOOP _Pragma("GCC ivdep")
#endif
#define LANES  for (unsigned i = 0; i < OBD_LANES; i++)
#define UNUSED __attribute__((unused))
#define HANDLER(name)                                                                           \
	static const struct obd_insn *name(const struct obd_insn *in UNUSED, char *regs UNUSED, \
		uint32_t m UNUSED, struct obd_warp *w UNUSED, uintptr_t limit UNUSED)
/*
 * Where the compiler supports tail calls, a handler jumps directly to the next one. Each handler
 * then has its own indirect jump, which processors predict better than a common one. Otherwise it
 * returns to the loop in run(). The chain ends at `limit`, which is 0 for an instruction with a
 * prefix.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define CHAIN 0
#elif defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer) || !__has_attribute(musttail)
#define CHAIN 0
#else
#define CHAIN 1
#define TAIL  __attribute__((musttail))
#endif
#else
#define CHAIN 1
#define TAIL
#endif

#if CHAIN
#define GO_ON(to, table)                                                  \
	do {                                                              \
		const struct obd_insn *next_ = (to);                      \
		if (UNLIKELY((uintptr_t)next_ >= limit))                  \
			return next_;                                     \
		TAIL return (table)[next_->op](next_, regs, m, w, limit); \
	} while (0)
#else
#define GO_ON(to, table) return (to)
#endif
/*
 * True if all live lanes are active, so that no mask is needed. OUTBOARD_OPT=-fullmask: always
 * false.
 */
#define WHOLE(lanes_) ((lanes_) == w->live && obd_fullmask)
#define NEXT_F        GO_ON(in + 1, full_table)
#define NEXT_M        GO_ON(in + 1, mask_table)
#define NEXT_H        GO_ON(in + 1, WHOLE(m) ? full_table : mask_table)

/*
 * Called before functions outside this file. They may use SSE instructions, which are slow while
 * the upper halves of the vector registers are in use.
 */
#if defined(__AVX__)
#define OUTSIDE() _mm256_zeroupper()
#else
#define OUTSIDE() ((void)0)
#endif

/* Counts the instructions from w->from to `in`, inclusive. */
#define COUNT() ((void)(w->count += (u64)(in + 1 - w->from)))

static const obd_handler full_table[OBD_OP_COUNT], mask_table[OBD_OP_COUNT];

#define REG(index)  (regs + (size_t)(index)*OBD_SLOT_BYTES)
#define PRED(index) (((uint32_t *)(void *)regs)[index])
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static const _Alignas(64) u32 lane_bit[OBD_LANES] = {
	1u << 0,
	1u << 1,
	1u << 2,
	1u << 3,
	1u << 4,
	1u << 5,
	1u << 6,
	1u << 7,
	1u << 8,
	1u << 9,
	1u << 10,
	1u << 11,
	1u << 12,
	1u << 13,
	1u << 14,
	1u << 15,
	1u << 16,
	1u << 17,
	1u << 18,
	1u << 19,
	1u << 20,
	1u << 21,
	1u << 22,
	1u << 23,
	1u << 24,
	1u << 25,
	1u << 26,
	1u << 27,
	1u << 28,
	1u << 29,
	1u << 30,
	1u << 31,
};

#if defined(__FMA__)
#define FMA32(a, b, c) __builtin_fmaf(a, b, c)
#define FMA64(a, b, c) __builtin_fma(a, b, c)
#else
#define FMA32(a, b, c) fmaf(a, b, c)
#define FMA64(a, b, c) fma(a, b, c)
#endif

/* Vectors of 32-bit elements, of the width of the instruction set. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define VECTORS (OBD_SLOT_BYTES / VECTOR_BYTES)
typedef u32 vu __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef i32 vi __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef u64 vw __attribute__((vector_size(VECTOR_BYTES), may_alias));

/*
 * The carry out of bit 31 of x + y + k, where `sum` is the result, and the borrow out of x - y - k,
 * where `diff` is the result.
 */
#define CARRY_OUT(x, y, sum)   ((((x) & (y)) | (((x) | (y)) & ~(sum))) >> 31)
#define BORROW_OUT(x, y, diff) (((~(x) & (y)) | ((~(x) | (y)) & (diff))) >> 31)

/*
 * A vector in which each odd element is also copied to the even one before it. From memory this
 * costs no more than the load.
 */
#if defined(__AVX2__)
static inline vu odd_lanes(const vu *p)
{
	vu r;

	__asm__("vmovshdup %1, %0" : "=v"(r) : "m"(*p));
	return r;
}
#endif

/*
 * Upper halves of unsigned products. The multiply instruction uses the even elements only and gives
 * 64 bits, so the odd elements are first copied to even positions.
 */
static inline vu mulhi_vu(const vu *pa, const vu *pb)
{
#if defined(__AVX512F__)
	__m512i even = _mm512_mul_epu32((__m512i)*pa, (__m512i)*pb);
	__m512i odd = _mm512_mul_epu32((__m512i)odd_lanes(pa), (__m512i)odd_lanes(pb));

	return (vu)_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
#elif defined(__AVX2__)
	__m256i even = _mm256_mul_epu32((__m256i)*pa, (__m256i)*pb);
	__m256i odd = _mm256_mul_epu32((__m256i)odd_lanes(pa), (__m256i)odd_lanes(pb));

	return (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
#elif defined(__SSE2__)
	__m128i a = (__m128i)*pa, b = (__m128i)*pb;
	__m128i even = _mm_mul_epu32(a, b),
		odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));

	return (vu)_mm_or_si128(_mm_srli_epi64(even, 32),
		_mm_and_si128(odd, _mm_set1_epi64x((long long)0xffffffff00000000ull)));
#else
	vu r;

	for (unsigned i = 0; i < VECTOR_BYTES / 4; i++)
		r[i] = (u32)(((u64)(*pa)[i] * (*pb)[i]) >> 32);
	return r;
#endif
}

/*
 * Signed products. Read as unsigned, a negative factor adds 2^32 times the other factor; this is
 * subtracted.
 */
static inline vu mulhi_vs(const vu *pa, const vu *pb)
{
	vu a = *pa, b = *pb;

	return mulhi_vu(pa, pb) - ((vu)((vi)a >> 31) & b) - ((vu)((vi)b >> 31) & a);
}

/* Element i, which is 0 or all ones, gives bit i. */
static inline u32 lanes_to_mask(const u32 *t)
{
#if defined(__AVX512F__) && defined(__AVX512DQ__)
	return (u32)_mm512_movepi32_mask(_mm512_load_si512(t)) |
		((u32)_mm512_movepi32_mask(_mm512_load_si512(t + 16)) << 16);
#elif defined(__AVX2__)
	u32 r = 0;

	for (unsigned i = 0; i < 4; i++)
		r |= (u32)_mm256_movemask_ps(
			     _mm256_load_ps((const float *)(const void *)(t + 8 * i)))
			<< (8 * i);
	return r;
#elif defined(__SSE2__)
	u32 r = 0;

	for (unsigned i = 0; i < 8; i++)
		r |= (u32)_mm_movemask_ps(_mm_load_ps((const float *)(const void *)(t + 4 * i)))
			<< (4 * i);
	return r;
#else
	u32 r = 0;

	LANES r |= t[i] & lane_bit[i];
	return r;
#endif
}

/* ---- operations on each lane ---- */

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
#undef ELT1
#undef ELT2
#undef ELT3
#undef ELT4
#undef SEL
#undef CARRY
#undef CARRYV

/* ---- comparisons and predicates ---- */

#define COMPARE(name, t, test)                                     \
	HANDLER(H_##name)                                          \
	{                                                          \
		const t *pa = (const t *)(const void *)REG(in->a), \
			*pb = (const t *)(const void *)REG(in->b); \
		_Alignas(64) u32 v[OBD_LANES];                     \
		LOOP LANES                                         \
		{                                                  \
			t a = pa[i], b = pb[i];                    \
			v[i] = (test) ? ~0u : 0;                   \
		}                                                  \
		u32 p = lanes_to_mask(v) ^ (in->e ? ~0u : 0);      \
		PRED(in->d) = (PRED(in->d) & ~m) | (p & m);        \
		NEXT_H;                                            \
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

#include "softdevice/core/engine/interp_mem.h"
#include "softdevice/core/engine/interp_ctl.h"

HANDLER(H_guard);
HANDLER(H_round);

static const obd_handler full_table[OBD_OP_COUNT] = {
#define ELT1(name, td, ta, value)             F_##name,
#define ELT2(name, td, ta, tb, value)         F_##name,
#define ELT3(name, td, ta, tb, tc, value)     F_##name,
#define ELT4(name, td, ta, tb, tc, te, value) F_##name,
#define SEL(name, t)                          F_##name,
#define CARRY(name, t, compute)               F_##name,
#define CARRYV(name, changes, compute)        F_##name,
#define OPX(name)                             H_##name,
#include "softdevice/core/ops_elt.h"
#include "softdevice/core/ops_carry.h"
#include "softdevice/core/ops_other.h"
#undef ELT1
#undef ELT2
#undef ELT3
#undef ELT4
#undef SEL
#undef CARRY
#undef CARRYV
#undef OPX
};

static const obd_handler mask_table[OBD_OP_COUNT] = {
#define ELT1(name, td, ta, value)             M_##name,
#define ELT2(name, td, ta, tb, value)         M_##name,
#define ELT3(name, td, ta, tb, tc, value)     M_##name,
#define ELT4(name, td, ta, tb, tc, te, value) M_##name,
#define SEL(name, t)                          M_##name,
#define CARRY(name, t, compute)               M_##name,
#define CARRYV(name, changes, compute)        M_##name,
#define OPX(name)                             H_##name,
#include "softdevice/core/ops_elt.h"
#include "softdevice/core/ops_carry.h"
#include "softdevice/core/ops_other.h"
#undef ELT1
#undef ELT2
#undef ELT3
#undef ELT4
#undef SEL
#undef CARRY
#undef CARRYV
#undef OPX
};

/* Runs the instruction after the guard for the lanes whose predicate is true. */
HANDLER(H_guard)
{
	u32 lanes = (PRED(in->a) ^ (in->e ? ~0u : 0)) & m;

	w->from++; /* a prefix is not counted as an instruction */
	if (!lanes)
		GO_ON(in + (in[1].op == OBD_OP_round ? 3 : 2), WHOLE(m) ? full_table : mask_table);
	in = (WHOLE(lanes) ? full_table : mask_table)[in[1].op](in + 1, regs, lanes, w, 0);
	if (in == OBD_LEAVE)
		return in;
	GO_ON(in, WHOLE(m) ? full_table : mask_table);
}

HANDLER(H_round)
{
#if defined(__x86_64__)
	unsigned old = _mm_getcsr();

	w->from++;
	_mm_setcsr((old & ~0x6000u) |
		(in->e == OBD_RM                  ? 0x2000u
				: in->e == OBD_RP ? 0x4000u
				: in->e == OBD_RZ ? 0x6000u
						  : 0));
	__asm__ volatile("" ::: "memory");
	const struct obd_insn *next =
		(WHOLE(m) ? full_table : mask_table)[in[1].op](in + 1, regs, m, w, 0);
	__asm__ volatile("" ::: "memory");
	_mm_setcsr(old);
	return next;
#else
	return (WHOLE(m) ? full_table : mask_table)[in[1].op](in + 1, regs, m, w, 0);
#endif
}

static void run(struct obd_warp *w)
{
	const struct obd_insn *in = w->cur->pc;
	char *regs = w->cur->frame->regs;
	u32 m = w->cur->mask;
	const obd_handler *table = WHOLE(m) ? full_table : mask_table;
	uintptr_t limit = w->limit;

	w->from = in;
	w->count = 0;
	do
		in = table[in->op](in, regs, m, w, limit);
	while ((uintptr_t)in < limit);
	if (in != OBD_LEAVE) {
		w->cur->pc = in;
		w->count += (u64)(in - w->from);
	}
	w->steps += w->count;
	w->worker->lane_instructions += w->count * (u64)__builtin_popcount(m);
	OUTSIDE();
}

const struct obd_isa CAT(obd_isa_, OBD_ISA) = { .name = OBD_ISA_NAME, .run = run };
