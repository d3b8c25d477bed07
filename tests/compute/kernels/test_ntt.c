/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Small transforms are compared with the sum that defines them, large ones by values at some points
 * and by their inverses.
 */
#include <stdatomic.h>

#include "base/opt.h"
#include "compute/ntt/ntt.h"
#include "compute/ntt/reverse.h"
#include "tests/test.h"

/* takes two seconds on an idle machine, a minute on a busy one */
#define TIMEOUT_S 110

static uint64_t state = 0x2545f4914f6cdd1du;

static void any(struct obk_fr *r)
{
	uint64_t plain[4];

	for (unsigned i = 0; i < 4; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		plain[i] = state;
	}
	obk_fr_from_plain(r, plain);
}

static struct obk_fr *fill(size_t n)
{
	struct obk_fr *x = malloc(n * sizeof(*x));

	CHECK(x != NULL);
	for (size_t i = 0; i < n; i++)
		any(&x[i]);
	return x;
}

/* sum of x_j p^j */
static struct obk_fr value_at(const struct obk_fr *x, size_t n, const struct obk_fr *p)
{
	struct obk_fr sum = obk_fr_zero;

	for (size_t j = n; j-- > 0;) {
		obk_fr_mul(&sum, &sum, p);
		obk_fr_add(&sum, &sum, &x[j]);
	}
	return sum;
}

/* g w^k */
static struct obk_fr point(unsigned log_n, uint64_t k, const struct obk_fr *g)
{
	struct obk_fr w;

	obk_fr_root(&w, log_n);
	obk_fr_pow(&w, &w, &k, 1);
	if (g)
		obk_fr_mul(&w, &w, g);
	return w;
}

static size_t place(size_t i, unsigned log_n, bool reversed)
{
	return reversed ? obk_ntt_reverse_bits((uint32_t)i, log_n) : i;
}

/* Checks `points` values of every transform of the batch, or all of them if the size is small. */
static void check_size(unsigned log_n, size_t batch, enum obk_ntt_order order,
	const struct obk_fr *coset, struct obk_pool *pool, size_t points)
{
	size_t n = (size_t)1 << log_n;
	bool in = order == OBK_NTT_RN || order == OBK_NTT_RR,
	     out = order == OBK_NTT_NR || order == OBK_NTT_RR;
	static const enum obk_ntt_order mirror[] = { OBK_NTT_NN, OBK_NTT_RN, OBK_NTT_NR,
		OBK_NTT_RR };
	struct obk_fr *x = fill(n * batch), *y = malloc(n * batch * sizeof(*y));
	struct obk_ntt_job job = {
		.log_n = log_n, .order = order, .batch = batch, .coset = coset, .pool = pool
	};

	CHECK(y != NULL);
	memcpy(y, x, n * batch * sizeof(*y));
	if (in)
		for (size_t b = 0; b < batch; b++)
			obk_ntt_reverse(y + b * n, log_n);
	CHECK_INT(obk_ntt_run(&job, y, NULL), OB_ERR_NONE);
	for (size_t b = 0; b < batch; b++) {
		for (size_t i = 0; i < points; i++) {
			size_t k = points == n ? i : state * (i + 1) % n;
			struct obk_fr at = point(log_n, k, coset),
				      want = value_at(x + b * n, n, &at);

			CHECK(obk_fr_equal(&y[b * n + place(k, log_n, out)], &want));
		}
	}
	job.direction = OBK_NTT_INVERSE;
	job.order = mirror[order];
	CHECK_INT(obk_ntt_run(&job, y, NULL), OB_ERR_NONE);
	if (in)
		for (size_t b = 0; b < batch; b++)
			obk_ntt_reverse(y + b * n, log_n);
	CHECK(memcmp(x, y, n * batch * sizeof(*x)) == 0);
	free(x);
	free(y);
}

TEST(small_sizes_all_orders)
{
	struct obk_fr g;

	any(&g);
	for (unsigned log_n = 0; log_n <= 7; log_n++)
		for (unsigned order = OBK_NTT_NN; order <= OBK_NTT_RR; order++)
			for (unsigned shifted = 0; shifted < 2; shifted++)
				check_size(log_n, 1 + log_n % 3, order, shifted ? &g : NULL, NULL,
					(size_t)1 << log_n);
}

