/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SPEC 32u
#define MAX_STRING (1u << 20)
#define MAX_WIDTH 4096u
#define MAX_ARGS 64u

struct reader {
	uint64_t at;
	uintptr_t base;
	size_t size;
	bool bad;
};

static uint64_t
next(struct reader *r, uint32_t bytes)
{
	uint64_t v = 0;

	r->at = (r->at + bytes - 1) & ~(uint64_t)(bytes - 1);
	if (r->at - r->base >= r->size || r->size - (r->at - r->base) < bytes) {
		r->bad = true;
		return 0;
	}
	memcpy(&v, (const void *)(uintptr_t)r->at, bytes);
	r->at += bytes;
	return v;
}

/* One conversion: flags, width, precision, length, letter. Returns its length, 0: none. */
struct spec {
	char text[MAX_SPEC];
	uint32_t longs, shorts; /* of 64 bits; 1 for h, 2 for hh */
	char letter;
	size_t len;
};

static bool
put_number(struct spec *s, size_t *n, uint32_t v)
{
	int k = snprintf(s->text + *n, MAX_SPEC - *n, "%u", v < MAX_WIDTH ? v : MAX_WIDTH);

	if (k < 0 || *n + (size_t)k + 4 >= MAX_SPEC)
		return false;
	*n += (size_t)k;
	return true;
}

static bool
parse_count(const char **p, struct spec *s, size_t *n, struct reader *r, int *used)
{
	if (**p == '*') {
		int32_t v = (int32_t)next(r, 4);

		++*used;
		++*p;
		if (v < 0) {
			if (*n && s->text[*n - 1] == '.') { /* a negative precision counts as none */
				--*n;
				return true;
			}
			s->text[(*n)++] = '-';
			v = v == INT32_MIN ? INT32_MAX : -v;
		}
		return put_number(s, n, (uint32_t)v);
	}
	uint32_t v = 0;
	bool any = false;

	for (; **p >= '0' && **p <= '9'; ++*p) {
		v = v < MAX_WIDTH ? v * 10 + (uint32_t)(**p - '0') : v;
		any = true;
	}
	return !any || put_number(s, n, v);
}

static bool
parse_spec(const char *p, struct spec *s, struct reader *r, int *used)
{
	const char *start = p++;
	size_t n = 0;

	s->longs = s->shorts = 0;
	s->text[n++] = '%';
	while (*p && strchr("-+ #0", *p) && n < 8)
		s->text[n++] = *p++;
	if (!parse_count(&p, s, &n, r, used))
		return false;
	if (*p == '.') {
		s->text[n++] = *p++;
		if (!parse_count(&p, s, &n, r, used))
			return false;
	}
	for (; *p && strchr("hlLqjzt", *p); p++) {
		s->longs += *p != 'h';
		s->shorts += *p == 'h';
	}
	if (!*p || !strchr("diouxXcsSpfFeEgGaA%", *p))
		return false;
	s->letter = *p++;
	if (strchr("diouxX", s->letter)) {
		s->text[n++] = 'l';
		s->text[n++] = 'l';
	}
	s->text[n++] = s->letter;
	s->text[n] = 0;
	s->len = (size_t)(p - start);
	return true;
}

static void
emit(FILE *f, const struct spec *s, struct reader *r, int *used)
{
	char c = s->letter;

	if (c == '%') {
		fputc('%', f);
		return;
	}
	++*used;
	if (c == 'd' || c == 'i') {
		long long v = s->longs ? (long long)next(r, 8) : (long long)(int32_t)next(r, 4);

		if (s->shorts)
			v = s->shorts > 1 ? (long long)(int8_t)v : (long long)(int16_t)v;
		fprintf(f, s->text, v);
	} else if (strchr("ouxX", c)) {
		unsigned long long v = next(r, s->longs ? 8 : 4);

		if (s->shorts)
			v &= s->shorts > 1 ? 0xffu : 0xffffu;
		fprintf(f, s->text, v);
	} else if (c == 'c') {
		fprintf(f, s->text, (int)next(r, 4));
	} else if (c == 'p') {
		fprintf(f, s->text, (void *)(uintptr_t)next(r, 8));
	} else if (c == 's' || c == 'S') {
		uint64_t a = next(r, 8);
		bool inside = a - r->base < r->size;
		size_t n = 0;
		const char *str = (const char *)(uintptr_t)a;
		char *copy;

		if (!inside) {
			fputs(a ? "(bad string)" : "(null)", f);
			return;
		}
		while (n < MAX_STRING && a + n - r->base < r->size && str[n])
			n++;
		copy = strndup(str, n);
		if (copy)
			fprintf(f, s->text, copy);
		free(copy);
	} else {
		uint64_t bits = next(r, 8);
		double v;

		memcpy(&v, &bits, 8);
		fprintf(f, s->text, v);
	}
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* parse_spec built the format, one conversion of known type */

int
obd_format(const char *fmt, uint64_t args, uintptr_t window_base, size_t window_size, char **ret_text, size_t *ret_size)
{
	struct reader r = {args, window_base, window_size, false};
	const char *end = (const char *)(window_base + window_size);
	FILE *f = open_memstream(ret_text, ret_size);
	int used = 0;
	bool good = true;

	if (!f)
		return -1;
	for (const char *p = fmt; p < end && *p;) {
		struct spec s;

		if (*p != '%') {
			fputc(*p++, f);
			continue;
		}
		if (!parse_spec(p, &s, &r, &used)) {
			good = false;
			fputc(*p++, f);
			continue;
		}
		p += s.len;
		emit(f, &s, &r, &used);
		if (r.bad)
			break;
	}
	fclose(f);
	return r.bad ? -2 : good ? used : -1;
}
