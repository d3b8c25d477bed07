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
#include "softdevice/core/engine/bulk.h"
#include "softdevice/core/engine/cluster.h"
#include "softdevice/core/engine/cvt.h"
#include "softdevice/core/engine/cvt_narrow.h"
#include "softdevice/core/engine/exec.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/fragment.h"
#include "softdevice/core/engine/lane.h"
#include "softdevice/core/engine/lane_convert.h"
#include "softdevice/core/engine/matrix.h"
#include "softdevice/core/engine/mbarrier.h"
#include "softdevice/core/engine/sreg.h"
#include "softdevice/core/engine/sync.h"
#include "softdevice/core/engine/tensor.h"
#include "softdevice/core/engine/texture.h"
#include "softdevice/core/engine/warp.h"
#include "softdevice/core/engine/native.h"
#include "softdevice/core/engine/wgmma.h"
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
/* the rare cases of a handler, as a function with the same arguments that continues in its place */
#define SLOW_HANDLER(name) __attribute__((noinline)) HANDLER(name)
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
#define TAIL
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

#include "softdevice/core/engine/interp_vector.h"

#include "softdevice/core/engine/interp_float.h"

#include "softdevice/core/engine/interp_elt.h"
#include "softdevice/core/engine/interp_vec.h"
#include "softdevice/core/engine/interp_pred.h"
#include "softdevice/core/engine/interp_access.h"
#include "softdevice/core/engine/interp_load.h"
#include "softdevice/core/engine/interp_mem.h"
#include "softdevice/core/engine/interp_ctl.h"
#include "softdevice/core/engine/interp_sync.h"

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
#define HALF(name, format, value)             F_##name,
#define HALFU(name, value)                    F_##name,
#define VEC(name, value)                      F_##name,
#define QUOT(name, narrow, wide)              F_##name,
#define OPX(name)                             H_##name,
#include "softdevice/core/ops_elt.h"
#include "softdevice/core/ops_carry.h"
#include "softdevice/core/ops_vector.h"
#include "softdevice/core/ops_other.h"
#include "softdevice/core/ops_undef.h"
};

static const obd_handler mask_table[OBD_OP_COUNT] = {
#define ELT1(name, td, ta, value)             M_##name,
#define ELT2(name, td, ta, tb, value)         M_##name,
#define ELT3(name, td, ta, tb, tc, value)     M_##name,
#define ELT4(name, td, ta, tb, tc, te, value) M_##name,
#define SEL(name, t)                          M_##name,
#define CARRY(name, t, compute)               M_##name,
#define CARRYV(name, changes, compute)        M_##name,
#define HALF(name, format, value)             M_##name,
#define HALFU(name, value)                    M_##name,
#define VEC(name, value)                      M_##name,
#define QUOT(name, narrow, wide)              M_##name,
#define OPX(name)                             H_##name,
#include "softdevice/core/ops_elt.h"
#include "softdevice/core/ops_carry.h"
#include "softdevice/core/ops_vector.h"
#include "softdevice/core/ops_other.h"
#include "softdevice/core/ops_undef.h"
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
#elif defined(__aarch64__)
	u64 old, mode = in->e == OBD_RM ? 2 : in->e == OBD_RP ? 1 : in->e == OBD_RZ ? 3 : 0;

	w->from++;
	__asm__ volatile("mrs %0, fpcr" : "=r"(old));
	__asm__ volatile("msr fpcr, %0" ::"r"((old & ~(3ull << 22)) | (mode << 22)) : "memory");
	const struct obd_insn *next =
		(WHOLE(m) ? full_table : mask_table)[in[1].op](in + 1, regs, m, w, 0);
	__asm__ volatile("msr fpcr, %0" ::"r"(old) : "memory");
	return next;
#else
#error "no rounding modes on this processor"
#endif
}

#if defined(__AVX2__)
#define NATIVE 1
#else
#define NATIVE 0
#endif

/*
 * Runs machine code, if there is some for the block at `in`. Returns where the handlers continue.
 */
static inline const struct obd_insn *run_native(
	struct obd_warp *w, const struct obd_insn *in, char *regs)
{
	const struct obd_func *f = w->cur->frame->func;
	uint32_t kind = w->cta->launch->native;
	const struct obd_native *n = atomic_load_explicit(&f->native[kind], memory_order_acquire);
	obd_native_fn fn = n && n->entry ? n->entry[in - f->code] : NULL;

	if (!fn)
		return in;
	const struct obd_insn *next = fn(regs, w);

	if (next)
		return next;
	OUTSIDE();
	obd_native_refused((struct obd_func *)f, kind, in, regs);
	return in;
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
	if (NATIVE && m == OBD_FULL_MASK && w->cta->launch->native != OBD_NATIVE_NONE)
		in = run_native(w, in, regs);
	while ((uintptr_t)in < limit)
		in = table[in->op](in, regs, m, w, limit);
	if (in != OBD_LEAVE) {
		w->cur->pc = in;
		w->count += (u64)(in - w->from);
	}
	w->steps += w->count;
	w->worker->lane_instructions += w->count * (u64)__builtin_popcount(m);
	OUTSIDE();
}

static void prepare(struct obd_warp *w, const struct obd_func *f, char *regs)
{
	const struct obd_insn *in = f->prologue;
	uintptr_t limit = (uintptr_t)(in + f->n_prologue);

	do
		in = full_table[in->op](in, regs, OBD_FULL_MASK, w, limit);
	while ((uintptr_t)in < limit);
	OUTSIDE();
}

const struct obd_isa CAT(obd_isa_, OBD_ISA) = { .name = OBD_ISA_NAME,
	.run = run,
	.full = full_table,
	.native = NATIVE,
	.chains = CHAIN,
	.prepare = prepare };
