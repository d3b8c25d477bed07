/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Atomics under contention, and messages between blocks. All threads of several blocks operate on
 * the same few memory locations. The operations commute, so the result does not depend on the
 * order.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

#define BLOCKS  8u
#define THREADS 128u
#define EACH    8u /* operations per thread */
#define PLACES  5u
#define TOTAL   (BLOCKS * THREADS * EACH)

enum kind { K_ADD, K_MIN, K_MAX, K_AND, K_OR, K_XOR, K_INC, K_DEC, K_FADD };

static const struct contended {
	const char *op;
	enum kind kind;
	enum pt_type type;
} contended[] = {
	{ "add.u32", K_ADD, PT_U32 },
	{ "add.u64", K_ADD, PT_U64 },
	{ "add.f32", K_FADD, PT_F32 },
	{ "add.f64", K_FADD, PT_F64 },
	{ "add.noftz.f16x2", K_FADD, PT_F16X2 },
	{ "add.noftz.bf16x2", K_FADD, PT_BF16X2 },
	{ "min.u32", K_MIN, PT_U32 },
	{ "max.u32", K_MAX, PT_U32 },
	{ "min.s32", K_MIN, PT_S32 },
	{ "max.s32", K_MAX, PT_S32 },
	{ "min.u64", K_MIN, PT_U64 },
	{ "max.u64", K_MAX, PT_U64 },
	{ "min.s64", K_MIN, PT_S64 },
	{ "max.s64", K_MAX, PT_S64 },
	{ "and.b32", K_AND, PT_B32 },
	{ "or.b32", K_OR, PT_B32 },
	{ "xor.b32", K_XOR, PT_B32 },
	{ "and.b64", K_AND, PT_B64 },
	{ "or.b64", K_OR, PT_B64 },
	{ "xor.b64", K_XOR, PT_B64 },
	{ "inc.u32", K_INC, PT_U32 },
	{ "dec.u32", K_DEC, PT_U32 },
	{ "add.noftz.f16", K_FADD, PT_F16 },
	{ "add.noftz.bf16", K_FADD, PT_BF16 },
};
#define N_CONTENDED (sizeof contended / sizeof contended[0])

enum place { IN_GLOBAL, IN_SHARED, IN_GENERIC, N_WHERE };
static const char *const where_names[] = { "global", "shared", "generic" };

/*
 * Operand k of thread i is at p0 + (i * EACH + k) * 8; its location is number (i + k) % PLACES. A
 * location has 8 bytes. p1: the locations in global memory, set by the host. p3: the final values
 * of each block if the locations are in shared memory; they are first copied from p1.
 */
/* clang-format off */
static char *contended_text(const struct contended *c, enum place where, bool red)
{
	struct pt_text t = { 0 };
	unsigned bits = pt_type_bits(c->type);
	const char *space = where == IN_GLOBAL ? ".global" : where == IN_SHARED ? ".shared" : "";
	pt_text_add(&t, "%s", PT_ENTRY("contend") "{\n	.shared .align 8 .b64 places[5];\n	.reg .b64 %v, %d;\n	.reg .b16 %v16, %d16;\n"
	                                          "	.reg .b32 %v32, %d32;\n" PT_PROLOGUE);
	pt_text_add(&t, "	setp.ge.u32 %%q1, %%t, %u;\n	mov.u64 %%l2, places;\n	mad.wide.u32 %%l3, %%t, 8, %%l2;\n"
	                "	mad.wide.u32 %%l4, %%t, 8, %%p1;\n	@%%q1 bra COPIED;\n"
	                "	ld.global.b64 %%l5, [%%l4];\n"
	                "	st.shared.b64 [%%l3], %%l5;\nCOPIED:\n	bar.sync 0;\n",
	            PLACES);
	pt_text_add(&t, "	mad.wide.u32 %%l6, %%i, %u, %%p0;\n	mov.u32 %%r1, 0;\n", EACH * 8);
	pt_text_add(&t, "LOOP:\n	ld.global.b%u %%v%s, [%%l6];\n	add.u32 %%r2, %%i, %%r1;\n	rem.u32 %%r2, %%r2, %u;\n", bits,
	            bits == 64 ? "" : bits == 32 ? "32" : "16", PLACES);
	pt_text_add(&t, "	mad.wide.u32 %%l7, %%r2, 8, %%%s;\n", where == IN_SHARED ? "l2" : "p1");
	if (where == IN_GENERIC)
		pt_text_add(&t, "	cvta.global.u64 %%l7, %%l7;\n");
	const char *suffix = bits == 64 ? "" : bits == 32 ? "32" : "16";
	if (red)
		pt_text_add(&t, "	red%s.%s [%%l7], %%v%s;\n", space, c->op, suffix);
	else
		pt_text_add(&t, "	atom%s.%s %%d%s, [%%l7], %%v%s;\n", space, c->op, suffix, suffix);
	pt_text_add(&t,
	            "	add.u64 %%l6, %%l6, 8;\n	add.u32 %%r1, %%r1, 1;\n	setp.lt.u32 %%q2, %%r1, %u;\n	@%%q2 bra LOOP;\n",
	            EACH);
	pt_text_add(&t, "	bar.sync 0;\n	@%%q1 ret;\n	mad.lo.u32 %%r3, %%r62, %u, %%t;\n	mad.wide.u32 %%l8, %%r3, 8, %%p3;\n"
	                "	ld.shared.b64 %%l5, [%%l3];\n	st.global.b64 [%%l8], %%l5;\n	ret;\n}\n",
	            PLACES);
	return t.p;
}
/* clang-format on */

