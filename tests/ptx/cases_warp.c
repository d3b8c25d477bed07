/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Warp-wide operations. One kernel per case: each lane has operands a, b, c; each warp a member
 * mask. The operation runs
 *   split     in lanes of the mask, then in the others with the complement, at two program points
 *   together  in both sets at one program point, each lane with the mask of its set
 *   alone     in lanes of the mask only, after a guarded branch; the others keep the poison value
 *   outside   in lanes of the mask only, each with the mask without itself: not defined by the ISA,
 *             so tested on the software device only
 * warp_reference.h computes the expected results of each set.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"
#include "tests/ptx/warp_reference.h"

#define WARPS       256u
#define BLOCK_WARPS 3u

enum mode { SPLIT, TOGETHER, ALONE, OUTSIDE, N_MODES };
static const char *const mode_names[] = { "split", "together", "alone", "outside" };

static char *op_text(const struct pt_warp_op *op, enum mode mode)
{
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s",
		PT_ENTRY("warp") "{\n" PT_PROLOGUE "	mad.wide.u32 %p0, %i, 16, %p0;\n"
				 "	ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%p0];\n"
				 "	mov.b64 %l1, {%r1, %r2};\n	and.b32 %r5, %r1, 1;\n	"
				 "setp.ne.u32 %q1, %r5, 0;\n"
				 "	and.b32 %r5, %t, 31;\n	shr.u32 %r5, %r4, %r5;\n	"
				 "and.b32 %r5, %r5, 1;\n"
				 "	setp.ne.u32 %q2, %r5, 0;\n	mov.u32 %r10, 0xdeadbeef;\n"
				 "	setp.ne.u32 %q10, %t, %t;\n");
	switch (mode) {
	case SPLIT:
		pt_text_add(&t,
			"	@%%q2 bra MEMBERS;\n	not.b32 %%r4, %%r4;\n	%s\n	bra "
			"DONE;\nMEMBERS:\n	%s\nDONE:\n",
			op->text, op->text);
		break;
	case TOGETHER:
		pt_text_add(&t, "	@!%%q2 not.b32 %%r4, %%r4;\n	%s\n", op->text);
		break;
	case OUTSIDE:
		pt_text_add(&t,
			"	@!%%q2 bra DONE;\n	and.b32 %%r6, %%t, 31;\n	shl.b32 "
			"%%r6, 1, %%r6;\n	not.b32 %%r6, %%r6;\n"
			"	and.b32 %%r4, %%r4, %%r6;\n	%s\nDONE:\n",
			op->text);
		break;
	default:
		pt_text_add(&t, "	@!%%q2 bra DONE;\n	%s\nDONE:\n", op->text);
		break;
	}
	pt_text_add(&t,
		"	selp.u32 %%r11, 1, 0, %%q10;\n	mad.wide.u32 %%p1, %%i, 8, %%p1;\n"
		"	st.global.v2.u32 [%%p1], {%%r10, %%r11};\n	ret;\n}\n");
	return t.p;
}

static uint32_t pick_members(struct pt_rng *rng, unsigned warp)
{
	static const uint32_t shapes[] = { UINT32_MAX, 1, 0x80000000u, 0x0000ffff, 0xaaaaaaaau,
		0x7fffffff, 0xfffffffe };
	return warp < sizeof shapes / sizeof shapes[0] ? shapes[warp] : (uint32_t)pt_rng_next(rng);
}

/* c of a shuffle: the values that CUDA's __shfl uses, and random ones. */
static uint32_t pick_c(struct pt_rng *rng, unsigned warp)
{
	static const uint32_t forms[] = { 0x1f, 0, 0x181f, 0x1800, 0x1c1f, 0x100f, 0x1e01, 0x1f1f };
	return warp % 4 == 3 ? (uint32_t)pt_rng_next(rng) & 0x1f1f : forms[pt_rng_below(rng, 8)];
}

static void pick_operands(struct pt_run *run, const struct pt_warp_op *op, uint32_t *in)
{
	for (unsigned w = 0; w < WARPS; w++) {
		uint32_t members = pick_members(&run->rng, w), c = pick_c(&run->rng, w);
		uint32_t same = (uint32_t)pt_rng_next(&run->rng);
		for (unsigned l = 0; l < 32; l++) {
			uint32_t *x = in + (w * 32 + l) * 4;
			uint32_t random = (uint32_t)pt_value(&run->rng, PT_B32, PT_ANY, 0);
			/*
			 * few values; in every third warp, all lanes of a set have the same value
			 */
			uint32_t few = w % 3 == 0 ? ((members >> l) & 1 || w % 2 ? same : ~same)
						  : (uint32_t)pt_rng_next(&run->rng);
			x[0] = op->a_mask ? few & op->a_mask : random;
			x[1] = op->b_mask                    ? few & op->b_mask
				: pt_rng_below(&run->rng, 4) ? pt_rng_below(&run->rng, 8)
							     : random;
			x[2] = w % 8 == 7 ? (uint32_t)pt_rng_next(&run->rng) & 0x1f1f : c;
			x[3] = members;
		}
	}
}

