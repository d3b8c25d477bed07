/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Sums of a few products: all halves of all scalars share one chain of doublings (Straus), and each
 * point has its own table of multiples.
 */
#include <assert.h>

#include "compute/msm/msm.h"
#include "compute/msm/scalars.h"

#define WINDOW    5
#define WINDOWS   (OBK_HALF_BITS / WINDOW + 1)
#define MULTIPLES (1 << (WINDOW - 1))

struct term {
	struct obk_half half[2];
	/* [0]: 1 .. MULTIPLES times the point; [1]: the same times lambda */
	struct obk_g1_affine multiple[2][MULTIPLES];
};

/* Makes the multiples of n points with one inversion for all. */
static void make_multiples(struct term *terms, const struct obk_g1_affine *const *p, size_t n)
{
	struct obk_g1 sum[OBK_MSM_FEW * MULTIPLES];
	struct obk_g1_affine flat[OBK_MSM_FEW * MULTIPLES];
	struct obk_fp scratch[2 * OBK_MSM_FEW * MULTIPLES];

	for (size_t i = 0; i < n; i++) {
		struct obk_g1 *s = sum + i * MULTIPLES;

		obk_g1_from_affine(&s[0], p[i]);
		obk_g1_double(&s[1], &s[0]);
		for (unsigned m = 2; m < MULTIPLES; m++)
			obk_g1_add_affine(&s[m], &s[m - 1], p[i]);
	}
	obk_g1_to_affine_batch(flat, sum, n * MULTIPLES, scratch);
	for (size_t i = 0; i < n; i++) {
		for (unsigned m = 0; m < MULTIPLES; m++) {
			terms[i].multiple[0][m] = terms[i].multiple[1][m] = flat[i * MULTIPLES + m];
			obk_fp_mul(&terms[i].multiple[1][m].x, &terms[i].multiple[1][m].x,
				&obk_g1_beta);
		}
	}
}

static void add_digit(struct obk_g1 *sum, const struct term *t, unsigned half, unsigned window)
{
	uint64_t size[2] = { t->half[half].l[0], t->half[half].l[1] & ~OBK_HALF_SIGN };
	int32_t digit = obk_scalar_digit(size, 2, window, WINDOW);
	struct obk_g1_affine p;

	if (!digit)
		return;
	p = t->multiple[half][(digit < 0 ? -digit : digit) - 1];
	if ((digit < 0) != (t->half[half].l[1] >> 63 != 0))
		obk_g1_affine_neg(&p, &p);
	obk_g1_add_affine(sum, sum, &p);
}

void obk_msm_few(struct obk_g1_affine *ret, const struct obk_g1_affine *points,
	const struct obk_fr *scalars, size_t n)
{
	const struct obk_g1_affine *worked[OBK_MSM_FEW];
	struct term terms[OBK_MSM_FEW];
	struct obk_g1 sum;
	size_t count = 0;

	assert(n <= OBK_MSM_FEW);
	obk_g1_set_infinity(&sum);
	for (size_t i = 0; i < n; i++) {
		uint64_t plain[4];

		if (obk_fr_equal(&scalars[i], &obk_fr_one))
			continue;
		obk_fr_to_plain(plain, &scalars[i]);
		obk_scalar_split(&terms[count].half[0], &terms[count].half[1], plain);
		worked[count++] = &points[i];
	}
	make_multiples(terms, worked, count);
	for (unsigned window = count ? WINDOWS : 0; window-- > 0;) {
		for (unsigned i = 0; i < WINDOW && !obk_g1_is_infinity(&sum); i++)
			obk_g1_double(&sum, &sum);
		for (size_t i = 0; i < count; i++) {
			add_digit(&sum, &terms[i], 0, window);
			add_digit(&sum, &terms[i], 1, window);
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (obk_fr_equal(&scalars[i], &obk_fr_one))
			obk_g1_add_affine(&sum, &sum, &points[i]);
	}
	obk_g1_to_affine(ret, &sum);
}