/* Operands for which the result is exact and independent of the order. */
static uint64_t contended_operand(struct pt_rng *rng, const struct contended *c)
{
	static const uint64_t ones[] = { [PT_F16] = 0x3c00,
		[PT_F16X2] = 0x3c003c00,
		[PT_BF16] = 0x3f80,
		[PT_BF16X2] = 0x3f803f80 };
	switch (c->kind) {
	case K_FADD:
		if (c->type == PT_F32 || c->type == PT_F64) {
			struct pt_num n =
				pt_num_from_int(pt_rng_next(rng) & 1, pt_rng_below(rng, 1000));
			return pt_num_pack(pt_type_format(c->type), n, PT_RN, false, NULL);
		}
		/* often 0, so that sums stay below the largest exact integer, 2048 or 256 */
		if (pt_rng_below(rng, c->type == PT_F16 || c->type == PT_F16X2 ? 2 : 16))
			return 0;
		return ones[c->type] & (pt_rng_next(rng) & 1 ? 0xffff : UINT64_MAX);
	case K_INC:
	case K_DEC:
		return 1000;
	case K_AND:
		/* mostly all ones, so that some bits remain set at the end */
		return pt_rng_below(rng, 100) ? UINT64_MAX
					      : ~(UINT64_C(1) << pt_rng_below(rng, 64));
	default:
		return pt_rng_next(rng);
	}
}

static uint64_t contended_step(const struct contended *c, uint64_t old, uint64_t v)
{
	unsigned bits = pt_type_bits(c->type);
	v &= pt_mask(bits);
	bool is_signed = pt_type_signed(c->type);
	bool below = is_signed ? pt_sext(v, bits) < pt_sext(old, bits) : v < old;
	switch (c->kind) {
	case K_ADD:
		return (old + v) & pt_mask(bits);
	case K_MIN:
		return below ? v : old;
	case K_MAX:
		return below ? old : v;
	case K_AND:
		return old & v;
	case K_OR:
		return old | v;
	case K_XOR:
		return old ^ v;
	case K_INC:
		return old >= v ? 0 : old + 1;
	case K_DEC:
		return old == 0 || old > v ? v : old - 1;
	default:
		break;
	}
	const struct pt_float_format *f = pt_type_format(c->type);
	uint64_t r = 0;
	unsigned each = (unsigned)f->width;
	for (unsigned l = 0; l * each < bits; l++) {
		struct pt_num x = pt_num_unpack(f, (old >> (l * each)) & pt_mask(each));
		struct pt_num y = pt_num_unpack(f, (v >> (l * each)) & pt_mask(each));
		r |= pt_num_pack(f, pt_num_add(x, y, PT_RN), PT_RN, false, NULL) << (l * each);
	}
	return r;
}

