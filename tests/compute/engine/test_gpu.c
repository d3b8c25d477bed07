/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * GPUs of the service with a real driver library: the software device in the suite, libcuda.so.1 on
 * a machine with a GPU. The first argument is the driver's path.
 *
 *     test_service_gpu DRIVER         results, recurrence, device memory, several devices, too
 *                                     little memory
 *     test_service_gpu DRIVER lost    prints "ready", waits for a line, and expects that the device
 *                                     has failed meanwhile: the CPU takes over
 */
#include <dlfcn.h>
#include <errno.h>

#include "outboard.h"
#include "../../test.h"

#define N     64
#define BATCH 2

static const char *driver;
static uint8_t points[N][96], scalars[BATCH][N][32];
static const uint8_t generator[48] = { 0x97, 0xf1, 0xd3, 0xa7, 0x31, 0x97, 0xd7, 0x94, 0x26, 0x95,
	0x63, 0x8c, 0x4f, 0xa9, 0xac, 0x0f, 0xc3, 0x68, 0x8c, 0x4f, 0x97, 0x74, 0xb9, 0x05, 0xa1,
	0x4e, 0x3a, 0x3f, 0x17, 0x1b, 0xac, 0x58, 0x6c, 0x55, 0xe8, 0x3f, 0xf9, 0x7a, 0x1a, 0xef,
	0xfb, 0x3a, 0xf0, 0x0a, 0xdb, 0x22, 0xc6, 0xbb };

static struct outboard *open_list(const char *devices, uint32_t no_fallback)
{
	struct outboard_options o = { .devices = devices,
		.profile = "",
		.driver = driver,
		.no_fallback = no_fallback,
		.backoff = 0.001,
		.breaker_pause = 0.2 };
	struct outboard_error error = { 0 };
	struct outboard *ob = NULL;

	if (outboard_open(&o, &ob, &error) != OUTBOARD_OK)
		fprintf(stderr, "%s\n", error.text);
	CHECK(ob != NULL);
	return ob;
}

static struct outboard_bases *upload(struct outboard *ob)
{
	struct outboard_points p = {
		.points = points, .count = N, .format = OUTBOARD_POINT_MONTGOMERY
	};
	struct outboard_bases *bases = NULL;

	CHECK_INT(outboard_bases_new(ob, &p, &bases, NULL), OUTBOARD_OK);
	return bases;
}

static int product(struct outboard_bases *bases, const void *s, uint64_t batch, uint32_t memory,
	uint8_t (*ret)[48], struct outboard_error *error)
{
	struct outboard_msm m = {
		.scalars = s, .count = N, .batch = batch, .memory = memory, .result = ret
	};

	return outboard_msm_run(bases, &m, NULL, error);
}

/* Makes points and scalars, and computes their sums on the CPU. */
static void prepare(uint8_t (*want)[48])
{
	struct outboard *ob = open_list("cpu:1", 0);
	struct outboard_points g = { .points = generator, .count = 1 };
	struct outboard_bases *bases = NULL;
	struct outboard_msm m = { .scalars = scalars,
		.count = 1,
		.batch = N,
		.result = points,
		.result_format = OUTBOARD_POINT_MONTGOMERY };
	uint64_t x = 88172645463325252u;

	alarm(200); /* for the software device on a busy machine */
	for (unsigned i = 0; i < sizeof(scalars); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		((uint8_t *)scalars)[i] = (uint8_t)(i % 32 == 31 ? x & 0x3f : x);
	}
	CHECK_INT(outboard_bases_new(ob, &g, &bases, NULL), OUTBOARD_OK);
	CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
	outboard_bases_free(bases);
	bases = upload(ob);
	CHECK_INT(product(bases, scalars, BATCH, OUTBOARD_HOST, want, NULL), OUTBOARD_OK);
	outboard_bases_free(bases);
	outboard_close(ob);
}

static struct outboard_device device_of(struct outboard *ob, unsigned i)
{
	struct outboard_device d;

	CHECK_INT(outboard_device_get(ob, i, &d), OUTBOARD_OK);
	return d;
}

