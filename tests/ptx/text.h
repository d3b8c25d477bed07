/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * pt_text: a growing string, for generated PTX and for messages. Owned by the caller; one thread.
 * Running out of memory ends the test program.
 */
#ifndef OB_TESTS_PTX_TEXT_H
#define OB_TESTS_PTX_TEXT_H

#include <stddef.h>

struct pt_text {
	char *p; /* NULL until something is added, then NUL-terminated */
	size_t len, cap;
};

void pt_text_add(struct pt_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pt_text_raw(struct pt_text *t, const char *s, size_t n);
void pt_text_free(struct pt_text *t);

/* Returns a heap string made from a format; the caller frees it. */
char *pt_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Allocates memory or ends the program. */
void *pt_alloc(size_t n);

#endif
