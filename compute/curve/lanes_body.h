/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Part of lanes_avx512.c and lanes_ifma.c: additions of eight points at a time, for both
 * representations of numbers. The including file defines
 *
 *     LIMBS, LIMB_MASK, word          limbs of a number; the type of a limb in memory
 *     struct vec, struct slot         a number in eight SIMD lanes, LIMBS vectors; a point in
 *                                     memory, 64 bytes for x and for y
 *     multiples, k2, k4, one          k p for k = 1..MAX_MULTIPLE; 2 p and 4 p in the form that
 *                                     differences need; R mod p
 *     gather, scatter, same           a coordinate of eight slots and the flag of infinity; a limb
 *                                     in all SIMD lanes
 *     normalise, reduce, FACTOR       propagates carries through signed limbs; reduces from
 *                                     [p / 2, 6 p) to [0, p (1 + 2^-10)); prepares a difference
 *                                     for a product
 *     MUL, SQR                        Montgomery products
 *     join, split, set_flag, flagged  conversion of limbs to and from compute/field's numbers;
 *                                     the flag of infinity in a slot
 *     enter, leave, inverse_lacks     factors between R = 2^384 and this R, and for an inverse
 */

/*
 * Values that the forward pass keeps for the backward pass of eight pairs; the masks are of SIMD
 * lanes.
 */
struct vstep {
	struct vec den, prefix;
	__mmask8 twice, copy_a, copy_b, infinite, rare;
} __attribute__((aligned(64)));

static size_t workspace_bytes(size_t pairs)
{
	return (pairs + LANES - 1) / LANES * sizeof(struct vstep);
}

/* The SIMD lanes whose value, between 0 and (most + 1) p (both excluded), is a multiple of p. */
static __mmask8 multiple_of_p(const struct vec *a, unsigned most)
{
	struct vec v = *a;
	__mmask8 found = 0;

	normalise(&v);
	for (unsigned k = 0; k < most; k++) {
		__mmask8 eq = 0xff;

		for (unsigned i = 0; i < LIMBS; i++)
			eq = _mm512_mask_cmpeq_epi64_mask(eq, v.l[i], same(multiples[k][i]));
		found |= eq;
	}
	return found;
}

/*
 * The eight slots and signs of one side of eight pairs; SIMD lanes past the end repeat the first.
 */
struct side {
	const word *x[LANES], *y[LANES];
	__mmask8 negative;
};

static inline void pick(struct side *s, const struct slot *base, const struct slot *scratch,
	const struct obk_pair *pairs, size_t n, bool second)
{
	s->negative = 0;
	for (unsigned i = 0; i < LANES; i++) {
		const struct obk_pair *pair = &pairs[i < n ? i : 0];
		uint32_t ref = second ? pair->b : pair->a;
		const struct slot *slot =
			(ref & OBK_REF_SCRATCH ? scratch : base) + (ref & OBK_REF_INDEX);

		s->x[i] = slot->x;
		s->y[i] = slot->y;
		s->negative |= (__mmask8)((ref >> 31) << i);
	}
}

static inline void prefetch(
	const struct slot *base, const struct slot *scratch, const struct obk_pair *pairs, size_t n)
{
	for (unsigned i = 0; i < LANES && i < n; i++) {
		const struct slot *a = (pairs[i].a & OBK_REF_SCRATCH ? scratch : base) +
			(pairs[i].a & OBK_REF_INDEX);
		const struct slot *b = (pairs[i].b & OBK_REF_SCRATCH ? scratch : base) +
			(pairs[i].b & OBK_REF_INDEX);

		_mm_prefetch((const char *)a->x, _MM_HINT_T0);
		_mm_prefetch((const char *)a->y, _MM_HINT_T0);
		_mm_prefetch((const char *)b->x, _MM_HINT_T0);
		_mm_prefetch((const char *)b->y, _MM_HINT_T0);
	}
}

