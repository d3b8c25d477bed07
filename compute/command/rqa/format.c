/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/format.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "compute/command/rqa/error.h"

/* Powers of ten up to 10^27 are exact in a long double. */
static const long double powers[] = { 1e0L, 1e1L, 1e2L, 1e3L, 1e4L, 1e5L, 1e6L, 1e7L, 1e8L, 1e9L,
	1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L,
	1e23L, 1e24L, 1e25L, 1e26L, 1e27L };

bool obx_error_set(struct obx_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof error->text, format, args);
	va_end(args);
	return false;
}

static size_t print_slowly(double value, int digits, char *ret_text)
{
	return (size_t)snprintf(ret_text, OBX_NUMBER_MAX, "%.*g", digits, value);
}

/* Rounds as printf does. */
static uint64_t round_even(long double value)
{
	uint64_t whole = (uint64_t)value;
	long double part = value - (long double)whole;

	return whole + (part > 0.5L || (part == 0.5L && (whole & 1)));
}

/* Number of digits before the decimal point, 0 or negative below 0.1; for 1e-4 <= size < 1e15. */
static int places_before(double size)
{
	static const double tens[] = { 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6,
		1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
	int i = size >= 1 ? 5 : 1; /* 1e-4 is tens[0] */

	while (size >= tens[i])
		i++;
	return i - 4;
}

/*
 * Writes `digits` digits of whole, the most significant first; uses 32-bit divisions if possible.
 */
static void split_figures(uint64_t whole, int digits, char *ret_figures)
{
	uint32_t high = (uint32_t)(whole / 100000000), low = (uint32_t)(whole % 100000000);
	int i = digits - 1;

	for (int k = 0; k < 8 && i >= 0; k++, i--, low /= 10)
		ret_figures[i] = (char)('0' + low % 10);
	for (; i >= 0; i--, high /= 10)
		ret_figures[i] = (char)('0' + high % 10);
}

size_t obx_number_exact(double value, char *ret_text)
{
	size_t length = 0;

	for (int digits = 15; digits <= 17; digits++) {
		length = obx_number_print(value, digits, ret_text);
		if (strtod(ret_text, NULL) == value)
			break;
	}
	return length;
}

size_t obx_number_print(double value, int digits, char *ret_text)
{
	char figures[24], *out = ret_text;
	double size = fabs(value);
	int point, count = digits;
	uint64_t whole;

	if (isnan(value))
		return (size_t)snprintf(ret_text, OBX_NUMBER_MAX, "nan");
	if (value == 0)
		return (size_t)snprintf(ret_text, OBX_NUMBER_MAX, "0");
	/* counts and lengths, the most frequent case */
	if (size < 1e9 && size == (double)(uint32_t)size && digits >= 10) {
		count = 0;
		for (uint32_t left = (uint32_t)size; left; left /= 10)
			figures[count++] = (char)('0' + left % 10);
		if (value < 0)
			*out++ = '-';
		while (count)
			*out++ = figures[--count];
		*out = 0;
		return (size_t)(out - ret_text);
	}
	if (digits > 13 || !(size >= 1e-4 && size < 1e15) || (point = places_before(size)) > digits)
		return print_slowly(value, digits, ret_text);
	whole = round_even(size * powers[digits - point]);
	if (whole >= (uint64_t)powers[digits]) { /* rounding gave one more digit */
		point++;
		if (point > digits)
			return print_slowly(value, digits, ret_text);
		whole = round_even(size * powers[digits - point]);
	} else if (whole < (uint64_t)powers[digits - 1]) {
		return print_slowly(value, digits, ret_text);
	}
	split_figures(whole, digits, figures);
	while (count > 1 && count > point && figures[count - 1] == '0')
		count--;
	if (value < 0)
		*out++ = '-';
	if (point <= 0) {
		*out++ = '0';
		*out++ = '.';
		for (int i = point; i < 0; i++)
			*out++ = '0';
	}
	for (int i = 0; i < count; i++) {
		if (point > 0 && i == point)
			*out++ = '.';
		*out++ = figures[i];
	}
	*out = 0;
	return (size_t)(out - ret_text);
}

const char *obx_number_group(uint64_t value, char *ret_text)
{
	char digits[24];
	int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
	char *out = ret_text;

	for (int i = 0; i < count; i++) {
		if (i && (count - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = 0;
	return ret_text;
}

void obx_csv_print(FILE *file, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, file);
		return;
	}
	putc('"', file);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', file);
		putc(*text, file);
	}
	putc('"', file);
}
