/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tuning of products on a GPU: the model of times, choices, profiles, and measuring a device.
 *     test_kernels_msm_tune DRIVER     DRIVER is the software device's library;
 *                                      OUTBOARD_TEST_LIBCUDA overrides it
 */
#include <math.h>
#include <sys/stat.h>

#include "base/opt.h"
#include "compute/gpu/gpu_inside.h"
#include "compute/msm/gpu.h"
#include "compute/msm/gpu_predict.h"
#include "compute/msm/gpu_measure.h"
#include "compute/msm/gpu_tune.h"
#include "compute/msm/msm.h"
#include "tests/test.h"

static struct obk_fault fault;

/* Returns the guess for a GPU of which only this is known. */
static struct obk_msm_gpu_tuning guess_of(unsigned processors, unsigned clock_khz)
{
	struct obk_gpu_info info = { .processors = processors, .clock_khz = clock_khz };
	struct obk_msm_gpu_tuning t;

	obk_msm_gpu_guess(&info, &t);
	return t;
}

static struct obk_msm_gpu_work work_of(size_t n, size_t products, unsigned window, bool multiples)
{
	return (struct obk_msm_gpu_work){ .n = n,
		.products = products,
		.multiples = multiples,
		.plan = multiples ? obk_msm_gpu_multiples_plan(window)
				  : obk_plan_shape(window, 255, 1) };
}

/*
 * Makes samples of many shapes with the times of a device with weights `true_`, alternately too
 * long and too short by the share `off`.
 */
static size_t make_samples(
	const struct obk_msm_gpu_tuning *true_, double off, struct obk_msm_gpu_sample samples[32])
{
	static const struct {
		size_t n, products;
		unsigned window;
		bool multiples;
	} shape[] = {
		{ 16, 1, 4, false },
		{ 64, 1, 9, false },
		{ 64, 1, 4, true },
		{ 1024, 1, 8, false },
		{ 4096, 1, 8, false },
		{ 4096, 1, 14, false },
		{ 4096, 16, 12, false },
		{ 64, 4096, 4, true },
		{ 4096, 64, 16, false },
		{ 1024, 64, 6, false },
		{ 4096, 64, 12, false },
		{ 256, 256, 8, true },
	};
	size_t count = sizeof(shape) / sizeof(shape[0]);

	for (size_t i = 0; i < count; i++) {
		samples[i].work =
			work_of(shape[i].n, shape[i].products, shape[i].window, shape[i].multiples);
		samples[i].seconds =
			obk_msm_gpu_seconds(true_, &samples[i].work) * (i % 2 ? 1 + off : 1 - off);
	}
	return count;
}

static const unsigned basics =
	1u << OBK_MSM_TRIP | 1u << OBK_MSM_LAUNCH | 1u << OBK_MSM_BYTE | 1u << OBK_MSM_ROW;

TEST(weights_are_found_again)
{
	static const double by[OBK_MSM_WEIGHTS] = { 3, 2, 0.5, 1.7, 0.9, 4, 2.5, 1.5 };
	struct obk_msm_gpu_tuning guess = guess_of(132, 1980000), true_ = guess, fitted = guess;
	struct obk_msm_gpu_sample samples[32];

	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		true_.weights.of[i] *= by[i];
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		fitted.weights.of[i] = basics >> i & 1 ? true_.weights.of[i] : guess.weights.of[i];
	obk_msm_gpu_fit(&fitted, basics, samples, make_samples(&true_, 0, samples));
	CHECK(fitted.measured);
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++) {
		double ratio = fitted.weights.of[i] / true_.weights.of[i];

		if (!(fabs(ratio - 1) < 0.05))
			printf("%s: %g of what it is\n", obk_msm_gpu_weight_names[i], ratio);
		CHECK(fabs(ratio - 1) < 0.05);
	}
}

