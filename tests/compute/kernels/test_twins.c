/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The GPU's field and curve operations, compared with the CPU's limb for limb.
 *     test_kernels_twins PTX DRIVER     DRIVER is the software device's library;
 *                                       OUTBOARD_TEST_LIBCUDA overrides it
 */
#include <stdlib.h>

#include "compute/curve/g1.h"
#include "tests/compute/kernels/oracle.h"
#include "tests/ptx/driver.h"
#include "tests/test.h"

#define N      1024
#define POINTS 320

static const char *ptx_path;
static struct pt_driver driver;
static CUmodule module;

static void load_module(void)
{
	FILE *f = fopen(ptx_path, "rb");
	char *text = calloc(1, 8 << 20);
	enum pt_open open;

	CHECK(f && text && fread(text, 1, (8 << 20) - 1, f) > 0);
	fclose(f);
	open = pt_driver_open(&driver, getenv("OUTBOARD_TEST_LIBCUDA"));
	if (open == PT_OPEN_NO_LIBRARY)
		TEST_SKIP("OUTBOARD_TEST_LIBCUDA names no driver");
	CHECK_INT(open, PT_OPEN_OK);
	if (pt_driver_load(&driver, text, &module)) {
		printf("%s\n", driver.log);
		exit(1);
	}
	free(text);
}

static CUdeviceptr upload(const void *data, size_t bytes)
{
	CUdeviceptr p;

	CHECK_INT(driver.mem_alloc(&p, bytes), CUDA_SUCCESS);
	CHECK_INT(driver.copy_to(p, data, bytes), CUDA_SUCCESS);
	return p;
}

/*
 * Runs kernel `name` over n items with `lanes` threads each: up to three inputs, and one output
 * that is copied back.
 */
