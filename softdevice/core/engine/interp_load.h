/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Handlers of loads and stores; included by interp.c. Every address is checked against the device's
 * window before it is used. An access to an unmapped address inside the window raises a signal,
 * which is caught.
 */

/*
 * Is the address of any active lane outside [base, base + last] or not aligned to al + 1? base and
 * last are below 2^63.
 */
static inline bool any_bad(const u64 *ad, u32 m, u64 base, u64 last, u64 al)
{
	u64 bad = 0;

	LOOP LANES
	{
		u64 t = ad[i] - base;
		u64 v = ((t | (last - t)) >> 63) | (ad[i] & al);

		bad |= (m & lane_bit[i]) ? v : 0;
	}
	return bad != 0;
}

#include "softdevice/core/engine/interp_quad.h"

/* the alignment of an access, less one */
#define AL (in->e & 0xffu)

/* Computes w->addr. The kinds of memory access differ only in this step. */
#define ADDRESS_g(cell)                                        \
	const u64 *pa = (const u64 *)(const void *)REG(in->a); \
	u64 off = (u64)(i64)(i32)in->u.imm;                    \
	LOOP LANES ad[i] = pa[i] + off;
#define ADDRESS_s(cell)                                        \
	const u32 *pa = (const u32 *)(const void *)REG(in->a); \
	u32 off = in->u.imm;                                   \
	u64 sb = w->shared_base;                               \
	LOOP LANES ad[i] = sb + (u32)(pa[i] + off);
#define ADDRESS_l(cell)                                                    \
	const u64 *pa = (const u64 *)(const void *)REG(in->a);             \
	u64 off = (u64)(i64)(i32)in->u.imm, far = 0, end = w->stack_bytes; \
	LOOP LANES                                                         \
	{                                                                  \
		u64 o = pa[i] + off;                                       \
		ad[i] = w->lbase[i] + o;                                   \
		far |= (m & lane_bit[i]) ? (end - 1 - o) | o : 0;          \
	}                                                                  \
	if (UNLIKELY(far >> 63))                                           \
		obd_fault_access(w, in, m, 0, false, 0);
/* The signed index of 32 bits as one of 64 bits, if `sign` is its sign bit. */
#define EXTEND(index, sign) ((u64)(index) - ((u64)((index) & (sign)) << 1))
#define BASE_AND_INDEX                                         \
	const u32 *pa = (const u32 *)(const void *)REG(in->a); \
	u32 sign = in->e & OBD_INDEX_SIGNED ? 1u << 31 : 0;    \
	u64 base = *(const u64 *)(const void *)REG(in->c) + (u64)(i64)(i32)in->u.imm;
#define ADDRESS_i(cell) \
	BASE_AND_INDEX  \
	LOOP LANES ad[i] = base + EXTEND(pa[i], sign) * sizeof(cell);
#define BASE_g w->window_base
#define SIZE_g w->window_size
#define BASE_i BASE_g
#define SIZE_i SIZE_g
#define BASE_s w->shared_base
#define SIZE_s (u64) w->shared_bytes
#define BASE_l w->window_base
#define SIZE_l w->window_size

/*
 * A load or store has several roads. The first ones need no address of a single lane: the cells of
 * the active lanes lie in a row (the address of lane i is that of lane 0 + i cells); for loads, all
 * lanes, or all of each half of the warp, read one cell, or each half reads a row. They take a row
 * only if all of its cells are inside the memory, and leave everything else, errors included, to
 * the handler S_, which checks each lane.
 */
#define FIRST_ADDRESS_g(lane0, cell)                                 \
	const u64 *pa = (const u64 *)(const void *)REG(in->a);       \
	u64 off = (u64)(i64)(i32)in->u.imm, first = pa[lane0] + off; \
	u64 inside = first - w->window_base, room = w->window_size;
#define FIRST_ADDRESS_i(lane0, cell)                               \
	BASE_AND_INDEX                                             \
	u64 first = base + EXTEND(pa[lane0], sign) * sizeof(cell); \
	u64 inside = first - w->window_base, room = w->window_size;
#define FIRST_ADDRESS_s(lane0, cell)                                       \
	const u32 *pa = (const u32 *)(const void *)REG(in->a);             \
	u64 inside = (u32)(pa[lane0] + in->u.imm), room = w->shared_bytes; \
	u64 first = w->shared_base + inside;
/*
 * For the report of a signal: the access of a row, or of one cell, with the address of lane 0, or
 * w->addr. An access to shared memory inside its bounds raises no signal, so it needs no record.
 */