/* Samples with errors of 1/20 predict the times of other shapes within 1/6. */
TEST(noise_is_borne)
{
	struct obk_msm_gpu_tuning true_ = guess_of(108, 1410000), fitted = guess_of(108, 1410000);
	struct obk_msm_gpu_sample samples[32];

	true_.weights.of[OBK_MSM_ENTRY] *= 3;
	true_.weights.of[OBK_MSM_GATHER] *= 2;
	true_.weights.of[OBK_MSM_BUCKET] *= 0.5;
	obk_msm_gpu_fit(&fitted, basics, samples, make_samples(&true_, 0.05, samples));
	for (unsigned log = 8; log <= 20; log += 4) {
		struct obk_msm_gpu_work w = work_of((size_t)1 << log, 1, log < 14 ? 9 : 15, false);
		double ratio = obk_msm_gpu_seconds(&fitted, &w) / obk_msm_gpu_seconds(&true_, &w);

		if (!(fabs(ratio - 1) < 1.0 / 6))
			printf("2^%u: %g of what it takes\n", log, ratio);
		CHECK(fabs(ratio - 1) < 1.0 / 6);
	}
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		CHECK(fitted.weights.of[i] > 0);
}

TEST(one_sample_tells_the_pace)
{
	struct obk_msm_gpu_tuning guess = guess_of(8, 1000000), slow = guess;
	struct obk_msm_gpu_sample sample = { .work = work_of(16, 1, 4, false) };
	double ratio;

	sample.seconds = 100 * obk_msm_gpu_seconds(&guess, &sample.work);
	obk_msm_gpu_fit(&slow, basics, &sample, 1);
	CHECK(fabs(obk_msm_gpu_seconds(&slow, &sample.work) / sample.seconds - 1) < 0.01);
	/* the weights change in proportion */
	ratio = slow.weights.of[OBK_MSM_ENTRY] / guess.weights.of[OBK_MSM_ENTRY];
	CHECK(ratio > 50);
	CHECK(fabs(slow.weights.of[OBK_MSM_GATHER] / guess.weights.of[OBK_MSM_GATHER] / ratio - 1) <
		0.2);
	CHECK(fabs(slow.weights.of[OBK_MSM_BUCKET] / guess.weights.of[OBK_MSM_BUCKET] / ratio - 1) <
		0.2);
	CHECK(slow.weights.of[OBK_MSM_TRIP] == guess.weights.of[OBK_MSM_TRIP]);
	/* without samples nothing is measured */
	slow = guess;
	obk_msm_gpu_fit(&slow, basics, &sample, 0);
	CHECK(!slow.measured && memcmp(&slow, &guess, sizeof(slow)) == 0);
}

TEST(choices)
{
	static const struct {
		unsigned processors, clock;
	} cards[] = { { 108, 1410000 }, { 132, 1980000 }, { 170, 2407000 }, { 16, 0 } };

	for (unsigned i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
		struct obk_msm_gpu_tuning t = guess_of(cards[i].processors, cards[i].clock);
		unsigned last = 0;

		for (unsigned log = 0; log <= 26; log++) {
			size_t n = (size_t)1 << log;
			struct obk_msm_gpu_choice c, less = { .seconds = INFINITY };
			struct obk_plan plan;

			obk_msm_gpu_plan(&t, &plan, 1, 0, true, n, 1);
			/* more points never give a smaller window */
			CHECK(plan.window >= last && plan.window <= OBK_MSM_GPU_MAX_WINDOW);
			last = plan.window;
			for (unsigned mib = 0; mib <= 18; mib++) {
				size_t table = mib ? (size_t)1 << (18 + mib) : 0;

				obk_msm_gpu_choose(&t, n, true, table, &c);
				CHECK(c.bytes <= table + n * 96);
				CHECK(c.seconds <= less.seconds);
				CHECK(c.multiples ? c.bytes <= table &&
							n <= OBK_MSM_GPU_MULTIPLES_MAX_POINTS
						  : c.copies >= 1 && c.bytes == c.copies * n * 96);
				less = c;
			}
			/* points that may be outside G1 */
			obk_msm_gpu_choose(&t, n, false, (size_t)1 << 36, &c);
			CHECK(!c.multiples);
		}
	}
}

