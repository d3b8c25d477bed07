/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Small products are compared with OpenSSL's generic curve, larger ones by the known logarithms of
 * the bases: with P_i = k_i G the sum of s_i P_i is (sum of s_i k_i mod r) G.
 */
#include <stdatomic.h>
#include <sys/resource.h>

#include "base/opt.h"
#include "tests/compute/kernels/msm_points.h"

/* Computes one product in every way: SIMD lanes, halves of scalars, tables, trust, threads. */
static void every_way(
	const struct obk_g1_affine *p, const uint64_t (*s)[4], size_t n, const uint8_t want[96])
{
	struct obk_pool *pool;

	alarm(TIMEOUT_S);
	CHECK_INT(obk_pool_new(3, &pool), OB_ERR_NONE);
	for (unsigned way = 0; way < 16; way++) {
		struct obk_msm_bases *b;

		ob_opt_set(OB_OPT_LANES, way & 1);
		ob_opt_set(OB_OPT_GLV, way & 2);
		b = bases_of(p, n, way & 4 ? OBK_TRUST_CURVE : OBK_TRUST_SUBGROUP,
			way & 8 ? n * 128 * 40 : 0, way & 1 ? pool : NULL);
		check_sum(b, s, 0, n, 0, way & 2 ? pool : NULL, want);
		obk_msm_bases_free(b);
	}
	ob_opt_set(OB_OPT_LANES, true);
	ob_opt_set(OB_OPT_GLV, true);
	obk_pool_free(pool);
}

TEST(halves_of_scalars_make_the_whole)
{
	static const uint64_t lambda[4] = { 0x00000000ffffffff, 0xac45a4010001a402, 0, 0 };
	uint64_t state = 7;
	struct obk_fr l, k, a, b;

	obk_fr_from_plain(&l, lambda);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t s[4], t[4] = { 0 };
		struct obk_half half[2];

		for (unsigned j = 0; j < 4; j++)
			s[j] = oracle_random(&state);
		if (i < 100) { /* near multiples of lambda / 2 and of r / 2 */
			memset(s, 0, sizeof(s));
			obk_fr_from_plain(&k, (uint64_t[4]){ i / 4 });
			obk_fr_mul(&k, &k, &l);
			obk_fr_to_plain(s, &k);
			s[0] += i % 4;
		} else if (i < 110) {
			memcpy(s,
				(uint64_t[4]){ 0x7fffffff80000000 + i - 105, 0xa9ded2017fff2dff,
					0x199cec0404d0ec02, 0x39f6d3a994cebea4 },
				sizeof(s));
		}
		obk_scalar_reduce(s);
		obk_scalar_split(&half[0], &half[1], s);
		for (unsigned h = 0; h < 2; h++) {
			CHECK((half[h].l[1] & ~OBK_HALF_SIGN) < (uint64_t)1 << 62 ||
				(half[h].l[1] & ~OBK_HALF_SIGN) >> 62 == 1);
			t[0] = half[h].l[0];
			t[1] = half[h].l[1] & ~OBK_HALF_SIGN;
			obk_fr_from_plain(h ? &b : &a, t);
			if (half[h].l[1] & OBK_HALF_SIGN)
				obk_fr_neg(h ? &b : &a, h ? &b : &a);
		}
		obk_fr_mul(&b, &b, &l);
		obk_fr_add(&a, &a, &b);
		obk_fr_from_plain(&k, s);
		CHECK(obk_fr_equal(&a, &k));
	}
}

