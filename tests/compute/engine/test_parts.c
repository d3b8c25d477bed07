/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Parts of the engine: shares, scores, relief, breaker, backoff, measured speeds. */
#include <math.h>

#include "compute/engine/breaker.h"
#include "compute/engine/profile.h"
#include "tests/test.h"

#define MS 1000000ull

static uint64_t parts[OUTBOARD_MAX_DEVICES];

static void split(
	uint32_t strategy, uint64_t count, unsigned n, const double *scores, const double *loads)
{
	uint64_t sum = 0;

	memset(parts, 0xff, sizeof(parts));
	obv_split(strategy, count, n, scores, loads, parts);
	for (unsigned i = 0; i < n; i++)
		sum += parts[i];
	CHECK_INT(sum, count);
	CHECK(n == OUTBOARD_MAX_DEVICES || parts[n] == UINT64_MAX);
}

TEST(split_equal_gives_the_remainder_to_the_first)
{
	const double scores[4] = { 1, 9, 0, 3 }, loads[4] = { 0, 0.9, 0, 1 };

	split(OUTBOARD_EQUAL, 11, 4, scores, loads);
	CHECK_INT(parts[0], 5);
	CHECK_INT(parts[1], 2);
	CHECK_INT(parts[2], 2);
	CHECK_INT(parts[3], 2);
	split(OUTBOARD_EQUAL, 3, 4, scores, loads);
	CHECK_INT(parts[0], 3);
	split(OUTBOARD_EQUAL, 0, 4, scores, loads);
	split(OUTBOARD_EQUAL, 7, 1, scores, loads);
}

TEST(split_proportional_follows_scores)
{
	const double scores[3] = { 1, 2, 5 }, loads[3] = { 0, 1, 0.5 }, none[3] = { 0, 0, 0 },
		     thirds[3] = { 1, 1, 1 };

	split(OUTBOARD_PROPORTIONAL, 80, 3, scores, loads);
	CHECK_INT(parts[0], 10);
	CHECK_INT(parts[1], 20);
	CHECK_INT(parts[2], 50);
	split(OUTBOARD_PROPORTIONAL, 1, 3, scores, loads);
	CHECK_INT(parts[2], 1);
	split(OUTBOARD_PROPORTIONAL, 10, 3, none, loads);
	CHECK_INT(parts[0], 4);
	split(OUTBOARD_PROPORTIONAL, 2, 3, thirds, loads);
	CHECK_INT(parts[0], 1);
	CHECK_INT(parts[1], 1);
	split(OUTBOARD_PROPORTIONAL, (uint64_t)1 << 62, 3, thirds, loads);
}

TEST(split_dynamic_looks_at_loads)
{
	const double scores[3] = { 4, 4, 2 }, loads[3] = { 0.5, 1, 0 }, full[3] = { 1, 1, 1 };

	split(OUTBOARD_DYNAMIC, 100, 3, scores, loads);
	CHECK_INT(parts[0], 50);
	CHECK_INT(parts[1], 0);
	CHECK_INT(parts[2], 50);
	/* All devices are equally busy, so the shares are equal. */
	split(OUTBOARD_DYNAMIC, 9, 3, scores, full);
	CHECK_INT(parts[0], 3);
	split(OUTBOARD_SINGLE, 9, 3, scores, loads);
	CHECK_INT(parts[0], 9);
	CHECK_INT(parts[1] + parts[2], 0);
}

TEST(split_at_the_most_devices)
{
	double scores[OUTBOARD_MAX_DEVICES], loads[OUTBOARD_MAX_DEVICES] = { 0 };

	for (unsigned i = 0; i < OUTBOARD_MAX_DEVICES; i++)
		scores[i] = 1 + i % 7;
	split(OUTBOARD_PROPORTIONAL, 1000003, OUTBOARD_MAX_DEVICES, scores, loads);
	split(OUTBOARD_EQUAL, 63, OUTBOARD_MAX_DEVICES, scores, loads);
}

TEST(scores_order_devices)
{
	struct obv_traits cpu = { .kind = OUTBOARD_CPU, .units = 2, .clock = 2 }, more = cpu,
			  gpu = { .kind = OUTBOARD_GPU,
				  .units = 132,
				  .memory = 1ull << 37,
				  .clock = 1.98,
				  .link = 1e-5 },
			  far = gpu, small = gpu;

	more.units = 8;
	far.link = 0.02;
	small.memory = 1 << 28;
	CHECK(obv_score(&cpu) < obv_score(&more));
	CHECK(obv_score(&more) < obv_score(&gpu));
	CHECK(obv_score(&far) < obv_score(&gpu) / 2);
	CHECK(obv_score(&small) < obv_score(&gpu));
}