static uint64_t contended_start(const struct contended *c)
{
	switch (c->kind) {
	case K_MIN:
		return pt_mask(pt_type_bits(c->type) - pt_type_signed(c->type));
	case K_MAX:
		return pt_type_signed(c->type) ? UINT64_C(1) << (pt_type_bits(c->type) - 1) : 0;
	case K_AND:
		return pt_mask(pt_type_bits(c->type));
	default:
		return 0;
	}
}

static bool run_contended(struct pt_run *run)
{
	const struct contended *c = &contended[run->c->arg[0]];
	enum place where = (enum place)run->c->arg[1];
	uint64_t *in = pt_alloc(TOTAL * sizeof *in), places[PLACES], want[BLOCKS][PLACES],
		 got[BLOCKS][PLACES];
	for (size_t i = 0; i < TOTAL; i++)
		in[i] = contended_operand(&run->rng, c);
	for (unsigned p = 0; p < PLACES; p++)
		places[p] = contended_start(c);
	for (unsigned b = 0; b < BLOCKS; b++)
		memcpy(want[b], places, sizeof places);
	CUdeviceptr a = pt_run_put(run, in, TOTAL * sizeof *in),
		    g = pt_run_put(run, places, sizeof places);
	CUdeviceptr o = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "contend", BLOCKS, THREADS, a, g, 0, o);
	for (size_t i = 0; i < TOTAL; i++) {
		size_t thread = i / EACH, p = (thread + i % EACH) % PLACES;
		uint64_t *w = &want[where == IN_SHARED ? thread / THREADS : 0][p];
		*w = contended_step(c, *w, in[i]);
	}
	free(in);
	if (where == IN_SHARED) {
		pt_run_get(run, o, got, sizeof got);
		return pt_run_same64(run, "place", got[0], want[0], BLOCKS * PLACES);
	}
	pt_run_get(run, g, got[0], sizeof got[0]);
	return pt_run_same64(run, "place", got[0], want[0], PLACES);
}

/*
 * Return values of atomics: all tickets differ; exchanges return each value exactly once; a
 * compare-and-swap loop loses no update.
 */
/* clang-format off */
static const char returns_text[] =
        PT_ENTRY("ticket") "{\n" PT_PROLOGUE
        "	mov.u32 %r1, 0;\nL:\n	atom.global.inc.u32 %r2, [%p0], 0xffffffff;\n	mad.wide.u32 %l1, %r2, 4, %p1;\n"
        "	atom.global.add.u32 %r3, [%l1], 1;\n	add.u32 %r1, %r1, 1;\n	setp.lt.u32 %q1, %r1, 4;\n"
        "	@%q1 bra L;\n	ret;\n}\n"
        PT_ENTRY("exchange") "{\n" PT_PROLOGUE
        "	add.u32 %r1, %i, 1;\n	atom.global.exch.b32 %r2, [%p0], %r1;\n	mad.wide.u32 %l1, %r2, 4, %p1;\n"
        "	red.global.add.u32 [%l1], 1;\n	ret;\n}\n"
        PT_ENTRY("loop16") "{\n" PT_PROLOGUE
        "	and.b32 %r1, %i, 3;\n	mad.wide.u32 %l1, %r1, 2, %p0;\n	ld.global.b16 %h1, [%l1];\n"
        "L:\n	add.u16 %h2, %h1, 1;\n	atom.global.cas.b16 %h3, [%l1], %h1, %h2;\n"
        "	setp.ne.b16 %q1, %h3, %h1;\n	mov.b16 %h1, %h3;\n"
        "	@%q1 bra L;\n	ret;\n}\n"
        PT_ENTRY("loop64") "{\n" PT_PROLOGUE
        "	ld.global.b64 %l1, [%p0];\nL:\n	mov.b64 %g1, %l1;\n"
        "	add.f64 %g1, %g1, 0d3ff0000000000000;\n	mov.b64 %l2, %g1;\n"
        "	mov.b64 %l3, %l1;\n	atom.cas.b64 %l1, [%p0], %l3, %l2;\n	setp.ne.b64 %q1, %l1, %l3;\n"
        "	@%q1 bra L;\n	ret;\n}\n"
        PT_ENTRY("loop128") "{\n	.reg .b128 %w<3>;\n" PT_PROLOGUE
        "	ld.global.v2.b64 {%l1, %l2}, [%p0];\nL:\n	add.u64 %l3, %l1, 1;\n"
        "	add.u64 %l4, %l2, 3;\n	mov.b128 %w0, {%l1, %l2};\n"
        "	mov.b128 %w1, {%l3, %l4};\n	atom.global.cas.b128 %w2, [%p0], %w0, %w1;\n"
        "	mov.b64 %l5, %l1;\n	mov.b64 %l6, %l2;\n"
        "	mov.b128 {%l1, %l2}, %w2;\n	setp.ne.b64 %q1, %l1, %l5;\n"
        "	setp.ne.or.b64 %q1, %l2, %l6, %q1;\n	@%q1 bra L;\n	ret;\n}\n";