/* Compares the results in lanes with the reference for the given members. */
static bool judge_lanes(struct pt_run *run, const struct pt_warp_op *op, const uint32_t *in,
	const uint32_t *got, unsigned w, uint32_t members, uint32_t lanes)
{
	struct pt_warp_lanes x = { .members = members };
	struct pt_warp_answers want = { .skip = 0 };
	for (unsigned l = 0; l < 32; l++) {
		x.a[l] = in[l * 4];
		x.b[l] = in[l * 4 + 1];
		x.c[l] = in[l * 4 + 2];
		x.wide[l] = (uint64_t)x.b[l] << 32 | x.a[l];
	}
	op->f(&x, &want);
	bool has_d = strstr(op->text, "%r10") != NULL, has_p = strstr(op->text, "%q10") != NULL;
	for (unsigned l = 0; l < 32; l++) {
		if (!((lanes >> l) & 1))
			continue;
		uint32_t d = has_d ? want.d[l] : PT_WARP_POISON, p = has_p ? want.p[l] : 0;
		bool open = (want.skip >> l) & 1;
		if ((open || got[l * 2] == d) && got[l * 2 + 1] == p)
			continue;
		return pt_run_fail(run,
			"warp %u lane %u members 0x%08" PRIx32 " a=0x%" PRIx32 " b=0x%" PRIx32
			" c=0x%" PRIx32 ": expected 0x%" PRIx32 "|%" PRIu32 " got 0x%" PRIx32
			"|%" PRIu32,
			w, l, members, x.a[l], x.b[l], x.c[l], d, p, got[l * 2], got[l * 2 + 1]);
	}
	return true;
}

static bool judge_set(struct pt_run *run, const struct pt_warp_op *op, const uint32_t *in,
	const uint32_t *got, unsigned w, uint32_t members)
{
	return judge_lanes(run, op, in, got, w, members, members);
}

/*
 * Compares each lane of the set with the reference for the other members. For shuffles the lane
 * itself is also a member, because it is a source like the others.
 */
static void judge_outside(struct pt_run *run, const struct pt_warp_op *op, const uint32_t *in,
	const uint32_t *got, unsigned w, uint32_t members)
{
	bool shuffles = strncmp(op->name, "shfl", 4) == 0;

	for (unsigned l = 0; l < 32; l++) {
		uint32_t bit = UINT32_C(1) << l;

		if (members & bit)
			judge_lanes(run, op, in, got, w, shuffles ? members : members & ~bit, bit);
	}
}

static bool run_op(struct pt_run *run)
{
	const struct pt_warp_op *op = &pt_warp_ops[run->c->arg[0]];
	enum mode mode = (enum mode)run->c->arg[1];
	size_t threads = WARPS / BLOCK_WARPS * BLOCK_WARPS * 32;
	if (mode == OUTSIDE && strncmp(run->d->name, "Outboard", 8) != 0)
		return true; /* other devices may behave differently */
	uint32_t *in = pt_alloc(WARPS * 32 * 4 * sizeof *in),
		 *got = pt_alloc(WARPS * 32 * 2 * sizeof *got);
	pick_operands(run, op, in);
	CUdeviceptr a = pt_run_put(run, in, WARPS * 32 * 4 * sizeof *in);
	CUdeviceptr b = pt_run_put(run, NULL, WARPS * 32 * 2 * sizeof *got);
	pt_run_line(run, "warp", WARPS / BLOCK_WARPS, BLOCK_WARPS * 32, a, b, 0, 0);
	pt_run_get(run, b, got, WARPS * 32 * 2 * sizeof *got);
	for (unsigned w = 0; w < threads / 32 && pt_run_ok(run); w++) {
		const uint32_t *x = in + w * 128, *y = got + w * 64;
		if (mode == OUTSIDE)
			judge_outside(run, op, x, y, w, x[3]);
		else
			judge_set(run, op, x, y, w, x[3]);
		if (mode == SPLIT || mode == TOGETHER) {
			judge_set(run, op, x, y, w, ~x[3]);
			continue;
		}
		for (unsigned l = 0; l < 32; l++) {
			if (!((x[3] >> l) & 1) && (y[l * 2] != PT_WARP_POISON || y[l * 2 + 1]))
				pt_run_fail(
					run, "warp %u lane %u is no member but was written", w, l);
		}
	}
	free(in);
	free(got);
	return pt_run_ok(run);
}

