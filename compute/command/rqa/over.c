/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/over.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CAPACITY_FIRST 64u

static const char *const names[OBX_OVER_DIMENSIONS] = { "file", "mode", "m", "tau", "eps", "lmin" };
static const char *const plurals[OBX_OVER_DIMENSIONS] = { "files", "modes", "values of m",
	"values of tau", "values of eps", "values of lmin" };

const char *obx_over_name(enum obx_over_dimension d)
{
	return names[d];
}

/* The entry of a key, or the empty entry where it belongs. */
static uint64_t *find(uint64_t *keys, uint32_t capacity, uint64_t key)
{
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) & (capacity - 1);

	while (keys[at] && keys[at] != key)
		at = (at + 1) & (capacity - 1);
	return &keys[at];
}

static bool grow(struct obx_over_values *v)
{
	uint32_t capacity = v->capacity ? 2 * v->capacity : CAPACITY_FIRST;
	uint64_t *keys = calloc(capacity, sizeof *keys);

	if (!keys)
		return false;
	for (uint32_t i = 0; i < v->capacity; i++)
		if (v->keys[i])
			*find(keys, capacity, v->keys[i]) = v->keys[i];
	free(v->keys);
	v->keys = keys;
	v->capacity = capacity;
	return true;
}

bool obx_over_add(struct obx_over *over, enum obx_over_dimension d, uint64_t key)
{
	struct obx_over_values *v = &over->of[d];
	uint64_t *place;

	key = key + 1 ? key + 1 : 1; /* 0 marks an empty entry */
	if (v->count && key == v->last)
		return true;
	if (2 * v->count >= v->capacity && !grow(v))
		return false;
	place = find(v->keys, v->capacity, key);
	v->count += !*place;
	*place = v->last = key;
	return true;
}

static bool is_axis(enum obx_over_dimension d, const char *x, const char *y)
{
	return strcasecmp(names[d], x) == 0 || strcasecmp(names[d], y) == 0;
}

/*
 * Appends to text, with `separator` before it unless text is empty. Text that does not fit is left
 * out.
 */
__attribute__((format(printf, 3, 4))) static void append(
	char text[OBX_OVER_TEXT_MAX], const char *separator, const char *format, ...)
{
	char word[OBX_OVER_NAME_MAX + 32];
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(word, sizeof word, format, args);
	va_end(args);
	if (used + strlen(separator) + strlen(word) < OBX_OVER_TEXT_MAX)
		snprintf(
			text + used, OBX_OVER_TEXT_MAX - used, "%s%s", used ? separator : "", word);
}

void obx_over_text(
	const struct obx_over *over, const char *x, const char *y, char ret_text[OBX_OVER_TEXT_MAX])
{
	ret_text[0] = '\0';
	for (unsigned d = 0; d < OBX_OVER_DIMENSIONS; d++)
		if (over->of[d].count > 1 && !is_axis(d, x, y))
			append(ret_text, ", ", "%u %s", over->of[d].count, plurals[d]);
}

void obx_over_fixed(
	const struct obx_over *over, const char *x, const char *y, char ret_text[OBX_OVER_TEXT_MAX])
{
	ret_text[0] = '\0';
	for (unsigned d = 0; d < OBX_OVER_DIMENSIONS; d++)
		if (over->of[d].count == 1 && !is_axis(d, x, y))
			append(ret_text, " ", "%s=%s", names[d], over->of[d].first);
}

void obx_over_choice(
	const struct obx_over *over, const char *x, const char *y, char ret_text[OBX_OVER_TEXT_MAX])
{
	bool files_alone = true;

	for (unsigned d = OBX_OVER_FILE + 1; d < OBX_OVER_DIMENSIONS; d++)
		files_alone &= over->of[d].count <= 1 || is_axis(d, x, y);
	ret_text[0] = '\0';
	for (unsigned d = files_alone ? OBX_OVER_FILE : OBX_OVER_FILE + 1; d < OBX_OVER_DIMENSIONS;
		d++)
		if (over->of[d].count && !is_axis(d, x, y) && !strchr(over->of[d].first, ' '))
			append(ret_text, " ", "%s=%s", names[d], over->of[d].first);
}

void obx_over_fini(struct obx_over *over)
{
	for (unsigned d = 0; d < OBX_OVER_DIMENSIONS; d++)
		free(over->of[d].keys);
	memset(over, 0, sizeof *over);
}