TEST(products_and_transforms_equal_the_cpus)
{
	static uint8_t want[BATCH][48], have[BATCH][48], data[4][256][32], copy[4][256][32];
	struct outboard_ntt_shape shape = { .log_n = 8 };
	struct outboard_error error = { 0 };
	struct outboard *gpu, *cpu;
	struct outboard_bases *bases;
	struct outboard_device d;

	prepare(want);
	gpu = open_list("gpu:0", 1);
	cpu = open_list("cpu:1", 0);
	CHECK_INT(outboard_device_count(gpu), 1);
	bases = upload(gpu);
	for (unsigned i = 0; i < 2; i++) {
		memset(have, 0, sizeof(have));
		if (product(bases, scalars, BATCH, OUTBOARD_HOST, have, &error) != OUTBOARD_OK)
			fprintf(stderr, "%s\n", error.text);
		CHECK(memcmp(have, want, sizeof(want)) == 0);
	}
	for (unsigned i = 0; i < sizeof(data); i++)
		((uint8_t *)data)[i] = i % 32 == 31 ? 0 : ((uint8_t *)scalars)[i % sizeof(scalars)];
	memcpy(copy, data, sizeof(data));
	CHECK_INT(outboard_ntt_once(gpu, &shape, data, 4, &error), OUTBOARD_OK);
	CHECK_INT(outboard_ntt_once(cpu, &shape, copy, 4, &error), OUTBOARD_OK);
	CHECK(memcmp(copy, data, sizeof(data)) == 0);
	d = device_of(gpu, 0);
	CHECK(d.kind == OUTBOARD_GPU && d.pieces >= 2 && d.pool_requests > 0 && d.pool_reused > 0 &&
		d.pool_peak > 0 && d.link > 0);
	outboard_bases_free(bases);
	outboard_close(gpu);
	outboard_close(cpu);
}

/*
 * Returns the statistics of a fresh GPU after one product, with points given for this call (once)
 * or by a handle.
 */
static struct outboard_device taken(uint64_t table_bytes, bool once, uint8_t (*ret)[48])
{
	struct outboard *gpu = open_list("gpu:0", 1);
	struct outboard_points p = { .points = points,
		.count = N,
		.format = OUTBOARD_POINT_MONTGOMERY,
		.trust = OUTBOARD_TRUST_SUBGROUP,
		.table_bytes = table_bytes };
	struct outboard_msm m = { .scalars = scalars, .count = N, .batch = BATCH, .result = ret };
	struct outboard_bases *bases = NULL;
	struct outboard_device d;

	if (once) {
		CHECK_INT(outboard_msm_once(gpu, &p, &m, NULL), OUTBOARD_OK);
	} else {
		CHECK_INT(outboard_bases_new(gpu, &p, &bases, NULL), OUTBOARD_OK);
		CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
		outboard_bases_free(bases);
	}
	/* the device's thread frees the bases when it has finished the call */
	UNTIL(device_of(gpu, 0).pool_used == 0);
	d = device_of(gpu, 0);
	outboard_close(gpu);
	return d;
}

TEST(points_for_one_call_get_no_table)
{
	static uint8_t want[BATCH][48], have[BATCH][48];
	const uint64_t table = 10 * sizeof(points);
	struct outboard_device plain, allowed, made;

	prepare(want);
	plain = taken(0, true, have);
	CHECK(memcmp(have, want, sizeof(want)) == 0);
	allowed = taken(table, true, have);
	CHECK(memcmp(have, want, sizeof(want)) == 0);
	made = taken(table, false, have);
	CHECK(memcmp(have, want, sizeof(want)) == 0);
	CHECK(allowed.pool_peak == plain.pool_peak && allowed.pool_requests == plain.pool_requests);
	CHECK(made.pool_peak != plain.pool_peak && made.pool_requests > plain.pool_requests);
}

