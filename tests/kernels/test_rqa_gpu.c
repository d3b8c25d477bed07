/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Recurrence on a device: the same integers as on the CPU, for every kind, norm, window and precision. The library to use is the first libcuda.so.1 that
 * the loader finds; the build's test gives it the software device.
 */
#include <math.h>

#include "kernels/rqa/rqa.h"
#include "tests/unit/test.h"

#define CASES 45
#define MOST 400

static uint64_t seed = 20;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

static void fill(double *data, unsigned count, unsigned kind)
{
	for (unsigned t = 0; t < count; t++)
		data[t] = kind == 0 ? (double)below(20) * 0.05 : kind == 1 ? (double)(t % 7) * 0.1 : sin(0.3 * t) + (double)below(1000) * 1e-4;
}

static void options_draw(struct obk_rqa_options *o)
{
	obk_rqa_options_preset((enum obk_rqa_preset)below(OBK_RQA_PRESET_COUNT), o);
	o->quirks = 0;
	o->want = OBK_RQA_WANT_ALL & ~OBK_RQA_WANT_NETWORK;
	o->kind = (int)below(3);
	o->m = 1 + below(4);
	o->tau = 1 + below(5);
	o->norm = (int)below(4);
	o->test = (int)below(2);
	o->precision = below(2) ? OBK_RQA_PRECISION_F32 : OBK_RQA_PRECISION_F64;
	o->radius = 0.05 * (double)(1 + below(12));
	o->triangle = (int)below(3);
	o->theiler_rr = below(3);
	o->theiler_diag = below(4);
	o->theiler_vert = below(4);
	o->theiler_white = below(3);
}

static void same(const struct obk_rqa_result *a, const struct obk_rqa_result *b)
{
	double values[2][OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_error error;

	for (int h = 0; h < OBK_RQA_HIST_COUNT; h++) {
		uint64_t lengths[2];
		const uint64_t *one = obk_rqa_result_histogram(a, h, &lengths[0]), *other = obk_rqa_result_histogram(b, h, &lengths[1]);

		CHECK_INT(lengths[0], lengths[1]);
		for (uint64_t l = 0; l < lengths[0]; l++)
			CHECK_INT(one[l], other[l]);
	}
	CHECK_INT(obk_rqa_result_measures(a, NULL, values[0], &error), OBK_RQA_OK);
	CHECK_INT(obk_rqa_result_measures(b, NULL, values[1], &error), OBK_RQA_OK);
	CHECK(memcmp(values[0], values[1], sizeof values[0]) == 0);
}

TEST(device_counts_as_the_processor)
{
	static double a[2 * MOST], b[2 * MOST];
	unsigned on = 0;

	for (unsigned round = 0; round < CASES; round++) {
		struct obk_rqa_series x = { .name = "x", .data = a, .channels = 1 + below(2) }, y = { .name = "y", .data = b, .channels = x.channels };
		struct obk_rqa_control cpu = { .device = OBK_RQA_DEVICE_CPU }, gpu = { .device = OBK_RQA_DEVICE_CUDA };
		struct obk_rqa_result *result[2];
		struct obk_rqa_options o;
		struct obk_rqa_error error;
		int status;

		options_draw(&o);
		x.length = 20 + below(round == 7 ? 330 : 90) + (o.m - 1) * o.tau;
		y.length = 20 + below(90) + (o.m - 1) * o.tau;
		fill(a, (unsigned)x.length * x.channels, below(3));
		fill(b, (unsigned)y.length * y.channels, below(3));
		if (round % 5 == 4) {
			o.missing = 1;
			a[below((unsigned)x.length)] = NAN;
		}
		CHECK_INT(obk_rqa_run(&x, o.kind == OBK_RQA_AUTO ? NULL : &y, &o, &cpu, &result[0], &error), OBK_RQA_OK);
		status = obk_rqa_run(&x, o.kind == OBK_RQA_AUTO ? NULL : &y, &o, &gpu, &result[1], &error);
		if (status != OBK_RQA_OK)
			fprintf(stderr, "%s\n", error.text);
		CHECK_INT(status, OBK_RQA_OK);
		CHECK(strncmp(obk_rqa_result_device(result[1]), "cuda ", 5) == 0);
		same(result[0], result[1]);
		on++;
		obk_rqa_result_free(result[0]);
		obk_rqa_result_free(result[1]);
	}
	CHECK_INT(on, CASES);
}

TEST(what_a_device_cannot_do_is_said)
{
	double data[50], radius;
	struct obk_rqa_series x = { .name = "x", .data = data, .length = 50, .channels = 1 };
	struct obk_rqa_control gpu = { .device = OBK_RQA_DEVICE_CUDA, .state_path = "/tmp/never" };
	struct obk_rqa_options o;
	struct obk_rqa_result *result;
	struct obk_rqa_error error;

	fill(data, 50, 2);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	CHECK_INT(obk_rqa_run(&x, NULL, &o, &gpu, &result, &error), OBK_RQA_UNSUPPORTED);
	CHECK(strstr(error.text, "device cpu"));
	CHECK_INT(obk_rqa_radius(&x, NULL, &o, &gpu, &radius, &error), OBK_RQA_UNSUPPORTED);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
