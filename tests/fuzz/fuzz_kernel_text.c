/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/fuzz/fuzz_kernel_text.h"

#include <stdio.h>
#include <string.h>

char fuzz_ptx[FUZZ_PTX_MAX];
size_t fuzz_ptx_size;

void fuzz_ptx_start(const char *head)
{
	fuzz_ptx_size = 0;
	fuzz_put(head);
}

void fuzz_put(const char *s)
{
	size_t n = strlen(s);

	if (fuzz_ptx_size + n < sizeof fuzz_ptx) {
		memcpy(fuzz_ptx + fuzz_ptx_size, s, n + 1);
		fuzz_ptx_size += n;
	}
}

void fuzz_put_number(const char *before, long long v)
{
	char s[40];

	snprintf(s, sizeof s, "%s%lld", before, v);
	fuzz_put(s);
}

void fuzz_put_statement(const char *pattern, const char *letters, void (*put_word)(char letter))
{
	char one[2] = { 0 };

	for (; *pattern; pattern++)
		if (strchr(letters, *pattern)) {
			put_word(*pattern);
		} else {
			one[0] = *pattern;
			fuzz_put(one);
		}
	fuzz_put(";\n");
}

void fuzz_memory_keep(void *user, void *p)
{
	(void)user;
	(void)p;
}

void fuzz_scratch_keep(void *user, void *p, size_t size)
{
	(void)user;
	(void)p;
	(void)size;
}