/*
 * activemask and the lane registers in diverged code; elect chooses one lane; bar.warp.sync
 * reconverges before a shuffle.
 */
/* clang-format off */
static const char misc_text[] =
        PT_ENTRY("active") "{\n" PT_PROLOGUE
        "	mad.wide.u32 %p0, %i, 4, %p0;\n	ld.global.u32 %r4, [%p0];\n	and.b32 %r5, %t, 31;\n"
        "	shr.u32 %r5, %r4, %r5;\n"
        "	and.b32 %r5, %r5, 1;\n	setp.ne.u32 %q2, %r5, 0;\n	@%q2 bra IN;\n	activemask.b32 %r6;\n	bra OUT;\n"
        "IN:\n	activemask.b32 %r6;\nOUT:\n	mad.wide.u32 %p1, %i, 4, %p1;\n	st.global.u32 [%p1], %r6;\n	ret;\n}\n"
        PT_ENTRY("elect") "{\n" PT_PROLOGUE
        "	mad.wide.u32 %l1, %i, 4, %p0;\n	ld.global.u32 %r4, [%l1];\n	and.b32 %r5, %t, 31;\n"
        "	shr.u32 %r5, %r4, %r5;\n"
        "	and.b32 %r5, %r5, 1;\n	setp.ne.u32 %q2, %r5, 0;\n	mov.u32 %r6, 99;\n	setp.ne.u32 %q3, %t, %t;\n"
        "	@!%q2 bra OUT;\n	elect.sync %r6|%q3, %r4;\nOUT:\n	selp.u32 %r7, 1, 0, %q3;\n"
        "	mad.wide.u32 %p1, %i, 8, %p1;\n	st.global.v2.u32 [%p1], {%r6, %r7};\n	ret;\n}\n"
        PT_ENTRY("lanes") "{\n" PT_PROLOGUE
        "	mov.u32 %r1, %laneid;\n	mov.u32 %r2, %lanemask_eq;\n	mov.u32 %r3, %lanemask_lt;\n"
        "	mov.u32 %r4, %lanemask_le;\n"
        "	mov.u32 %r5, %lanemask_gt;\n	mov.u32 %r6, %lanemask_ge;\n	mad.wide.u32 %p1, %i, 24, %p1;\n"
        "	st.global.v2.u32 [%p1], {%r1, %r2};\n	st.global.v2.u32 [%p1+8], {%r3, %r4};\n"
        "	st.global.v2.u32 [%p1+16], {%r5, %r6};\n	ret;\n}\n"
        /*
         * lanes write to shared memory after loops of different lengths, synchronise, and read
         * the value of their neighbour
         */
        PT_ENTRY("meet") "{\n	.shared .align 4 .u32 place[128];\n" PT_PROLOGUE
        "	mov.u32 %r1, place;\n	mad.lo.u32 %r1, %t, 4, %r1;\n	and.b32 %r2, %t, 31;\n"
        "	mov.u32 %r3, 0;\n	mov.u32 %r4, 0;\n"
        "L:\n	add.u32 %r4, %r4, %r3;\n	add.u32 %r3, %r3, 1;\n	setp.le.u32 %q1, %r3, %r2;\n	@%q1 bra L;\n"
        "	st.shared.u32 [%r1], %r4;\n	bar.warp.sync 0xffffffff;\n	xor.b32 %r5, %t, 21;\n"
        "	mov.u32 %r6, place;\n"
        "	mad.lo.u32 %r6, %r5, 4, %r6;\n	ld.shared.u32 %r7, [%r6];\n	bar.warp.sync 0xffffffff;\n"
        "	st.shared.u32 [%r1], %r7;\n"
        "	and.b32 %r8, %r2, 1;\n	setp.eq.u32 %q2, %r8, 0;\n	@%q2 bra EVEN;\n	bar.warp.sync 0xaaaaaaaa;\n"
        "	shfl.sync.idx.b32 %r9, %r7, 31, 0x1f, 0xaaaaaaaa;\n	bra OUT;\n"
        "EVEN:\n	shfl.sync.idx.b32 %r9, %r7, 0, 0x1f, 0x55555555;\n	bar.warp.sync 0x55555555;\n"
        "OUT:\n	mad.wide.u32 %p1, %i, 8, %p1;\n	st.global.v2.u32 [%p1], {%r7, %r9};\n	ret;\n}\n"
        /* some SIMD lanes have exited; the rest of the full mask still shuffles and votes */
        PT_ENTRY("left") "{\n" PT_PROLOGUE
        "	and.b32 %r1, %t, 3;\n	mad.wide.u32 %p1, %i, 8, %p1;\n	setp.eq.u32 %q1, %r1, 2;\n	@%q1 exit;\n"
        "	mov.u32 %r4, 0xbbbbbbbb;\n	shfl.sync.bfly.b32 %r2, %i, 1, 0x1f, %r4;\n	setp.gt.u32 %q2, %r1, 1;\n"
        "	vote.sync.ballot.b32 %r3, %q2, %r4;\n	st.global.v2.u32 [%p1], {%r2, %r3};\n	ret;\n}\n"
        /*
         * The masks name lanes that do not exist: the block has 20 threads. Then each lane names
         * the lanes below it and not itself, and no lane waits for another.
         */
        PT_ENTRY("partial") "{\n" PT_PROLOGUE
        "	and.b32 %r1, %t, 3;\n	shfl.sync.idx.b32 %r2, %t, 3, 0x1f, 0xffffffff;\n	setp.ne.u32 %q1, %r1, 0;\n"
        "	vote.sync.ballot.b32 %r3, %q1, 0xffffffff;\n	match.any.sync.b32 %r4, %r1, 0xffffffff;\n"
        "	redux.sync.add.u32 %r5, %t, 0xffffffff;\n	elect.sync %r6|%q2, 0xffffffff;\n"
        "	bar.warp.sync 0xffffffff;\n	mov.u32 %r7, %lanemask_lt;\n	vote.sync.ballot.b32 %r8, %q1, %r7;\n"
        "	bar.warp.sync %r7;\n	bar.sync 0;\n	mad.wide.u32 %p1, %i, 32, %p1;\n"
        "	st.global.v4.u32 [%p1], {%r2, %r3, %r4, %r5};\n	st.global.v2.u32 [%p1+16], {%r6, %r8};\n	ret;\n}\n"
        /* a butterfly sum and an inclusive scan over the warp, as programs write them */
        PT_ENTRY("scan") "{\n" PT_PROLOGUE
        "	mad.wide.u32 %p0, %i, 4, %p0;\n	ld.global.u32 %r1, [%p0];\n	mov.u32 %r2, %r1;\n	mov.u32 %r3, %r1;\n"
        "	mov.u32 %r4, 1;\nL:\n	shfl.sync.bfly.b32 %r5, %r2, %r4, 0x1f, 0xffffffff;\n	add.u32 %r2, %r2, %r5;\n"
        "	shfl.sync.up.b32 %r5|%q1, %r3, %r4, 0, 0xffffffff;\n	@%q1 add.u32 %r3, %r3, %r5;\n"
        "	shl.b32 %r4, %r4, 1;\n"
        "	setp.lt.u32 %q2, %r4, 32;\n	@%q2 bra L;\n	mad.wide.u32 %p1, %i, 8, %p1;\n"
        "	st.global.v2.u32 [%p1], {%r2, %r3};\n	ret;\n}\n";
