/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Products in ranges, cancelled products, too little memory; errors name the item. */
#include <stdatomic.h>
#include <sys/resource.h>

#include "base/opt.h"
#include "tests/compute/kernels/msm_points.h"

#define COUNT 1500

TEST(ranges_make_the_whole)
{
	static const size_t ranges[] = { 1, 100, 1024, COUNT - 1, COUNT };
	static uint64_t s[2 * COUNT][4];
	struct obk_msm_bases_args args = { .points = points,
		.count = COUNT,
		.format = OBK_POINT_AFFINE,
		.trust = OBK_TRUST_SUBGROUP };
	struct obk_msm_job job = { .scalars = s, .count = COUNT, .canonical = true };
	uint8_t want[2][96], have[96];
	struct obk_g1_affine r[2];
	struct obk_msm_bases *b;
	struct obk_fault fault;
	uint64_t state = 14;

	alarm(TIMEOUT_S);
	make_points(COUNT, oracle_random(&state), oracle_random(&state));
	b = bases_of(points, COUNT, OBK_TRUST_SUBGROUP, 0, NULL);
	for (unsigned i = 0; i < 2 * COUNT; i++) {
		for (unsigned j = 0; j < 3; j++)
			s[i][j] = oracle_random(&state);
	}
	expected(want[0], s, 0, COUNT);
	expected(want[1], s + COUNT, 0, COUNT);
	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		size_t n = i ? COUNT : 50; /* ranges of few points are slow */

		job.range = ranges[i];
		job.batch = 1;
		job.count = args.count = n;
		if (!i)
			expected(want[0], s, 0, n);
		CHECK_INT(obk_msm_once(&args, &job, r, &fault), OB_ERR_NONE);
		obk_g1_encode_uncompressed(have, &r[0]);
		CHECK(memcmp(have, want[0], 96) == 0);
		if (!i) {
			expected(want[0], s, 0, COUNT);
			continue;
		}
		job.batch = 2;
		CHECK_INT(obk_msm_run(b, &job, r, &fault), OB_ERR_NONE);
		for (unsigned k = 0; k < 2; k++) {
			obk_g1_encode_uncompressed(have, &r[k]);
			CHECK(memcmp(have, want[k], 96) == 0);
		}
	}
	/* an error in a later range has the item's index in the whole call */
	job.range = 1000;
	memcpy(s[COUNT + 1456], obk_fr_modulus.l, 32);
	CHECK_INT(obk_msm_run(b, &job, r, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, COUNT + 1456);
	memcpy(s[1345], obk_fr_modulus.l, 32);
	job.batch = 1;
	CHECK_INT(obk_msm_once(&args, &job, r, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, 1345);
	CHECK(strstr(fault.text, "scalar 1345 "));
	args.trust = OBK_TRUST_NOTHING;
	points[1100].x = obk_fp_one;
	CHECK_INT(obk_msm_once(&args, &job, r, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, 1100);
	CHECK(strstr(fault.text, "point 1100 "));
	obk_msm_bases_free(b);
}

/* Returns false *arg times, then true. */
static bool count_down(void *arg)
{
	return atomic_fetch_sub_explicit((_Atomic long *)arg, 1, memory_order_relaxed) <= 0;
}

TEST(a_product_stops_wherever_it_is)
{
	static uint64_t s[2 * SOME][4];
	_Atomic long left;
	struct obk_msm_job job = { .count = SOME,
		.scalars = s,
		.batch = 2,
		.range = 50,
		.stop = { count_down, (void *)&left } };
	const struct obk_g1_affine untouched = { .x = obk_fp_one };
	struct obk_pool *pool;
	uint64_t state = 15;
	uint8_t want[96], have[96];

	alarm(TIMEOUT_S);
	CHECK_INT(obk_pool_new(3, &pool), OB_ERR_NONE);
	make_points(SOME, oracle_random(&state), oracle_random(&state));
	fill(s, 2 * SOME, &state);
	expected(want, s + SOME, 0, SOME);
	for (unsigned way = 0; way < 4; way++) {
		struct obk_msm_bases *b = bases_of(
			points, SOME, way & 1 ? OBK_TRUST_CURVE : OBK_TRUST_SUBGROUP, 0, NULL);
		enum ob_err err = OB_ERR_CANCELLED;
		unsigned stops = 0;

		job.pool = way & 2 ? pool : NULL;
		for (long after = 0; err == OB_ERR_CANCELLED;
			after += after < 20 ? 1 : after / 7, stops++) {
			struct obk_g1_affine r[2] = { untouched, untouched };
			const struct obk_g1_affine before[2] = { untouched, untouched };
			struct obk_fault fault = { .err = OB_ERR_NONE };

			atomic_store_explicit(&left, after, memory_order_relaxed);
			err = obk_msm_run(b, &job, r, &fault);
			if (err) {
				CHECK_INT(err, OB_ERR_CANCELLED);
				CHECK(strstr(fault.text, "stopped") &&
					memcmp(r, before, sizeof(r)) == 0);
				continue;
			}
			obk_g1_encode_uncompressed(have, &r[1]);
			CHECK(memcmp(have, want, 96) == 0);
		}
		CHECK(stops > 10);
		obk_msm_bases_free(b);
	}
	obk_pool_free(pool);
}

/* Leaves address space for a usual product but not for one with a far too wide window. */
TEST(out_of_memory_is_told_and_passes)
{
	static uint64_t s[SOME][4];
	struct obk_msm_job job = { .count = SOME, .scalars = s, .batch = 1, .window = 22 };
	struct obk_g1_affine r = { .x = obk_fp_one };
	struct rlimit limit;
	struct obk_fault fault;
	struct obk_msm_bases *b;
	uint64_t state = 16;
	unsigned long pages;
	FILE *f = fopen("/proc/self/statm", "re");

	if (TEST_SANITIZED)
		TEST_SKIP("a sanitizer's allocator ends the program instead");
	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	make_points(SOME, oracle_random(&state), oracle_random(&state));
	fill(s, SOME, &state);
	b = bases_of(points, SOME, OBK_TRUST_SUBGROUP, 0, NULL);
	limit = (struct rlimit){ pages * 4096 + ((size_t)64 << 20), RLIM_INFINITY };
	CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_NO_MEMORY);
	CHECK(strstr(fault.text, "smaller") && obk_fp_equal(&r.x, &obk_fp_one));
	job.window = 0;
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_NONE);
	obk_msm_bases_free(b);
}

