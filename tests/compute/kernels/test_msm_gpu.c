/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Multi-scalar products on a device, compared with the CPU's bit for bit.
 *     test_kernels_msm_gpu DRIVER     DRIVER is the software device's library;
 *                                     OUTBOARD_TEST_LIBCUDA overrides it
 */
#include "base/opt.h"
#include "compute/msm/gpu_bases_inside.h"
#include "compute/msm/gpu_inside.h"
#include "compute/msm/msm.h"
#include "compute/msm/scalars.h"
#include "tests/compute/kernels/gpu_test.h"

#define MOST     34000
#define BLOB     4096
#define EXTREMES 10

static struct obk_g1_affine points[MOST];
static uint64_t scalars[MOST][4];

/*
 * Makes successive multiples of the generator; every seventh is negated, every eleventh is
 * infinity.
 */
static void make_points(size_t n)
{
	static struct obk_g1 sum[MOST];
	static struct obk_fp scratch[2 * MOST];
	uint64_t k[4] = { random64(), random64(), random64(), 0 };

	obk_g1_mul(&sum[0], &obk_g1_generator, k, 192);
	for (size_t i = 1; i < n; i++)
		obk_g1_add_affine(&sum[i], &sum[i - 1], &obk_g1_generator);
	obk_g1_to_affine_batch(points, sum, n, scratch);
	for (size_t i = 0; i < n; i++) {
		if (i % 7 == 6)
			obk_g1_affine_neg(&points[i], &points[i]);
		if (i % 11 == 10)
			points[i] = (struct obk_g1_affine){ .x = obk_fp_zero, .y = obk_fp_zero };
		for (unsigned j = 0; j < 4; j++)
			scalars[i][j] = random64();
	}
}

struct choice {
	size_t table_bytes;
	unsigned window;
	enum obk_trust trust;
	enum obk_scalar_format format;
	bool multiples; /* use a table of all multiples of 4-bit digits */
};

/* a fixed choice, in place of that of the model */
static const struct obk_msm_gpu_choice of_four_bits = { .multiples = true,
	.window = 4,
	.shift = 4,
	.copies = 1 };

/* Compares products of n points on the device and on the CPU. */
static void compare(size_t n, size_t batch, const struct choice *choice)
{
	struct obk_msm_bases_args args = { .points = points,
		.count = n,
		.trust = choice->trust,
		.table_bytes = choice->table_bytes };
	struct obk_msm_job job = { .count = n,
		.scalars = scalars,
		.batch = batch,
		.window = choice->window,
		.format = choice->format };
	struct obk_g1_affine have[8], want[8];
	struct obk_msm_gpu_bases *bases;

	memset(have, 0xaa, sizeof(have));
	check_ok(choice->multiples
			? obk_msm_gpu_bases_make(gpu, &args, &of_four_bits, &bases, &fault)
			: obk_msm_gpu_bases_new(gpu, &args, &bases, &fault));
	check_ok(obk_msm_gpu_run(bases, &job, 0, have, &fault));
	args.table_bytes = 0;
	check_ok(obk_msm_once(&args, &job, want, &fault));
	for (size_t i = 0; i < batch; i++)
		CHECK(obk_g1_affine_equal(&have[i], &want[i]));
	obk_msm_gpu_bases_free(bases);
}

static const struct choice plain = { .trust = OBK_TRUST_SUBGROUP };

TEST(sizes)
{
	static const size_t n[] = { 0, 1, 2, 31, 33, 64, 127, 257 };

	open_device();
	for (unsigned i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		make_points(n[i]);
		compare(n[i], 1, &plain);
	}
	obk_gpu_close(gpu);
}

TEST(a_thousand)
{
	open_device();
	make_points(1025);
	compare(1025, 1, &plain);
	obk_gpu_close(gpu);
}

static void set_scalars(size_t n, const uint64_t k[4], uint64_t add)
{
	for (size_t i = 0; i < n; i++) {
		memcpy(scalars[i], k, sizeof(scalars[i]));
		scalars[i][0] += add;
	}
}

/*
 * Scalars whose digits are all the same or all edge values: 0, 1, r - 1, r, r + 1, 2^256 - 1, and
 * digits 0x80, 0x7f and 0x81 for windows of eight bits.
 */