TEST(digits_make_the_scalar)
{
	uint64_t state = 8;

	for (unsigned c = 2; c <= OBK_MSM_MAX_WINDOW; c++) {
		for (unsigned i = 0; i < 200; i++) {
			uint64_t s[4];
			struct obk_fr sum = obk_fr_zero, t, want;

			for (unsigned j = 0; j < 4; j++)
				s[j] = i == 0    ? UINT64_MAX
					: i == 1 ? 0x8000000000000000
					: i == 2 ? 0x7fffffffffffffff
						 : oracle_random(&state);
			for (unsigned w = (257 + c - 1) / c; w-- > 0;) {
				int32_t d = obk_scalar_digit(s, 4, w, c);

				CHECK(d <= 1 << (c - 1) && d >= -(1 << (c - 1)));
				for (unsigned b = 0; b < c; b++)
					obk_fr_add(&sum, &sum, &sum);
				obk_fr_from_plain(&t, (uint64_t[4]){ (uint64_t)(d < 0 ? -d : d) });
				(d < 0 ? obk_fr_sub : obk_fr_add)(&sum, &sum, &t);
			}
			obk_fr_from_plain(&want, s);
			CHECK(obk_fr_equal(&sum, &want));
		}
	}
}

TEST(small_products_are_openssls)
{
	static uint64_t s[40][4];
	static uint8_t p[40 * 96], k[40 * 32];
	uint64_t state = 9;
	uint8_t want[96];

	make_points(40, oracle_random(&state), oracle_random(&state));
	for (size_t n = 1; n <= 40; n = n < 5 ? n + 1 : n * 3) {
		n = n > 33 ? 33 : n;
		fill(s, n, &state);
		for (size_t i = 0; i < n; i++) {
			obk_g1_encode_uncompressed(p + 96 * i, &points[i]);
			encode_scalar(k + 32 * i, s[i]);
		}
		oracle_msm(want, p, k, n);
		every_way(points, s, n, want);
		if (n == 33)
			break;
	}
}

TEST(sizes_and_windows)
{
	static const size_t sizes[] = { 1, 31, 33, 63, 64, 65, 255, 256, 257, 1000, 1023, 1024,
		1025, 4096, N };
	static uint64_t s[N][4];
	uint64_t state = 10;
	struct obk_msm_bases *b, *table;
	struct obk_pool *pool;
	uint8_t want[96];

	make_points(N, oracle_random(&state), oracle_random(&state));
	CHECK_INT(obk_pool_new(0, &pool), OB_ERR_NONE);
	b = bases_of(points, N, OBK_TRUST_SUBGROUP, 0, pool);
	table = bases_of(points, N, OBK_TRUST_SUBGROUP, N * 128 * 8, pool);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill(s, sizes[i], &state);
		expected(want, s, N - sizes[i], sizes[i]);
		check_sum(b, s, N - sizes[i], sizes[i], 0, i % 2 ? pool : NULL, want);
		check_sum(table, s, N - sizes[i], sizes[i], 0, i % 2 ? NULL : pool, want);
	}
	fill(s, 100, &state);
	expected(want, s, 7, 100);
	for (unsigned c = 2; c <= 18; c++)
		check_sum(b, s, 7, 100, c, pool, want);
	obk_msm_bases_free(b);
	obk_msm_bases_free(table);
	obk_pool_free(pool);
}

/* Edge cases of splitting scalars into windows. */
static void adversarial_scalars(unsigned first, unsigned end)
{
	static uint64_t s[SOME][4];
	uint64_t state = 11;
	uint8_t want[96];

	make_points(SOME, oracle_random(&state), oracle_random(&state));
	for (unsigned kind = first; kind < end; kind++) {
		for (unsigned i = 0; i < SOME; i++) {
			uint64_t r[4];

			memcpy(r, obk_fr_modulus.l, sizeof(r));
			memset(s[i], 0, sizeof(s[i]));
			if (kind == 1 || (kind == 9 && i % 3 == 0))
				s[i][0] = 1;
			if (kind == 2 || kind == 3 || kind == 4) { /* r - 1, r, r + 1 */
				memcpy(s[i], r, sizeof(r));
				s[i][0] += kind - 3;
			}
			if (kind == 5)
				memset(s[i], 0xff, sizeof(s[i]));
			if (kind == 6) /* all equal */
				memcpy(s[i],
					(uint64_t[4]){ 0x123456789abcdef0, 77, 0xfedcba9876543210,
						0x1122334455667788 },
					sizeof(s[i]));
			if (kind == 7) /* digits of half a window, for every window size */
				memset(s[i], i % 2 ? 0x80 : 0x7f, sizeof(s[i]));
			if (kind == 8)
				s[i][i % 4] = (uint64_t)1 << i % 64;
			if (kind == 10) /* carries through every window */
				memcpy(s[i],
					(uint64_t[4]){ UINT64_MAX, UINT64_MAX, UINT64_MAX,
						0x0fffffffffffffff },
					sizeof(s[i]));
			if (kind == 11)
				s[i][3] = 0x8000000000000000;
			if (kind == 12)
				s[i][0] = i;
			if (kind == 13)
				memcpy(s[i],
					(uint64_t[4]){ 0x7fff7fff7fff7fff, 0x8000800080008000,
						0x7fff80007fff8000, 0x3fff3fff3fff3fff },
					sizeof(s[i]));
		}
		expected(want, s, 0, SOME);
		every_way(points, s, SOME, want);
	}
}