TEST(hot_and_cold)
{
	const double loads[4] = { 0.95, 0.81, 0.3, 0.1 }, mild[2] = { 0.8, 0.0 },
		     warm[2] = { 1, 0.5 };
	bool usable[4] = { true, true, true, true };
	unsigned hot = 9, cold = 9;

	CHECK(obv_hot_and_cold(4, loads, usable, &hot, &cold));
	CHECK_INT(hot, 0);
	CHECK_INT(cold, 3);
	usable[3] = false;
	CHECK(obv_hot_and_cold(4, loads, usable, &hot, &cold));
	CHECK_INT(cold, 2);
	CHECK(!obv_hot_and_cold(2, mild, usable, &hot, &cold));
	CHECK(!obv_hot_and_cold(2, warm, usable, &hot, &cold));
	CHECK(obv_load(0.25, 0.5) > 0.49 && obv_load(0.25, 0.5) < 0.51);
	CHECK(obv_load(9, 1) == 1 && obv_load(-1, 1) == 0);
}

TEST(breaker_opens_waits_tries_and_closes)
{
	struct obv_breaker b;
	uint64_t now = 1000 * MS;
	bool trial;

	obv_breaker_init(&b, 3, 50 * MS);
	CHECK(!obv_breaker_failure(&b, now));
	CHECK(!obv_breaker_failure(&b, now));
	obv_breaker_success(&b);
	CHECK(!obv_breaker_failure(&b, now));
	CHECK(!obv_breaker_failure(&b, now));
	CHECK(obv_breaker_ready(&b, now));
	CHECK(obv_breaker_failure(&b, now));
	CHECK_INT(b.state, OUTBOARD_OPEN);
	CHECK(!obv_breaker_ready(&b, now + 49 * MS));
	CHECK(!obv_breaker_begin(&b, now + 49 * MS, &trial));
	CHECK(obv_breaker_ready(&b, now + 50 * MS));
	CHECK(obv_breaker_begin(&b, now + 50 * MS, &trial) && trial);
	CHECK_INT(b.state, OUTBOARD_HALF_OPEN);
	CHECK(!obv_breaker_ready(&b, now + 60 * MS));
	/* The trial fails: the pause doubles. */
	CHECK(obv_breaker_failure(&b, now + 60 * MS));
	CHECK(!obv_breaker_ready(&b, now + 159 * MS));
	CHECK(obv_breaker_begin(&b, now + 160 * MS, &trial) && trial);
	obv_breaker_success(&b);
	CHECK_INT(b.state, OUTBOARD_CLOSED);
	CHECK(obv_breaker_begin(&b, now + 161 * MS, &trial) && !trial);
	CHECK_INT(b.opened, 2);
	CHECK_INT(b.pause, 50 * MS);
}

TEST(breaker_pause_is_bounded)
{
	struct obv_breaker b;
	uint64_t now = 0;
	bool trial;

	obv_breaker_init(&b, 1, 10 * MS);
	CHECK(obv_breaker_failure(&b, now));
	for (unsigned i = 0; i < 20; i++) {
		now = b.until;
		CHECK(obv_breaker_begin(&b, now, &trial));
		CHECK(obv_breaker_failure(&b, now));
		CHECK(b.until - now <= OBV_BREAKER_LONGEST * 10 * MS);
	}
	CHECK_INT(b.until - now, OBV_BREAKER_LONGEST * 10 * MS);
}

TEST(backoff_doubles_up_to_its_most)
{
	CHECK_INT(obv_backoff(1, 20, 100), 20);
	CHECK_INT(obv_backoff(2, 20, 100), 40);
	CHECK_INT(obv_backoff(3, 20, 100), 80);
	CHECK_INT(obv_backoff(4, 20, 100), 100);
	CHECK_INT(obv_backoff(4000000000u, 20, 100), 100);
	CHECK_INT(obv_backoff(1, 200, 100), 100);
}

TEST(curves_interpolate)
{
	struct obv_curve c = { { 0 } };

	c.seconds[10] = 1;
	c.seconds[12] = 4;
	CHECK(fabs(obv_curve_seconds(&c, OUTBOARD_OP_MSM, 1024) - 1) < 1e-12);
	CHECK(fabs(obv_curve_seconds(&c, OUTBOARD_OP_MSM, 2048) - 2) < 1e-12);
	CHECK(fabs(obv_curve_seconds(&c, OUTBOARD_OP_MSM, 16) - 1) < 1e-12);
	CHECK(fabs(obv_curve_seconds(&c, OUTBOARD_OP_MSM, 8192) - 8) < 1e-12);
	CHECK(fabs(obv_curve_seconds(&c, OUTBOARD_OP_RQA, 8192) - 16) < 1e-12);
}

TEST(thresholds)
{
	struct obv_curve cpu = { { 0 } }, gpu = { { 0 } };

	cpu.seconds[0] = 1e-4;
	cpu.seconds[20] = 100;
	gpu.seconds[0] = 1e-2;
	gpu.seconds[20] = 0.09;
	/*
	 * The CPU takes 1e-4 * 2^x, the GPU an almost constant time: equal where 2^x is about 100.
	 */
	CHECK_INT(obv_curve_threshold(&gpu, &cpu, OUTBOARD_OP_MSM), 256);
	CHECK(obv_curve_threshold(&cpu, &cpu, OUTBOARD_OP_MSM) == UINT64_MAX);
}