/* clang-format on */

#define MISC_WARPS 12u

static void put_masks(struct pt_run *run, uint32_t *members)
{
	for (unsigned w = 0; w < MISC_WARPS; w++) {
		uint32_t m = pick_members(&run->rng, w);
		for (unsigned l = 0; l < 32; l++)
			members[w * 32 + l] = m;
	}
}

static bool run_active(struct pt_run *run)
{
	uint32_t members[MISC_WARPS * 32], got[MISC_WARPS * 32], want[MISC_WARPS * 32];
	put_masks(run, members);
	CUdeviceptr a = pt_run_put(run, members, sizeof members),
		    b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "active", MISC_WARPS / 3, 96, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (unsigned i = 0; i < MISC_WARPS * 32; i++)
		want[i] = (members[i] >> (i % 32)) & 1 ? members[i] : ~members[i];
	return pt_run_same32(run, "active mask", got, want, MISC_WARPS * 32);
}

static bool run_elect(struct pt_run *run)
{
	uint32_t members[MISC_WARPS * 32], got[MISC_WARPS * 64];
	put_masks(run, members);
	CUdeviceptr a = pt_run_put(run, members, sizeof members),
		    b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "elect", MISC_WARPS / 3, 96, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (unsigned w = 0; w < MISC_WARPS && pt_run_ok(run); w++) {
		uint32_t m = members[w * 32], leaders = 0, leader = 99;
		for (unsigned l = 0; l < 32; l++) {
			uint32_t d = got[(w * 32 + l) * 2], p = got[(w * 32 + l) * 2 + 1];
			if (!((m >> l) & 1)) {
				if (d != 99 || p)
					pt_run_fail(run,
						"warp %u lane %u is no member but was written", w,
						l);
				continue;
			}
			leaders += p;
			if (leader == 99)
				leader = d;
			if (d != leader || (p && d != l))
				pt_run_fail(run, "warp %u lane %u: leader %" PRIu32 "|%" PRIu32, w,
					l, d, p);
		}
		if (leaders != 1 || !((m >> leader) & 1))
			pt_run_fail(run, "warp %u: %" PRIu32 " leaders", w, leaders);
	}
	return pt_run_ok(run);
}

