/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

bool ob_text_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	double value;
	char *end;

	if (!text || !isdigit((unsigned char)text[0]))
		return false;
	value = strtod(text, &end);
	if (*end) {
		const char *unit = strchr(units, toupper((unsigned char)*end));

		if (!unit)
			return false;
		for (const char *u = units; u <= unit; u++)
			value *= 1024;
		end++;
		if (*end == 'i')
			end++;
		if (*end == 'B' || *end == 'b')
			end++;
		if (*end)
			return false;
	}
	if (!(value < 9.2e18))
		return false;
	*ret_bytes = (uint64_t)value;
	return true;
}

bool ob_text_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	unsigned long long value;
	char *end;

	if (!text || !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || value < min || value > max)
		return false;
	*ret = value;
	return true;
}

bool ob_text_parse_capability(const char *text, unsigned *ret)
{
	const char *dot = text ? strchr(text, '.') : NULL;
	char major[4] = "";
	uint64_t high, low;

	if (!dot || dot == text || dot - text >= (ptrdiff_t)sizeof major)
		return false;
	memcpy(major, text, (size_t)(dot - text));
	if (!ob_text_parse_number(major, 5, 13, &high) ||
		!ob_text_parse_number(dot + 1, 0, 9, &low) ||
		high * 10 + low > OB_TEXT_CAPABILITY_MAX)
		return false;
	*ret = (unsigned)(high * 10 + low);
	return true;
}

void ob_text_print_size(uint64_t bytes, char *ret_text, size_t size)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	unsigned unit = 0;

	for (; value >= 1024 && unit < 6; unit++)
		value /= 1024;
	snprintf(ret_text, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void ob_text_hex(const void *data, size_t n, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++) {
		ret_text[2 * i] = digits[p[i] >> 4];
		ret_text[2 * i + 1] = digits[p[i] & 15];
	}
	ret_text[2 * n] = 0;
}

unsigned ob_text_distance(const char *a, const char *b)
{
	unsigned row[OB_TEXT_DISTANCE_MAX + 1], n = (unsigned)strnlen(b, OB_TEXT_DISTANCE_MAX + 1);

	if (n > OB_TEXT_DISTANCE_MAX)
		return OB_TEXT_DISTANCE_MAX;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned above = row[j], change = diagonal + (a[i - 1] != b[j - 1]),
				 step = ob_min(above, row[j - 1]) + 1;

			row[j] = ob_min(step, change);
			diagonal = above;
		}
	}
	return row[n];
}
