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

/* Computes w->addr. The kinds of memory access differ only in this step. */
#define ADDRESS_g                                              \
	const u64 *pa = (const u64 *)(const void *)REG(in->a); \
	u64 off = (u64)(i64)(i32)in->u.imm;                    \
	LOOP LANES ad[i] = pa[i] + off;
#define ADDRESS_s                                              \
	const u32 *pa = (const u32 *)(const void *)REG(in->a); \
	u32 off = in->u.imm;                                   \
	u64 sb = w->shared_base;                               \
	LOOP LANES ad[i] = sb + (u32)(pa[i] + off);
#define ADDRESS_l                                                          \
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
#define BASE_g w->window_base
#define SIZE_g w->window_size
#define BASE_s w->shared_base
#define SIZE_s (u64) w->shared_bytes
#define BASE_l w->window_base
#define SIZE_l w->window_size

/*
 * A load or store has several roads. The first ones need no address of a single lane: the cells of
 * the active lanes lie in a row (the address of lane i is that of lane 0 + i cells); for loads, all
 * lanes, or all of each half of the warp, read one cell, or each half reads a row. They take a row
 * only if all of its cells are inside the memory, and leave everything else, errors included, to the
 * handler S_, which checks each lane.
 */
#define FIRST_ADDRESS_g(lane0)                                       \
	const u64 *pa = (const u64 *)(const void *)REG(in->a);       \
	u64 off = (u64)(i64)(i32)in->u.imm, first = pa[lane0] + off; \
	u64 inside = first - w->window_base, room = w->window_size;  \
	u64 *ad = w->addr;                                           \
	LOOP LANES ad[i] = pa[i] + off;                              \
	w->mem_in = in;                                              \
	w->mem_mask = m;
/* an access to shared memory inside its bounds raises no signal, so it needs no record */
#define FIRST_ADDRESS_s(lane0)                                             \
	const u32 *pa = (const u32 *)(const void *)REG(in->a);             \
	u64 inside = (u32)(pa[lane0] + in->u.imm), room = w->shared_bytes; \
	u64 first = w->shared_base + inside;
/* from the first address of the warp to that of its second half */
#define AHEAD_g (pa[16] - pa[0])
#define AHEAD_s (u32)(pa[16] + in->u.imm) - (u64)(u32)(pa[0] + in->u.imm)
/* Are n cells that begin at `inside` not all in the memory, or is one of them not aligned? */
#define BAD_ROW(inside, n, cell) \
	UNLIKELY((inside) > room - (n) * sizeof(cell) || ((first | sizeof(cell)) & in->e))
#define BAD_CELL(cell) UNLIKELY(inside > room - sizeof(cell) || (first & in->e))

