/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compute/command/input.h"

static int digit(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

bool obx_input_hex(const char *text, size_t n, uint8_t *out, size_t room, size_t *ret_bytes)
{
	size_t done = 0;
	int high = -1;
	bool word = true; /* at the start of the text, or after white space */

	for (size_t i = 0; i < n; i++) {
		int d = digit(text[i]);

		if (text[i] == '\n' || text[i] == '\r' || text[i] == ' ' || text[i] == '\t') {
			word = true;
			continue;
		}
		if (word && i + 1 < n && text[i] == '0' &&
			(text[i + 1] == 'x' || text[i + 1] == 'X')) {
			word = false;
			i++;
			continue;
		}
		word = false;
		if (d < 0 || (high >= 0 && done == room))
			return false;
		if (high < 0) {
			high = d;
			continue;
		}
		out[done++] = (uint8_t)(high << 4 | d);
		high = -1;
	}
	*ret_bytes = done;
	return high < 0;
}

uint8_t *obx_input_file(const char *verb, const char *path, size_t max, size_t *ret_bytes)
{
	size_t room = 2 * max + 4096, n; /* hex, 0x and line ends */
	FILE *f = fopen(path, "rbe");
	struct stat info;
	char *data;
	uint8_t *out;

	if (f && fstat(fileno(f), &info) == 0 && S_ISREG(info.st_mode) &&
		(size_t)info.st_size < room) {
		room = (size_t)info.st_size + 1; /* one byte more, to detect the end of the file */
		max = max < room ? max : room;
	}
	data = f ? malloc(room) : NULL;
	out = data ? malloc(max + 1) : NULL;
	if (!out) {
		fprintf(stderr, "outboard %s: %s cannot be read: %s\n", verb, path,
			strerror(f ? ENOMEM : errno));
		goto fail;
	}
	n = fread(data, 1, room, f);
	if (ferror(f)) {
		fprintf(stderr, "outboard %s: %s cannot be read\n", verb, path);
		goto fail;
	}
	if (n > max || (n > 2 && data[0] == '0' && data[1] == 'x')) {
		if (n < room && obx_input_hex(data, n, out, max, ret_bytes))
			goto done;
		if (n > max) {
			fprintf(stderr, "outboard %s: %s is neither %zu bytes long nor their hex\n",
				verb, path, max);
			goto fail;
		}
	}
	memcpy(out, data, n);
	*ret_bytes = n;
done:
	fclose(f);
	free(data);
	return out;
fail:
	if (f)
		fclose(f);
	free(data);
	free(out);
	return NULL;
}

bool obx_output_file(const char *verb, const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wbe");
	bool fine = f && fwrite(data, 1, n, f) == n;

	if (f && fclose(f) != 0)
		fine = false;
	if (!fine)
		fprintf(stderr, "outboard %s: %s cannot be written: %s\n", verb, path,
			strerror(errno));
	return fine;
}
