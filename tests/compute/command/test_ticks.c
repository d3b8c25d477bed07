/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The ticks of an axis are multiples of 1, 2 or 5 times a power of ten, inside the axis, and few.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/command/rqa/ticks.h"
#include "tests/test.h"

/* Returns the texts separated by blanks. */
static const char *texts(const struct obx_tick *ticks, unsigned n)
{
	static char all[OBX_TICKS_MAX * 25];

	all[0] = '\0';
	for (unsigned i = 0; i < n; i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "",
			ticks[i].text);
	return all;
}

TEST(ranges)
{
	static const struct {
		double low, high;
		unsigned wanted;
		const char *texts;
	} cases[] = {
		{ 0.81583, 0.97745, 5, "0.85 0.90 0.95" },
		{ 0, 1, 5, "0 0.2 0.4 0.6 0.8 1.0" },
		{ -0.5, 136.5, 6, "0 50 100" },
		{ -0.5, 999999.5, 5, "0 200000 400000 600000 800000" },
		{ -1.5, 1.5, 4, "-1 0 1" },
		{ 1e-9, 5e-9, 5, "1e-09 2e-09 3e-09 4e-09 5e-09" },
		{ 3e8, 9e8, 3, "4e+08 6e+08 8e+08" },
		{ 2.5, 2.5, 5, "2.5" },
	};
	struct obx_tick ticks[OBX_TICKS_MAX];

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		unsigned n = obx_ticks_range(cases[i].low, cases[i].high, cases[i].wanted, ticks);
		const char *have = texts(ticks, n);

		if (strcmp(have, cases[i].texts) != 0)
			printf("%g to %g: %s instead of %s\n", cases[i].low, cases[i].high, have,
				cases[i].texts);
		CHECK(strcmp(have, cases[i].texts) == 0);
	}
}

TEST(ranges_of_any_size)
{
	struct obx_tick ticks[OBX_TICKS_MAX];

	for (unsigned i = 0; i < 2000; i++) {
		double low = (i % 7 - 3.0) * pow(10, (double)(i % 11) - 5),
		       high = low + (1 + i % 97) * pow(10, (double)(i % 13) - 6);
		unsigned n = obx_ticks_range(low, high, 5, ticks);

		CHECK(n >= 2 && n <= 11);
		for (unsigned k = 0; k < n; k++) {
			CHECK(ticks[k].at >= -1e-5 && ticks[k].at <= 1 + 1e-5);
			CHECK(k == 0 || ticks[k].at > ticks[k - 1].at);
		}
	}
}

TEST(cells)
{
	struct obx_tick ticks[OBX_TICKS_MAX];
	double values[1000];
	unsigned n;

	for (unsigned i = 0; i < 51; i++)
		values[i] = 0.05 + 0.001 * i;
	n = obx_ticks_cells(values, 51, 12, ticks);
	CHECK(strcmp(texts(ticks, n),
		      "0.05 0.055 0.06 0.065 0.07 0.075 0.08 0.085 0.09 0.095 0.1") == 0);
	CHECK(ticks[0].at == 0.5 / 51);
	for (unsigned i = 0; i < 1000; i++)
		values[i] = 1 + i;
	n = obx_ticks_cells(values, 1000, 12, ticks);
	CHECK(strcmp(texts(ticks, n), "100 200 300 400 500 600 700 800 900 1000") == 0);
	CHECK(fabs(ticks[0].at - 99.5 / 1000) < 1e-12);
	n = obx_ticks_cells(values, 12, 12, ticks);
	CHECK_INT(n, 12);
	values[0] = 2;
	values[1] = 3;
	values[2] = 7; /* unequal distances: a tick at every second value */
	n = obx_ticks_cells(values, 3, 2, ticks);
	CHECK(strcmp(texts(ticks, n), "2 7") == 0);
	n = obx_ticks_cells(values, 1, 12, ticks);
	CHECK(n == 1 && ticks[0].at == 0.5);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