#define RECORD_g(how, lane0_address)                                                   \
	w->mem_in = (const struct obd_insn *)(const void *)((const char *)in + (how)); \
	w->mem_mask = m;                                                               \
	w->mem_first = (lane0_address);
#define RECORD_i RECORD_g
#define RECORD_s(how, lane0_address)
/*
 * The next warp mostly reads the next row. Where a thread strides through an array it does so much
 * later, and the processor does not expect it.
 */
#define PREFETCH_ROW_g(cell)                                                    \
	__builtin_prefetch((const char *)(uintptr_t)first + 32 * sizeof(cell)); \
	__builtin_prefetch((const char *)(uintptr_t)first + 32 * sizeof(cell) + 64);
#define PREFETCH_ROW_i PREFETCH_ROW_g
#define PREFETCH_ROW_s(cell)
#define RECORD_EACH     \
	w->mem_in = in; \
	w->mem_mask = m;
#define RECORD_HALVES_g(cell)                \
	LOOP LANES w->addr[i] = pa[i] + off; \
	RECORD_EACH
#define RECORD_HALVES_i(cell)                                              \
	LOOP LANES w->addr[i] = base + EXTEND(pa[i], sign) * sizeof(cell); \
	RECORD_EACH
#define RECORD_HALVES_s(cell)
/* from the first address of the warp to that of its second half */
#define HALF_STEP_g(cell)           (pa[16] - pa[0])
#define HALF_STEP_i(cell)           ((EXTEND(pa[16], sign) - EXTEND(pa[0], sign)) * sizeof(cell))
#define HALF_STEP_s(cell)           (u32)(pa[16] + in->u.imm) - (u64)(u32)(pa[0] + in->u.imm)
/* Do n lanes access a row? An index that wraps around in it does not make a row. */
#define NO_WRAP(index)              (((index) ^ sign) <= UINT32_MAX - OBD_LANES)
#define ROW_g(pa, n, size)          is_row_g(pa, n, size)
#define ROW_s(pa, n, size)          is_row_s(pa, n, size)
#define ROW_i(pa, n, size)          (is_row_s(pa, n, 1) && NO_WRAP((pa)[0]))
#define SAME_g                      is_same_g
#define SAME_s                      is_same_s
#define SAME_i                      is_same_s
#define PART_ROW_g(pa, at, size, m) part_is_row_g(pa, at, size, m)
#define PART_ROW_s(pa, at, size, m) part_is_row_s(pa, at, size, m)
#define PART_ROW_i(pa, at, size, m) (part_is_row_s(pa, at, 1, m) && NO_WRAP((pa)[at]))
#define PART_SAME_g                 part_is_same_g
#define PART_SAME_s                 part_is_same_s
#define PART_SAME_i                 part_is_same_s
#define HALF_g(pa, size)            half_g(pa, size)
#define HALF_s(pa, size)            half_s(pa, size)
#define HALF_i(pa, size)            (NO_WRAP((pa)[0]) ? half_s(pa, 1) : HALF_OTHER)
/* Are n cells that begin at `inside` not all in the memory, or is one of them not aligned? */
#define BAD_ROW(inside, n, cell) \
	UNLIKELY((inside) > room - (n) * sizeof(cell) || ((first | sizeof(cell)) & AL))
#define BAD_CELL(cell) UNLIKELY(inside > room - sizeof(cell) || (first & AL))

