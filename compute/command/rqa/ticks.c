/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/ticks.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/command/rqa/format.h"

#define NEAR      1e-6 /* in steps: positions that are closer are the same */
/* numbers from here on, and below 1 / PLAIN_MAX, are written with exponents */
#define PLAIN_MAX 1e7

/* The smallest of 1, 2, 5 times a power of ten that is at least `least`. */
static double step_from(double least)
{
	double power = pow(10, floor(log10(least) + NEAR));

	for (unsigned i = 0; i < 3; i++) {
		static const double factors[] = { 1, 2, 5 };

		if (factors[i] * power >= least * (1 - NEAR))
			return factors[i] * power;
	}
	return 10 * power;
}

/* Prints a multiple of step with as many decimals as step has. */
static void print(double value, double step, char text[24])
{
	double large = fabs(value) > step ? fabs(value) : step;
	int decimals = (int)-floor(log10(step) + NEAR);

	if (fabs(value) < step * NEAR)
		snprintf(text, 24, "0");
	else if (large >= PLAIN_MAX || step < 1 / PLAIN_MAX)
		snprintf(text, 24, "%.4g", value);
	else
		snprintf(text, 24, "%.*f", decimals > 0 ? decimals : 0, value);
}

unsigned obx_ticks_range(
	double low, double high, unsigned wanted, struct obx_tick ret_ticks[OBX_TICKS_MAX])
{
	double step, first;
	unsigned n = 0;

	if (!(high > low) || !isfinite(high - low)) {
		char number[OBX_NUMBER_MAX];

		obx_number_print(low, 6, number);
		ret_ticks[0].at = 0.5;
		snprintf(ret_ticks[0].text, sizeof ret_ticks[0].text, "%.23s", number);
		return 1;
	}
	step = step_from((high - low) / wanted);
	first = ceil(low / step - NEAR);
	while (n < OBX_TICKS_MAX && (first + n) * step <= high + step * NEAR) {
		double value = (first + n) * step;

		ret_ticks[n].at = (value - low) / (high - low);
		print(value, step, ret_ticks[n].text);
		n++;
	}
	return n;
}

/* The distance between the values if it is constant; else 0. */
static double spacing(const double *values, uint32_t count)
{
	double d = count > 1 ? (values[count - 1] - values[0]) / (count - 1) : 0;

	for (uint32_t i = 1; i < count; i++)
		if (fabs(values[i] - values[i - 1] - d) > fabs(d) * 1e-3)
			return 0;
	return d;
}

unsigned obx_ticks_cells(const double *values, uint32_t count, unsigned most,
	struct obx_tick ret_ticks[OBX_TICKS_MAX])
{
	uint32_t every = (uint32_t)step_from(ceil((double)count / most)), first = 0;
	double d = spacing(values, count);
	unsigned n = 0;

	for (uint32_t i = 0; every > 1 && d > 0 && i < every && i < count; i++) {
		double multiple = values[i] / (d * every);

		if (fabs(multiple - round(multiple)) < 0.1 / every) {
			first = i;
			break;
		}
	}
	for (uint32_t i = first; i < count && n < OBX_TICKS_MAX; i += every) {
		char number[OBX_NUMBER_MAX];

		obx_number_print(values[i], 6, number);
		ret_ticks[n].at = (i + 0.5) / count;
		snprintf(ret_ticks[n++].text, sizeof ret_ticks[0].text, "%.23s", number);
	}
	return n;
}
