/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reference results of warp-wide operations, against which cases_warp.c checks its cases. Each
 * function computes all 32 SIMD lanes of a warp. It does not depend on the programs under test. No
 * state.
 */
#ifndef PT_WARP_REFERENCE_H
#define PT_WARP_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#define PT_WARP_POISON 0xdeadbeefu /* initial value of the result registers */

struct pt_warp_lanes {
	uint32_t a[32], b[32], c[32];
	uint64_t wide[32]; /* b:a */
	uint32_t members;
};

/*
 * Results d and predicates p of the member lanes. skip: bit mask of the SIMD lanes whose d the ISA
 * does not define.
 */
struct pt_warp_answers {
	uint32_t d[32], p[32], skip;
};

typedef void pt_warp_fn(const struct pt_warp_lanes *in, struct pt_warp_answers *out);

/*
 * Registers that text uses: operands %r1 %r2 %r3 = a b c, %l1 = b:a, %q1 = a is odd, %r4 = members;
 * results %r10 and %q10.
 */
struct pt_warp_op {
	const char *name, *text;
	pt_warp_fn *f;
	uint32_t a_mask, b_mask; /* limit the operands to a few values */
};

extern const struct pt_warp_op pt_warp_ops[];
extern const size_t pt_n_warp_ops;

#endif
