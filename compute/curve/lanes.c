/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <string.h>

#include "base/opt.h"
#include "compute/curve/lanes.h"

/* Values that the forward pass keeps for the backward pass of one pair. */
struct step {
	struct obk_fp den, prefix;
	enum { ADD, DOUBLE, COPY_A, COPY_B, NOTHING } kind;
};

static bool plain_usable(void)
{
	return true;
}

static size_t plain_workspace(size_t pairs)
{
	return pairs * sizeof(struct step);
}

static void plain_load(void *slots, const struct obk_g1_affine *points, size_t n)
{
	memcpy(slots, points, n * sizeof(*points));
}

static void plain_store(struct obk_g1_affine *points, const void *slots, size_t n)
{
	memcpy(points, slots, n * sizeof(*points));
}

static void plain_set_infinity(void *slot)
{
	memset(slot, 0, sizeof(struct obk_g1_affine));
}

static inline const struct obk_g1_affine *where(
	const struct obk_g1_affine *base, const struct obk_g1_affine *scratch, uint32_t ref)
{
	return (ref & OBK_REF_SCRATCH ? scratch : base) + (ref & OBK_REF_INDEX);
}

static inline struct obk_g1_affine fetch(
	const struct obk_g1_affine *base, const struct obk_g1_affine *scratch, uint32_t ref)
{
	struct obk_g1_affine p = *where(base, scratch, ref);

	if (ref & OBK_REF_NEGATIVE)
		obk_fp_neg(&p.y, &p.y);
	return p;
}

/* The denominator of the slope, and the kind of the sum. */
static void prepare(struct step *s, const struct obk_g1_affine *a, const struct obk_g1_affine *b)
{
	s->den = obk_fp_one;
	if (obk_g1_affine_is_infinity(a)) {
		s->kind = COPY_B;
	} else if (obk_g1_affine_is_infinity(b)) {
		s->kind = COPY_A;
	} else if (!obk_fp_equal(&a->x, &b->x)) {
		s->kind = ADD;
		obk_fp_sub(&s->den, &b->x, &a->x);
	} else if (obk_fp_equal(&a->y, &b->y)) {
		s->kind = DOUBLE;
		obk_fp_add(&s->den, &a->y, &a->y);
	} else {
		s->kind = NOTHING;
	}
}

static void chord(struct obk_g1_affine *r, const struct obk_g1_affine *a,
	const struct obk_g1_affine *b, const struct obk_fp *inv, bool twice)
{
	struct obk_fp slope, x;

	if (twice) {
		obk_fp_sqr(&x, &a->x);
		obk_fp_add(&slope, &x, &x);
		obk_fp_add(&slope, &slope, &x);
	} else {
		obk_fp_sub(&slope, &b->y, &a->y);
	}
	obk_fp_mul(&slope, &slope, inv);
	obk_fp_sqr(&x, &slope);
	obk_fp_sub(&x, &x, &a->x);
	obk_fp_sub(&x, &x, &b->x);
	r->x = x;
	obk_fp_sub(&x, &a->x, &x);
	obk_fp_mul(&x, &x, &slope);
	obk_fp_sub(&r->y, &x, &a->y);
}

static void plain_add(
	const void *base, void *scratch, const struct obk_pair *pairs, size_t n, void *workspace)
{
	struct step *steps = workspace;
	struct obk_g1_affine *slots = scratch;
	struct obk_fp run = obk_fp_one, inv;

	for (size_t i = 0; i < n; i++) {
		struct obk_g1_affine a = fetch(base, scratch, pairs[i].a),
				     b = fetch(base, scratch, pairs[i].b);

		if (i + 8 < n) {
			__builtin_prefetch(where(base, scratch, pairs[i + 8].a));
			__builtin_prefetch(where(base, scratch, pairs[i + 8].b));
		}
		prepare(&steps[i], &a, &b);
		steps[i].prefix = run;
		obk_fp_mul(&run, &run, &steps[i].den);
	}
	obk_fp_inv(&run, &run);
	for (size_t i = n; i-- > 0;) {
		struct obk_g1_affine a = fetch(base, scratch, pairs[i].a),
				     b = fetch(base, scratch, pairs[i].b),
				     *out = &slots[pairs[i].out];

		obk_fp_mul(&inv, &run, &steps[i].prefix);
		obk_fp_mul(&run, &run, &steps[i].den);
		if (steps[i].kind == ADD || steps[i].kind == DOUBLE)
			chord(out, &a, &b, &inv, steps[i].kind == DOUBLE);
		else if (steps[i].kind == NOTHING)
			plain_set_infinity(out);
		else
			*out = steps[i].kind == COPY_A ? a : b;
	}
}

static const struct obk_lanes plain = {
	.name = "scalar",
	.usable = plain_usable,
	.slot_bytes = sizeof(struct obk_g1_affine),
	.workspace_bytes = plain_workspace,
	.load = plain_load,
	.store = plain_store,
	.set_infinity = plain_set_infinity,
	.add = plain_add,
};

#if defined(__x86_64__)
extern const struct obk_lanes obk_lanes_avx512, obk_lanes_ifma;
#endif

const struct obk_lanes *const obk_lanes_list[] = {
	&plain,
#if defined(__x86_64__)
	&obk_lanes_avx512,
	&obk_lanes_ifma,
#endif
	NULL,
};

const struct obk_lanes *obk_lanes_choose(void)
{
	const struct obk_lanes *best = &plain;

	for (unsigned i = 0; obk_lanes_list[i] && ob_opt_on(OB_OPT_LANES); i++) {
		if (obk_lanes_list[i]->usable())
			best = obk_lanes_list[i];
	}
	return best;
}
