/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/warp_reference.h"

#include <stdbool.h>
#include <string.h>

enum shfl { UP, DOWN, BFLY, IDX };

static void shuffle(const struct pt_warp_lanes *in, struct pt_warp_answers *out, enum shfl mode)
{
	for (int lane = 0; lane < 32; lane++) {
		int b = in->b[lane] & 31, clamp = in->c[lane] & 31,
		    segment = (in->c[lane] >> 8) & 31;
		int max = (lane & segment) | (clamp & ~segment), min = lane & segment, j;
		bool p;
		switch (mode) {
		case UP:
			j = lane - b;
			p = j >= max;
			break;
		case DOWN:
			j = lane + b;
			p = j <= max;
			break;
		case BFLY:
			j = lane ^ b;
			p = j <= max;
			break;
		default:
			j = min | (b & ~segment);
			p = j <= max;
			break;
		}
		if (!p)
			j = lane;
		out->p[lane] = p;
		/* the value from a source lane that is not a member is undefined */
		if ((in->members >> (j & 31)) & 1)
			out->d[lane] = in->a[j & 31];
		else
			out->skip |= UINT32_C(1) << lane;
	}
}

static void f_up(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	shuffle(in, out, UP);
}

static void f_down(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	shuffle(in, out, DOWN);
}

static void f_bfly(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	shuffle(in, out, BFLY);
}

static void f_idx(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	shuffle(in, out, IDX);
}

static uint32_t odd_lanes(const struct pt_warp_lanes *in)
{
	uint32_t odd = 0;
	for (int l = 0; l < 32; l++)
		odd |= (in->a[l] & 1) << l;
	return odd & in->members;
}

static void all_lanes(struct pt_warp_answers *out, uint32_t d, bool p)
{
	for (int l = 0; l < 32; l++) {
		out->d[l] = d;
		out->p[l] = p;
	}
}

static void f_all(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	all_lanes(out, PT_WARP_POISON, odd_lanes(in) == in->members);
}

static void f_any(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	all_lanes(out, PT_WARP_POISON, odd_lanes(in) != 0);
}

static void f_none(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	all_lanes(out, PT_WARP_POISON, odd_lanes(in) == 0);
}

static void f_uni(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	all_lanes(out, PT_WARP_POISON, odd_lanes(in) == 0 || odd_lanes(in) == in->members);
}

static void f_ballot(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	all_lanes(out, odd_lanes(in), false);
}

static void f_ballot_not(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	all_lanes(out, in->members & ~odd_lanes(in), false);
}

static void match(const struct pt_warp_lanes *in, struct pt_warp_answers *out, bool wide, bool all)
{
	for (int l = 0; l < 32; l++) {
		uint32_t same = 0;
		for (int k = 0; k < 32; k++) {
			bool equal = wide ? in->wide[k] == in->wide[l] : in->a[k] == in->a[l];
			if (equal && ((in->members >> k) & 1))
				same |= UINT32_C(1) << k;
		}
		out->p[l] = all && same == in->members;
		out->d[l] = all && same != in->members ? 0 : same;
	}
}

static void f_match_any(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	match(in, out, false, false);
}

static void f_match_any64(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	match(in, out, true, false);
}

static void f_match_all(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	match(in, out, false, true);
}

static void f_match_all64(const struct pt_warp_lanes *in, struct pt_warp_answers *out)
{
	match(in, out, true, true);
}

typedef uint32_t fold_fn(uint32_t x, uint32_t y);

static void fold(const struct pt_warp_lanes *in, struct pt_warp_answers *out, fold_fn *f)
{
	uint32_t r = 0;
	bool first = true;
	for (int l = 0; l < 32; l++) {
		if (!((in->members >> l) & 1))
			continue;
		r = first ? in->a[l] : f(r, in->a[l]);
		first = false;
	}
	all_lanes(out, r, false);
}

static uint32_t add(uint32_t x, uint32_t y)
{
	return x + y;
}

static uint32_t min_u(uint32_t x, uint32_t y)
{
	return x < y ? x : y;
}

static uint32_t max_u(uint32_t x, uint32_t y)
{
	return x > y ? x : y;
}

static uint32_t min_s(uint32_t x, uint32_t y)
{
	return (int32_t)x < (int32_t)y ? x : y;
}

static uint32_t max_s(uint32_t x, uint32_t y)
{
	return (int32_t)x > (int32_t)y ? x : y;
}