TEST(adversarial_scalars_first_half)
{
	adversarial_scalars(0, 7);
}

TEST(adversarial_scalars_second_half)
{
	adversarial_scalars(7, 14);
}

/* Bases that are all equal, alternately opposite, partly infinity; one point in every bucket. */
TEST(adversarial_bases)
{
	static struct obk_g1_affine p[SOME];
	static uint64_t s[SOME][4];
	uint64_t state = 12;
	uint8_t want[96];

	for (unsigned kind = 0; kind < 6; kind++) {
		make_points(SOME, oracle_random(&state), oracle_random(&state));
		fill(s, SOME, &state);
		for (unsigned i = 0; i < SOME; i++) {
			unsigned from = kind < 2 ? 0 : kind == 4 ? i % 7 : i;

			p[i] = points[from];
			logs[i] = logs[from];
			if (kind == 1 && i % 2) {
				obk_g1_affine_neg(&p[i], &p[i]);
				obk_fr_neg(&logs[i], &logs[i]);
			}
			if ((kind == 2 && i % 3 == 0) || kind == 3) {
				p[i] = (struct obk_g1_affine){ .x = obk_fp_zero };
				logs[i] = obk_fr_zero;
			}
			/* the same digits in all scalars: one hot bucket per window */
			if (kind == 1 || kind == 5)
				memcpy(s[i], s[0], sizeof(s[i]));
		}
		expected(want, s, 0, SOME);
		every_way(p, s, SOME, want);
	}
}

