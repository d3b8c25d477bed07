/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Bases with known logarithms, expected products by OpenSSL, and a check against them. */
#ifndef OBK_TEST_MSM_POINTS_H
#define OBK_TEST_MSM_POINTS_H

#include "compute/msm/msm.h"
#include "compute/msm/scalars.h"
#include "tests/compute/kernels/oracle.h"
#include "tests/test.h"

#define N         4099
#define TIMEOUT_S 110 /* takes seconds on an idle machine, a minute on a busy one */
#define SOME      120 /* size of the adversarial cases; every_way() computes each in sixteen ways */

static struct obk_g1_affine points[N];
static struct obk_fr logs[N];

/* P_i = (first + i step) G for i < n, computed by one addition each. */
static inline void make_points(size_t n, uint64_t first, uint64_t step)
{
	static struct obk_g1 sums[N];
	static struct obk_fp scratch[2 * N];
	struct obk_g1 run, t;
	struct obk_g1_affine d;
	struct obk_fr k, s;

	obk_g1_mul(&run, &obk_g1_generator, &first, 64);
	obk_g1_mul(&t, &obk_g1_generator, &step, 64);
	obk_g1_to_affine(&d, &t);
	obk_fr_from_plain(&k, (uint64_t[4]){ first });
	obk_fr_from_plain(&s, (uint64_t[4]){ step });
	for (size_t i = 0; i < n; i++) {
		sums[i] = run;
		logs[i] = k;
		obk_g1_add_affine(&run, &run, &d);
		obk_fr_add(&k, &k, &s);
	}
	obk_g1_to_affine_batch(points, sums, n, scratch);
}

static inline void encode_scalar(uint8_t be[32], const uint64_t k[4])
{
	for (unsigned i = 0; i < 32; i++)
		be[31 - i] = (uint8_t)(k[i / 8] >> 8 * (i % 8));
}

/* (sum of s_i k_i) G by OpenSSL. */
static inline void expected(uint8_t want[96], const uint64_t (*s)[4], size_t first, size_t n)
{
	struct obk_fr sum = obk_fr_zero, t;
	uint64_t plain[4];
	uint8_t be[32];

	for (size_t i = 0; i < n; i++) {
		obk_fr_from_plain(&t, s[i]);
		obk_fr_mul(&t, &t, &logs[first + i]);
		obk_fr_add(&sum, &sum, &t);
	}
	obk_fr_to_plain(plain, &sum);
	encode_scalar(be, plain);
	oracle_mul(want, NULL, be);
}

static inline struct obk_msm_bases *bases_of(const struct obk_g1_affine *p, size_t n,
	enum obk_trust trust, size_t table, struct obk_pool *pool)
{
	struct obk_msm_bases_args args = { .points = p,
		.count = n,
		.format = OBK_POINT_AFFINE,
		.trust = trust,
		.table_bytes = table,
		.pool = pool };
	struct obk_msm_bases *b = NULL;

	CHECK_INT(obk_msm_bases_new(&args, &b, NULL), OB_ERR_NONE);
	return b;
}

static inline void check_sum(const struct obk_msm_bases *b, const uint64_t (*s)[4], size_t offset,
	size_t n, unsigned window, struct obk_pool *pool, const uint8_t want[96])
{
	struct obk_msm_job job = { .offset = offset,
		.count = n,
		.scalars = s,
		.format = OBK_SCALAR_LE,
		.batch = 1,
		.window = window,
		.pool = pool };
	struct obk_g1_affine r;
	uint8_t have[96];

	CHECK_INT(obk_msm_run(b, &job, &r, NULL), OB_ERR_NONE);
	obk_g1_encode_uncompressed(have, &r);
	CHECK(memcmp(have, want, 96) == 0);
}

static inline void fill(uint64_t (*s)[4], size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		for (unsigned j = 0; j < 4; j++)
			s[i][j] = oracle_random(state);
	}
}

#endif