static void set_extreme(size_t n, unsigned which)
{
	const uint64_t *r = obk_fr_modulus.l;
	uint64_t all = which == 6 ? 0x8080808080808080
		: which == 7      ? 0x7f7f7f7f7f7f7f7f
				  : 0x8181818181818181;

	switch (which) {
	case 0:
	case 1:
		set_scalars(n, (uint64_t[4]){ which }, 0);
		break;
	case 2:
	case 3:
	case 4:
		set_scalars(n, r, which - 3u);
		break;
	case 5:
		set_scalars(n, (uint64_t[4]){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX }, 0);
		break;
	case 9: /* half of r and its neighbours: above it k becomes -(r - k) */
		set_scalars(n,
			(uint64_t[4]){ 0x7fffffff80000000, 0xa9ded2017fff2dff, 0x199cec0404d0ec02,
				0x39f6d3a994cebea4 },
			0);
		for (size_t i = 0; i < n; i++)
			scalars[i][0] += i % 3;
		break;
	default:
		set_scalars(n, (uint64_t[4]){ all, all, all, all }, 0);
	}
}

/* The points of a blob, by buckets. */
TEST(a_blob)
{
	open_device();
	make_points(BLOB);
	compare(BLOB, 1, &plain);
	obk_gpu_close(gpu);
}

/*
 * The same by a table of all multiples of digits of four bits, the narrowest. Making the table
 * takes longest, so fifteen of sixteen warps have only infinity.
 */
TEST(a_blob_by_multiples)
{
	const size_t table = (size_t)BLOB * 64 * 8 * sizeof(points[0]);
	struct obk_msm_bases_args args = {
		.points = points, .count = BLOB, .trust = OBK_TRUST_SUBGROUP, .table_bytes = table
	};
	struct obk_msm_job job = { .count = BLOB, .scalars = scalars, .batch = 1 };
	struct obk_g1_affine have, want;
	struct obk_msm_gpu_bases *bases;
	struct obk_msm_gpu_info info;

	setenv("OUTBOARD_SOFT_SMS", "1", 1); /* a smaller device: more points share an inversion */
	open_device();
	make_points(BLOB);
	for (size_t i = 0; i < BLOB; i++)
		if (i / 32 % 16)
			points[i] = (struct obk_g1_affine){ .x = obk_fp_zero, .y = obk_fp_zero };
	check_ok(obk_msm_gpu_bases_make(gpu, &args, &of_four_bits, &bases, &fault));
	obk_msm_gpu_bases_info(bases, &info);
	CHECK(info.multiples && info.window == 4 && info.shifts == 64 && info.bytes >= table);
	args.table_bytes = 0;
	for (unsigned which = 0; which < 3; which++) {
		if (which)
			set_extreme(BLOB, which == 1 ? 2 : 5);
		check_ok(obk_msm_gpu_run(bases, &job, 0, &have, &fault));
		check_ok(obk_msm_once(&args, &job, &want, &fault));
		CHECK(obk_g1_affine_equal(&have, &want));
	}
	obk_msm_gpu_bases_free(bases);
	obk_gpu_close(gpu);
}

/*
 * More scalars than one piece of an upload holds, uploaded in pieces and at once. The last scalar
 * is one of those that are not 0.
 */
TEST(scalars_in_pieces)
{
	const size_t n = 33001;
	struct obk_gpu_stats before, after;

	open_device();
	make_points(97);
	for (size_t i = 97; i < n; i++)
		points[i] = points[i % 97];
	for (size_t i = 0; i < n; i++)
		for (unsigned j = 0; j < 4; j++)
			scalars[i][j] = i % 300 ? 0 : random64();
	for (unsigned on = 0; on < 2; on++) {
		ob_opt_set(OB_OPT_STAGE, on);
		obk_gpu_stats(gpu, &before);
		compare(n, 1, &(struct choice){ .trust = OBK_TRUST_SUBGROUP, .window = 8 });
		obk_gpu_stats(gpu, &after);
		CHECK_INT(after.pieces - before.pieces, on ? 2 : 0);
		CHECK_INT(after.bytes_to - before.bytes_to, n * 32 + n * sizeof(points[0]) + 8);
	}
	obk_gpu_close(gpu);
}

TEST(windows)
{
	static const unsigned windows[] = { 2, 5, 9 };

	open_device();
	make_points(61);
	for (unsigned i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		compare(61, 1,
			&(struct choice){ .window = windows[i], .trust = OBK_TRUST_SUBGROUP });
	}
	obk_gpu_close(gpu);
}