/* r = k + (second ? b : -b with its sign) - (first with its sign), limb by limb */
static inline void signed_difference(struct vec *r, const word k[LIMBS], const struct vec *second,
	__mmask8 negative2, const struct vec *first, __mmask8 negative1)
{
	for (unsigned i = 0; i < LIMBS; i++) {
		__m512i t = same(k[i]);

		t = _mm512_mask_sub_epi64(
			_mm512_add_epi64(t, second->l[i]), negative2, t, second->l[i]);
		r->l[i] = _mm512_mask_add_epi64(
			_mm512_sub_epi64(t, first->l[i]), negative1, t, first->l[i]);
	}
}

/*
 * Some SIMD lanes have equal x, or infinity: finds out which, and gives them non-zero denominators.
 */
static __attribute__((noinline)) void forward_rare(struct vstep *s, const struct side *a,
	const struct side *b, __mmask8 infinite_a, __mmask8 infinite_b)
{
	__mmask8 equal = multiple_of_p(&s->den, 3) & (__mmask8) ~(infinite_a | infinite_b);
	struct vec y1, y2, t;

	s->copy_b = infinite_a;
	s->copy_a = infinite_b & (__mmask8)~infinite_a;
	s->infinite = infinite_a & infinite_b;
	s->twice = 0;
	if (equal) {
		gather(&y1, a->y);
		gather(&y2, b->y);
		signed_difference(&t, k4, &y2, b->negative, &y1, a->negative);
		s->twice = multiple_of_p(&t, MAX_MULTIPLE) & equal;
		s->infinite |= equal & (__mmask8)~s->twice;
		/* y1 + y2, which is 2 y1 for the points that are doubled */
		signed_difference(&t, k4, &y2, b->negative, &y1, (__mmask8)~a->negative);
		for (unsigned i = 0; i < LIMBS; i++)
			s->den.l[i] = _mm512_mask_mov_epi64(s->den.l[i], s->twice, t.l[i]);
		FACTOR(&s->den);
	}
	for (unsigned i = 0; i < LIMBS; i++)
		s->den.l[i] = _mm512_mask_mov_epi64(
			s->den.l[i], s->copy_a | s->copy_b | s->infinite, same(one[i]));
	s->rare = s->twice | s->copy_a | s->copy_b | s->infinite;
}

static inline void forward(struct vstep *s, const struct side *a, const struct side *b)
{
	struct vec x1, x2;
	__mmask8 infinite_a = gather(&x1, a->x), infinite_b = gather(&x2, b->x), maybe;
	__m512i low;

	for (unsigned i = 0; i < LIMBS; i++)
		s->den.l[i] = _mm512_sub_epi64(_mm512_add_epi64(same(k2[i]), x2.l[i]), x1.l[i]);
	/*
	 * x2 - x1 + 2 p is between 0 and 4 p. This tests whether it is p, 2 p or 3 p; the lowest
	 * limb nearly always rules that out.
	 */
	low = _mm512_and_si512(s->den.l[0], same(LIMB_MASK));
	maybe = infinite_a | infinite_b;
	for (unsigned k = 0; k < 3; k++)
		maybe |= _mm512_cmpeq_epi64_mask(low, same(multiples[k][0]));
	FACTOR(&s->den);
	s->rare = 0;
	if (__builtin_expect(maybe, 0))
		forward_rare(s, a, b, infinite_a, infinite_b);
}

/*
 * Handles the SIMD lanes that are not plain additions, before the slope is used: sets numerators to
 * 3 x1^2, and restores x2 - x1 + 2 p = 2 p in place of 2 y1.
 */
static __attribute__((noinline)) void backward_rare(
	struct vec *dy, struct vec *dx, const struct vec *x1, __mmask8 twice)
{
	struct vec t;

	SQR(&t, x1);
	for (unsigned i = 0; i < LIMBS; i++) {
		dy->l[i] = _mm512_mask_add_epi64(
			dy->l[i], twice, t.l[i], _mm512_add_epi64(t.l[i], t.l[i]));
		dx->l[i] = _mm512_mask_mov_epi64(dx->l[i], twice, same(k2[i]));
	}
}