#define GO_TO(name) TAIL return name(in, regs, m, w, limit)
#define LOAD(name, kind, cell, lane)                                                          \
	LOAD_EACH(name, kind, cell, lane)                                                     \
	LOAD_PART(name, kind, cell, lane)                                                     \
	LOAD_HALVES(name, kind, cell, lane)                                                   \
	LOAD_CELL(name, kind, cell, lane)                                                     \
	HANDLER(H_##name##_##kind)                                                            \
	{                                                                                     \
		if (UNLIKELY(m != OBD_FULL_MASK))                                             \
			GO_TO(P_##name##_##kind);                                             \
		FIRST_ADDRESS_##kind(0, cell) lane *d = (lane *)(void *)REG(in->d);           \
		const cell *s = (const cell *)(uintptr_t)first;                               \
		if (UNLIKELY(w->memcheck))                                                    \
			GO_TO(S_##name##_##kind);                                             \
		if (!ROW_##kind(pa, OBD_LANES, sizeof(cell)))                                 \
			GO_TO(C_##name##_##kind);                                             \
		if (BAD_ROW(inside, OBD_LANES, cell))                                         \
			GO_TO(S_##name##_##kind);                                             \
		PREFETCH_ROW_##kind(cell) RECORD_##kind(OBD_MEM_ROW, first) LOOP LANES d[i] = \
			s[i];                                                                 \
		NEXT_H;                                                                       \
	}
#define LOAD_CELL(name, kind, cell, lane)                                                    \
	SLOW_HANDLER(C_##name##_##kind)                                                      \
	{                                                                                    \
		FIRST_ADDRESS_##kind(0, cell) lane *d = (lane *)(void *)REG(in->d);          \
		if (!SAME_##kind(pa, OBD_LANES))                                             \
			GO_TO(Q_##name##_##kind);                                            \
		if (BAD_CELL(cell))                                                          \
			GO_TO(S_##name##_##kind);                                            \
		RECORD_##kind(OBD_MEM_SAME, first) lane v = *(const cell *)(uintptr_t)first; \
		LOOP LANES d[i] = v;                                                         \
		NEXT_H;                                                                      \
	}
#define LOAD_HALVES(name, kind, cell, lane)                                                 \
	SLOW_HANDLER(Q_##name##_##kind)                                                     \
	{                                                                                   \
		FIRST_ADDRESS_##kind(0, cell) lane *d = (lane *)(void *)REG(in->d);         \
		u64 ahead = HALF_STEP_##kind(cell);                                         \
		enum half low = HALF_##kind(pa, sizeof(cell)),                              \
			  high = HALF_##kind(pa + OBD_LANES / 2, sizeof(cell));             \
		if (low == HALF_OTHER || high == HALF_OTHER || (ahead & AL) ||              \
			BAD_ROW(inside, OBD_LANES / 2, cell) ||                             \
			BAD_ROW(inside + ahead, OBD_LANES / 2, cell))                       \
			GO_TO(S_##name##_##kind);                                           \
		RECORD_HALVES_##kind(cell)                                                  \
			load_half_##cell(d, (const cell *)(uintptr_t)first, low);           \
		load_half_##cell(                                                           \
			d + OBD_LANES / 2, (const cell *)(uintptr_t)(first + ahead), high); \
		NEXT_H;                                                                     \
	}
#define LOAD_PART(name, kind, cell, lane)                                                          \
	SLOW_HANDLER(P_##name##_##kind)                                                            \
	{                                                                                          \
		u32 lane0 = (u32)__builtin_ctz(m);                                                 \
		u64 before = lane0 * sizeof(cell);                                                 \
		FIRST_ADDRESS_##kind(lane0, cell) lane *d = (lane *)(void *)REG(in->d);            \
		if (UNLIKELY(w->memcheck))                                                         \
			GO_TO(S_##name##_##kind);                                                  \
		if (PART_ROW_##kind(pa, lane0, sizeof(cell), m)) {                                 \
			if (BAD_ROW(inside - before, OBD_LANES, cell))                             \
				GO_TO(S_##name##_##kind);                                          \
			RECORD_##kind(OBD_MEM_ROW, first - before)                                 \
				load_part_##cell(d, (const cell *)(uintptr_t)(first - before), m); \
		} else if (PART_SAME_##kind(pa, lane0, m)) {                                       \
			if (BAD_CELL(cell))                                                        \
				GO_TO(S_##name##_##kind);                                          \
			RECORD_##kind(OBD_MEM_SAME, first) lane v =                                \
				*(const cell *)(uintptr_t)first;                                   \
			LOOP LANES d[i] = (m & lane_bit[i]) ? v : d[i];                            \
		} else {                                                                           \
			GO_TO(S_##name##_##kind);                                                  \
		}                                                                                  \
		NEXT_H;                                                                            \
	}
#define LOAD_EACH(name, kind, cell, lane)                                                  \
	EACH_HANDLER(S_##name##_##kind)                                                    \
	{                                                                                  \
		u64 *ad = w->addr;                                                         \
		ADDRESS_##kind(cell) lane *d = (lane *)(void *)REG(in->d);                 \
		w->mem_in = in;                                                            \
		w->mem_mask = m;                                                           \
		QUAD_##cell(kind, ADDRESS_SLOTS_##kind, true, load_quad);                  \
		if (UNLIKELY(any_bad(ad, m, BASE_##kind, SIZE_##kind - sizeof(cell), AL))) \
			obd_fault_access(w, in, m, sizeof(cell), false, AL);               \
		if (UNLIKELY(w->memcheck))                                                 \
			obd_fault_memcheck(w, in, m, sizeof(cell), false);                 \
		load_each_##cell(d, ad, m);                                                \
		NEXT_H;                                                                    \
	}
#define STORE(name, kind, cell, lane)                                            \
	STORE_EACH(name, kind, cell, lane)                                       \
	STORE_PART(name, kind, cell, lane)                                       \
	HANDLER(H_##name##_##kind)                                               \
	{                                                                        \
		if (UNLIKELY(m != OBD_FULL_MASK))                                \
			GO_TO(P_##name##_##kind);                                \
		FIRST_ADDRESS_##kind(0, cell) const lane *v =                    \
			(const lane *)(const void *)REG(in->b);                  \
		cell *to = (cell *)(uintptr_t)first;                             \
		if (UNLIKELY(w->memcheck) || BAD_ROW(inside, OBD_LANES, cell) || \
			!ROW_##kind(pa, OBD_LANES, sizeof(cell)))                \
			GO_TO(S_##name##_##kind);                                \
		RECORD_##kind(OBD_MEM_ROW, first) LOOP LANES to[i] = (cell)v[i]; \
		NEXT_H;                                                          \
	}
#define STORE_PART(name, kind, cell, lane)                                                \
	SLOW_HANDLER(P_##name##_##kind)                                                   \
	{                                                                                 \
		u32 lane0 = (u32)__builtin_ctz(m);                                        \
		u64 before = lane0 * sizeof(cell);                                        \
		FIRST_ADDRESS_##kind(lane0, cell) const lane *v =                         \
			(const lane *)(const void *)REG(in->b);                           \
		if (UNLIKELY(w->memcheck) || BAD_ROW(inside - before, OBD_LANES, cell) || \
			!PART_ROW_##kind(pa, lane0, sizeof(cell), m))                     \
			GO_TO(S_##name##_##kind);                                         \
		RECORD_##kind(OBD_MEM_ROW, first - before)                                \
			store_part_##cell((cell *)(uintptr_t)(first - before), v, m);     \
		NEXT_H;                                                                   \
	}
#define STORE_EACH(name, kind, cell, lane)                                                   \
	EACH_HANDLER(S_##name##_##kind)                                                      \
	{                                                                                    \
		u64 *ad = w->addr;                                                           \
		ADDRESS_##kind(cell) const lane *v = (const lane *)(const void *)REG(in->b); \
		w->mem_in = in;                                                              \
		w->mem_mask = m;                                                             \
		QUAD_##cell(kind, ADDRESS_SLOTS_##kind, false, store_quad);                  \
		if (UNLIKELY(any_bad(ad, m, BASE_##kind, SIZE_##kind - sizeof(cell), AL)))   \
			obd_fault_access(w, in, m, sizeof(cell), true, AL);                  \
		if (UNLIKELY(w->memcheck))                                                   \
			obd_fault_memcheck(w, in, m, sizeof(cell), true);                    \
		if (m == OBD_FULL_MASK) {                                                    \
			LANES *(cell *)(uintptr_t)ad[i] = (cell)v[i];                        \
		} else {                                                                     \
			for (u32 rest = m; rest; rest &= rest - 1) {                         \
				unsigned i = (unsigned)__builtin_ctz(rest);                  \
				*(cell *)(uintptr_t)ad[i] = (cell)v[i];                      \
			}                                                                    \
		}                                                                            \
		NEXT_H;                                                                      \
	}
#define ACCESS(kind)                \
	LOAD(ld8, kind, u8, u32)    \
	LOAD(ld16, kind, u16, u32)  \
	LOAD(ld32, kind, u32, u32)  \
	LOAD(ld64, kind, u64, u64)  \
	STORE(st8, kind, u8, u32)   \
	STORE(st16, kind, u16, u32) \
	STORE(st32, kind, u32, u32) \
	STORE(st64, kind, u64, u64)
#define EACH_HANDLER(name) SLOW_HANDLER(name)
ACCESS(g)
ACCESS(i)
ACCESS(s)
#undef EACH_HANDLER
/* The same offset in local memory is another place in each lane, so only S_ is of use. */
#define EACH_HANDLER(name) HANDLER(name)
LOAD_EACH(ld8, l, u8, u32)
LOAD_EACH(ld16, l, u16, u32)
LOAD_EACH(ld32, l, u32, u32)
LOAD_EACH(ld64, l, u64, u64)
STORE_EACH(st8, l, u8, u32)
STORE_EACH(st16, l, u16, u32)
STORE_EACH(st32, l, u32, u32)
STORE_EACH(st64, l, u64, u64)
#define H_ld8_l  S_ld8_l
#define H_ld16_l S_ld16_l
#define H_ld32_l S_ld32_l
#define H_ld64_l S_ld64_l
#define H_st8_l  S_st8_l
#define H_st16_l S_st16_l
#define H_st32_l S_st32_l
#define H_st64_l S_st64_l