/* clang-format on */

static bool run_ticket(struct pt_run *run)
{
	enum { N = 16 * 96 * 4 };
	uint32_t *zero = pt_alloc((N + 1) * 4), *got = pt_alloc((N + 1) * 4),
		 *want = pt_alloc((N + 1) * 4);
	CUdeviceptr a = pt_run_put(run, zero, 4), b = pt_run_put(run, zero, (N + 1) * 4);
	pt_run_line(run, "ticket", 16, 96, a, b, 0, 0);
	pt_run_get(run, b, got, (N + 1) * 4);
	for (size_t i = 0; i < N; i++)
		want[i] = 1;
	pt_run_same32(run, "ticket", got, want, N + 1);
	free(zero);
	free(got);
	free(want);
	return pt_run_ok(run);
}

static bool run_exchange(struct pt_run *run)
{
	enum { N = 16 * 96 };
	uint32_t zero[N + 1] = { 0 }, got[N + 1], last;
	CUdeviceptr a = pt_run_put(run, zero, 4), b = pt_run_put(run, zero, sizeof zero);
	pt_run_line(run, "exchange", 16, 96, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	pt_run_get(run, a, &last, 4);
	for (uint32_t i = 0; i <= N && pt_run_ok(run); i++) {
		if (got[i] + (i == last) != 1)
			pt_run_fail(run,
				"value %" PRIu32 " came out %" PRIu32 " times, %" PRIu32 " is left",
				i, got[i], last);
	}
	return pt_run_ok(run);
}

static bool run_loops(struct pt_run *run)
{
	uint16_t halves[4] = { 0, 0, 65000, 7 };
	uint64_t d = 0, pair[2] = { UINT64_MAX - 5, 10 };
	CUdeviceptr a = pt_run_put(run, halves, sizeof halves), b = pt_run_put(run, &d, 8),
		    c = pt_run_put(run, pair, 16);
	pt_run_line(run, "loop16", 8, 128, a, 0, 0, 0);
	pt_run_line(run, "loop64", 8, 128, b, 0, 0, 0);
	pt_run_line(run, "loop128", 8, 128, c, 0, 0, 0);
	pt_run_get(run, a, halves, sizeof halves);
	pt_run_get(run, b, &d, 8);
	pt_run_get(run, c, pair, sizeof pair);
	if (!pt_run_ok(run))
		return false;
	if (halves[0] != 256 || halves[1] != 256 || halves[2] != 65256 || halves[3] != 263)
		return pt_run_fail(
			run, "cas.b16: %u %u %u %u", halves[0], halves[1], halves[2], halves[3]);
	if (d != UINT64_C(0x4090000000000000)) /* 1024.0 */
		return pt_run_fail(run, "cas.b64: 0x%" PRIx64, d);
	if (pair[0] != UINT64_MAX - 5 + 1024 || pair[1] != 10 + 3072)
		return pt_run_fail(run, "cas.b128: 0x%" PRIx64 " 0x%" PRIx64, pair[0], pair[1]);
	return true;
}

/*
 * Block 0 writes data, then sets a flag. Blocks that have read the flag must read the new data. One
 * protocol per kernel.
 */
/* clang-format off */
#define MESSAGE(name, raise, look) \
	PT_ENTRY(name) "{\n" PT_PROLOGUE "	mad.wide.u32 %l1, %t, 4, %p0;\n	setp.ne.u32 %q1, %r62, 0;\n	@%q1 bra READER;\n" \
		       "	mul.lo.u32 %r1, %t, 77;\n	add.u32 %r1, %r1, 1;\n" \
		       "	st.global.u32 [%l1], %r1;\n	bar.sync 0;\n" \
		       "	setp.ne.u32 %q2, %t, 0;\n	@%q2 ret;\n" raise "	ret;\n" \
		       "READER:\n	setp.ne.u32 %q2, %t, 0;\n	@%q2 bra SEEN;\nW:\n" look \
		       "	setp.eq.u32 %q3, %r2, 0;\n	@%q3 bra W;\nSEEN:\n	bar.sync 0;\n" \
		       "	ld.global.u32 %r3, [%l1];\n" \
		       "	mad.wide.u32 %p2, %i, 4, %p2;\n	st.global.u32 [%p2], %r3;\n	ret;\n}\n"
/* clang-format on */

/* clang-format off */
static const char messages_text[] =
        MESSAGE("m0", "	st.release.gpu.global.u32 [%p1], 1;\n", "	ld.acquire.gpu.global.u32 %r2, [%p1];\n")
        MESSAGE("m1", "	fence.acq_rel.gpu;\n	st.relaxed.gpu.global.u32 [%p1], 1;\n",
                "	ld.relaxed.gpu.global.u32 %r2, [%p1];\n	fence.acq_rel.gpu;\n")
        MESSAGE("m2", "	membar.gl;\n	st.volatile.global.u32 [%p1], 1;\n", "	ld.volatile.global.u32 %r2, [%p1];\n	membar.gl;\n")
        MESSAGE("m3", "	atom.release.sys.global.add.u32 %r4, [%p1], 1;\n", "	atom.acquire.sys.global.or.b32 %r2, [%p1], 0;\n")
        MESSAGE("m4", "	fence.sc.sys;\n	red.relaxed.gpu.global.add.u32 [%p1], 1;\n	membar.sys;\n",
                "	ld.relaxed.sys.global.u32 %r2, [%p1];\n	fence.sc.gpu;\n	fence.proxy.alias;\n");
/* clang-format on */

static bool run_messages(struct pt_run *run)
{
	enum { N = 4 * 128 };
	char kernel[3] = { 'm', (char)('0' + run->c->arg[0]), 0 };
	uint32_t zero = 0, got[N], want[N];
	CUdeviceptr data = pt_run_put(run, NULL, 128 * 4), flag = pt_run_put(run, &zero, 4),
		    out = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, kernel, 4, 128, data, flag, out, 0);
	pt_run_get(run, out, got, sizeof got);
	for (uint32_t i = 0; i < N; i++)
		want[i] = i < 128 ? 0xa5a5a5a5 : i % 128 * 77 + 1;
	return pt_run_same32(run, "word", got, want, N);
}

