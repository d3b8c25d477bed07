/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SPEC    32u
#define MAX_STRING  (1u << 20)
#define MAX_STRINGS (4u << 20) /* bytes of all strings of one printf */
#define MAX_WIDTH   4096u

struct reader {
	uint64_t at;
	uintptr_t base;
	size_t size;
	size_t left; /* how many bytes of strings may still be read */
	bool bad;
};

static uint64_t next(struct reader *r, uint32_t bytes)
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

/* One conversion specification of the format. */
struct spec {
	char text[MAX_SPEC];
	/* number of long modifiers (each means 64 bits); number of h modifiers */
	uint32_t longs, shorts;
	char letter;
	size_t len;
};

static bool put_number(struct spec *s, size_t *n, uint32_t v)
{
	int k = snprintf(s->text + *n, MAX_SPEC - *n, "%u", v < MAX_WIDTH ? v : MAX_WIDTH);

	if (k < 0 || *n + (size_t)k + 4 >= MAX_SPEC)
		return false;
	*n += (size_t)k;
	return true;
}

/*
 * The character at p, or NUL at the end of the window: a format in device memory may lack its NUL.
 */
static char peek(const struct reader *r, const char *p)
{
	return (uintptr_t)p - r->base < r->size ? *p : '\0';
}

static bool parse_count(const char **p, struct spec *s, size_t *n, struct reader *r, int *used)
{
	if (peek(r, *p) == '*') {
		int32_t v = (int32_t)next(r, 4);

		++*used;
		++*p;
		if (v < 0) {
			/* a negative precision means no precision */
			if (*n && s->text[*n - 1] == '.') {
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

	for (char c; (c = peek(r, *p)) >= '0' && c <= '9'; ++*p) {
		v = v < MAX_WIDTH ? v * 10 + (uint32_t)(c - '0') : v;
		any = true;
	}
	return !any || put_number(s, n, v);
}

static bool parse_spec(const char *p, struct spec *s, struct reader *r, int *used)
{
	const char *start = p++;
	size_t n = 0;

	s->longs = s->shorts = 0;
	s->text[n++] = '%';
	for (char c; (c = peek(r, p)) && strchr("-+ #0", c) && n < 8; p++)
		s->text[n++] = c;
	if (!parse_count(&p, s, &n, r, used))
		return false;
	if (peek(r, p) == '.') {
		s->text[n++] = '.';
		p++;
		if (!parse_count(&p, s, &n, r, used))
			return false;
	}
	for (char c; (c = peek(r, p)) && strchr("hlLqjzt", c); p++) {
		s->longs += c != 'h';
		s->shorts += c == 'h';
	}
	s->letter = peek(r, p);
	if (!s->letter || !strchr("diouxXcsSpfFeEgGaA%", s->letter))
		return false;
	p++;
	if (s->letter == 'S')
		s->letter = 's'; /* S means wide characters on the host */
	if (strchr("diouxX", s->letter)) {
		s->text[n++] = 'l';
		s->text[n++] = 'l';
	}
	s->text[n++] = s->letter;
	s->text[n] = 0;
	s->len = (size_t)(p - start);
	return true;
}

/* parse_spec built the format: one conversion of known type */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* The output so far. out NULL: nothing is written; device memory is only read. */
struct writer {
	FILE *out;
	size_t size;
};

#define PUT(w, ...)                                                       \
	do {                                                              \
		int put_ = (w)->out ? fprintf((w)->out, __VA_ARGS__) : 0; \
		(w)->size += put_ > 0 ? (size_t)put_ : 0;                 \
	} while (0)

static void emit_string(struct writer *w, const struct spec *s, struct reader *r)
{
	uint64_t a = next(r, 8);
	const char *str = (const char *)(uintptr_t)a;
	size_t n = 0;
	char *copy;

	if (a - r->base >= r->size) {
		PUT(w, "%s", a ? "(bad string)" : "(null)");
		return;
	}
	for (; n < MAX_STRING && r->left && peek(r, str + n); n++)
		r->left--;
	copy = w->out ? strndup(str, n) : NULL;
	if (copy)
		PUT(w, s->text, copy);
	free(copy);
}

static void emit(struct writer *w, const struct spec *s, struct reader *r, int *used)
{
	char c = s->letter;

	if (c == '%') {
		PUT(w, "%%");
		return;
	}
	++*used;
	if (c == 'd' || c == 'i') {
		long long v = s->longs ? (long long)next(r, 8) : (long long)(int32_t)next(r, 4);

		if (s->shorts)
			v = s->shorts > 1 ? (long long)(int8_t)v : (long long)(int16_t)v;
		PUT(w, s->text, v);
	} else if (strchr("ouxX", c)) {
		unsigned long long v = next(r, s->longs ? 8 : 4);

		if (s->shorts)
			v &= s->shorts > 1 ? 0xffu : 0xffffu;
		PUT(w, s->text, v);
	} else if (c == 'c') {
		int v = (int)next(r, 4);

		PUT(w, s->text, v);
	} else if (c == 'p') {
		void *v = (void *)(uintptr_t)next(r, 8);

		PUT(w, s->text, v);
	} else if (c == 's') {
		emit_string(w, s, r);
	} else {
		uint64_t bits = next(r, 8);
		double v;

		memcpy(&v, &bits, 8);
		PUT(w, s->text, v);
	}
}

/* Formats everything. Returns the same value as obd_format. */
static int run(const char *fmt, struct reader r, struct writer *w)
{
	int used = 0;
	bool good = true;

	for (const char *p = fmt; peek(&r, p) && (size_t)(p - fmt) < OBD_FORMAT_TEXT_MAX &&
		w->size < OBD_FORMAT_TEXT_MAX;) {
		struct spec s;

		if (*p == '%' && parse_spec(p, &s, &r, &used)) {
			p += s.len;
			emit(w, &s, &r, &used);
			if (r.bad)
				return -2;
			continue;
		}
		good = good && *p != '%';
		if (w->out)
			fputc(*p, w->out);
		w->size++;
		p++;
	}
	return good ? used : -1;
}

int obd_format(const char *fmt, uint64_t args, uintptr_t window_base, size_t window_size,
	char **ret_text, size_t *ret_size)
{
	const struct reader r = { args, window_base, window_size, MAX_STRINGS, false };
	struct writer w = { NULL, 0 };
	int used;

	/*
	 * A fault in device memory leaves this function by a jump and would leak the stream. All
	 * device memory is therefore read once before the stream is opened.
	 */
	run(fmt, r, &w);
	w = (struct writer){ open_memstream(ret_text, ret_size), 0 };
	if (!w.out)
		return -1;
	used = run(fmt, r, &w);
	fclose(w.out);
	if (*ret_text && *ret_size > OBD_FORMAT_TEXT_MAX) {
		*ret_size = OBD_FORMAT_TEXT_MAX;
		(*ret_text)[*ret_size] = '\0';
	}
	return used;
}