#define GO_TO(name) TAIL return name(in, regs, m, w, limit)
#define LOAD(name, kind, cell, lane)                                          \
	LOAD_EACH(name, kind, cell, lane)                                     \
	LOAD_PART(name, kind, cell, lane)                                     \
	LOAD_HALVES(name, kind, cell, lane)                                   \
	HANDLER(H_##name##_##kind)                                            \
	{                                                                     \
		if (UNLIKELY(m != OBD_FULL_MASK))                             \
			GO_TO(P_##name##_##kind);                             \
		FIRST_ADDRESS_##kind(0) lane *d = (lane *)(void *)REG(in->d); \
		if (UNLIKELY(w->memcheck))                                    \
			GO_TO(S_##name##_##kind);                             \
		if (is_row_##kind(pa, OBD_LANES, sizeof(cell))) {             \
			const cell *s = (const cell *)(uintptr_t)first;       \
			if (BAD_ROW(inside, OBD_LANES, cell))                 \
				GO_TO(S_##name##_##kind);                     \
			LOOP LANES d[i] = s[i];                               \
		} else if (is_same_##kind(pa, OBD_LANES)) {                   \
			if (BAD_CELL(cell))                                   \
				GO_TO(S_##name##_##kind);                     \
			lane v = *(const cell *)(uintptr_t)first;             \
			LOOP LANES d[i] = v;                                  \
		} else {                                                      \
			GO_TO(Q_##name##_##kind);                             \
		}                                                             \
		NEXT_H;                                                       \
	}
#define LOAD_HALVES(name, kind, cell, lane)                                                 \
	SLOW_HANDLER(Q_##name##_##kind)                                                     \
	{                                                                                   \
		FIRST_ADDRESS_##kind(0) lane *d = (lane *)(void *)REG(in->d);               \
		u64 ahead = AHEAD_##kind;                                                   \
		enum half low = half_##kind(pa, sizeof(cell)),                              \
			  high = half_##kind(pa + OBD_LANES / 2, sizeof(cell));             \
		if (low == HALF_OTHER || high == HALF_OTHER || (ahead & in->e) ||           \
			BAD_ROW(inside, OBD_LANES / 2, cell) ||                             \
			BAD_ROW(inside + ahead, OBD_LANES / 2, cell))                       \
			GO_TO(S_##name##_##kind);                                           \
		load_half_##cell(d, (const cell *)(uintptr_t)first, low);                   \
		load_half_##cell(                                                           \
			d + OBD_LANES / 2, (const cell *)(uintptr_t)(first + ahead), high); \
		NEXT_H;                                                                     \
	}
#define LOAD_PART(name, kind, cell, lane)                                                  \
	SLOW_HANDLER(P_##name##_##kind)                                                    \
	{                                                                                  \
		u32 lane0 = (u32)__builtin_ctz(m);                                         \
		u64 before = lane0 * sizeof(cell);                                         \
		FIRST_ADDRESS_##kind(lane0) lane *d = (lane *)(void *)REG(in->d);          \
		if (UNLIKELY(w->memcheck))                                                 \
			GO_TO(S_##name##_##kind);                                          \
		if (part_is_row_##kind(pa, lane0, sizeof(cell), m)) {                      \
			if (BAD_ROW(inside - before, OBD_LANES, cell))                     \
				GO_TO(S_##name##_##kind);                                  \
			load_part_##cell(d, (const cell *)(uintptr_t)(first - before), m); \
		} else if (part_is_same_##kind(pa, lane0, m)) {                            \
			if (BAD_CELL(cell))                                                \
				GO_TO(S_##name##_##kind);                                  \
			lane v = *(const cell *)(uintptr_t)first;                          \
			LOOP LANES d[i] = (m & lane_bit[i]) ? v : d[i];                    \
		} else {                                                                   \
			GO_TO(S_##name##_##kind);                                          \
		}                                                                          \
		NEXT_H;                                                                    \
	}
#define LOAD_EACH(name, kind, cell, lane)                                                     \
	EACH_HANDLER(S_##name##_##kind)                                                       \
	{                                                                                     \
		u64 *ad = w->addr;                                                            \
		ADDRESS_##kind lane *d = (lane *)(void *)REG(in->d);                          \
		w->mem_in = in;                                                               \
		w->mem_mask = m;                                                              \
		QUAD_##cell(kind, ADDRESS_SLOTS_##kind, true, load_quad);                     \
		if (UNLIKELY(any_bad(ad, m, BASE_##kind, SIZE_##kind - sizeof(cell), in->e))) \
			obd_fault_access(w, in, m, sizeof(cell), false, in->e);               \
		if (UNLIKELY(w->memcheck))                                                    \
			obd_fault_memcheck(w, in, m, sizeof(cell), false);                    \
		load_each_##cell(d, ad, m);                                                   \
		NEXT_H;                                                                       \
	}
#define STORE(name, kind, cell, lane)                                                           \
	STORE_EACH(name, kind, cell, lane)                                                      \
	STORE_PART(name, kind, cell, lane)                                                      \
	HANDLER(H_##name##_##kind)                                                              \
	{                                                                                       \
		if (UNLIKELY(m != OBD_FULL_MASK))                                               \
			GO_TO(P_##name##_##kind);                                               \
		FIRST_ADDRESS_##kind(0) const lane *v = (const lane *)(const void *)REG(in->b); \
		cell *to = (cell *)(uintptr_t)first;                                            \
		if (UNLIKELY(w->memcheck) || BAD_ROW(inside, OBD_LANES, cell) ||                \
			!is_row_##kind(pa, OBD_LANES, sizeof(cell)))                            \
			GO_TO(S_##name##_##kind);                                               \
		LOOP LANES to[i] = (cell)v[i];                                                  \
		NEXT_H;                                                                         \
	}
#define STORE_PART(name, kind, cell, lane)                                                \
	SLOW_HANDLER(P_##name##_##kind)                                                   \
	{                                                                                 \
		u32 lane0 = (u32)__builtin_ctz(m);                                        \
		u64 before = lane0 * sizeof(cell);                                        \
		FIRST_ADDRESS_##kind(lane0) const lane *v =                               \
			(const lane *)(const void *)REG(in->b);                           \
		if (UNLIKELY(w->memcheck) || BAD_ROW(inside - before, OBD_LANES, cell) || \
			!part_is_row_##kind(pa, lane0, sizeof(cell), m))                  \
			GO_TO(S_##name##_##kind);                                         \
		store_part_##cell((cell *)(uintptr_t)(first - before), v, m);             \
		NEXT_H;                                                                   \
	}
#define STORE_EACH(name, kind, cell, lane)                                                    \
	EACH_HANDLER(S_##name##_##kind)                                                       \
	{                                                                                     \
		u64 *ad = w->addr;                                                            \
		ADDRESS_##kind const lane *v = (const lane *)(const void *)REG(in->b);        \
		w->mem_in = in;                                                               \
		w->mem_mask = m;                                                              \
		QUAD_##cell(kind, ADDRESS_SLOTS_##kind, false, store_quad);                   \
		if (UNLIKELY(any_bad(ad, m, BASE_##kind, SIZE_##kind - sizeof(cell), in->e))) \
			obd_fault_access(w, in, m, sizeof(cell), true, in->e);                \
		if (UNLIKELY(w->memcheck))                                                    \
			obd_fault_memcheck(w, in, m, sizeof(cell), true);                     \
		if (m == OBD_FULL_MASK) {                                                     \
			LANES *(cell *)(uintptr_t)ad[i] = (cell)v[i];                         \
		} else {                                                                      \
			for (u32 rest = m; rest; rest &= rest - 1) {                          \
				unsigned i = (unsigned)__builtin_ctz(rest);                   \
				*(cell *)(uintptr_t)ad[i] = (cell)v[i];                       \
			}                                                                     \
		}                                                                             \
		NEXT_H;                                                                       \
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
