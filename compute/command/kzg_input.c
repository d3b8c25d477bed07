/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/kzg_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/command/input.h"
#include "compute/engine/outboard.h"
#include "tools/command.h"

#define NAME "kzg"

bool obx_kzg_take_hex(const char *option, const char *text, uint8_t *out, size_t want)
{
	size_t n;

	if (!text) {
		obx_usage_error(NAME, "%s is missing", option);
		return false;
	}
	if (!obx_input_hex(text, strlen(text), out, want, &n) || n != want) {
		obx_usage_error(NAME, "%s is not %zu bytes of hex", option, want);
		return false;
	}
	return true;
}

uint8_t *obx_kzg_take_blob(const char *path)
{
	size_t n;
	uint8_t *blob = path ? obx_input_file(NAME, path, OUTBOARD_BLOB_BYTES, &n) : NULL;

	if (!path)
		obx_usage_error(NAME, "--blob is missing");
	if (blob && n != OUTBOARD_BLOB_BYTES) {
		fprintf(stderr, "outboard kzg: %s has %zu bytes; a blob has %d\n", path, n,
			OUTBOARD_BLOB_BYTES);
		free(blob);
		return NULL;
	}
	return blob;
}

uint8_t *obx_kzg_take_items(
	const char *option, const char *path, size_t each, size_t most, size_t *n)
{
	size_t bytes, want = *n;
	uint8_t *data;

	if (!path) {
		obx_usage_error(NAME, "%s is missing", option);
		return NULL;
	}
	data = obx_input_file(NAME, path, most * each, &bytes);
	if (!data)
		return NULL;
	*n = bytes / each;
	if (bytes % each == 0 && (!want || *n == want))
		return data;
	if (want)
		fprintf(stderr,
			"outboard kzg: %s has %zu bytes; %zu items of %zu bytes each are needed\n",
			path, bytes, want, each);
	else
		fprintf(stderr,
			"outboard kzg: %s has %zu bytes, which are not items of %zu bytes each: "
			"item %zu is cut short\n",
			path, bytes, each, *n);
	free(data);
	return NULL;
}

size_t obx_kzg_take_indices(const char *text, uint64_t *indices, size_t room)
{
	size_t n = 0;

	while (text && *text && n < room) {
		char *end;

		indices[n++] = strtoull(text, &end, 10);
		if (end == text || (*end && *end != ','))
			return 0;
		text = *end ? end + 1 : end;
	}
	return text && !*text ? n : 0;
}