TEST(formats_of_scalars)
{
	open_device();
	make_points(40);
	for (unsigned i = 0; i < 40; i++)
		scalars[i][3] &= UINT64_MAX >> 2; /* Montgomery form is below r */
	for (unsigned format = OBK_SCALAR_LE; format <= OBK_SCALAR_MONT; format++)
		compare(40, 1, &(struct choice){ .trust = OBK_TRUST_SUBGROUP, .format = format });
	obk_gpu_close(gpu);
}

TEST(extreme_scalars)
{
	open_device();
	make_points(70);
	for (unsigned which = 0; which < EXTREMES; which++) {
		set_extreme(70, which);
		compare(70, 1,
			&(struct choice){
				.trust = OBK_TRUST_SUBGROUP, .window = which % 2 ? 8 : 0 });
		compare(70, 1, &(struct choice){ .trust = OBK_TRUST_CURVE, .window = 8 });
	}
	obk_gpu_close(gpu);
}

/*
 * One hot bucket: all scalars and all points equal, so that sums double; then points that cancel;
 * then only infinity; then only the scalars equal; then none of that. test_msm_gpu_steps.c measures
 * what these cases cost.
 */
TEST(extreme_points)
{
	uint64_t k[4] = { 0x123456789abcdef0, 5, 77, 0x1234 };

	open_device();
	for (unsigned which = 0; which < 5; which++) {
		make_points(600);
		if (which < 4)
			set_scalars(600, k, 0);
		for (unsigned i = 0; i < 600; i++) {
			if (which < 3)
				points[i] = points[0];
			if (which == 1 && i % 2)
				obk_g1_affine_neg(&points[i], &points[i]);
			if (which == 2)
				points[i] = (struct obk_g1_affine){ .x = obk_fp_zero,
					.y = obk_fp_zero };
		}
		compare(600, 1, &(struct choice){ .trust = OBK_TRUST_SUBGROUP, .window = 5 });
	}
	obk_gpu_close(gpu);
}

static uint64_t launches_of(size_t n, const struct choice *choice)
{
	struct obk_gpu_stats before, after;

	obk_gpu_stats(gpu, &before);
	compare(n, 1, choice);
	obk_gpu_stats(gpu, &after);
	return after.launches - before.launches;
}

/*
 * The last sums with one thread per point and with four: buckets of random scalars; one hot bucket
 * with one point, whose partial sums are equal; one with a point and its negative, whose partial
 * sums are opposite or infinity.
 */
static void check_tails(unsigned processors, bool all_by_four)
{
	const struct choice buckets = { .trust = OBK_TRUST_SUBGROUP, .window = 5 };
	char text[16];

	snprintf(text, sizeof(text), "%u", processors);
	setenv("OUTBOARD_SOFT_SMS", text, 1);
	open_device();
	for (unsigned which = 0; which < 3; which++) {
		uint64_t launches[2];

		make_points(70);
		for (unsigned i = 0; i < 70 && which; i++) {
			points[i] = points[0];
			memcpy(scalars[i], scalars[0], sizeof(scalars[0]));
			if (which == 2 && i % 2)
				obk_g1_affine_neg(&points[i], &points[i]);
		}
		for (unsigned on = 0; on < 2; on++) {
			ob_opt_set(OB_OPT_TAILS, on);
			launches[on] = launches_of(70, &buckets);
		}
		/* on the software device the tails are smaller, so more launches precede them */
		if (obk_gpu_info(gpu)->processors == processors)
			CHECK((launches[1] > launches[0]) == all_by_four);
	}
	obk_gpu_close(gpu);
}

TEST(tails)
{
	check_tails(64, true);
}

TEST(tails_of_few_processors) /* for most steps there are too many sums for four threads each */
{
	check_tails(1, false);
}

/*
 * The tree of sums from a table of all multiples, with equal or opposite points, so that sums
 * double and cancel on its levels.
 */