static bool run_lanes(struct pt_run *run)
{
	uint32_t got[96 * 6], want[96 * 6];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "lanes", 1, 96, 0, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < 96; i++) {
		uint32_t l = i % 32, bit = UINT32_C(1) << l;
		const uint32_t w[6] = { l, bit, bit - 1, bit | (bit - 1), ~(bit | (bit - 1)),
			~(bit - 1) };
		memcpy(want + i * 6, w, sizeof w);
	}
	return pt_run_same32(run, "register", got, want, 96 * 6);
}

static bool run_meet(struct pt_run *run)
{
	uint32_t got[128 * 2], want[128 * 2];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "meet", 1, 128, 0, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < 128; i++) {
		uint32_t l = (i ^ 21) % 32, source = (i & 1 ? 31u : 0u) ^ 21u;
		want[i * 2] = l * (l + 1) / 2;
		want[i * 2 + 1] = source * (source + 1) / 2;
	}
	return pt_run_same32(run, "word", got, want, 256);
}

static bool run_left(struct pt_run *run)
{
	uint32_t got[128 * 2], want[128 * 2];
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "left", 1, 128, 0, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (uint32_t i = 0; i < 128; i++) {
		bool gone = i % 4 == 2;
		/* lane 3's partner has exited: the value is undefined */
		want[i * 2] = gone ? 0xa5a5a5a5 : i % 4 == 3 ? got[i * 2] : i ^ 1;
		want[i * 2 + 1] = gone ? 0xa5a5a5a5 : 0x88888888;
	}
	return pt_run_same32(run, "word", got, want, 256);
}

static bool run_partial(struct pt_run *run)
{
	uint32_t got[20 * 8], want[20 * 8], odd = 0xeeeee;
	CUdeviceptr b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "partial", 1, 20, 0, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	memcpy(want, got, sizeof want);
	for (uint32_t i = 0; i < 20; i++) {
		const uint32_t w[6] = { 3, odd, UINT32_C(0x11111) << i % 4, 190, 0,
			odd & ((UINT32_C(1) << i) - 1) };
		memcpy(want + i * 8, w, sizeof w);
	}
	return pt_run_same32(run, "word", got, want, 160);
}

static bool run_scan(struct pt_run *run)
{
	uint32_t in[96], got[192], want[192];
	for (unsigned i = 0; i < 96; i++)
		in[i] = (uint32_t)pt_rng_next(&run->rng);
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "scan", 1, 96, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	for (unsigned w = 0; w < 3; w++) {
		uint32_t sum = 0;
		for (unsigned l = 0; l < 32; l++) {
			sum += in[w * 32 + l];
			want[(w * 32 + l) * 2 + 1] = sum;
		}
		for (unsigned l = 0; l < 32; l++)
			want[(w * 32 + l) * 2] = sum;
	}
	return pt_run_same32(run, "word", got, want, 192);
}

void pt_group_warp(struct pt_suite *s)
{
	for (size_t i = 0; i < pt_n_warp_ops; i++) {
		for (int mode = SPLIT; mode < N_MODES; mode++) {
			char *name = pt_format("%s, %s", pt_warp_ops[i].name, mode_names[mode]),
			     *text = op_text(&pt_warp_ops[i], (enum mode)mode);
			struct pt_case *c = pt_case_add(s, run_op, name, text);
			c->arg[0] = (int)i;
			c->arg[1] = mode;
			free(name);
			free(text);
		}
	}
	pt_case_add(s, run_active, "activemask", misc_text);
	pt_case_add(s, run_elect, "elect.sync", misc_text);
	pt_case_add(s, run_lanes, "lane registers", misc_text);
	pt_case_add(s, run_meet, "bar.warp.sync", misc_text);
	pt_case_add(s, run_left, "warp operations after some lanes left", misc_text);
	pt_case_add(s, run_partial, "member masks with absent lanes", misc_text);
	pt_case_add(s, run_scan, "warp sum and scan", misc_text);
}
