/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Proofs of cells on a device, compared with the CPU's bit for bit. They have fewer points than a
 * trusted setup, because making its tables takes too long on the software device.
 *     test_kernels_kzg_gpu DRIVER     DRIVER is the software device's library;
 *                                     OUTBOARD_TEST_LIBCUDA overrides it
 */
#include "compute/kzg/g1_ntt.h"
#include "compute/kzg/gpu.h"
#include "compute/kzg/gpu_shape.h"
#include "compute/kzg/program.h"
#include "tests/compute/kernels/gpu_test.h"

#define MOST  256
#define BLOBS 11

static struct obk_g1_affine points[MOST];
static struct obk_fr scalars[BLOBS * MOST];

/* Makes multiples of the generator and scalars below r. */
static void make_input(size_t n, size_t blobs)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t k[2] = { random64(), random64() };
		struct obk_g1 p;

		obk_g1_mul(&p, &obk_g1_generator, k, 128);
		obk_g1_to_affine(&points[i], &p);
	}
	for (size_t i = 0; i < n * blobs; i++)
		obk_fr_from_plain(&scalars[i],
			(uint64_t[4]){ random64(), random64(), random64(), random64() >> 2 });
}

/* Computes the expected proofs: sums term by term, then the CPU's transforms. */
static void expect(
	unsigned log_columns, unsigned terms, const struct obk_fr *k, struct obk_g1_affine *ret)
{
	static struct obk_g1 sums[MOST];
	static struct obk_fp scratch[2 * MOST];
	size_t columns = (size_t)1 << log_columns;

	for (size_t i = 0; i < columns; i++) {
		obk_g1_set_infinity(&sums[i]);
		for (size_t j = 0; j < terms; j++) {
			uint64_t plain[4];
			struct obk_g1 t;

			obk_fr_to_plain(plain, &k[i * terms + j]);
			obk_g1_mul(&t, &points[i * terms + j], plain, 255);
			obk_g1_add(&sums[i], &sums[i], &t);
		}
	}
	obk_g1_ntt_gather_low(sums, log_columns, true, NULL);
	obk_g1_ntt_scatter_low(sums, log_columns, false, NULL);
	obk_g1_to_affine_batch(ret, sums, columns, scratch);
}

static void compare(const struct obk_fk20_gpu_args *args, size_t blobs)
{
	static struct obk_g1_affine have[BLOBS * MOST], want[MOST];
	size_t columns = (size_t)1 << args->log_columns;
	struct obk_fk20_gpu_info info;
	struct obk_fk20_gpu *fk = NULL;

	memset(have, 0xaa, sizeof(have));
	check_ok(obk_fk20_gpu_new(gpu, args, &fk, &fault));
	check_ok(obk_fk20_gpu_prove(fk, scalars, blobs, have, NULL, &fault));
	for (size_t b = 0; b < blobs; b++) {
		expect(args->log_columns, args->terms, scalars + b * columns * args->terms, want);
		CHECK(memcmp(have + b * columns, want, columns * sizeof(*want)) == 0);
	}
	obk_fk20_gpu_info(fk, &info);
	CHECK(info.window == args->window || !args->window);
	CHECK(info.bytes > (columns * args->terms * sizeof(*points)) << (info.window - 1));
	obk_fk20_gpu_free(fk);
}

/*
 * On the software device 2^2 columns are enough, because the tests below check the programs of all
 * roots. A GPU gets all 2^7 columns.
 */
TEST(numbers_of_blobs_and_terms)
{
	unsigned log_columns = test_fds_allowed ? 7 : 2;

	open_device();
	make_input((size_t)1 << log_columns, BLOBS);
	/* more than the eight pairs of a warp */
	compare(
		&(struct obk_fk20_gpu_args){
			.points = points, .log_columns = log_columns, .terms = 1, .window = 4 },
		BLOBS);
	make_input(32, 3);
	compare(&(struct obk_fk20_gpu_args){ .points = points, .log_columns = 1, .terms = 16 }, 3);
	obk_gpu_close(gpu);
}