TEST(tails_of_multiples)
{
	struct obk_msm_bases_args args = { .points = points,
		.count = 24,
		.trust = OBK_TRUST_SUBGROUP,
		.table_bytes = (size_t)24 * 64 * 8 * sizeof(points[0]) };
	struct obk_msm_job job = { .count = 24, .scalars = scalars, .batch = 2 };
	struct obk_g1_affine have[2], want[2];
	struct obk_msm_gpu_bases *bases;

	open_device();
	make_points(48);
	for (unsigned i = 0; i < 24; i++) {
		memcpy(scalars[24 + i], scalars[24], sizeof(scalars[0]));
		points[i] = points[i < 16 ? 0 : i];
		if (i % 8 == 4)
			obk_g1_affine_neg(&points[i], &points[i]);
	}
	check_ok(obk_msm_gpu_bases_make(gpu, &args, &of_four_bits, &bases, &fault));
	args.table_bytes = 0;
	check_ok(obk_msm_once(&args, &job, want, &fault));
	for (unsigned on = 0; on < 2; on++) {
		ob_opt_set(OB_OPT_TAILS, on);
		check_ok(obk_msm_gpu_run(bases, &job, 0, have, &fault));
		CHECK(memcmp(have, want, sizeof(want)) == 0);
	}
	obk_msm_gpu_bases_free(bases);
	obk_gpu_close(gpu);
}

/* The points of extreme_points by a table of multiples. */
TEST(extreme_points_by_multiples)
{
	const size_t table = (size_t)64 * 64 * 8 * sizeof(points[0]);

	open_device();
	for (unsigned which = 0; which < 3; which++) {
		make_points(64);
		if (which < 2)
			set_scalars(64, (uint64_t[4]){ 0x8877665544332211, 8, 0, 1 }, 0);
		for (unsigned i = 0; i < 64 && which; i++) {
			points[i] = points[0];
			if (i % 2)
				obk_g1_affine_neg(&points[i], &points[i]);
		}
		compare(64, 1,
			&(struct choice){ .trust = OBK_TRUST_SUBGROUP,
				.table_bytes = table,
				.multiples = true });
	}
	obk_gpu_close(gpu);
}

TEST(tables_of_shifted_copies)
{
	struct obk_msm_gpu_info info;
	struct obk_msm_bases_args args = { .points = points,
		.count = 100,
		.trust = OBK_TRUST_SUBGROUP,
		.table_bytes = 9600 * 40 };
	struct obk_msm_gpu_bases *bases;

	open_device();
	make_points(100);
	check_ok(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault));
	obk_msm_gpu_bases_info(bases, &info);
	CHECK(info.count == 100 && info.shifts > 1 && info.window && !info.multiples &&
		info.bytes >= info.shifts * 9600);
	obk_msm_gpu_bases_free(bases);
	compare(100, 1, &(struct choice){ .trust = OBK_TRUST_SUBGROUP, .table_bytes = 9600 * 40 });
	compare(100, 1, &(struct choice){ .trust = OBK_TRUST_SUBGROUP, .table_bytes = 9600 * 3 });
	compare(50, 2, &(struct choice){ .trust = OBK_TRUST_CURVE, .table_bytes = 9600 * 10 });
	obk_gpu_close(gpu);
}

TEST(tables_of_multiples)
{
	struct obk_msm_bases_args args = { .points = points,
		.count = 3,
		.trust = OBK_TRUST_SUBGROUP,
		.table_bytes = (size_t)1 << 22 };
	struct obk_msm_job job = { .offset = 1, .count = 2, .scalars = scalars, .batch = 1 };
	struct obk_g1_affine have, want, kept[3], batch[3], expected[3];
	struct obk_msm_gpu_bases *bases;
	struct obk_msm_gpu_info info;

	open_device();
	make_points(3);
	memcpy(kept, points, sizeof(kept));
	check_ok(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault));
	obk_msm_gpu_bases_info(bases, &info);
	CHECK(info.multiples && info.shifts == 32 && info.window == 8);
	for (unsigned which = 0; which <= EXTREMES; which++) {
		if (which)
			set_extreme(3, which - 1);
		check_ok(obk_msm_gpu_run(bases, &job, 0, &have, &fault));
		args.table_bytes = 0;
		check_ok(obk_msm_once(&args, &job, &want, &fault));
		CHECK(obk_g1_affine_equal(&have, &want));
	}
	make_points(9);
	job = (struct obk_msm_job){ .count = 3, .scalars = scalars, .batch = 3 };
	check_ok(obk_msm_gpu_run(bases, &job, 0, batch, &fault)); /* the same bases */
	args.table_bytes = 0;
	args.points = kept;
	check_ok(obk_msm_once(&args, &job, expected, &fault));
	CHECK(memcmp(batch, expected, sizeof(batch)) == 0);
	obk_msm_gpu_bases_free(bases);
	obk_gpu_close(gpu);
}

