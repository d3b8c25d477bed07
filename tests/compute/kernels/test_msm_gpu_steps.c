/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Cost of adversarial scalars on a GPU, in instructions counted by the software device: those of
 * the longest warp of every launch, which a hot bucket would make long, and those of all threads.
 *     test_kernels_msm_gpu_steps DRIVER     DRIVER is the software device with its counters
 *                                           (counted.c)
 */
#include <dlfcn.h>

#include "compute/msm/gpu.h"
#include "compute/msm/msm.h"
#include "tests/compute/kernels/counted.h"
#include "tests/test.h"

#define N      320
#define WINDOW 7

/* Largest allowed ratio to the count for random scalars: of the longest warps, of all threads. */
#define LONGEST 2.0
#define ALL     1.1

static const char *driver_path;
static struct obk_fault fault;
static struct obk_gpu *gpu;
static struct obk_g1_affine points[N];
static uint64_t scalars[N][4];

static uint64_t random64(void)
{
	static uint64_t state = 41;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1d;
}

static void make_points(void)
{
	static struct obk_g1 sum[N];
	static struct obk_fp scratch[2 * N];

	obk_g1_from_affine(&sum[0], &obk_g1_generator);
	for (unsigned i = 1; i < N; i++)
		obk_g1_add_affine(&sum[i], &sum[i - 1], &obk_g1_generator);
	obk_g1_to_affine_batch(points, sum, N, scratch);
}

enum { RANDOM, EQUAL, HOT, ZEROES, ONES, LARGEST, SHAPES };
static const char *const names[SHAPES] = { "random", "all equal", "one hot bucket", "zeroes",
	"ones", "r - 1" };

/* HOT: random scalars, but three of four have the same digit in one window in the middle. */
static void make_scalars(unsigned shape)
{
	uint64_t equal[4] = { 0x123456789abcdef1, 0x8877665544332211, 0x7f7f7f7f7f7f7f7f,
		0x3132333435363738 },
		 one[4] = { 1 }, largest[4];

	memcpy(largest, obk_fr_modulus.l, sizeof(largest));
	largest[0]--;
	for (unsigned i = 0; i < N; i++) {
		const uint64_t *k = shape == EQUAL ? equal : shape == ONES ? one : largest;

		memset(scalars[i], 0, sizeof(scalars[i]));
		if (shape == RANDOM || shape == HOT)
			for (unsigned j = 0; j < 4; j++)
				scalars[i][j] = random64() >> (j == 3 ? 2 : 0);
		else if (shape != ZEROES)
			memcpy(scalars[i], k, sizeof(scalars[i]));
		if (shape == HOT && i % 4)
			scalars[i][1] = (scalars[i][1] & ~(uint64_t)0xffff) | 0x2a55;
	}
}

struct cost {
	uint64_t longest, all;
};

static struct cost cost_of(unsigned shape, size_t table_bytes, const struct counted *counted)
{
	struct obk_msm_bases_args args = { .points = points,
		.count = table_bytes ? N / 32 : N,
		.trust = OBK_TRUST_SUBGROUP,
		.table_bytes = table_bytes };
	struct obk_msm_job job = {
		.count = args.count, .scalars = scalars, .batch = 1, .window = WINDOW
	};
	static struct obk_msm_gpu_bases *bases[2];
	struct obk_msm_gpu_bases **held = &bases[table_bytes != 0];
	struct obk_g1_affine have, want;
	struct cost before, cost;

	if (!*held)
		CHECK_INT(obk_msm_gpu_bases_new(gpu, &args, held, &fault), OB_ERR_NONE);
	make_scalars(shape);
	before = (struct cost){ counted->longest(), counted->all() };
	CHECK_INT(obk_msm_gpu_run(*held, &job, 0, &have, &fault), OB_ERR_NONE);
	cost = (struct cost){ counted->longest() - before.longest, counted->all() - before.all };
	args.table_bytes = 0;
	CHECK_INT(obk_msm_once(&args, &job, &want, &fault), OB_ERR_NONE);
	CHECK(obk_g1_affine_equal(&have, &want));
	return cost;
}

static void check_costs(size_t table_bytes)
{
	const struct obk_gpu_driver *driver;
	struct counted counted;
	struct cost random = { 0 };
	void *library;

	alarm(200); /* for the software device on a busy machine */
	CHECK_INT(obk_gpu_driver_open(driver_path, &driver, &fault), OB_ERR_NONE);
	library = dlopen(driver_path, RTLD_NOW | RTLD_NOLOAD);
	CHECK(library != NULL);
	*(void **)&counted.longest = dlsym(library, "counted_longest");
	*(void **)&counted.all = dlsym(library, "counted_all");
	CHECK(counted.longest && counted.all);
	CHECK_INT(obk_gpu_open(driver, 0, &gpu, &fault), OB_ERR_NONE);
	make_points();
	for (unsigned shape = 0; shape < SHAPES; shape++) {
		struct cost cost = cost_of(shape, table_bytes, &counted);
		double longest, all;

		random = shape == RANDOM ? cost : random;
		longest = (double)cost.longest / (double)random.longest;
		all = (double)cost.all / (double)random.all;
		printf("%-15s longest warps %9llu %.2f, all lanes %11llu %.2f\n", names[shape],
			(unsigned long long)cost.longest, longest, (unsigned long long)cost.all,
			all);
		CHECK(random.longest > 10000 && random.all > 1000000);
		CHECK(longest < LONGEST && all < ALL);
	}
	obk_gpu_close(gpu);
}

TEST(by_buckets)
{
	check_costs(0);
}

TEST(by_multiples)
{
	check_costs((size_t)N / 32 * 64 * 8 * sizeof(points[0]));
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return TEST_SKIP_EXIT;
	driver_path = argv[1];
	return test_main(argc - 1, argv + 1);
}