TEST(middle_sizes_with_threads)
{
	struct obk_pool *pool;
	struct obk_fr g;

	any(&g);
	CHECK_INT(obk_pool_new(3, &pool), OB_ERR_NONE);
	for (unsigned log_n = 8; log_n <= 16; log_n++)
		for (unsigned order = OBK_NTT_NN; order <= OBK_NTT_RR; order++)
			check_size(
				log_n, log_n < 14 ? 3 : 1, order, order % 2 ? &g : NULL, pool, 2);
	obk_pool_free(pool);
}

/* Larger than the table of roots. */
TEST(large_size)
{
	struct obk_pool *pool;

	alarm(TIMEOUT_S);
	CHECK_INT(obk_pool_new(0, &pool), OB_ERR_NONE);
	check_size(22, 1, OBK_NTT_NR, NULL, pool, 2);
	obk_pool_free(pool);
}

/* The implementation in tiles and the plain network give the same bits, also for edge values. */
TEST(tiles_are_the_network)
{
	static const unsigned sizes[] = { 6, 7, 9, 12, 13 };
	struct obk_fr top, g;

	obk_fr_sub(&top, &obk_fr_zero, &obk_fr_one);
	any(&g);
	for (unsigned i = 0; i < 16 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned log_n = sizes[i / 16], kind = i % 4;
		size_t n = (size_t)1 << log_n, batch = log_n < 10 ? 5 : 1;
		struct obk_fr *x = fill(n * batch), *y = malloc(n * batch * sizeof(*y));
		struct obk_ntt_job job = { .log_n = log_n,
			.order = i / 4 % 4,
			.batch = batch,
			.direction = i % 2 ? OBK_NTT_INVERSE : OBK_NTT_FORWARD,
			.coset = kind == 3 ? &g : NULL };

		CHECK(y != NULL);
		for (size_t j = 0; j < n * batch && kind; j++) {
			/*
			 * largest Montgomery limbs, and alternations that make every difference
			 * extreme
			 */
			if (kind == 1)
				x[j] = (struct obk_fr){ { obk_fr_modulus.l[0] - 1,
					obk_fr_modulus.l[1], obk_fr_modulus.l[2],
					obk_fr_modulus.l[3] } };
			if (kind == 2)
				x[j] = j & 1 ? top : obk_fr_zero;
		}
		memcpy(y, x, n * batch * sizeof(*y));
		ob_opt_set(OB_OPT_NTT, false);
		CHECK_INT(obk_ntt_run(&job, x, NULL), OB_ERR_NONE);
		ob_opt_set(OB_OPT_NTT, true);
		CHECK_INT(obk_ntt_run(&job, y, NULL), OB_ERR_NONE);
		CHECK(memcmp(x, y, n * batch * sizeof(*x)) == 0);
		free(x);
		free(y);
	}
}

TEST(reversal)
{
	for (unsigned log_n = 0; log_n <= 13; log_n++) {
		size_t n = (size_t)1 << log_n;
		struct obk_fr *x = fill(n), *y = malloc(n * sizeof(*y));

		CHECK(y != NULL);
		memcpy(y, x, n * sizeof(*y));
		obk_ntt_reverse(y, log_n);
		for (size_t i = 0; i < n; i++)
			CHECK(obk_fr_equal(&y[obk_ntt_reverse_bits((uint32_t)i, log_n)], &x[i]));
		free(x);
		free(y);
	}
}

/* The product of two polynomials by the schoolbook method and by transforms. */
TEST(convolution)
{
	struct obk_fr *a = fill(256), *b = fill(256), want[256], t;
	struct obk_ntt_job job = { .log_n = 8, .order = OBK_NTT_NR, .batch = 1 };

	for (unsigned i = 0; i < 256; i++)
		want[i] = obk_fr_zero;
	for (unsigned i = 128; i < 256; i++)
		a[i] = b[i] = obk_fr_zero;
	for (unsigned i = 0; i < 128; i++)
		for (unsigned j = 0; j < 128; j++) {
			obk_fr_mul(&t, &a[i], &b[j]);
			obk_fr_add(&want[i + j], &want[i + j], &t);
		}
	CHECK_INT(obk_ntt_run(&job, a, NULL), OB_ERR_NONE);
	CHECK_INT(obk_ntt_run(&job, b, NULL), OB_ERR_NONE);
	for (unsigned i = 0; i < 256; i++)
		obk_fr_mul(&a[i], &a[i], &b[i]);
	job.order = OBK_NTT_RN;
	job.direction = OBK_NTT_INVERSE;
	CHECK_INT(obk_ntt_run(&job, a, NULL), OB_ERR_NONE);
	CHECK(memcmp(a, want, sizeof want) == 0);
	free(a);
	free(b);
}