TEST(batches_and_scalars_on_the_device)
{
	struct obk_msm_bases_args args = {
		.points = points, .count = 60, .trust = OBK_TRUST_NOTHING
	};
	struct obk_msm_job job = { .offset = 10, .count = 50, .scalars = scalars, .batch = 5 };
	struct obk_g1_affine have[5], again[5], want[5];
	struct obk_msm_gpu_bases *bases;
	struct obk_gpu_buffer buffer;
	CUstream stream;

	open_device();
	make_points(250);
	check_ok(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault));
	check_ok(obk_msm_gpu_run(bases, &job, 0, have, &fault));
	check_ok(obk_gpu_enter(gpu, &fault));
	check_ok(obk_gpu_take(gpu, 250 * 32, &buffer, &fault));
	check_ok(obk_gpu_stream_take(gpu, &stream, &fault));
	check_ok(obk_gpu_write(gpu, stream, buffer.at, scalars, 250 * 32, &fault));
	check_ok(obk_gpu_wait(gpu, stream, &fault));
	obk_gpu_leave(gpu);
	check_ok(obk_msm_once(&args, &job, want, &fault));
	job.scalars = NULL;
	check_ok(obk_msm_gpu_run(bases, &job, buffer.at, again, &fault));
	CHECK(memcmp(have, want, sizeof(want)) == 0 && memcmp(again, want, sizeof(want)) == 0);
	CHECK_INT(obk_msm_gpu_run(bases, &job, buffer.at + 8, again, &fault), OB_ERR_ARGUMENT);
	obk_msm_gpu_bases_free(bases);
	obk_gpu_close(gpu);
}

/* Memory for the points in pieces only, then too little for one piece. */
TEST(short_of_memory)
{
	struct obk_msm_bases_args args = {
		.points = points, .count = 1000, .trust = OBK_TRUST_SUBGROUP
	};
	struct obk_msm_job job = { .count = 1000, .scalars = scalars, .batch = 2, .window = 4 };
	struct obk_g1_affine have[2], want[2];
	struct obk_msm_gpu_bases *bases;
	struct obk_gpu_buffer hog;
	size_t room;

	open_device();
	make_points(1000);
	memcpy(scalars[1000], scalars, sizeof(scalars[0]) * 1000);
	scalars[1700][1]++;
	check_ok(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault));
	check_ok(obk_gpu_enter(gpu, &fault));
	check_ok(obk_gpu_room(gpu, &room, &fault));
	/* sizes are rounded up by an eighth at most */
	check_ok(obk_gpu_take(gpu, (room - (2 << 20)) / 16 * 13, &hog, &fault));
	for (size_t take = room / 2; take > 1 << 18; take /= 2) { /* take what rounding left */
		struct obk_gpu_buffer more;

		check_ok(obk_gpu_room(gpu, &room, &fault));
		if (room > take + (3 << 20))
			check_ok(obk_gpu_take(gpu, take, &more, &fault));
	}
	check_ok(obk_gpu_room(gpu, &room, &fault));
	CHECK(room < 16 << 20);
	obk_gpu_leave(gpu);
	check_ok(obk_msm_gpu_run(bases, &job, 0, have, &fault));
	check_ok(obk_msm_once(&args, &job, want, &fault));
	CHECK(memcmp(have, want, sizeof(want)) == 0);
	job.window = 20;
	CHECK_INT(obk_msm_gpu_run(bases, &job, 0, have, &fault), OB_ERR_NO_MEMORY);
	CHECK(strstr(fault.text, "smaller window"));
	obk_msm_gpu_bases_free(bases);
	obk_gpu_close(gpu);
}

