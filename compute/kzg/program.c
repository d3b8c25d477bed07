/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>
#include <string.h>

#include "compute/kzg/g1_ntt.h"
#include "compute/kzg/gpu_shape.h"
#include "compute/kzg/program.h"
#include "compute/msm/scalars.h"
#include "compute/ntt/roots.h"

#define BITS         (OBK_HALF_BITS + 1) /* digits in a half */
#define DIGIT_BITS   5                   /* a non-zero digit is followed by at least four zeros */
#define MULTIPLES    8                   /* 1, 3 .. 15 */
#define MAX_STEPS    (2 * (BITS / DIGIT_BITS + 1) + MULTIPLES + 8)
#define ADD_DEPTH    4
#define DOUBLE_DEPTH 3

/* Slots. The first two hold the pair. */
enum { NONE, A, B, KEPT, TWICE, THRICE };

struct writer {
	uint32_t *steps;
	size_t n;
};

static void put(struct writer *w, unsigned load, unsigned doublings, unsigned add, unsigned store,
	uint32_t flags)
{
	w->steps[w->n++] = load << OBK_FK20_LOAD_SHIFT | doublings << OBK_FK20_DOUBLE_SHIFT |
		add << OBK_FK20_ADD_SHIFT | store << OBK_FK20_STORE_SHIFT | flags;
}

/*
 * Converts to signed odd digits, such that any DIGIT_BITS consecutive ones contain at most one
 * non-zero digit. Returns the largest absolute value.
 */
static unsigned digits_of(int8_t digits[BITS], const struct obk_half *half)
{
	uint64_t low = half->l[0], high = half->l[1] & ~OBK_HALF_SIGN;
	unsigned most = 0;

	for (unsigned i = 0; i < BITS; i++) {
		int d = 0;

		if (low & 1) {
			d = (int)(low & ((1u << DIGIT_BITS) - 1));
			low -= (unsigned)d;
			if (d >= 1 << (DIGIT_BITS - 1)) {
				d -= 1 << DIGIT_BITS;
				low += 1u << DIGIT_BITS;
				high += low < 1u << DIGIT_BITS;
			}
		}
		digits[i] = (int8_t)(half->l[1] & OBK_HALF_SIGN ? -d : d);
		most = (unsigned)abs(d) > most ? (unsigned)abs(d) : most;
		low = low >> 1 | high << 63;
		high >>= 1;
	}
	return most;
}

/* store = root times slot `base`. */
static void multiply(struct writer *w, unsigned base, const struct obk_fr *root, unsigned store)
{
	int8_t digits[2][BITS];
	struct obk_half half[2];
	unsigned most, doublings = 0;
	uint32_t clear = OBK_FK20_CLEAR;
	uint64_t plain[4];

	obk_fr_to_plain(plain, root);
	obk_scalar_split(&half[0], &half[1], plain);
	most = digits_of(digits[0], &half[0]);
	if (digits_of(digits[1], &half[1]) > most)
		most = digits_of(digits[1], &half[1]);
	if (most > 1)
		put(w, base, 1, NONE, TWICE, 0);
	for (unsigned m = 3; m <= most; m += 2)
		put(w, m == 3 ? base : NONE, 0, TWICE, THRICE + (m - 3) / 2, 0);
	for (unsigned bit = BITS; bit-- > 0; doublings += !clear) {
		for (unsigned h = 0; h < 2; h++) {
			/* NOLINTNEXTLINE(bugprone-signed-char-misuse): a signed digit */
			int d = digits[h][bit];
			unsigned size = (unsigned)abs(d);

			if (!d)
				continue;
			put(w, NONE, doublings, size == 1 ? base : THRICE + (size - 3) / 2, NONE,
				clear | (d < 0 ? OBK_FK20_NEGATIVE : 0) | (h ? OBK_FK20_ENDO : 0));
			clear = 0;
			doublings = 0;
		}
	}
	/* the loop counts one doubling beyond the lowest bit */
	put(w, NONE, doublings - 1, NONE, store, 0);
}

/* (a, b) -> (a + b, (a - b) root) */
static void gather(struct writer *w, size_t i, const struct obk_fr *root)
{
	put(w, i ? B : A, 0, i ? A : B, KEPT, OBK_FK20_NEGATIVE);
	put(w, A, 0, B, A, 0);
	if (i)
		multiply(w, KEPT, root, B);
	else
		put(w, KEPT, 0, NONE, B, 0);
}

/* (a, b) -> (a + b root, a - b root) */
static void scatter(struct writer *w, size_t i, const struct obk_fr *root)
{
	if (i)
		multiply(w, B, root, KEPT);
	else
		put(w, B, 0, NONE, KEPT, 0);
	put(w, A, 0, KEPT, B, OBK_FK20_NEGATIVE);
	put(w, A, 0, KEPT, A, 0);
}

static void end(struct obk_fk20_programs *p, struct writer *w, size_t i)
{
	w->steps[w->n - 1] |= OBK_FK20_LAST;
	p->starts[i + 1] = (uint32_t)w->n;
}

enum ob_err obk_fk20_programs_make(unsigned log_n, struct obk_fk20_programs *ret)
{
	size_t blocks = (size_t)1 << (log_n - 1);
	const struct obk_fr *roots = obk_roots_get(log_n);
	struct obk_fk20_programs p = {
		.count = 2 * blocks + 1, .scatter = (uint32_t)blocks, .fold = (uint32_t)(2 * blocks)
	};
	struct writer w = { 0 };

	p.starts = calloc(p.count + 1, sizeof(*p.starts));
	p.steps = w.steps = calloc(p.count * MAX_STEPS, sizeof(*p.steps));
	if (!roots || !p.starts || !p.steps) {
		obk_fk20_programs_free(&p);
		return OB_ERR_NO_MEMORY;
	}
	for (size_t i = 0; i < blocks; i++) {
		gather(&w, i, obk_g1_ntt_root(roots, i, true));
		end(&p, &w, i);
	}
	for (size_t i = 0; i < blocks; i++) {
		scatter(&w, i, obk_g1_ntt_root(roots, i, false));
		end(&p, &w, p.scatter + i);
	}
	/*
	 * The last level that gathers computes no upper half, and the first that scatters has none
	 * as input: (a, b) -> (a + b, a + b).
	 */
	put(&w, A, 0, B, A, 0);
	put(&w, NONE, 0, NONE, B, 0);
	end(&p, &w, p.fold);
	*ret = p;
	return OB_ERR_NONE;
}

void obk_fk20_programs_free(struct obk_fk20_programs *programs)
{
	free(programs->starts);
	free(programs->steps);
	*programs = (struct obk_fk20_programs){ 0 };
}

unsigned obk_fk20_program_depth(const struct obk_fk20_programs *programs, size_t i)
{
	unsigned depth = 0;

	for (uint32_t s = programs->starts[i]; s < programs->starts[i + 1]; s++) {
		uint32_t step = programs->steps[s];

		depth += (step >> OBK_FK20_DOUBLE_SHIFT & OBK_FK20_DOUBLE_MASK) * DOUBLE_DEPTH;
		if (step >> OBK_FK20_ADD_SHIFT & OBK_FK20_SLOT_MASK)
			depth += ADD_DEPTH + !!(step & OBK_FK20_ENDO);
	}
	return depth;
}