static bool count_down(void *arg)
{
	return atomic_fetch_sub_explicit((_Atomic long *)arg, 1, memory_order_relaxed) <= 0;
}

/* Both networks, with a coset and all orders, so that every loop is stopped once. */
TEST(a_transform_stops_wherever_it_is)
{
	_Atomic long left;
	struct obk_ntt_job job = { .log_n = 14, .batch = 1, .stop = { count_down, (void *)&left } };
	size_t n = (size_t)1 << job.log_n;
	struct obk_fr *a = fill(n), *b = malloc(n * sizeof(*b)), g;
	struct obk_pool *pool;

	alarm(TIMEOUT_S);
	CHECK(b != NULL);
	CHECK_INT(obk_pool_new(3, &pool), OB_ERR_NONE);
	any(&g);
	job.coset = &g;
	for (unsigned way = 0; way < 16; way++) {
		enum ob_err err = OB_ERR_CANCELLED;
		struct obk_fault fault;
		unsigned stops = 0;

		ob_opt_set(OB_OPT_NTT, way & 1);
		job.pool = way & 2 ? pool : NULL;
		job.direction = way & 4 ? OBK_NTT_INVERSE : OBK_NTT_FORWARD;
		job.order = way & 8 ? OBK_NTT_RR : OBK_NTT_NN;
		for (long after = 0; err == OB_ERR_CANCELLED;
			after = after < 2 ? after + 1 : after * 3, stops++) {
			memcpy(b, a, n * sizeof(*b));
			atomic_store_explicit(&left, after, memory_order_relaxed);
			err = obk_ntt_run(&job, b, &fault);
			CHECK(err == OB_ERR_NONE ||
				(err == OB_ERR_CANCELLED && strstr(fault.text, "stopped")));
		}
		CHECK(stops > 3);
		atomic_store_explicit(&left, 1000000, memory_order_relaxed);
		job.direction = way & 4 ? OBK_NTT_FORWARD : OBK_NTT_INVERSE;
		CHECK_INT(obk_ntt_run(&job, b, NULL), OB_ERR_NONE);
		CHECK(memcmp(a, b, n * sizeof(*b)) == 0);
	}
	ob_opt_set(OB_OPT_NTT, true);
	obk_pool_free(pool);
	free(a);
	free(b);
}

TEST(hostile)
{
	struct obk_fr x[4] = { { { 0 } } }, zero = { { 0 } };
	struct obk_fault fault;
	struct obk_ntt_job job = { .log_n = 2, .batch = 1 };

	CHECK_INT(obk_ntt_run(NULL, x, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(obk_ntt_run(&job, NULL, &fault), OB_ERR_ARGUMENT);
	job.log_n = OBK_NTT_MAX_LOG_N + 1;
	CHECK_INT(obk_ntt_run(&job, x, &fault), OB_ERR_LIMIT);
	CHECK(strstr(fault.text, "2^27") != NULL);
	job.log_n = OBK_NTT_MAX_LOG_N;
	job.batch = 2;
	CHECK_INT(obk_ntt_run(&job, x, &fault), OB_ERR_LIMIT);
	job.batch = SIZE_MAX;
	job.log_n = 2;
	CHECK_INT(obk_ntt_run(&job, x, &fault), OB_ERR_LIMIT);
	job.batch = 1;
	job.coset = &zero;
	CHECK_INT(obk_ntt_run(&job, x, &fault), OB_ERR_ARGUMENT);
	job.coset = NULL;
	job.order = 4;
	CHECK_INT(obk_ntt_run(&job, x, &fault), OB_ERR_ARGUMENT);
	job.order = 0;
	job.direction = 2;
	CHECK_INT(obk_ntt_run(&job, x, &fault), OB_ERR_ARGUMENT);
	job.direction = 0;
	job.batch = 0;
	CHECK_INT(obk_ntt_run(&job, NULL, &fault), OB_ERR_NONE);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