TEST(errors_name_the_item)
{
	static uint8_t code[600 * 48];
	static uint64_t s[600][4];
	struct obk_msm_bases_args args = {
		.points = code, .count = 600, .format = OBK_POINT_COMPRESSED
	};
	struct obk_msm_job job = { .count = 600, .scalars = s, .batch = 1, .canonical = true };
	struct obk_msm_bases *b = NULL;
	struct obk_g1_affine r;
	struct obk_fault fault;

	make_points(600, 1, 1);
	for (unsigned i = 0; i < 600; i++)
		obk_g1_encode_compressed(code + 48 * i, &points[i]);
	code[48 * 555] ^= 0x80;
	code[48 * 301 + 1] ^= 0xff;
	code[48 * 301 + 2] = code[48 * 301 + 3] = 0xff;
	while (obk_g1_decode_compressed(&r, code + 48 * 301, 0, NULL) == OB_ERR_NONE)
		code[48 * 301 + 47]++;
	CHECK_INT(obk_msm_bases_new(&args, &b, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, 301);
	CHECK(strstr(fault.text, "point 301 ") && strstr(fault.text, "curve"));
	args.count = OBK_MSM_MAX_POINTS + 1;
	CHECK_INT(obk_msm_bases_new(&args, &b, &fault), OB_ERR_LIMIT);
	args.count = 300;
	args.stride = 47;
	CHECK_INT(obk_msm_bases_new(&args, &b, &fault), OB_ERR_ARGUMENT);
	args.stride = 0;
	args.points = NULL;
	CHECK_INT(obk_msm_bases_new(&args, &b, &fault), OB_ERR_ARGUMENT);
	args.points = code;
	CHECK_INT(obk_msm_bases_new(&args, &b, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_ARGUMENT);
	CHECK(strstr(fault.text, "600") && strstr(fault.text, "300"));
	job.count = 300;
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_NONE);
	memcpy(s[123], obk_fr_modulus.l, 32);
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, 123);
	job.canonical = false;
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_NONE);
	CHECK(obk_g1_affine_is_infinity(&r));
	job.batch = OBK_MSM_MAX_BATCH + 1;
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_LIMIT);
	job.batch = 1;
	job.window = OBK_MSM_MAX_WINDOW + 1;
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_ARGUMENT);
	job.window = 0;
	job.scalars = NULL;
	CHECK_INT(obk_msm_run(b, &job, &r, &fault), OB_ERR_ARGUMENT);
	obk_msm_bases_free(b);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