TEST(a_gpu_and_a_cpu_share_one_product)
{
	static uint8_t want[BATCH][48], have[BATCH][48];
	struct outboard *ob;
	struct outboard_bases *bases;

	prepare(want);
	ob = open_list("gpu:0,cpu:1", 0);
	CHECK_INT(outboard_set_strategy(ob, OUTBOARD_EQUAL), OUTBOARD_OK);
	bases = upload(ob);
	CHECK_INT(product(bases, scalars, BATCH, OUTBOARD_HOST, have, NULL), OUTBOARD_OK);
	CHECK(memcmp(have, want, sizeof(want)) == 0);
	CHECK(device_of(ob, 0).pieces > 0 && device_of(ob, 1).pieces > 0);
	CHECK(outboard_threshold(ob, 1, OUTBOARD_OP_MSM) == 1);
	outboard_bases_free(bases);
	outboard_close(ob);
}

TEST(how_products_are_done)
{
	static uint8_t want[BATCH][48], have[BATCH][48];
	struct outboard_points p = { .points = points,
		.count = N,
		.format = OUTBOARD_POINT_MONTGOMERY,
		.table_bytes = N * 96 * 8 };
	struct outboard_plan plan, later;
	struct outboard_bases *bases, *table;
	struct outboard_error error;
	struct outboard *ob;

	prepare(want);
	ob = open_list("gpu:0,cpu:1", 0);
	bases = upload(ob);
	CHECK_INT(outboard_msm_plan(bases, 0, N, BATCH, &plan, &error), OUTBOARD_OK);
	CHECK(plan.method == OUTBOARD_BUCKETS && plan.copies == 1 && plan.window >= 3 &&
		plan.group == BATCH && plan.bytes == 0 && plan.seconds > 0);
	CHECK_INT(outboard_set_strategy(ob, OUTBOARD_EQUAL), OUTBOARD_OK);
	CHECK_INT(product(bases, scalars, BATCH, OUTBOARD_HOST, have, &error), OUTBOARD_OK);
	CHECK_INT(outboard_msm_plan(bases, 0, N, BATCH, &later, &error), OUTBOARD_OK);
	CHECK(later.bytes >= N * 96 && later.window == plan.window && later.method == plan.method);
	CHECK_INT(outboard_bases_new(ob, &p, &table, NULL), OUTBOARD_OK);
	CHECK_INT(outboard_msm_plan(table, 0, 1, OUTBOARD_MAX_BATCH, &plan, &error), OUTBOARD_OK);
	CHECK(plan.method == OUTBOARD_COPIES && plan.copies > 1 && plan.copies <= 9 &&
		plan.group > 1 && plan.group <= OUTBOARD_MAX_BATCH);
	CHECK_INT(outboard_msm_plan(bases, 1, N, 1, &plan, &error), OUTBOARD_UNSUPPORTED);
	CHECK_INT(outboard_msm_plan(bases, 2, N, 1, &plan, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_msm_plan(bases, 0, N + 1, 1, &plan, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_msm_plan(bases, 0, 0, 1, &plan, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_msm_plan(bases, 0, N, OUTBOARD_MAX_BATCH + 1, &plan, &error),
		OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_msm_plan(NULL, 0, N, 1, &plan, &error), OUTBOARD_ARGUMENT);
	outboard_bases_free(table);
	outboard_bases_free(bases);
	outboard_close(ob);
}

static struct outboard_plan plan_of(struct outboard_bases *bases)
{
	struct outboard_plan plan = { 0 };

	CHECK_INT(outboard_msm_plan(bases, 0, 4, 1, &plan, NULL), OUTBOARD_OK);
	return plan;
}

/*
 * A handle of 2^14 points makes the library measure a device without a profile, if the context may
 * store the profile. The next context loads it when it is opened.
 */
static int large_upload(void)
{
	enum { LARGE = 1 << 14 };
	static uint8_t want[BATCH][48], have[48], many[LARGE][96];
	struct outboard_points p = { .points = many,
		.count = LARGE,
		.format = OUTBOARD_POINT_MONTGOMERY,
		.trust = OUTBOARD_TRUST_SUBGROUP };
	struct outboard_msm m = { .scalars = scalars, .count = 4, .result = have };
	struct outboard_options o = { .devices = "gpu:0", .driver = driver, .no_fallback = 1 };
	char folder[] = "/tmp/ob-service-XXXXXX", command[64];

	CHECK(mkdtemp(folder) != NULL);
	setenv("XDG_CACHE_HOME", folder, 1);
	prepare(want);
	for (unsigned i = 0; i < LARGE; i++)
		memcpy(many[i], points[i % N], sizeof(many[i]));
	for (unsigned round = 0; round < 3; round++) {
		struct outboard_bases *bases = NULL;
		struct outboard *ob = NULL;

		o.profile = round ? NULL : "";
		CHECK_INT(outboard_open(&o, &ob, NULL), OUTBOARD_OK);
		CHECK_INT(outboard_bases_new(ob, &p, &bases, NULL), OUTBOARD_OK);
		CHECK_INT(plan_of(bases).measured, round == 2);
		CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
		CHECK_INT(plan_of(bases).measured, round > 0);
		outboard_bases_free(bases);
		outboard_close(ob);
	}
	snprintf(command, sizeof(command), "rm %s/outboard/msm-gpu-*.profile", folder);
	CHECK_INT(system(command), 0);
	snprintf(command, sizeof(command), "rmdir %s/outboard %s", folder, folder);
	CHECK_INT(system(command), 0);
	return 0;
}

/*
 * Runs this program in a new process with these switches, because the library reads them when it is
 * loaded. Returns its exit status.
 */
static int with_switches(const char *switches, const char *what)
{
	char command[512];

	snprintf(command, sizeof(command), "OUTBOARD_OPT=%s /proc/%d/exe '%s' %s", switches,
		(int)getpid(), driver, what);
	return system(command);
}

TEST(a_large_upload_is_measured)
{
	if (!TEST_SANITIZED) /* minutes with one; test_msm_tune measures a smaller device */
		CHECK_INT(with_switches("tune", "upload"), 0);
}

typedef int alloc_fn(unsigned long long *at, size_t bytes);
typedef int copy_fn(unsigned long long to, const void *from, size_t bytes);
typedef int current_fn(void *context);
typedef int retain_fn(void **context, int device);

TEST(scalars_in_device_memory)
{
	static uint8_t want[BATCH][48], have[BATCH][48];
	void *library = dlopen(driver, RTLD_NOW), *context = NULL;
	unsigned long long at = 0;
	struct outboard_error error = { 0 };
	struct outboard *ob;
	struct outboard_bases *bases;

	CHECK(library != NULL);
	prepare(want);
	ob = open_list("cpu:1,gpu:0", 0);
	bases = upload(ob);
	CHECK_INT(((retain_fn *)dlsym(library, "cuDevicePrimaryCtxRetain"))(&context, 0), 0);
	CHECK_INT(((current_fn *)dlsym(library, "cuCtxSetCurrent"))(context), 0);
	CHECK_INT(((alloc_fn *)dlsym(library, "cuMemAlloc_v2"))(&at, sizeof(scalars)), 0);
	CHECK_INT(((copy_fn *)dlsym(library, "cuMemcpyHtoD_v2"))(at, scalars, sizeof(scalars)), 0);
	for (uint32_t strategy = OUTBOARD_AUTO; strategy <= OUTBOARD_EQUAL;
		strategy += OUTBOARD_EQUAL) {
		CHECK_INT(outboard_set_strategy(ob, strategy), OUTBOARD_OK);
		memset(have, 0, sizeof(have));
		CHECK_INT(
			product(bases, (void *)(uintptr_t)at, BATCH, OUTBOARD_ON(1), have, &error),
			OUTBOARD_OK);
		CHECK(memcmp(have, want, sizeof(want)) == 0);
	}
	CHECK(device_of(ob, 1).pieces > 0);
	CHECK_INT(product(bases, (void *)(uintptr_t)at, BATCH, OUTBOARD_ON(0), have, &error),
		OUTBOARD_ARGUMENT);
	outboard_bases_free(bases);
	outboard_close(ob);
}

static struct outboard_kzg *load_setup(struct outboard *ob)
{
	const char *path =
		getenv("OUTBOARD_TEST_SETUP") ? getenv("OUTBOARD_TEST_SETUP") : TEST_SETUP;
	struct outboard_error error = { 0 };
	struct outboard_kzg *kzg = NULL;
	int status = outboard_kzg_load_file(ob, path, NULL, &kzg, &error);

	if (status == OUTBOARD_IO)
		TEST_SKIP("%s: set OUTBOARD_TEST_SETUP", error.text);
	if (status != OUTBOARD_OK)
		fprintf(stderr, "%s\n", error.text);
	CHECK(kzg != NULL);
	return kzg;
}

/*
 * To keep the software device fast, the blobs have few elements that are not 0, and z is a root of
 * unity, at which their quotients have few such elements too.
 */
TEST(commitments_and_proofs_equal_the_cpus)
{
	enum { BLOBS = 3 };
	static uint8_t blobs[BLOBS][OUTBOARD_BLOB_BYTES], commitments[2][BLOBS][48],
		proofs[2][BLOBS][48], y[2][32], z[32];
	struct outboard_error error;
	uint64_t pieces;
	int valid = 0;

	alarm(200);
	for (unsigned b = 0; b < BLOBS; b++)
		for (unsigned i = 0; i < 8; i++)
			memset(&blobs[b][(b * 1000 + i * 77) * 32 + 1], (int)(0x5a + b * 16 + i),
				31);
	memset(blobs[2], 0, sizeof(blobs[2])); /* the polynomial 0 */
	z[31] = 1;
	if (getenv("OUTBOARD_TEST_LIBCUDA")) /* a GPU is fast for any blob */
		for (unsigned i = 0; i < sizeof(blobs[0]); i++)
			blobs[0][i] = i % 32 ? (uint8_t)(i * i >> 7) : 0;
	for (unsigned side = 0; side < 2; side++) {
		struct outboard *ob = open_list(side ? "gpu:0" : "cpu:1", 0);
		struct outboard_kzg *kzg = load_setup(ob);

		CHECK_INT(outboard_kzg_commit(
				  kzg, blobs[0], BLOBS, commitments[side][0], NULL, &error),
			OUTBOARD_OK);
		CHECK_INT(outboard_kzg_prove_blobs(kzg, blobs[2], commitments[side][2], 1,
				  proofs[side][2], NULL, &error),
			OUTBOARD_OK);
		CHECK_INT(outboard_kzg_prove(
				  kzg, blobs[1], z, proofs[side][1], y[side], NULL, &error),
			OUTBOARD_OK);
		pieces = device_of(ob, 0).pieces;
		CHECK(pieces >= 3);
		CHECK_INT(outboard_kzg_verify(kzg, commitments[side][1], z, y[side],
				  proofs[side][1], &valid, NULL, &error),
			OUTBOARD_OK);
		CHECK_INT(valid, 1);
		/* The error text for a bad blob is the same. */
		blobs[1][9 * 32] = 0xff;
		CHECK_INT(outboard_kzg_commit(
				  kzg, blobs[0], BLOBS, commitments[side][0], NULL, &error),
			OUTBOARD_ARGUMENT);
		CHECK(error.item == 4096 + 9 &&
			strcmp(error.text,
				"blob 1: element 9 of the blob is not below the field's prime r") ==
				0);
		blobs[1][9 * 32] = 0;
		memset(proofs[side][0], 0xff, 48);
		CHECK_INT(outboard_kzg_prove_blobs(
				  kzg, blobs[0], proofs[side][0], 2, proofs[side][0], NULL, &error),
			OUTBOARD_ARGUMENT);
		CHECK(error.item == 0 && strncmp(error.text, "blob 0: the commitment: ", 24) == 0);
		if (side) {
			CHECK(device_of(ob, 0).kind == OUTBOARD_GPU &&
				device_of(ob, 0).failures == 0);
			/* the verification, which always runs on the CPU */
			CHECK_INT(device_of(ob, 1).pieces, 1);
		}
		outboard_kzg_free(kzg);
		outboard_close(ob);
	}
	CHECK(memcmp(commitments[0], commitments[1], sizeof(commitments[0])) == 0);
	CHECK(memcmp(proofs[0], proofs[1], sizeof(proofs[0])) == 0 &&
		memcmp(y[0], y[1], sizeof(y[0])) == 0);
}

/*
 * More blobs than one batch has when scalars are computed ahead; with the switch -ahead, fewer than
 * one batch. All polynomials but one are constant, so their quotients are 0.
 */
TEST(blobs_of_several_batches)
{
	enum { BLOBS = 18, REAL = 17 };
	static uint8_t blobs[BLOBS][OUTBOARD_BLOB_BYTES], commitments[BLOBS][48], proofs[BLOBS][48],
		want[48];
	struct outboard *cpu, *ob;
	struct outboard_kzg *kzg;
	struct outboard_error error;

	alarm(200);
	for (unsigned b = 0; b < BLOBS; b++) {
		/*
		 * the commitment to the polynomial 0; prove_blobs accepts any point as commitment
		 */
		commitments[b][0] = 0xc0;
		for (unsigned i = 0; i < 4096; i++)
			blobs[b][32 * i + 31] = (uint8_t)b;
	}
	memset(&blobs[REAL][32 * 5 + 1], 0x77, 31);
	cpu = open_list("cpu:1", 0);
	kzg = load_setup(cpu);
	CHECK_INT(outboard_kzg_prove_blobs(
			  kzg, blobs[REAL], commitments[REAL], 1, want, NULL, &error),
		OUTBOARD_OK);
	outboard_kzg_free(kzg);
	outboard_close(cpu);
	ob = open_list("gpu:0", 0);
	kzg = load_setup(ob);
	CHECK_INT(outboard_kzg_prove_blobs(
			  kzg, blobs[0], commitments[0], BLOBS, proofs[0], NULL, &error),
		OUTBOARD_OK);
	CHECK(device_of(ob, 0).failures == 0 && device_of(ob, 0).pieces == 1);
	for (unsigned b = 0; b < BLOBS; b++)
		CHECK(memcmp(proofs[b], b == REAL ? want : commitments[b], 48) == 0);
	blobs[REAL][0] = 0xff;
	CHECK_INT(outboard_kzg_prove_blobs(
			  kzg, blobs[0], commitments[0], BLOBS, proofs[0], NULL, &error),
		OUTBOARD_ARGUMENT);
	CHECK(error.item == REAL * 4096);
	blobs[2][0] = 0xff;
	CHECK_INT(outboard_kzg_prove_blobs(
			  kzg, blobs[0], commitments[0], BLOBS, proofs[0], NULL, &error),
		OUTBOARD_ARGUMENT);
	CHECK(error.item == 2 * 4096);
	outboard_kzg_free(kzg);
	outboard_close(ob);
}

/* The device has no memory left: another device does the work, and the device remains in use. */
#define SERIES 5
#define LENGTH 90

struct gathered {
	unsigned rows, failed;
	double values[SERIES][2][2][3][64]; /* series, m, tau, eps */
};

static int gather(void *arg, const struct outboard_rqa_row *rows, uint32_t count)
{
	struct gathered *g = arg;

	for (uint32_t i = 0; i < count; i++, g->rows++) {
		double *to = g->values[rows[i].series][rows[i].m - 1][rows[i].tau - 1]
				      [(int)(rows[i].eps * 10 + 0.5) - 1];

		if (rows[i].status == OUTBOARD_OK)
			memcpy(to, rows[i].values, outboard_rqa_measure_count() * sizeof(*to));
		else
			g->failed++;
	}
	return 0;
}

/* Measures for which a device counts each combination separately, and all in one pass. */
static const char *const sweep_wants[] = { "vertical,white,times,trend", "vertical" };

/* Runs a sweep and a single analysis. */
static void recurrence_on(
	struct outboard *ob, const char *want, struct gathered *ret, double *ret_values)
{
	static double data[SERIES][LENGTH];
	struct outboard_series series[SERIES] = { 0 };
	struct outboard_series_set *set = NULL;
	struct outboard_rqa_options *options = NULL;
	uint32_t m[2] = { 1, 2 }, tau[2] = { 1, 2 }, lmin[1] = { 2 };
	double eps[3] = { 0.1, 0.2, 0.3 };
	struct outboard_rqa_grid grid = { .m = m,
		.tau = tau,
		.lmin = lmin,
		.eps = eps,
		.m_count = 2,
		.tau_count = 2,
		.lmin_count = 1,
		.eps_count = 3 };
	struct outboard_error error = { 0 };

	for (unsigned s = 0; s < SERIES; s++) {
		for (unsigned i = 0; i < LENGTH; i++)
			data[s][i] = (double)((i * (s + 3) * 7919) % 101) / 50;
		series[s] = (struct outboard_series){
			.data = data[s], .length = s == 1 ? 2 : LENGTH - 7 * s, .channels = 1
		};
	}
	memset(ret, 0, sizeof(*ret));
	CHECK_INT(outboard_series_new(ob, series, SERIES, &set, &error), OUTBOARD_OK);
	CHECK_INT(outboard_rqa_options_new(NULL, &options, &error), OUTBOARD_OK);
	CHECK_INT(outboard_rqa_options_set(options, "want", want, &error), OUTBOARD_OK);
	if (outboard_rqa_sweep(set, options, &grid, gather, ret, NULL, &error) != OUTBOARD_OK)
		fprintf(stderr, "%s\n", error.text);
	CHECK_INT(error.status, OUTBOARD_OK);
	CHECK_INT(outboard_rqa_options_set(options, "want", "vertical,white,times,trend", &error),
		OUTBOARD_OK);
	CHECK_INT(outboard_rqa_options_set(options, "kind", "cross", &error), OUTBOARD_OK);
	CHECK_INT(outboard_rqa_run(set, 0, 3, options, ret_values, NULL, &error), OUTBOARD_OK);
	outboard_rqa_options_free(options);
	outboard_series_free(set);
}

/* Does the same on the devices of a list. Returns the number of pieces that GPUs did. */
static uint64_t recurrence(
	const char *devices, const char *want, struct gathered *ret, double *ret_values)
{
	struct outboard *ob = open_list(devices, 1);
	uint64_t pieces = 0;

	recurrence_on(ob, want, ret, ret_values);
	for (unsigned i = 0; i < outboard_device_count(ob); i++)
		pieces += device_of(ob, i).kind == OUTBOARD_GPU ? device_of(ob, i).pieces : 0;
	outboard_close(ob);
	return pieces;
}

TEST(recurrence_equals_the_cpus)
{
	static struct gathered cpu, gpu;
	double values[2][64] = { { 0 } };

	alarm(200);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(recurrence("cpu:1", sweep_wants[i], &cpu, values[0]), 0);
		CHECK(recurrence("gpu:0", sweep_wants[i], &gpu, values[1]) >= 2);
		CHECK_INT(gpu.rows, SERIES * 12);
		CHECK_INT(gpu.failed, cpu.failed);
		CHECK(cpu.failed > 0 && cpu.failed < cpu.rows);
		CHECK(memcmp(cpu.values, gpu.values, sizeof(cpu.values)) == 0);
		CHECK(memcmp(values[0], values[1], sizeof(values[0])) == 0);
		recurrence("gpu:0,cpu:1", sweep_wants[i], &gpu, values[1]);
		CHECK_INT(gpu.rows, SERIES * 12);
		CHECK(memcmp(cpu.values, gpu.values, sizeof(cpu.values)) == 0);
	}
}

static void fill_up(alloc_fn *alloc)
{
	unsigned long long at;

	for (size_t bytes = 1 << 20; bytes >= 256; bytes /= 2)
		while (alloc(&at, bytes) == 0)
			;
}

TEST(too_little_memory_goes_to_the_cpu)
{
	static uint8_t want[BATCH][48], have[BATCH][48];
	static struct gathered cpu, gpu;
	double values[2][64] = { { 0 } };
	void *library, *context = NULL;
	struct outboard *ob;
	struct outboard_bases *bases;
	alloc_fn *alloc;

	setenv("OUTBOARD_SOFT_MEMORY", "16M", 1);
	prepare(want);
	ob = open_list("gpu:0", 0);
	if (!strstr(device_of(ob, 0).what, "software device")) {
		outboard_close(ob);
		TEST_SKIP("a card has too much memory");
	}
	library = dlopen(driver, RTLD_NOW);
	CHECK(library != NULL);
	alloc = (alloc_fn *)dlsym(library, "cuMemAlloc_v2");
	CHECK_INT(((retain_fn *)dlsym(library, "cuDevicePrimaryCtxRetain"))(&context, 0), 0);
	CHECK_INT(((current_fn *)dlsym(library, "cuCtxSetCurrent"))(context), 0);
	fill_up(alloc);
	bases = upload(ob);
	CHECK_INT(product(bases, scalars, BATCH, OUTBOARD_HOST, have, NULL), OUTBOARD_OK);
	CHECK(memcmp(have, want, sizeof(want)) == 0);
	CHECK(device_of(ob, 0).failures > 0 && device_of(ob, 0).opened == 0 &&
		device_of(ob, 1).pieces > 0);
	for (unsigned i = 0; i < 2; i++) {
		recurrence("cpu:1", sweep_wants[i], &cpu, values[0]);
		/* fill up again, because the device freed its pooled memory when it ran short */
		fill_up(alloc);
		recurrence_on(ob, sweep_wants[i], &gpu, values[1]);
		CHECK(memcmp(&cpu, &gpu, sizeof(cpu)) == 0 &&
			memcmp(values[0], values[1], sizeof(values[0])) == 0);
	}
	CHECK(device_of(ob, 0).opened == 0);
	outboard_bases_free(bases);
	outboard_close(ob);
}

static int lost(void)
{
	static uint8_t want[BATCH][48], have[BATCH][48];
	static struct gathered rows[2], again;
	struct outboard_error error = { 0 };
	double values[2][64] = { { 0 } };
	/* a context for each kind of sweep, because the first failure opens a context's breaker */
	struct outboard *obs[2], *ob;
	struct outboard_bases *bases;
	char line[16];

	prepare(want);
	for (unsigned i = 0; i < 2; i++) {
		obs[i] = open_list("gpu:0", 0);
		recurrence_on(obs[i], sweep_wants[i], &rows[i], values[0]);
		CHECK(device_of(obs[i], 0).pieces >= 2 && device_of(obs[i], 1).pieces == 0);
	}
	ob = obs[1];
	bases = upload(ob);
	if (product(bases, scalars, BATCH, OUTBOARD_HOST, have, &error) != OUTBOARD_OK)
		fprintf(stderr, "%s\n", error.text);
	CHECK(memcmp(have, want, sizeof(want)) == 0 && device_of(ob, 0).pieces > 0 &&
		device_of(ob, 1).fallback_only);
	printf("ready\n");
	fflush(stdout);
	CHECK(fgets(line, sizeof(line), stdin) != NULL);
	for (unsigned i = 0; i < 2; i++) {
		recurrence_on(obs[i], sweep_wants[i], &again, values[1]);
		CHECK(memcmp(&rows[i], &again, sizeof(again)) == 0 &&
			memcmp(values[0], values[1], sizeof(values[0])) == 0);
		CHECK(device_of(obs[i], 0).failures > 0 && device_of(obs[i], 1).pieces >= 2);
	}
	outboard_close(obs[0]);
	for (unsigned i = 0; i < 3; i++) {
		memset(have, 0, sizeof(have));
		if (product(bases, scalars, BATCH, OUTBOARD_HOST, have, &error) != OUTBOARD_OK)
			fprintf(stderr, "%s\n", error.text);
		CHECK(memcmp(have, want, sizeof(want)) == 0);
	}
	CHECK(device_of(ob, 0).failures > 0 && device_of(ob, 0).opened > 0 &&
		device_of(ob, 1).pieces > 0);
	printf("failures %llu, done by the CPU %llu\n",
		(unsigned long long)device_of(ob, 0).failures,
		(unsigned long long)device_of(ob, 1).pieces);
	outboard_bases_free(bases);
	outboard_close(ob);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return TEST_SKIP_EXIT;
	driver = argv[1];
	if (argc > 2)
		return strcmp(argv[2], "upload") == 0 ? large_upload() : lost();
	if (getenv("OUTBOARD_TEST_LIBCUDA")) {
		driver = getenv("OUTBOARD_TEST_LIBCUDA");
		test_fds_allowed = 4096;
	}
	return test_main(1, argv);
}