/* Handles, afterwards, the SIMD lanes whose result is one operand with its sign. */
static __attribute__((noinline)) void copy_lanes(
	struct vec *x, struct vec *y, const struct side *from, __mmask8 lanes)
{
	struct vec sx, sy;

	gather(&sx, from->x);
	gather(&sy, from->y);
	for (unsigned i = 0; i < LIMBS; i++) {
		__m512i k = same(multiples[2][i]);

		sy.l[i] = _mm512_mask_sub_epi64(
			_mm512_add_epi64(k, sy.l[i]), from->negative, k, sy.l[i]);
	}
	reduce(&sy);
	for (unsigned i = 0; i < LIMBS; i++) {
		x->l[i] = _mm512_mask_mov_epi64(x->l[i], lanes, sx.l[i]);
		y->l[i] = _mm512_mask_mov_epi64(y->l[i], lanes, sy.l[i]);
	}
}

static inline void backward(const struct vstep *s, const struct side *a, const struct side *b,
	struct vec *run, struct slot *const out[LANES])
{
	struct vec x1, y1, y2, slope, x3, y3, t, inv;
	word *rows[LANES];

	MUL(&inv, &s->prefix, run);
	MUL(run, &s->den, run);
	gather(&x1, a->x);
	gather(&y1, a->y);
	gather(&y2, b->y);
	signed_difference(&t, k4, &y2, b->negative, &y1, a->negative);
	x3 = s->den;
	if (__builtin_expect(s->rare, 0))
		backward_rare(&t, &x3, &x1, s->twice);
	FACTOR(&t);
	MUL(&slope, &t, &inv);
	SQR(&t, &slope);
	for (unsigned i = 0; i < LIMBS; i++) {
		/* slope^2 - x1 - x2 + 3 p, with x2 computed from the denominator */
		__m512i v =
			_mm512_sub_epi64(_mm512_add_epi64(t.l[i], same(multiples[4][i])), x3.l[i]);

		x3.l[i] = _mm512_sub_epi64(v, _mm512_add_epi64(x1.l[i], x1.l[i]));
	}
	reduce(&x3);
	for (unsigned i = 0; i < LIMBS; i++)
		t.l[i] = _mm512_sub_epi64(_mm512_add_epi64(same(k2[i]), x1.l[i]), x3.l[i]);
	FACTOR(&t);
	MUL(&y3, &t, &slope);
	for (unsigned i = 0; i < LIMBS; i++) {
		__m512i v = _mm512_add_epi64(y3.l[i], same(multiples[2][i]));

		y3.l[i] = _mm512_mask_add_epi64(
			_mm512_sub_epi64(v, y1.l[i]), a->negative, v, y1.l[i]);
	}
	reduce(&y3);
	if (__builtin_expect(s->rare, 0)) {
		copy_lanes(&x3, &y3, a, s->copy_a);
		copy_lanes(&x3, &y3, b, s->copy_b);
	}
	for (unsigned i = 0; i < LANES; i++)
		rows[i] = out[i]->x;
	scatter(rows, &x3, s->rare ? s->infinite : 0);
	for (unsigned i = 0; i < LANES; i++)
		rows[i] = out[i]->y;
	scatter(rows, &y3, 0);
}