/*
 * Products computed together: the whole batch if it fits, else groups that are as equal as
 * possible.
 */
TEST(groups)
{
	struct obk_msm_gpu_tuning t = guess_of(132, 1980000);

	CHECK_INT(obk_msm_gpu_group(&t, 4096, 20, 100), 100);
	t.group = 4096 * 20 * 16;
	/* seven almost equal groups, not six of 16 and one of 4 */
	CHECK_INT(obk_msm_gpu_group(&t, 4096, 20, 100), 15);
	CHECK_INT(obk_msm_gpu_group(&t, 4096, 20, 16), 16);
	CHECK_INT(obk_msm_gpu_group(&t, 4096, 20, 17), 9);
	CHECK_INT(obk_msm_gpu_group(&t, (size_t)1 << 24, 20, 3), 1);
	CHECK_INT(obk_msm_gpu_group(&t, 1, 1, 65536), 16384);
}

TEST(timed_windows_come_first)
{
	struct obk_msm_gpu_tuning t = guess_of(132, 1980000);
	struct obk_plan plan;

	t.window[12] = 11;
	obk_msm_gpu_plan(&t, &plan, 1, 0, true, 4096, 1);
	CHECK_INT(plan.window, 11);
	obk_msm_gpu_plan(&t, &plan, 1, 5, true, 4096, 1);
	CHECK_INT(plan.window, 5);
	obk_msm_gpu_plan(&t, &plan, 20, 13, true, 4096, 1);
	CHECK_INT(plan.window, 13);
}

/* ---- profiles ---- */

static char folder[] = "/tmp/ob-tune-XXXXXX";

static struct obk_gpu fake_gpu(
	const struct obk_gpu_driver *driver, unsigned ordinal, const char *name)
{
	struct obk_gpu gpu = { .driver = driver,
		.info = {
			.ordinal = ordinal, .major = 9, .processors = 132, .clock_khz = 1980000 } };

	snprintf(gpu.info.name, sizeof(gpu.info.name), "%s", name);
	return gpu;
}

static void own_cache(void)
{
	ob_opt_set(OB_OPT_TUNE, true); /* even if the suite runs with all switches off */
	CHECK(mkdtemp(folder) != NULL);
	setenv("XDG_CACHE_HOME", folder, 1);
}

static void drop_cache(const struct obk_gpu *a, const struct obk_gpu *b)
{
	char path[OBK_PROFILE_MAX_PATH];

	for (unsigned i = 0; i < 2; i++)
		if (obk_msm_gpu_tune_path(i ? b : a, path, sizeof(path)))
			unlink(path);
	snprintf(path, sizeof(path), "%s/outboard", folder);
	CHECK_INT(rmdir(path), 0); /* fails if other files remain */
	CHECK_INT(rmdir(folder), 0);
}

static bool guessed(const struct obk_gpu *gpu)
{
	struct obk_msm_gpu_tuning t;

	obk_msm_gpu_tuning_get(gpu, &t);
	return !t.measured;
}

