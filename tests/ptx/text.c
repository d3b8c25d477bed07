/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *pt_alloc(size_t n)
{
	void *p = calloc(1, n ? n : 1);
	if (!p) {
		fputs("ptx-conformance: out of memory\n", stderr);
		exit(2);
	}
	return p;
}

static void text_reserve(struct pt_text *t, size_t more)
{
	if (t->cap - t->len > more)
		return;
	size_t cap = t->cap ? t->cap : 256;
	while (cap - t->len <= more)
		cap *= 2;
	char *p = pt_alloc(cap);
	if (t->len)
		memcpy(p, t->p, t->len);
	free(t->p);
	t->p = p;
	t->cap = cap;
}

void pt_text_raw(struct pt_text *t, const char *s, size_t n)
{
	text_reserve(t, n);
	memcpy(t->p + t->len, s, n);
	t->len += n;
	t->p[t->len] = 0;
}

static void text_vadd(struct pt_text *t, const char *format, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	/* explicit, because sanitized builds otherwise warn of a null format */
	int n = format ? vsnprintf(NULL, 0, format, ap) : 0;
	if (n > 0) {
		text_reserve(t, (size_t)n);
		vsnprintf(t->p + t->len, (size_t)n + 1, format, again);
		t->len += (size_t)n;
	}
	va_end(again);
}

void pt_text_add(struct pt_text *t, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	text_vadd(t, format, ap);
	va_end(ap);
}

char *pt_format(const char *format, ...)
{
	struct pt_text t = { 0 };
	va_list ap;
	va_start(ap, format);
	text_reserve(&t, 1);
	t.p[0] = 0;
	text_vadd(&t, format, ap);
	va_end(ap);
	return t.p;
}

void pt_text_free(struct pt_text *t)
{
	free(t->p);
	*t = (struct pt_text){ 0 };
}
