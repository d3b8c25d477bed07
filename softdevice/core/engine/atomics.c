/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Atomics and strong loads and stores, one SIMD lane after another. Several workers share global
 * memory, so it needs real atomic operations. The shared memory of a block is accessed by one
 * thread only (obd_warp.shared_alone), where plain operations do.
 */
#include "softdevice/core/engine/atomics.h"

#include <math.h>
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

#include "softdevice/core/engine/fault.h"
#include "softdevice/core/half.h"
#include "softdevice/core/ops.h"

/* d is OBD_NO_SLOT for red */
struct operands {
	const void *b, *c;
	void *d;
	bool alone; /* no other thread can access the cells */
};

#define LANE_LOOP(m)                                                                       \
	for (uint32_t rest_ = (m), i; rest_ && (i = (uint32_t)__builtin_ctz(rest_), true); \
		rest_ &= rest_ - 1)
#define AT(type) ((type *)(uintptr_t)w->addr[i])

/* Compare and swap. The first may fail although the values are equal. */
#define REPLACE(cell)                                                                 \
	static inline bool replace_##cell(cell *p, cell *old, cell value, bool alone) \
	{                                                                             \
		if (alone) {                                                          \
			*p = value;                                                   \
			return true;                                                  \
		}                                                                     \
		return __atomic_compare_exchange_n(                                   \
			p, old, value, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);     \
	}                                                                             \
	static inline cell swapped_##cell(cell *p, cell old, cell value)              \
	{                                                                             \
		__atomic_compare_exchange_n(                                          \
			p, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
		return old;                                                           \
	}
REPLACE(uint16_t)
REPLACE(uint32_t)
REPLACE(uint64_t)

/* A read-modify-write operation with compare-and-swap; `next` computes the new value from `old`. */
#define BY_CAS(cell, next)                                                              \
	do {                                                                            \
		cell *p_ = AT(cell), old = __atomic_load_n(p_, __ATOMIC_RELAXED), new_; \
		do {                                                                    \
			new_ = (next);                                                  \
		} while (!replace_##cell(p_, &old, new_, o.alone));                     \
		got = old;                                                              \
	} while (0)

/* A read-modify-write operation that is one instruction; `next` is as above. */
#define EITHER(cell, locked, next)                      \
	do {                                            \
		if (o.alone) {                          \
			cell *p_ = AT(cell), old = *p_; \
			*p_ = (cell)(next);             \
			got = old;                      \
		} else {                                \
			got = (locked);                 \
		}                                       \
	} while (0)

#define INTEGER(name, cell, scell, lane)                                                         \
	static bool name(                                                                        \
		struct obd_warp *w, uint32_t op, bool is_signed, struct operands o, uint32_t m)  \
	{                                                                                        \
		const lane *b = o.b, *c = o.c;                                                   \
		lane *d = o.d;                                                                   \
		LANE_LOOP(m)                                                                     \
		{                                                                                \
			cell v = (cell)b[i], got;                                                \
			switch (op) {                                                            \
			case OBD_ATOM_ADD:                                                       \
				EITHER(cell, __atomic_fetch_add(AT(cell), v, __ATOMIC_SEQ_CST),  \
					old + v);                                                \
				break;                                                           \
			case OBD_ATOM_AND:                                                       \
				EITHER(cell, __atomic_fetch_and(AT(cell), v, __ATOMIC_SEQ_CST),  \
					old &v);                                                 \
				break;                                                           \
			case OBD_ATOM_OR:                                                        \
				EITHER(cell, __atomic_fetch_or(AT(cell), v, __ATOMIC_SEQ_CST),   \
					old | v);                                                \
				break;                                                           \
			case OBD_ATOM_XOR:                                                       \
				EITHER(cell, __atomic_fetch_xor(AT(cell), v, __ATOMIC_SEQ_CST),  \
					old ^ v);                                                \
				break;                                                           \
			case OBD_ATOM_EXCH:                                                      \
				EITHER(cell, __atomic_exchange_n(AT(cell), v, __ATOMIC_SEQ_CST), \
					v);                                                      \
				break;                                                           \
			case OBD_ATOM_MIN:                                                       \
				if (is_signed)                                                   \
					BY_CAS(cell, (scell)old < (scell)v ? old : v);           \
				else                                                             \
					BY_CAS(cell, old < v ? old : v);                         \
				break;                                                           \
			case OBD_ATOM_MAX:                                                       \
				if (is_signed)                                                   \
					BY_CAS(cell, (scell)old > (scell)v ? old : v);           \
				else                                                             \
					BY_CAS(cell, old > v ? old : v);                         \
				break;                                                           \
			case OBD_ATOM_INC:                                                       \
				BY_CAS(cell, (cell)(old >= v ? 0 : old + 1));                    \
				break;                                                           \
			case OBD_ATOM_DEC:                                                       \
				BY_CAS(cell, (cell)(old == 0 || old > v ? v : old - 1));         \
				break;                                                           \
			case OBD_ATOM_CAS:                                                       \
				EITHER(cell, swapped_##cell(AT(cell), v, (cell)c[i]),            \
					old == v ? (cell)c[i] : old);                            \
				break;                                                           \
			default:                                                                 \
				return false;                                                    \
			}                                                                        \
			if (d)                                                                   \
				d[i] = got;                                                      \
		}                                                                                \
		return true;                                                                     \
	}
INTEGER(integer16, uint16_t, int16_t, uint32_t)
INTEGER(integer32, uint32_t, int32_t, uint32_t)
INTEGER(integer64, uint64_t, int64_t, uint64_t)

static uint32_t float32(uint32_t op, uint32_t x, uint32_t y)
{
	float a = obd_bits_f32(x), b = obd_bits_f32(y);

	if (op == OBD_ATOM_ADD) {
		float r = a + b;

		return r != r ? 0x7fffffff : obd_f32_bits(r);
	}
	if (a != a)
		return y;
	if (b != b)
		return x;
	return (op == OBD_ATOM_MIN ? a < b : a > b) ? x : y;
}

static uint64_t float64(uint64_t x, uint64_t y)
{
	return obd_f64_bits(obd_bits_f64(x) + obd_bits_f64(y));
}

static enum obd_half_op half_op(uint32_t op)
{
	return op == OBD_ATOM_ADD ? OBD_HALF_ADD : op == OBD_ATOM_MIN ? OBD_HALF_MIN : OBD_HALF_MAX;
}

/*
 * Additions of all lanes to one cell are one atomic operation: the lanes add one after another, and
 * nobody else in between.
 */
#define SUM(name, cell)                                                                            \
	static bool name(struct obd_warp *w, struct operands o, uint32_t m)                        \
	{                                                                                          \
		const cell *b = o.b;                                                               \
		cell *d = o.d, at = 0, sum = 0;                                                    \
		uint32_t first = (uint32_t)__builtin_ctz(m);                                       \
                                                                                                   \
		LANE_LOOP(m)                                                                       \
		{                                                                                  \
			if (w->addr[i] != w->addr[first])                                          \
				return false;                                                      \
			sum += b[i];                                                               \
		}                                                                                  \
		at = __atomic_fetch_add((cell *)(uintptr_t)w->addr[first], sum, __ATOMIC_SEQ_CST); \
		if (d)                                                                             \
			LANE_LOOP(m)                                                               \
			{                                                                          \
				cell v = b[i];                                                     \
				d[i] = at;                                                         \
				at += v;                                                           \
			}                                                                          \
		return true;                                                                       \
	}
SUM(sum32, uint32_t)
SUM(sum64, uint64_t)

/* Additions without results to shared memory, as histograms do them. */
static void count_alone(struct obd_warp *w, const uint32_t *b, uint32_t m)
{
	if (m == OBD_FULL_MASK)
		for (uint32_t i = 0; i < OBD_LANES; i++)
			*AT(uint32_t) += b[i];
	else
		LANE_LOOP(m)
	*AT(uint32_t) += b[i];
}

static bool integer_add(struct obd_warp *w, uint32_t type, struct operands o, uint32_t m)
{
	bool narrow = type == OBD_T_U32 || type == OBD_T_S32 || type == OBD_T_B32;

	if (narrow && o.alone && !o.d) {
		count_alone(w, o.b, m);
		return true;
	}
	if (o.alone)
		return false;
	if (narrow)
		return sum32(w, o, m);
	return (type == OBD_T_U64 || type == OBD_T_S64 || type == OBD_T_B64) && sum64(w, o, m);
}

/* Is every address in the block's shared memory, where no other thread is? */
static bool is_alone(const struct obd_warp *w, uint32_t space, uint32_t m)
{
	bool out = false;

	if (!w->shared_alone || space == OBD_SP_SHARED)
		return w->shared_alone;
	if (w->addr[__builtin_ctz(m)] - w->shared_base >= w->shared_bytes)
		return false;
	LANE_LOOP(m)
	out |= w->addr[i] - w->shared_base >= w->shared_bytes;
	return !out;
}

static void floating(struct obd_warp *w, uint32_t op, uint32_t type, struct operands o, uint32_t m)
{
	const uint32_t *b = o.b;
	uint32_t *d = o.d;

	LANE_LOOP(m)
	{
		uint32_t v = b[i], got;

		switch (type) {
		case OBD_T_F32:
			BY_CAS(uint32_t, float32(op, old, v));
			break;
		case OBD_T_F16X2:
			BY_CAS(uint32_t, obd_half2(old, v, 2, half_op(op)));
			break;
		case OBD_T_BF16X2:
			BY_CAS(uint32_t, obd_half2(old, v, 3, half_op(op)));
			break;
		case OBD_T_F16:
			BY_CAS(uint16_t, (uint16_t)obd_half2(old, v, 0, half_op(op)));
			break;
		default:
			BY_CAS(uint16_t, (uint16_t)obd_half2(old, v, 1, half_op(op)));
			break;
		}
		if (d)
			d[i] = got;
	}
}

static void double_add(struct obd_warp *w, struct operands o, uint32_t m)
{
	const uint64_t *b = o.b;
	uint64_t *d = o.d;

	LANE_LOOP(m)
	{
		uint64_t v = b[i], got;

		BY_CAS(uint64_t, float64(old, v));
		if (d)
			d[i] = got;
	}
}

/*
 * Atomic accesses of 16 bytes. On x86-64 an aligned 16-byte vector move is atomic on every
 * processor with AVX (documented by Intel and AMD), and there is CMPXCHG16B. Elsewhere all accesses
 * to such a cell use these functions, which take a lock.
 */
#ifdef __x86_64__
typedef unsigned __int128 cell128;

static void load16(const void *p, uint64_t ret[2])
{
	__m128i v;

	__asm__ volatile("movdqa %1, %0" : "=x"(v) : "m"(*(const __m128i *)p) : "memory");
	memcpy(ret, &v, 16);
}

static void store16(void *p, uint64_t lo, uint64_t hi)
{
	__m128i v = _mm_set_epi64x((long long)hi, (long long)lo);

	__asm__ volatile("movdqa %1, %0" : "=m"(*(__m128i *)p) : "x"(v) : "memory");
}

/*
 * noinline: clang would inline this into functions without cx16, and there emit a call of a library
 * function that does not exist.
 */
__attribute__((target("cx16"), noinline)) static bool swap16(
	void *p, const uint64_t old[2], const uint64_t new[2])
{
	cell128 o = (cell128)old[1] << 64 | old[0], n = (cell128) new[1] << 64 | new[0];

	return __sync_bool_compare_and_swap((cell128 *)p, o, n);
}
#else
static _Atomic int wide_lock;

static void take_wide(void)
{
	while (atomic_exchange_explicit(&wide_lock, 1, memory_order_acquire))
		;
}

static void load16(const void *p, uint64_t ret[2])
{
	take_wide();
	memcpy(ret, p, 16);
	atomic_store_explicit(&wide_lock, 0, memory_order_release);
}

static void store16(void *p, uint64_t lo, uint64_t hi)
{
	uint64_t v[2] = { lo, hi };

	take_wide();
	memcpy(p, v, 16);
	atomic_store_explicit(&wide_lock, 0, memory_order_release);
}

static bool swap16(void *p, const uint64_t old[2], const uint64_t new[2])
{
	bool same;

	take_wide();
	same = memcmp(p, old, 16) == 0;
	if (same)
		memcpy(p, new, 16);
	atomic_store_explicit(&wide_lock, 0, memory_order_release);
	return same;
}
#endif

static void wide(struct obd_warp *w, uint32_t op, struct operands o, uint32_t m)
{
	const uint64_t *b = o.b, *v = op == OBD_ATOM_EXCH ? o.b : o.c;
	uint64_t *d = o.d;

	LANE_LOOP(m)
	{
		uint64_t *p = AT(uint64_t), old[2];

		do {
			load16(p, old);
		} while ((op == OBD_ATOM_EXCH || (old[0] == b[i] && old[1] == b[OBD_LANES + i])) &&
			!swap16(p, old, (uint64_t[2]){ v[i], v[OBD_LANES + i] }));
		if (d) {
			d[i] = old[0];
			d[OBD_LANES + i] = old[1];
		}
	}
}

static void *slot(char *regs, uint32_t index)
{
	return index == OBD_NO_SLOT ? NULL : regs + (size_t)index * OBD_SLOT_BYTES;
}

void obd_atomic(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	uint32_t op = in->e & 15, type = (in->e >> 4) & 31;
	struct operands o = { slot(regs, in->b), slot(regs, in->c), slot(regs, in->d),
		is_alone(w, (in->e >> 9) & 3, m) };
	bool ok = true;

	if (op == OBD_ATOM_ADD && integer_add(w, type, o, m))
		return;
	switch (type) {
	case OBD_T_B16:
	case OBD_T_U16:
		ok = integer16(w, op, false, o, m);
		break;
	case OBD_T_S32:
		ok = integer32(w, op, true, o, m);
		break;
	case OBD_T_U32:
	case OBD_T_B32:
		ok = integer32(w, op, false, o, m);
		break;
	case OBD_T_S64:
		ok = integer64(w, op, true, o, m);
		break;
	case OBD_T_U64:
	case OBD_T_B64:
		ok = integer64(w, op, false, o, m);
		break;
	case OBD_T_F64:
		double_add(w, o, m);
		break;
	case OBD_T_B128:
		wide(w, op, o, m);
		break;
	default:
		floating(w, op, type, o, m);
		break;
	}
	if (!ok)
		obd_fault_raise(
			w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION, "invalid atomic operation");
}

void obd_load_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	uint32_t *d = slot(regs, in->d);
	uint64_t *wd = slot(regs, in->d);

	LANE_LOOP(m)
	{
		switch (in->c & 7) {
		case 0:
			d[i] = __atomic_load_n(AT(uint8_t), __ATOMIC_ACQUIRE);
			break;
		case 1:
			d[i] = __atomic_load_n(AT(uint16_t), __ATOMIC_ACQUIRE);
			break;
		case 2:
			d[i] = __atomic_load_n(AT(uint32_t), __ATOMIC_ACQUIRE);
			break;
		case 3:
			wd[i] = __atomic_load_n(AT(uint64_t), __ATOMIC_ACQUIRE);
			break;
		default: {
			uint64_t pair[2];

			load16(AT(uint64_t), pair);
			wd[i] = pair[0];
			wd[OBD_LANES + i] = pair[1];
		}
		}
	}
}

void obd_store_strong(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint32_t *b = slot(regs, in->b);
	const uint64_t *wb = slot(regs, in->b);

	LANE_LOOP(m)
	{
		switch (in->c & 7) {
		case 0:
			__atomic_store_n(AT(uint8_t), (uint8_t)b[i], __ATOMIC_RELEASE);
			break;
		case 1:
			__atomic_store_n(AT(uint16_t), (uint16_t)b[i], __ATOMIC_RELEASE);
			break;
		case 2:
			__atomic_store_n(AT(uint32_t), b[i], __ATOMIC_RELEASE);
			break;
		case 3:
			__atomic_store_n(AT(uint64_t), wb[i], __ATOMIC_RELEASE);
			break;
		default:
			store16(AT(uint64_t), wb[i], wb[OBD_LANES + i]);
			break;
		}
	}
}