/* Points of the curve outside G1: r P is not infinity, so scalars must not be reduced modulo r. */
TEST(points_outside_the_subgroup)
{
	static struct obk_g1_affine p[12];
	static uint8_t bytes[12 * 96], k[12 * 32];
	uint64_t s[12][4], state = 13;
	struct obk_msm_bases_args args = { .points = p, .count = 12, .format = OBK_POINT_AFFINE };
	struct obk_msm_bases *b;
	struct obk_fault fault;
	uint8_t want[96];
	unsigned n = 0;

	p[n++] = obk_g1_generator;
	for (uint8_t x = 1; n < 12; x++) {
		uint8_t code[48] = { 0x80, [47] = x };

		n += obk_g1_decode_compressed(&p[n], code, 0, NULL) == OB_ERR_NONE;
	}
	fill(s, 12, &state);
	memset(s[3], 0xff, sizeof(s[3]));
	for (unsigned i = 0; i < 12; i++) {
		obk_g1_encode_uncompressed(bytes + 96 * i, &p[i]);
		encode_scalar(k + 32 * i, s[i]);
	}
	oracle_msm(want, bytes, k, 12);
	b = bases_of(p, 12, OBK_TRUST_CURVE, 0, NULL);
	check_sum(b, s, 0, 12, 0, NULL, want);
	obk_msm_bases_free(b);
	b = bases_of(p, 12, OBK_TRUST_CURVE, 1 << 20, NULL);
	check_sum(b, s, 0, 12, 0, NULL, want);
	obk_msm_bases_free(b);
	CHECK_INT(obk_msm_bases_new(&args, &b, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, 1);
	CHECK(strstr(fault.text, "subgroup"));
}

TEST(a_few_points)
{
	struct obk_fr k[OBK_MSM_FEW];
	struct obk_g1_affine r;
	uint64_t s[OBK_MSM_FEW][4], state = 13;
	uint8_t want[96], have[96];

	for (unsigned round = 0; round < 40; round++) {
		size_t n = round % (OBK_MSM_FEW + 1);

		make_points(OBK_MSM_FEW, oracle_random(&state), oracle_random(&state));
		fill(s, OBK_MSM_FEW, &state);
		for (unsigned i = 0; i < n; i++) {
			if (round >= 20 && (i + round) % 4 < 3) /* 0, 1, r - 1 */
				memcpy(s[i], (uint64_t[4]){ (i + round) % 4 }, 32);
			if (round >= 20 && (i + round) % 4 == 2) {
				memcpy(s[i], obk_fr_modulus.l, 32);
				s[i][0]--;
			}
			if (round >= 30 && i) { /* the same point, or its opposite, or infinity */
				points[i] = points[0];
				logs[i] = logs[0];
				if (i % 3 == 1) {
					obk_g1_affine_neg(&points[i], &points[i]);
					obk_fr_neg(&logs[i], &logs[i]);
				} else if (i % 3 == 2) {
					points[i] = (struct obk_g1_affine){ .x = obk_fp_zero };
					logs[i] = obk_fr_zero;
				}
			}
			obk_fr_from_plain(&k[i], s[i]);
		}
		expected(want, s, 0, n);
		obk_msm_few(&r, points, k, n);
		obk_g1_encode_uncompressed(have, &r);
		CHECK(memcmp(have, want, 96) == 0);
	}
}

TEST(batches_formats_and_empty_products)
{
	static uint64_t s[7 * 50][4], be[7 * 50][4];
	static struct obk_fr mont[7 * 50];
	struct obk_g1_affine r[7], none;
	uint64_t state = 14;
	struct obk_msm_bases *b;
	struct obk_msm_job job = {
		.offset = 3, .count = 50, .scalars = s, .format = OBK_SCALAR_LE, .batch = 7
	};
	uint8_t have[96], want[96];

	make_points(100, oracle_random(&state), oracle_random(&state));
	b = bases_of(points, 100, OBK_TRUST_SUBGROUP, 0, NULL);
	fill(s, 350, &state);
	for (unsigned i = 0; i < 350; i++) {
		encode_scalar((uint8_t *)be[i], s[i]);
		obk_fr_from_plain(&mont[i], s[i]);
	}
	for (unsigned format = 0; format < 3; format++) {
		job.format = (enum obk_scalar_format)format;
		job.scalars = format == OBK_SCALAR_LE ? (void *)s
			: format == OBK_SCALAR_BE     ? (void *)be
						      : (void *)mont;
		CHECK_INT(obk_msm_run(b, &job, r, NULL), OB_ERR_NONE);
		for (unsigned i = 0; i < 7; i++) {
			expected(want, s + 50 * i, 3, 50);
			obk_g1_encode_uncompressed(have, &r[i]);
			CHECK(memcmp(have, want, 96) == 0);
		}
	}
	job.count = 0;
	job.batch = 1;
	CHECK_INT(obk_msm_run(b, &job, &none, NULL), OB_ERR_NONE);
	CHECK(obk_g1_affine_is_infinity(&none));
	obk_msm_bases_free(b);
	b = bases_of(NULL, 0, OBK_TRUST_NOTHING, 100, NULL);
	job.offset = 0;
	CHECK_INT(obk_msm_run(b, &job, &none, NULL), OB_ERR_NONE);
	CHECK(obk_g1_affine_is_infinity(&none));
	obk_msm_bases_free(b);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