TEST(profiles_come_back)
{
	static struct obk_gpu_driver driver = { .version = 13000 }, newer = { .version = 13010 },
				     far = { .version = 13000, .link = 1 };
	struct obk_gpu a = fake_gpu(&driver, 0, "One card"),
		       twin = fake_gpu(&driver, 1, "One card"),
		       b = fake_gpu(&driver, 2, "Another card"),
		       other = fake_gpu(&newer, 0, "One card"),
		       remote = fake_gpu(&far, 0, "One card");
	struct obk_msm_gpu_tuning ta = guess_of(132, 1980000), tb = ta, back;
	char path[OBK_PROFILE_MAX_PATH], path_b[OBK_PROFILE_MAX_PATH];

	own_cache();
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		ta.weights.of[i] = 1.5e-9 * (i + 1);
	ta.measured = tb.measured = true;
	ta.group = 12345678;
	ta.window[14] = 12;
	tb.window[14] = 9;
	CHECK_INT(obk_msm_gpu_tuning_set(&a, &ta, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_tune_store(&a, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_tuning_set(&b, &tb, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_tune_store(&b, &fault), OB_ERR_NONE);
	CHECK(obk_msm_gpu_tune_path(&a, path, sizeof(path)) &&
		obk_msm_gpu_tune_path(&b, path_b, sizeof(path_b)) && strcmp(path, path_b) != 0);
	obk_msm_gpu_tune_clear();
	CHECK(guessed(&a) && guessed(&b));
	CHECK_INT(obk_msm_gpu_tune_load(&a, &fault), OB_ERR_NONE);
	CHECK(!guessed(&a) && guessed(&b) && !guessed(&twin));
	obk_msm_gpu_tuning_get(&a, &back);
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		CHECK(fabs(back.weights.of[i] / ta.weights.of[i] - 1) < 1e-5);
	CHECK(back.group == ta.group && back.threads == ta.threads &&
		memcmp(back.window, ta.window, sizeof(ta.window)) == 0);
	/*
	 * a second GPU of the same model uses this profile; one of another model or driver, or
	 * behind a server, does not
	 */
	CHECK_INT(obk_msm_gpu_tune_load(&twin, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_tune_load(&b, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_tune_load(&other, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_tune_load(&remote, &fault), OB_ERR_NONE);
	obk_msm_gpu_tuning_get(&twin, &back);
	CHECK_INT(back.window[14], 12);
	obk_msm_gpu_tuning_get(&b, &back);
	CHECK_INT(back.window[14], 9);
	CHECK(guessed(&other) && guessed(&remote));
	/* the switch `tune` off */
	ob_opt_set(OB_OPT_TUNE, false);
	CHECK(guessed(&a));
	obk_msm_gpu_tune_clear();
	CHECK_INT(obk_msm_gpu_tune_load(&a, &fault), OB_ERR_NONE);
	ob_opt_set(OB_OPT_TUNE, true);
	CHECK(guessed(&a));
	drop_cache(&a, &b);
}

/*
 * Storing weights keeps the windows and vice versa. Only one thread at a time measures a model of
 * GPU.
 */
TEST(two_cards_of_a_kind)
{
	static struct obk_gpu_driver driver = { .version = 13000 };
	struct obk_gpu a = fake_gpu(&driver, 0, "One card"),
		       twin = fake_gpu(&driver, 1, "One card"),
		       b = fake_gpu(&driver, 2, "Another card");
	struct obk_msm_gpu_tuning t = guess_of(132, 1980000), back;

	ob_opt_set(OB_OPT_TUNE, true);
	obk_msm_gpu_tuning_set_window(&a, 14, 11);
	CHECK(guessed(&a)); /* a window without weights is not a profile */
	t.measured = true;
	CHECK_INT(obk_msm_gpu_tuning_set_weights(&a, &t, &fault), OB_ERR_NONE);
	obk_msm_gpu_tuning_set_window(&a, 14, 11);
	obk_msm_gpu_tuning_set_window(&twin, 16, 13);
	t.weights.of[OBK_MSM_ENTRY] *= 2;
	CHECK_INT(obk_msm_gpu_tuning_set_weights(&twin, &t, &fault), OB_ERR_NONE);
	obk_msm_gpu_tuning_get(&a, &back);
	CHECK(back.window[14] == 11 && back.window[16] == 13 &&
		back.weights.of[OBK_MSM_ENTRY] == t.weights.of[OBK_MSM_ENTRY]);
	CHECK(guessed(&b));
	CHECK(obk_msm_gpu_tune_begin(&a));
	CHECK(!obk_msm_gpu_tune_begin(&a) && !obk_msm_gpu_tune_begin(&twin));
	CHECK(obk_msm_gpu_tune_begin(&b));
	obk_msm_gpu_tune_end(&a);
	CHECK(obk_msm_gpu_tune_begin(&twin));
}

static void write_text(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "wb");

	CHECK(f && fwrite(text, 1, n, f) == n);
	fclose(f);
}

/* A profile with any byte changed, or cut short, is not used. */
TEST(damaged_profiles_are_not_taken)
{
	static struct obk_gpu_driver driver = { .version = 13000 };
	struct obk_gpu a = fake_gpu(&driver, 0, "One card"),
		       b = fake_gpu(&driver, 1, "Another card");
	struct obk_msm_gpu_tuning t = guess_of(132, 1980000);
	char path[OBK_PROFILE_MAX_PATH], path_b[OBK_PROFILE_MAX_PATH],
		text[OBK_PROFILE_MAX_BYTES + 1];
	unsigned told = 0;
	size_t n;
	FILE *f;

	own_cache();
	t.measured = true;
	CHECK_INT(obk_msm_gpu_tuning_set(&a, &t, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_tune_store(&a, &fault), OB_ERR_NONE);
	CHECK(obk_msm_gpu_tune_path(&a, path, sizeof(path)) &&
		obk_msm_gpu_tune_path(&b, path_b, sizeof(path_b)));
	f = fopen(path, "rb");
	CHECK(f != NULL);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	CHECK(n > 100 && n < sizeof(text));
	for (size_t i = 0; i + 1 < n; i++) {
		char saved = text[i];

		obk_msm_gpu_tune_clear();
		text[i] = text[i] == '7' ? '8' : '7';
		write_text(path, text, n);
		text[i] = saved;
		if (obk_msm_gpu_tune_load(&a, &fault) == OB_ERR_ARGUMENT) {
			told++;
			CHECK(strstr(fault.text, "damaged") &&
				strstr(fault.text, "outboard msm calibrate"));
		}
		CHECK(guessed(&a));
	}
	CHECK(told > n / 2);
	for (size_t i = 0; i + 20 < n; i += 13) {
		write_text(path, text, i);
		CHECK_INT(obk_msm_gpu_tune_load(&a, &fault), OB_ERR_ARGUMENT);
	}
	/* the profile of another GPU under this name */
	write_text(path_b, text, n);
	CHECK_INT(obk_msm_gpu_tune_load(&b, &fault), OB_ERR_NONE);
	CHECK(guessed(&b));
	drop_cache(&a, &b);
}

TEST(no_place_for_a_profile)
{
	static struct obk_gpu_driver driver = { .version = 13000 };
	struct obk_gpu a = fake_gpu(&driver, 0, "One card");
	struct obk_msm_gpu_tuning t = guess_of(132, 1980000);

	ob_opt_set(OB_OPT_TUNE, true);
	setenv("XDG_CACHE_HOME", "/dev/null/there", 1);
	t.measured = true;
	CHECK_INT(obk_msm_gpu_tuning_set(&a, &t, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_tune_store(&a, &fault), OB_ERR_IO);
	CHECK_INT(obk_msm_gpu_tune_load(&a, &fault), OB_ERR_NONE);
	CHECK(!guessed(&a));
}

/* ---- a device ---- */

#define POINTS 6

static struct obk_gpu *open_device(void)
{
	const struct obk_gpu_driver *driver;
	struct obk_gpu *gpu;

	alarm(200); /* for the software device on a busy machine */
	if (obk_gpu_driver_open(getenv("OUTBOARD_TEST_LIBCUDA"), &driver, &fault))
		TEST_SKIP("%s", fault.text);
	CHECK_INT(obk_gpu_open(driver, 0, &gpu, &fault), OB_ERR_NONE);
	return gpu;
}

static void make_points(struct obk_g1_affine points[POINTS], uint64_t scalars[POINTS][4])
{
	struct obk_fp scratch[2 * POINTS];
	struct obk_g1 sums[POINTS];

	obk_g1_from_affine(&sums[0], &obk_g1_generator);
	obk_g1_double(&sums[0], &sums[0]);
	for (unsigned i = 1; i < POINTS; i++)
		obk_g1_add_affine(&sums[i], &sums[i - 1], &obk_g1_generator);
	obk_g1_to_affine_batch(points, sums, POINTS, scratch);
	for (unsigned i = 0; i < POINTS; i++)
		for (unsigned j = 0; j < 4; j++)
			scalars[i][j] = 0x9e3779b97f4a7c15u * (4 * i + j + 1);
}

/* A batch in groups of the size in the profile has the same sums as in one group. */
static void check_groups(struct obk_gpu *gpu, const struct obk_msm_gpu_bases *bases,
	const struct obk_msm_bases_args *args, const uint64_t scalars[POINTS][4])
{
	enum { BATCH = 3 };
	struct obk_g1_affine want[BATCH], have[BATCH];
	uint64_t all[BATCH][POINTS][4];
	struct obk_msm_job job = { .count = POINTS, .scalars = all, .batch = BATCH };
	struct obk_msm_gpu_tuning t;
	struct obk_msm_gpu_prediction prediction;

	for (unsigned i = 0; i < BATCH * POINTS; i++)
		memcpy(all[i / POINTS][i % POINTS], scalars[(i + i / POINTS) % POINTS],
			sizeof(scalars[0]));
	CHECK_INT(obk_msm_once(args, &job, want, &fault), OB_ERR_NONE);
	obk_msm_gpu_guess(obk_gpu_info(gpu), &t);
	t.measured = true;
	/* room for two products with windows of three bits, for more with wider ones */
	t.group = 2 * POINTS * 85;
	CHECK_INT(obk_msm_gpu_tuning_set(gpu, &t, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_predict(bases, POINTS, BATCH, &prediction, &fault), OB_ERR_NONE);
	CHECK_INT(prediction.products, 2);
	CHECK_INT(obk_msm_gpu_run(bases, &job, 0, have, &fault), OB_ERR_NONE);
	for (unsigned i = 0; i < BATCH; i++)
		CHECK(obk_g1_affine_equal(&have[i], &want[i]));
}

/* Measures the device briefly and times windows; the sums remain the same. */
TEST(a_device_is_measured)
{
	struct obk_gpu *gpu;
	struct obk_g1_affine points[POINTS], want, have;
	uint64_t scalars[POINTS][4];
	struct obk_msm_bases_args args = {
		.points = points, .count = POINTS, .trust = OBK_TRUST_SUBGROUP
	};
	struct obk_msm_job job = { .count = POINTS, .scalars = scalars, .batch = 1 };
	struct obk_msm_gpu_tuning t, guess;
	struct obk_msm_gpu_bases *bases;
	struct obk_msm_gpu_prediction prediction;
	bool done;

	setenv("OUTBOARD_SOFT_SMS", "1", 1);
	gpu = open_device();
	ob_opt_set(OB_OPT_TUNE, true);
	make_points(points, scalars);
	CHECK_INT(obk_msm_once(&args, &job, &want, &fault), OB_ERR_NONE);
	CHECK_INT(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault), OB_ERR_NONE);
	/* windows are not timed on a device that was not measured */
	CHECK_INT(obk_msm_gpu_tune_window(bases, POINTS, NULL, 1e6, false, &done, &fault),
		OB_ERR_NONE);
	CHECK(!done && guessed(gpu));
	CHECK_INT(obk_msm_gpu_tune_measure(gpu, NULL, 0.02, &fault), OB_ERR_NONE);
	obk_msm_gpu_tuning_get(gpu, &t);
	obk_msm_gpu_guess(obk_gpu_info(gpu), &guess);
	CHECK(t.measured && t.threads == guess.threads);
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		CHECK(t.weights.of[i] > 0 && t.weights.of[i] < 1);
	if (TEST_SANITIZED) { /* the rest runs dozens of products, as test_msm_gpu does */
		obk_msm_gpu_bases_free(bases);
		obk_gpu_close(gpu);
		return;
	}
	/* by the measured weights it would exceed the time limit */
	CHECK_INT(obk_msm_gpu_tune_window(bases, POINTS, NULL, 1e-9, false, &done, &fault),
		OB_ERR_NONE);
	CHECK(!done);
	CHECK_INT(obk_msm_gpu_tune_window(bases, POINTS, NULL, 1e6, false, &done, &fault),
		OB_ERR_NONE);
	CHECK(done);
	obk_msm_gpu_tuning_get(gpu, &t);
	CHECK(t.window[obk_tune_log(POINTS)] >= 3);
	CHECK_INT(obk_msm_gpu_predict(bases, POINTS, 1, &prediction, &fault), OB_ERR_NONE);
	CHECK(prediction.measured && prediction.plan.window == t.window[obk_tune_log(POINTS)] &&
		prediction.products == 1 && prediction.seconds > 0);
	CHECK_INT(obk_msm_gpu_tune_window(bases, POINTS, NULL, 1e6, false, &done, &fault),
		OB_ERR_NONE);
	CHECK(!done); /* already timed */
	CHECK_INT(obk_msm_gpu_tune_window(bases, POINTS, NULL, 1e6, true, &done, &fault),
		OB_ERR_NONE);
	CHECK(done); /* timed again on request */
	CHECK_INT(obk_msm_gpu_run(bases, &job, 0, &have, &fault), OB_ERR_NONE);
	CHECK(obk_g1_affine_equal(&have, &want));
	CHECK_INT(obk_msm_gpu_predict(bases, POINTS + 1, 1, &prediction, &fault), OB_ERR_ARGUMENT);
	check_groups(gpu, bases, &args, scalars);
	obk_msm_gpu_bases_free(bases);
	obk_gpu_close(gpu);
}

/*
 * If the buckets of the chosen window exceed the device's memory, the widest window that fits is
 * used.
 */
TEST(windows_fit_the_memory)
{
	enum { COUNT = 1 << 16, WIDE = 16 };
	struct obk_msm_gpu_tuning t;
	struct obk_msm_gpu_info info;
	struct obk_msm_gpu_prediction prediction;
	struct obk_gpu *gpu;

	setenv("OUTBOARD_SOFT_MEMORY", "96M", 1);
	gpu = open_device();
	ob_opt_set(OB_OPT_TUNE, true);
	obk_msm_gpu_guess(obk_gpu_info(gpu), &t);
	t.measured = true;
	t.window[obk_tune_log(COUNT)] = WIDE;
	CHECK_INT(obk_msm_gpu_tuning_set(gpu, &t, &fault), OB_ERR_NONE);
	CHECK_INT(
		obk_msm_gpu_predict_new(gpu, COUNT, true, 0, COUNT, 1, &info, &prediction, &fault),
		OB_ERR_NONE);
	CHECK_INT(prediction.count, COUNT);
	if (obk_gpu_info(gpu)->memory <= (size_t)96 << 20)
		CHECK(prediction.plan.window < WIDE && prediction.plan.window > WIDE / 2);
	else
		CHECK_INT(prediction.plan.window, WIDE);
	obk_gpu_close(gpu);
}

int main(int argc, char **argv)
{
	if (getenv("OUTBOARD_TEST_LIBCUDA"))
		test_fds_allowed = 4096;
	else if (argc > 1)
		setenv("OUTBOARD_TEST_LIBCUDA", argv[1], 0);
	return test_main(argc > 2 ? argc - 1 : 1, argc > 2 ? argv + 1 : argv);
}