/* run = 1 / run in each SIMD lane: one inversion with 64-bit limbs for all eight. */
static void invert_lanes(struct vec *run)
{
	uint64_t cell[LIMBS][LANES] __attribute__((aligned(64)));
	struct obk_fp a[LANES], scratch[LANES];
	word limbs[LIMBS];

	for (unsigned i = 0; i < LIMBS; i++)
		_mm512_store_si512(cell[i], run->l[i]);
	for (unsigned lane = 0; lane < LANES; lane++) {
		for (unsigned i = 0; i < LIMBS; i++)
			limbs[i] = (word)cell[i][lane];
		join(&a[lane], limbs);
	}
	/* compute/field reads a R as (R / 2^384) a, so its inverse lacks that factor twice */
	obk_fp_inv_batch(a, LANES, scratch);
	for (unsigned lane = 0; lane < LANES; lane++) {
		obk_fp_mul(&a[lane], &a[lane], &inverse_lacks);
		split(limbs, &a[lane]);
		for (unsigned i = 0; i < LIMBS; i++)
			cell[i][lane] = limbs[i];
	}
	for (unsigned i = 0; i < LIMBS; i++)
		run->l[i] = _mm512_load_si512(cell[i]);
}

static void add(const void *base_slots, void *scratch_slots, const struct obk_pair *pairs, size_t n,
	void *workspace)
{
	const struct slot *base = base_slots;
	struct slot *scratch = scratch_slots;
	struct vstep *steps = workspace;
	size_t vectors = (n + LANES - 1) / LANES;
	struct side a, b;
	struct vec run;

	for (unsigned i = 0; i < LIMBS; i++)
		run.l[i] = same(one[i]);
	for (size_t v = 0; v < vectors; v++) {
		size_t at = v * LANES;

		if (at + 3 * LANES < n)
			prefetch(base, scratch, pairs + at + 3 * LANES, n - at - 3 * LANES);
		pick(&a, base, scratch, pairs + at, n - at, false);
		pick(&b, base, scratch, pairs + at, n - at, true);
		forward(&steps[v], &a, &b);
		steps[v].prefix = run;
		MUL(&run, &steps[v].den, &run);
	}
	invert_lanes(&run);
	for (size_t v = vectors; v-- > 0;) {
		struct slot *out[LANES];
		size_t at = v * LANES;

		if (v >= 3)
			prefetch(base, scratch, pairs + at - 3 * LANES, LANES);
		pick(&a, base, scratch, pairs + at, n - at, false);
		pick(&b, base, scratch, pairs + at, n - at, true);
		for (unsigned i = 0; i < LANES; i++)
			out[i] = &scratch[pairs[i < n - at ? at + i : at].out];
		backward(&steps[v], &a, &b, &run, out);
	}
}

static void load(void *slots, const struct obk_g1_affine *points, size_t n)
{
	struct slot *out = slots;
	struct vec factor;

	for (unsigned i = 0; i < LIMBS; i++)
		factor.l[i] = same(enter[i]);
	for (size_t at = 0; at < n; at += LANES) {
		struct slot part[LANES] = { 0 };
		const word *in[LANES];
		word *rows[LANES];
		size_t count = n - at < LANES ? n - at : LANES;
		struct vec v;

		for (size_t i = 0; i < count; i++) {
			split(part[i].x, &points[at + i].x);
			split(part[i].y, &points[at + i].y);
		}
		for (unsigned y = 0; y < 2; y++) {
			for (unsigned i = 0; i < LANES; i++)
				in[i] = rows[i] = y ? part[i].y : part[i].x;
			gather(&v, in);
			MUL(&v, &v, &factor);
			scatter(rows, &v, 0);
		}
		for (size_t i = 0; i < count; i++)
			set_flag(&part[i], obk_g1_affine_is_infinity(&points[at + i]));
		memcpy(out + at, part, count * sizeof(part[0]));
	}
}

static void store(struct obk_g1_affine *points, const void *slots, size_t n)
{
	const struct slot *in = slots;

	for (size_t i = 0; i < n; i++) {
		struct obk_fp t;

		if (flagged(&in[i])) {
			memset(&points[i], 0, sizeof(points[i]));
			continue;
		}
		join(&t, in[i].x);
		obk_fp_mul(&points[i].x, &t, &leave);
		join(&t, in[i].y);
		obk_fp_mul(&points[i].y, &t, &leave);
	}
}

static void set_infinity(void *slot)
{
	struct slot *s = slot;

	memset(s, 0, sizeof(*s));
	set_flag(s, true);
}
