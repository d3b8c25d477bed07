/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ob_buf_init(struct ob_buf *buf, size_t max)
{
	*buf = (struct ob_buf){ .max = max };
}

void ob_buf_fini(struct ob_buf *buf)
{
	free(buf->data);
	*buf = (struct ob_buf){ .max = buf->max };
}

void *ob_buf_extend(struct ob_buf *buf, size_t n)
{
	size_t want, capacity;
	uint8_t *data;

	if (buf->failed || n > buf->max || buf->size > buf->max - n) {
		buf->failed = true;
		return NULL;
	}
	want = buf->size + n;
	if (want > buf->capacity) {
		capacity = buf->capacity ? buf->capacity : 256;
		while (capacity < want)
			capacity *= 2;
		if (capacity > buf->max)
			capacity = buf->max;
		data = realloc(buf->data, capacity);
		if (!data) {
			buf->failed = true;
			return NULL;
		}
		buf->data = data;
		buf->capacity = capacity;
	}
	data = buf->data + buf->size;
	buf->size = want;
	return data;
}

bool ob_buf_append(struct ob_buf *buf, const void *data, size_t n)
{
	void *p;

	if (n == 0)
		return !buf->failed; /* p would be NULL for an empty buffer */
	p = ob_buf_extend(buf, n);
	if (!p)
		return false;
	memcpy(p, data, n);
	return true;
}

bool ob_buf_printf(struct ob_buf *buf, const char *format, ...)
{
	va_list args, again;
	char *p;
	int n;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	p = n < 0 ? NULL : ob_buf_extend(buf, (size_t)n + 1);
	if (p) {
		vsnprintf(p, (size_t)n + 1, format, again);
		buf->size--; /* the NUL is stored but not counted */
	}
	va_end(again);
	return p != NULL;
}

void ob_buf_consume(struct ob_buf *buf, size_t n)
{
	if (n >= buf->size) {
		buf->size = 0;
		return;
	}
	memmove(buf->data, buf->data + n, buf->size - n);
	buf->size -= n;
}
