/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/compute/kernels/vectors.h"

#define CHUNK 2048

static void *need(void *p, const char *what)
{
	if (!p) {
		fprintf(stderr, "vectors: %s\n", what);
		exit(1);
	}
	return p;
}

static char *read_file(const char *folder, const char *name, size_t *ret_size)
{
	char path[4096], *data;
	FILE *f;
	long n;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	f = need(fopen(path, "rbe"), path);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	data = need(malloc((size_t)n + 1), "memory");
	if (fread(data, 1, (size_t)n, f) != (size_t)n)
		need(NULL, path);
	data[n] = 0;
	fclose(f);
	*ret_size = (size_t)n;
	return data;
}

void vectors_open(struct vectors *v, const char *folder)
{
	size_t n;

	memset(v, 0, sizeof *v);
	v->text = v->at = read_file(folder, "vectors.txt", &n);
	v->chunks = (uint8_t *)read_file(folder, "chunks.bin", &v->chunks_size);
}

static void forget(struct vectors *v)
{
	for (unsigned i = 0; i < v->field_count; i++) {
		free(v->fields[i].numbers);
		free(v->fields[i].bytes);
	}
	memset(v->fields, 0, sizeof v->fields);
	v->field_count = 0;
}

static char *take_line(struct vectors *v)
{
	char *line = v->at, *end = strchr(line, '\n');

	if (!*line)
		return NULL;
	need(end, "a line without end");
	*end = 0;
	v->at = end + 1;
	return line;
}

static uint8_t *take_chunks(const struct vectors *v, const char *list, uint8_t *out, size_t length)
{
	size_t done = 0;

	while (done < length) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), count = 1;
		bool run = *end == '+', again = *end == '*';

		if (run || again)
			count = strtoul(end + 1, &end, 10);
		for (unsigned long i = 0; i < count && done < length; i++) {
			size_t take = length - done < CHUNK ? length - done : CHUNK,
			       at = (first + (run ? i : 0)) * CHUNK;

			if (at + CHUNK > v->chunks_size)
				need(NULL, "a chunk beyond the file");
			memcpy(out + done, v->chunks + at, take);
			done += take;
		}
		list = *end ? end + 1 : end;
		if (!*end && done < length)
			need(NULL, "chunks are missing");
	}
	return out;
}

static size_t bytes_length(const char *token)
{
	return *token == 'x' ? (strlen(token) - 1) / 2 : strtoul(token + 1, NULL, 10);
}

static void take_bytes(const struct vectors *v, const char *token, uint8_t *out, size_t length)
{
	if (*token == 'L') {
		take_chunks(v, strchr(token, ':') + 1, out, length);
		return;
	}
	for (size_t i = 0; i < length; i++) {
		char two[3] = { token[1 + 2 * i], token[2 + 2 * i], 0 };

		out[i] = (uint8_t)strtoul(two, NULL, 16);
	}
}

static void take_field(struct vectors *v, char *line)
{
	struct vector_field *f = &v->fields[v->field_count++];
	char *save, *name = strtok_r(line, " ", &save), *count = strtok_r(NULL, " ", &save),
		    **tokens;
	bool same = true;

	snprintf(f->name, sizeof f->name, "%s", name);
	f->count = strtoul(need(count, "a line without count"), NULL, 10);
	tokens = need(calloc(f->count + 1, sizeof *tokens), "memory");
	f->numbers = need(calloc(f->count + 1, sizeof *f->numbers), "memory");
	for (size_t i = 0; i < f->count; i++)
		tokens[i] = need(strtok_r(NULL, " ", &save), "values are missing");
	f->null = f->count == 1 && strcmp(tokens[0], "null") == 0;
	f->truth = f->count == 1 && strcmp(tokens[0], "true") == 0;
	if (f->count && (*tokens[0] == 'x' || *tokens[0] == 'L')) {
		for (size_t i = 0; i < f->count; i++)
			same &= bytes_length(tokens[i]) == bytes_length(tokens[0]);
		f->length = same ? bytes_length(tokens[0]) : 0;
		f->bytes = need(malloc(f->count * f->length + 1), "memory");
		for (size_t i = 0; i < f->count && same; i++)
			take_bytes(v, tokens[i], f->bytes + i * f->length, f->length);
	} else {
		for (size_t i = 0; i < f->count; i++)
			f->numbers[i] = strtoull(tokens[i], NULL, 10);
	}
	free(tokens);
}

bool vectors_next(struct vectors *v, const char *handler)
{
	char *line;

	forget(v);
	while ((line = take_line(v)) != NULL) {
		if (strncmp(line, "test ", 5) != 0)
			continue;
		if (sscanf(line, "test %63s %127s", v->handler, v->name) != 2)
			need(NULL, line);
		if (strcmp(v->handler, handler) != 0)
			continue;
		while (*v->at && strncmp(v->at, "test ", 5) != 0) {
			if (v->field_count == VECTOR_MAX_FIELDS)
				need(NULL, "too many fields");
			take_field(v, take_line(v));
		}
		return true;
	}
	free(v->text);
	free(v->chunks);
	return false;
}

const struct vector_field *vectors_field(const struct vectors *v, const char *name, unsigned nth)
{
	for (unsigned i = 0; i < v->field_count; i++) {
		if (strcmp(v->fields[i].name, name) == 0 && nth-- == 0)
			return &v->fields[i];
	}
	return need(NULL, name);
}