TEST(digits)
{
	open_device();
	make_input(8, 1);
	/* 0, 1, r - 1 and numbers whose digits are all edge values */
	scalars[0] = obk_fr_zero;
	scalars[1] = obk_fr_one;
	obk_fr_sub(&scalars[2], &obk_fr_zero, &obk_fr_one);
	for (unsigned i = 3; i < 6; i++) {
		uint64_t all = i == 3 ? 0x8080808080808080
			: i == 4      ? 0x7f7f7f7f7f7f7f7f
				      : 0x8888888888888888;

		obk_fr_from_plain(&scalars[i], (uint64_t[4]){ all, all, all, all >> 2 });
	}
	/* 5 divides 255; the windows of 4 bits in the other tests do not */
	compare(
		&(struct obk_fk20_gpu_args){
			.points = points, .log_columns = 1, .terms = 4, .window = 5 },
		1);
	obk_gpu_close(gpu);
}

/*
 * Special cases of addition: sums that are equal, opposite or infinity, in one block and one warp
 * with other sums.
 */
TEST(special_sums)
{
	const struct obk_fk20_gpu_args args = {
		.points = points, .log_columns = 2, .terms = 1, .window = 4
	};

	open_device();
	make_input(4, 6);
	for (unsigned i = 0; i < 4; i++) {
		points[i] = points[0];
		scalars[i] = scalars[0]; /* all equal */
		if (i % 2)
			/* opposite pairs */
			obk_fr_sub(&scalars[4 + i], &obk_fr_zero, &scalars[3 + i]);
		if (i != 1)
			scalars[8 + i] = obk_fr_zero;
		scalars[12 + i] = obk_fr_zero;
		scalars[16 + i] = scalars[16 + i % 2];
	}
	points[3] = (struct obk_g1_affine){ .x = obk_fp_zero, .y = obk_fp_zero };
	compare(&args, 6);
	points[3] = points[0];
	compare(&args, 6);
	obk_gpu_close(gpu);
}

/*
 * Interprets a program on the two points of a pair, as the device does, with the CPU's arithmetic.
 */
static void interpret(
	const struct obk_fk20_programs *p, size_t program, struct obk_g1 *a, struct obk_g1 *b)
{
	struct obk_g1 slot[OBK_FK20_SLOTS + 3] = { [1] = *a, [2] = *b }, acc = *a;

	for (uint32_t i = p->starts[program]; i < p->starts[program + 1]; i++) {
		uint32_t step = p->steps[i],
			 load = step >> OBK_FK20_LOAD_SHIFT & OBK_FK20_SLOT_MASK,
			 add = step >> OBK_FK20_ADD_SHIFT & OBK_FK20_SLOT_MASK,
			 store = step >> OBK_FK20_STORE_SHIFT & OBK_FK20_SLOT_MASK;

		CHECK(load < OBK_FK20_SLOTS + 3 && add < OBK_FK20_SLOTS + 3 &&
			store < OBK_FK20_SLOTS + 3);
		if (step & OBK_FK20_CLEAR)
			obk_g1_set_infinity(&acc);
		acc = load ? slot[load] : acc;
		for (uint32_t n = step >> OBK_FK20_DOUBLE_SHIFT & OBK_FK20_DOUBLE_MASK; n > 0; n--)
			obk_g1_double(&acc, &acc);
		if (add) {
			struct obk_g1 t = slot[add];

			if (step & OBK_FK20_ENDO)
				obk_fp_mul(&t.x, &t.x, &obk_g1_beta);
			if (step & OBK_FK20_NEGATIVE)
				obk_g1_neg(&t, &t);
			obk_g1_add(&acc, &acc, &t);
		}
		if (store)
			slot[store] = acc;
		CHECK(!(step & OBK_FK20_LAST) == (i + 1 < p->starts[program + 1]));
	}
	*a = slot[1];
	*b = slot[2];
}

/*
 * Computes a blob's transforms by its programs at full size, which takes too long on the software
 * device.
 */
TEST(programs_are_the_transforms)
{
	static struct obk_g1 have[128], want[128];
	struct obk_fk20_programs p;

	CHECK_INT(obk_fk20_programs_make(7, &p), OB_ERR_NONE);
	for (size_t i = 0; i < 128; i++) {
		uint64_t k = random64();

		obk_g1_mul(&have[i], &obk_g1_generator, &k, 64);
	}
	obk_g1_set_infinity(&have[77]);
	memcpy(want, have, sizeof(want));
	obk_g1_ntt_gather_low(want, 7, true, NULL);
	obk_g1_ntt_scatter_low(want, 7, false, NULL);
	for (unsigned run = 0; run < 13; run++) {
		unsigned level = run < 6 ? 6 - run : run - 6, half = 64u >> level;

		for (size_t i = 0; i < 64; i++)
			interpret(&p,
				run < 6            ? i / half
					: run == 6 ? p.fold
						   : p.scatter + i / half,
				&have[i / half * 2 * half + i % half],
				&have[i / half * 2 * half + half + i % half]);
	}
	for (size_t i = 0; i < 128; i++)
		CHECK(obk_g1_equal(&have[i], &want[i]));
	obk_fk20_programs_free(&p);
}