/* A device that predicts a time only for sizes from 2^10 on: *device, here 3 ms. */
static double from_1024(void *device, uint32_t operation, double size)
{
	CHECK(operation == OUTBOARD_OP_MSM);
	return size >= 1024 ? *(const double *)device : 0;
}

TEST(what_a_device_expects_moves_the_threshold)
{
	struct obv_curve cpu = { { 0 } }, gpu = { { 0 } };
	double seconds = 3e-3;

	for (unsigned i = 0; i < OBV_PROFILE_LOGS; i++) {
		cpu.seconds[i] = 1e-6 * (1u << i);
		gpu.seconds[i] = 1;
	}
	CHECK_INT(obv_curve_threshold(&gpu, &cpu, OUTBOARD_OP_MSM), 1 << 20);
	obv_curve_expect(&gpu, from_1024, &seconds, OUTBOARD_OP_MSM);
	CHECK_INT(obv_curve_threshold(&gpu, &cpu, OUTBOARD_OP_MSM), 4096);
	CHECK(gpu.seconds[9] == 1 && gpu.seconds[10] == seconds &&
		gpu.seconds[OBV_PROFILE_LOGS - 1] == seconds);
}

TEST(guesses_grow_and_prefer_gpus_for_large_work)
{
	struct obv_traits cpu = { .kind = OUTBOARD_CPU, .units = 2 },
			  gpu = { .kind = OUTBOARD_GPU, .units = 132, .link = 1e-5 };
	struct obv_curves c, g;

	obv_curves_guess(&c, &cpu);
	obv_curves_guess(&g, &gpu);
	for (uint32_t op = 0; op < OUTBOARD_OP_COUNT; op++) {
		for (unsigned i = 1; i < OBV_PROFILE_LOGS; i++)
			CHECK(c.op[op].seconds[i] >= c.op[op].seconds[i - 1] &&
				g.op[op].seconds[i] >= g.op[op].seconds[i - 1]);
		CHECK(g.op[op].seconds[26] < c.op[op].seconds[26]);
		CHECK(g.op[op].seconds[0] > c.op[op].seconds[0] || op == OUTBOARD_OP_KZG);
	}
}

static void spoil(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

TEST(profiles_are_kept_by_machine)
{
	static struct obv_curves a[2], b[2];
	char folder[] = "/tmp/outboard-profile-XXXXXX", path[64], key[17], other[17];
	const char *why = "";

	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/x/y/p", folder);
	strcpy(a[0].key, "cpu:2 Some CPU");
	strcpy(a[1].key, "gpu:0 Some GPU");
	a[0].measured = a[1].measured = true;
	a[0].op[OUTBOARD_OP_MSM].seconds[10] = 0.25;
	a[1].op[OUTBOARD_OP_NTT].seconds[26] = 1.5e-5;
	obv_profile_machine(a, 2, key);
	obv_profile_machine(a, 1, other);
	CHECK(strcmp(key, other) != 0 && strlen(key) == 16);
	CHECK(!obv_profile_read(path, key, b, 2, &why) && !why);
	CHECK(obv_profile_write(path, key, a, 2));
	strcpy(b[0].key, a[1].key);
	strcpy(b[1].key, "cpu:9 Unknown");
	CHECK(obv_profile_read(path, key, b, 2, &why));
	CHECK(b[0].measured && !b[1].measured && b[0].op[OUTBOARD_OP_NTT].seconds[26] == 1.5e-5);
	CHECK(!obv_profile_read(path, other, b, 2, &why) && strstr(why, "another machine"));
	spoil(path, "outboard-profile 7\n");
	CHECK(!obv_profile_read(path, key, b, 2, &why) && strstr(why, "another version"));
	for (unsigned i = 0; i < 5; i++) {
		const char *const bad[] = { "msm 27 1\n", "msm 3 -1\n", "msm 3\n", "what 3 1\n",
			"msm x 1\n" };
		char text[128];

		snprintf(text, sizeof(text),
			"outboard-profile 1\nmachine %s\ndevice cpu:9 Unknown\n%s", key, bad[i]);
		spoil(path, text);
		CHECK(!obv_profile_read(path, key, b, 2, &why) && strstr(why, "damaged"));
		CHECK(!b[1].measured);
	}
	snprintf(path, sizeof(path), "rm -r %s", folder);
	CHECK_INT(system(path), 0);
}

TEST(profile_path_follows_the_environment)
{
	char path[256];

	setenv("XDG_CACHE_HOME", "/somewhere", 1);
	CHECK(obv_profile_path("k", path, sizeof(path)));
	CHECK_STR(path, "/somewhere/outboard/profile-k");
	setenv("XDG_CACHE_HOME", "relative", 1);
	setenv("HOME", "/home/u", 1);
	CHECK(obv_profile_path("k", path, sizeof(path)));
	CHECK_STR(path, "/home/u/.cache/outboard/profile-k");
	CHECK(!obv_profile_path("k", path, 8));
	unsetenv("HOME");
	CHECK(!obv_profile_path("k", path, sizeof(path)));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