TEST(encoded_points)
{
	static uint8_t encoded[30][96];
	struct obk_msm_bases_args args = {
		.points = encoded, .count = 30, .stride = 96, .format = OBK_POINT_COMPRESSED
	};
	struct obk_msm_job job = { .count = 30, .scalars = scalars, .batch = 1 };
	struct obk_g1_affine have, want;
	struct obk_msm_gpu_bases *bases;

	open_device();
	make_points(30);
	for (unsigned i = 0; i < 30; i++)
		obk_g1_encode_compressed(encoded[i], &points[i]);
	check_ok(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault));
	check_ok(obk_msm_gpu_run(bases, &job, 0, &have, &fault));
	check_ok(obk_msm_once(&args, &job, &want, &fault));
	CHECK(obk_g1_affine_equal(&have, &want));
	obk_msm_gpu_bases_free(bases);
	encoded[17][3] ^= 1;
	encoded[21][0] = 0;
	CHECK(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault) != OB_ERR_NONE);
	CHECK(fault.item == 17 || fault.item == 21);
	args.first = 1000; /* index of the first point in errors */
	CHECK(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault) != OB_ERR_NONE);
	CHECK(fault.item == 1017 || fault.item == 1021);
	obk_gpu_close(gpu);
}

TEST(bad_input)
{
	struct obk_msm_bases_args args = { .points = points, .count = 50 };
	struct obk_msm_job job = { .count = 50, .scalars = scalars, .batch = 1, .canonical = true },
			   wrong;
	struct obk_g1_affine result, outside = { .x = obk_fp_one };
	struct obk_msm_gpu_bases *bases;
	struct obk_fp t;

	open_device();
	make_points(50);
	for (unsigned i = 0; i < 50; i++)
		scalars[i][3] &= UINT64_MAX >> 2;
	check_ok(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault));
	check_ok(obk_msm_gpu_run(bases, &job, 0, &result, &fault));
	memcpy(scalars[41], obk_fr_modulus.l, 32);
	memset(scalars[44], 0xff, 32);
	CHECK_INT(obk_msm_gpu_run(bases, &job, 0, &result, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, 41);
	wrong = job;
	wrong.offset = 1;
	CHECK_INT(obk_msm_gpu_run(bases, &wrong, 0, &result, &fault), OB_ERR_ARGUMENT);
	wrong = job;
	wrong.batch = 0;
	CHECK_INT(obk_msm_gpu_run(bases, &wrong, 0, &result, &fault), OB_ERR_LIMIT);
	wrong.batch = OBK_MSM_MAX_BATCH + 1;
	CHECK_INT(obk_msm_gpu_run(bases, &wrong, 0, &result, &fault), OB_ERR_LIMIT);
	wrong = job;
	wrong.window = OBK_MSM_GPU_MAX_WINDOW + 1;
	CHECK_INT(obk_msm_gpu_run(bases, &wrong, 0, &result, &fault), OB_ERR_ARGUMENT);
	wrong = job;
	wrong.scalars = NULL;
	CHECK_INT(obk_msm_gpu_run(bases, &wrong, 0, &result, &fault), OB_ERR_ARGUMENT);
	obk_msm_gpu_bases_free(bases);

	/* a point outside G1: the first x >= 1 that belongs to a point of the curve */
	for (;; obk_fp_add(&outside.x, &outside.x, &obk_fp_one)) {
		obk_fp_sqr(&t, &outside.x);
		obk_fp_mul(&t, &t, &outside.x);
		for (unsigned i = 0; i < 4; i++)
			obk_fp_add(&t, &t, &obk_fp_one);
		if (obk_fp_sqrt(&outside.y, &t))
			break;
	}
	CHECK(obk_g1_on_curve(&outside) && !obk_g1_in_subgroup(&outside));
	points[33] = outside;
	CHECK_INT(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault), OB_ERR_ARGUMENT);
	CHECK(fault.item == 33 && strstr(fault.text, "point 33 is") &&
		strstr(fault.text, "subgroup"));
	args.first = 7000;
	CHECK_INT(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault), OB_ERR_ARGUMENT);
	CHECK(fault.item == 7033 && strstr(fault.text, "point 7033 is"));
	args.first = 0;
	compare(50, 1, &(struct choice){ .trust = OBK_TRUST_CURVE });
	obk_fp_add(&points[31].x, &points[31].x, &obk_fp_one);
	CHECK_INT(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault), OB_ERR_ARGUMENT);
	CHECK(fault.item == 31 && strstr(fault.text, "curve"));
	points[30].y = obk_fp_modulus;
	args.trust = OBK_TRUST_SUBGROUP;
	CHECK_INT(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault), OB_ERR_ARGUMENT);
	CHECK(fault.item == 30 && strstr(fault.text, "prime"));
	obk_gpu_close(gpu);
}

int main(int argc, char **argv)
{
	return gpu_test_main(argc, argv);
}