/*
 * A program multiplies by a root of unity: 127 doublings, and an addition for every six digits of
 * either half of the scalar. For the root of order 4 (a quarter of a turn) the halves are (x, x),
 * with x of 64 bits.
 */
TEST(programs_are_short)
{
	struct obk_fk20_programs p;
	unsigned most = 0;

	CHECK_INT(obk_fk20_programs_make(7, &p), OB_ERR_NONE);
	CHECK_INT(p.count, 129);
	for (size_t i = 0; i < p.count; i++) {
		unsigned depth = obk_fk20_program_depth(&p, i);

		CHECK(p.steps[p.starts[i + 1] - 1] & OBK_FK20_LAST);
		most = depth > most ? depth : most;
	}
	printf("%u products deep at most, %u a quarter of a turn\n", most,
		obk_fk20_program_depth(&p, 1));
	CHECK(most < 680 && obk_fk20_program_depth(&p, 1) < 270 &&
		obk_fk20_program_depth(&p, 0) == 8);
	obk_fk20_programs_free(&p);
}

/* Memory for one blob at a time only, then too little for one. */
TEST(short_of_memory)
{
	static struct obk_g1_affine have[3 * 4], want[3 * 4];
	struct obk_fk20_gpu_args args = {
		.points = points, .log_columns = 2, .terms = 8, .window = 4
	};
	struct obk_fk20_gpu *fk;
	struct obk_gpu_buffer hog[64];
	unsigned hogs = 0;
	size_t room;

	open_device();
	make_input(32, 3);
	check_ok(obk_fk20_gpu_new(gpu, &args, &fk, &fault));
	check_ok(obk_fk20_gpu_prove(fk, scalars, 3, want, NULL, &fault));
	check_ok(obk_gpu_enter(gpu, &fault));
	for (size_t take = (size_t)1 << 45; take >= 4096; take /= 2) {
		obk_gpu_trim(gpu);
		check_ok(obk_gpu_room(gpu, &room, &fault));
		if (room > take + (9 << 10) && hogs < 64 &&
			!obk_gpu_take(gpu, take, &hog[hogs], &fault))
			hogs++;
	}
	obk_gpu_trim(gpu);
	check_ok(obk_gpu_room(gpu, &room, &fault));
	obk_gpu_leave(gpu);
	printf("room for %zu bytes\n", room);
	check_ok(obk_fk20_gpu_prove(fk, scalars, 3, have, NULL, &fault));
	CHECK(memcmp(have, want, sizeof(want)) == 0);
	obk_fk20_gpu_free(fk);
	obk_gpu_close(gpu);
}

TEST(bad_input)
{
	struct obk_fk20_gpu_args args = { .points = points,
		.log_columns = 1,
		.terms = 1,
		.window = 4 },
				 wrong;
	struct obk_g1_affine proofs[2];
	struct obk_fk20_gpu *fk;

	open_device();
	make_input(2, 1);
	for (unsigned i = 0; i < 5; i++) {
		wrong = args;
		wrong.log_columns = i == 0 ? 0 : i == 1 ? OBK_FK20_GPU_MAX_LOG_COLUMNS + 1 : 1;
		wrong.terms = i == 2 ? 3 : i == 3 ? 2 * OBK_FK20_GPU_MAX_TERMS : 1;
		wrong.window = i == 4 ? 9 : 4;
		CHECK_INT(obk_fk20_gpu_new(gpu, &wrong, &fk, &fault), OB_ERR_ARGUMENT);
	}
	check_ok(obk_fk20_gpu_new(gpu, &args, &fk, &fault));
	CHECK_INT(obk_fk20_gpu_prove(fk, scalars, 0, proofs, NULL, &fault), OB_ERR_LIMIT);
	CHECK_INT(obk_fk20_gpu_prove(fk, scalars, OBK_FK20_GPU_MAX_BLOBS + 1, proofs, NULL, &fault),
		OB_ERR_LIMIT);
	CHECK(strstr(fault.text, "split"));
	obk_fk20_gpu_free(fk);
	obk_gpu_close(gpu);
}

int main(int argc, char **argv)
{
	return gpu_test_main(argc, argv);
}