static void run_lanes(const char *name, unsigned lanes, unsigned op, unsigned n,
	const void *const in[3], const size_t size[3], void *out, size_t out_size)
{
	CUdeviceptr p[3] = { 0 }, r;
	CUfunction f;
	void *args[6] = { &op, &n };
	unsigned inputs = 0;

	for (; inputs < 3 && in[inputs]; inputs++) {
		p[inputs] = upload(in[inputs], n * size[inputs]);
		args[2 + inputs] = &p[inputs];
	}
	r = upload(out, n * out_size);
	args[2 + inputs] = &r;
	CHECK_INT(driver.module_function(&f, module, name), CUDA_SUCCESS);
	CHECK_INT(driver.launch(f, (n * lanes + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, args, NULL),
		CUDA_SUCCESS);
	CHECK_INT(driver.copy_from(out, r, n * out_size), CUDA_SUCCESS);
	for (unsigned i = 0; i < inputs; i++)
		driver.mem_free(p[i]);
	driver.mem_free(r);
}

static void run(const char *name, unsigned op, unsigned n, const void *const in[3],
	const size_t size[3], void *out, size_t out_size)
{
	run_lanes(name, 1, op, n, in, size, out, out_size);
}

/* Makes a number below the modulus: random, of extreme limbs for every fourth i, 0, 1 or m - 1. */
static void element(
	uint64_t *l, unsigned limbs, const uint64_t *modulus, unsigned i, uint64_t *state)
{
	static const uint64_t edges[] = { 0, 1, 0xffffffff, 0xffffffff00000000, 0x8000000000000000,
		UINT64_MAX };

	for (unsigned j = 0; j < limbs; j++)
		l[j] = i % 4 == 3 ? edges[oracle_random(state) % 6] : oracle_random(state);
	l[limbs - 1] %= modulus[limbs - 1];
	if (i % 32 < 2) {
		memset(l, 0, limbs * 8);
		l[0] = i % 32;
	}
	if (i % 32 == 2) {
		memcpy(l, modulus, limbs * 8);
		l[0]--;
	}
}

/* Computes operation `op` of twin_fp on the CPU. */
static void fp_here(unsigned op, struct obk_fp *ret, const struct obk_fp *a, const struct obk_fp *b)
{
	struct obk_fp t;

	if (op < 3) {
		(op == 0 ? obk_fp_add : op == 1 ? obk_fp_sub : obk_fp_mul)(ret, a, b);
		return;
	}
	obk_fp_mul(ret, a, a);
	if (op == 4) { /* a b + (a + b) a */
		obk_fp_mul(&t, a, b);
		obk_fp_add(ret, ret, &t);
		obk_fp_add(ret, ret, &t);
	}
}

TEST(fp_on_the_device_is_fp_here)
{
	static struct obk_fp a[N], b[N], r[N];
	uint64_t state = 30;

	load_module();
	for (unsigned i = 0; i < N; i++) {
		element(a[i].l, 6, obk_fp_modulus.l, i, &state);
		element(b[i].l, 6, obk_fp_modulus.l, i / 32, &state);
	}
	for (unsigned op = 0; op < 5; op++) {
		run("twin_fp", op, N, (const void *[]){ a, b, NULL }, (size_t[]){ 48, 48, 0 }, r,
			48);
		for (unsigned i = 0; i < N; i++) {
			struct obk_fp want;

			fp_here(op, &want, &a[i], &b[i]);
			CHECK(obk_fp_equal(&want, &r[i]));
		}
	}
}

TEST(fr_on_the_device_is_fr_here)
{
	static struct obk_fr a[N], b[N], r[N];
	uint64_t state = 31;

	load_module();
	for (unsigned i = 0; i < N; i++) {
		element(a[i].l, 4, obk_fr_modulus.l, i, &state);
		element(b[i].l, 4, obk_fr_modulus.l, i / 32, &state);
	}
	for (unsigned op = 0; op < 3; op++) {
		run("twin_fr", op, N, (const void *[]){ a, b, NULL }, (size_t[]){ 32, 32, 0 }, r,
			32);
		for (unsigned i = 0; i < N; i++) {
			struct obk_fr want;

			(op == 0                  ? obk_fr_add
					: op == 1 ? obk_fr_sub
						  : obk_fr_mul)(&want, &a[i], &b[i]);
			CHECK(obk_fr_equal(&want, &r[i]));
		}
	}
}

/* Points with various denominators; equal and opposite points, and infinity on both sides. */
TEST(sums_on_the_device_are_sums_here)
{
	static struct obk_g1 p[POINTS], q[POINTS], r[POINTS];
	static struct obk_g1_affine a[POINTS];
	uint64_t state = 32;

	load_module();
	for (unsigned i = 0; i < POINTS; i++) {
		uint64_t k[4] = { i < 64 ? i / 8 : oracle_random(&state),
			i < 64 ? 0 : oracle_random(&state) },
			 m[4] = { i < 64 ? i % 8 : i };

		obk_g1_mul(&p[i], &obk_g1_generator, k, 128);
		obk_g1_mul(&q[i], &obk_g1_generator, m, 64);
		if (i % 3 == 2)
			obk_g1_neg(&q[i], &q[i]);
		obk_g1_to_affine(&a[i], &q[i]);
	}
	for (unsigned op = 0; op < 3; op++) {
		memset(r, 0, sizeof(r));
		run("twin_g1", op, POINTS, (const void *[]){ p, q, a },
			(size_t[]){ sizeof(p[0]), sizeof(q[0]), sizeof(a[0]) }, r, sizeof(r[0]));
		for (unsigned i = 0; i < POINTS; i++) {
			struct obk_g1 want;

			if (op == 0)
				obk_g1_double(&want, &p[i]);
			else if (op == 1)
				obk_g1_add(&want, &p[i], &q[i]);
			else
				obk_g1_add_affine(&want, &p[i], &a[i]);
			CHECK(memcmp(&want, &r[i], sizeof(want)) == 0);
		}
	}
}

/* (x, y, zz, zzz) -> (l^2 x, l^3 y, l^2 zz, l^3 zzz): the same point. */
static void change_denominators(struct obk_g1 *p, const struct obk_fp *l)
{
	struct obk_fp square, cube;

	obk_fp_sqr(&square, l);
	obk_fp_mul(&cube, &square, l);
	obk_fp_mul(&p->x, &p->x, &square);
	obk_fp_mul(&p->zz, &p->zz, &square);
	obk_fp_mul(&p->y, &p->y, &cube);
	obk_fp_mul(&p->zzz, &p->zzz, &cube);
}

/*
 * Additions with four threads per point, and with one. Every pair of 0, 1, .. 6 times the generator
 * and their negatives, with equal and with different denominators: in some warps a few of the eight
 * points are infinite, equal or opposite and the others are not; other warps have only infinity,
 * equal, or opposite points. The number of points is not a multiple of eight, so one warp is not
 * full.
 */
TEST(sums_by_four_lanes_are_sums_here)
{
	static struct obk_g1 p[POINTS], q[POINTS], r[POINTS];
	const unsigned n = POINTS - 5;
	uint64_t state = 33;

	load_module();
	for (unsigned i = 0; i < n; i++) {
		unsigned all = i / 16 % 4;
		uint64_t k[4] = { i < 196 ? i / 14 / 2 : oracle_random(&state) },
			 m[4] = { i < 196           ? i % 14 / 2
					 : all == 1 ? 0
						    : k[0] };
		struct obk_fp l = obk_fp_one;

		if (i >= 196 && all == 0)
			m[0] = oracle_random(&state);
		obk_g1_mul(&p[i], &obk_g1_generator, k, 64);
		obk_g1_mul(&q[i], &obk_g1_generator, m, 64);
		if (i < 196 ? i % 2 : all == 3)
			obk_g1_neg(&q[i], &q[i]);
		if (i / 14 % 2)
			obk_fp_add(&l, &l, &obk_fp_one);
		change_denominators(&q[i], &l);
	}
	for (unsigned op = 0; op < 2; op++)
		for (unsigned four = 0; four < 2; four++) {
			memset(r, 0, sizeof(r));
			run_lanes(four ? "twin_g1_four" : "twin_g1", four ? 4 : 1, op, n,
				(const void *[]){ p, q, four ? NULL : q },
				(size_t[]){ sizeof(p[0]), sizeof(q[0]), sizeof(q[0]) }, r,
				sizeof(r[0]));
			for (unsigned i = 0; i < n; i++) {
				struct obk_g1 want;

				if (op == 0)
					obk_g1_double(&want, &p[i]);
				else
					obk_g1_add(&want, &p[i], &q[i]);
				CHECK(memcmp(&want, &r[i], sizeof(want)) == 0);
			}
		}
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "%s PTX [DRIVER]\n", argv[0]);
		return 2;
	}
	ptx_path = argv[1];
	if (getenv("OUTBOARD_TEST_LIBCUDA"))
		test_fds_allowed = 4096;
	else if (argc > 2)
		setenv("OUTBOARD_TEST_LIBCUDA", argv[2], 0);
	return test_main(1, argv);
}