static void add_contended(struct pt_suite *s)
{
	for (size_t i = 0; i < N_CONTENDED; i++) {
		for (int where = IN_GLOBAL; where < N_WHERE; where++) {
			for (int red = 0; red < 2; red++) {
				char *name = pt_format("%s.%s on %s, contended",
					red ? "red" : "atom", contended[i].op, where_names[where]);
				char *text = contended_text(&contended[i], (enum place)where, red);
				struct pt_case *c = pt_case_add(s, run_contended, name, text);
				c->arg[0] = (int)i;
				c->arg[1] = where;
				free(name);
				free(text);
			}
		}
	}
}

void pt_group_atomic(struct pt_suite *s)
{
	static const char *const protocols[] = { "st.release and ld.acquire", "fence.acq_rel",
		"membar.gl and volatile", "atom.release and atom.acquire", "fence.sc and red" };
	pt_atomic_rows(s);
	add_contended(s);
	pt_case_add(s, run_ticket, "atom.inc gives every number once", returns_text);
	pt_case_add(s, run_exchange, "atom.exch passes every value on once", returns_text);
	pt_case_add(s, run_loops, "atom.cas loops of 16, 64 and 128 bits", returns_text);
	for (int i = 0; i < 5; i++) {
		char *name = pt_format("message between blocks, %s", protocols[i]);
		pt_case_add(s, run_messages, name, messages_text)->arg[0] = i;
		free(name);
	}
}