static uint32_t and_b(uint32_t x, uint32_t y)
{
	return x & y;
}

static uint32_t or_b(uint32_t x, uint32_t y)
{
	return x | y;
}

static uint32_t xor_b(uint32_t x, uint32_t y)
{
	return x ^ y;
}

#define FOLD(name)                                                                        \
	static void f_##name(const struct pt_warp_lanes *in, struct pt_warp_answers *out) \
	{                                                                                 \
		fold(in, out, name);                                                      \
	}
FOLD(add)
FOLD(min_u)
FOLD(max_u)
FOLD(min_s)
FOLD(max_s)
FOLD(and_b)
FOLD(or_b)
FOLD(xor_b)

const struct pt_warp_op pt_warp_ops[] = {
	{ "shfl.sync.up.b32", "shfl.sync.up.b32 %r10|%q10, %r1, %r2, %r3, %r4;", f_up, 0, 0 },
	{ "shfl.sync.down.b32", "shfl.sync.down.b32 %r10|%q10, %r1, %r2, %r3, %r4;", f_down, 0, 0 },
	{ "shfl.sync.bfly.b32", "shfl.sync.bfly.b32 %r10|%q10, %r1, %r2, %r3, %r4;", f_bfly, 0, 0 },
	{ "shfl.sync.idx.b32", "shfl.sync.idx.b32 %r10|%q10, %r1, %r2, %r3, %r4;", f_idx, 0, 0 },
	{ "vote.sync.all.pred", "vote.sync.all.pred %q10, %q1, %r4;", f_all, 3, 0 },
	{ "vote.sync.any.pred", "vote.sync.any.pred %q10, %q1, %r4;", f_any, 3, 0 },
	{ "vote.sync.uni.pred", "vote.sync.uni.pred %q10, %q1, %r4;", f_uni, 3, 0 },
	{ "vote.sync.all.pred !p", "vote.sync.all.pred %q10, !%q1, %r4;", f_none, 3, 0 },
	{ "vote.sync.ballot.b32", "vote.sync.ballot.b32 %r10, %q1, %r4;", f_ballot, 0, 0 },
	{ "vote.sync.ballot.b32 !p", "vote.sync.ballot.b32 %r10, !%q1, %r4;", f_ballot_not, 0, 0 },
	{ "vote.ballot.sync.b32 (other order)", "vote.ballot.sync.b32 %r10, %q1, %r4;", f_ballot, 0,
		0 },
	{ "match.any.sync.b32", "match.any.sync.b32 %r10, %r1, %r4;", f_match_any, 3, 0 },
	{ "match.any.sync.b64", "match.any.sync.b64 %r10, %l1, %r4;", f_match_any64, 1, 1 },
	{ "match.all.sync.b32", "match.all.sync.b32 %r10|%q10, %r1, %r4;", f_match_all, 1, 0 },
	{ "match.all.sync.b64", "match.all.sync.b64 %r10|%q10, %l1, %r4;", f_match_all64, 1, 1 },
	{ "redux.sync.add.u32", "redux.sync.add.u32 %r10, %r1, %r4;", f_add, 0, 0 },
	{ "redux.sync.add.s32", "redux.sync.add.s32 %r10, %r1, %r4;", f_add, 0, 0 },
	{ "redux.sync.min.u32", "redux.sync.min.u32 %r10, %r1, %r4;", f_min_u, 0, 0 },
	{ "redux.sync.max.u32", "redux.sync.max.u32 %r10, %r1, %r4;", f_max_u, 0, 0 },
	{ "redux.sync.min.s32", "redux.sync.min.s32 %r10, %r1, %r4;", f_min_s, 0, 0 },
	{ "redux.sync.max.s32", "redux.sync.max.s32 %r10, %r1, %r4;", f_max_s, 0, 0 },
	{ "redux.sync.and.b32", "redux.sync.and.b32 %r10, %r1, %r4;", f_and_b, 0, 0 },
	{ "redux.sync.or.b32", "redux.sync.or.b32 %r10, %r1, %r4;", f_or_b, 0, 0 },
	{ "redux.sync.xor.b32", "redux.sync.xor.b32 %r10, %r1, %r4;", f_xor_b, 0, 0 },
};
const size_t pt_n_warp_ops = sizeof pt_warp_ops / sizeof pt_warp_ops[0];
