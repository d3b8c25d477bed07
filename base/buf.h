/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A byte buffer that grows up to a maximum size, set by ob_buf_init. Owned by one thread at a time.
 * After the first failed append the buffer is marked failed and further appends do nothing, so a
 * caller checks once at the end.
 */
#ifndef OB_BUF_H
#define OB_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ob_buf {
	uint8_t *data;
	size_t size, capacity, max;
	bool failed;
};

void ob_buf_init(struct ob_buf *buf, size_t max);
void ob_buf_fini(struct ob_buf *buf);
/*
 * Adds n uninitialised bytes at the end and returns their address. NULL, and the buffer marked
 * failed: the maximum would be exceeded, or out of memory.
 */
void *ob_buf_extend(struct ob_buf *buf, size_t n);
bool ob_buf_append(struct ob_buf *buf, const void *data, size_t n);
bool ob_buf_printf(struct ob_buf *buf, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Drops the first n bytes. */
void ob_buf_consume(struct ob_buf *buf, size_t n);

#endif
