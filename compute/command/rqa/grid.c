/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "compute/command/rqa/format.h"

#define DECIMALS_MAX    12
#define NUMBER_TEXT_MAX 40

static const char *const names[] = { "m", "tau", "eps", "lmin" };

struct list {
	const char *name;
	double *values;
	uint32_t count;
};

static unsigned decimals_of(const char *text)
{
	const char *point = strchr(text, '.');

	return point ? (unsigned)strspn(point + 1, "0123456789") : 0;
}

/*
 * Parses the number that begins at *text and ends before one of `ends` or at the end of the text.
 */
static bool take_number(const char *name, const char **text, size_t length, double *ret,
	unsigned *decimals, struct obx_error *error)
{
	char copy[NUMBER_TEXT_MAX], *end;

	if (length == 0 || length >= sizeof copy)
		return obx_error_set(error,
			"%s: a number is missing in '%.60s'; write for example %s=1..10 or "
			"%s=2,3,5",
			name, *text, name, name);
	memcpy(copy, *text, length);
	copy[length] = 0;
	*ret = strtod(copy, &end);
	if (*end || !isfinite(*ret) || strpbrk(copy, "xX"))
		return obx_error_set(error,
			"%s: '%s' is not a number; write for example %s=1..10 or %s=2,3,5", name,
			copy, name, name);
	if (strchr(copy, 'e') || strchr(copy, 'E'))
		*decimals = DECIMALS_MAX;
	else if (decimals_of(copy) > *decimals)
		*decimals = decimals_of(copy);
	if (*decimals > DECIMALS_MAX)
		return obx_error_set(
			error, "%s: '%s' has more than %d decimals", name, copy, DECIMALS_MAX);
	*text += length;
	return true;
}

static bool add_range(struct list *list, double from, double to, double step, unsigned decimals,
	struct obx_error *error)
{
	uint32_t room = OBK_RQA_MAX_VALUES - list->count, count;
	double steps = floor((to - from) / step + 1e-9);

	if (to < from)
		return obx_error_set(error,
			"%s: the range %g..%g is empty; write the smaller number first", list->name,
			from, to);
	if (!(steps < room))
		return obx_error_set(error,
			"%s: the range %g..%g in steps of %g has %.0f values, more than the %u "
			"allowed; take larger steps",
			list->name, from, to, step, steps + 1, OBK_RQA_MAX_VALUES);
	count = obk_rqa_range(from, to, step, decimals, list->values + list->count, room);
	if (count == 0)
		return obx_error_set(error, "%s: the range %g..%g in steps of %g has no values",
			list->name, from, to, step);
	list->count += count;
	return true;
}

/* Parses one item of a list: "3", "1..10" or "0.05..0.1:0.001". */
static bool take_item(struct list *list, const char *item, size_t length, struct obx_error *error)
{
	char copy[3 * NUMBER_TEXT_MAX + 4];
	const char *p = copy, *dots, *colon;
	double from, to, step = 1;
	unsigned decimals = 0;

	if (length >= sizeof copy)
		return obx_error_set(error, "%s: '%.40s...' is too long for a number or a range",
			list->name, item);
	memcpy(copy, item, length);
	copy[length] = 0;
	dots = strstr(copy, "..");
	if (!take_number(
		    list->name, &p, dots ? (size_t)(dots - copy) : length, &from, &decimals, error))
		return false;
	if (!dots) {
		if (list->count == OBK_RQA_MAX_VALUES)
			return obx_error_set(
				error, "%s: more than %u values", list->name, OBK_RQA_MAX_VALUES);
		list->values[list->count++] = from;
		return true;
	}
	p += 2;
	colon = strchr(p, ':');
	if (!take_number(
		    list->name, &p, colon ? (size_t)(colon - p) : strlen(p), &to, &decimals, error))
		return false;
	if (colon) {
		p++;
		if (!take_number(list->name, &p, strlen(p), &step, &decimals, error))
			return false;
		if (!(step > 0))
			return obx_error_set(
				error, "%s: the step %g must be greater than 0", list->name, step);
	} else if (strcmp(list->name, "eps") == 0) {
		return obx_error_set(error,
			"eps: the range '%s' needs a step, for example 0.05..0.10:0.01", copy);
	}
	return add_range(list, from, to, step, decimals, error);
}

static bool check_values(const struct list *list, double max, bool whole, struct obx_error *error)
{
	for (uint32_t i = 0; i < list->count; i++) {
		double v = list->values[i];

		if (whole && (v != floor(v) || v < 1 || v > max))
			return obx_error_set(error, "%s: %g is not a whole number from 1 to %.0f",
				list->name, v, max);
		if (!whole && v < 0)
			return obx_error_set(error, "%s: %g is negative; a threshold is 0 or more",
				list->name, v);
		for (uint32_t k = 0; k < i; k++)
			if (list->values[k] == v)
				return obx_error_set(
					error, "%s: %.12g stands in the list twice", list->name, v);
	}
	return true;
}

static bool to_whole(
	const struct list *list, uint32_t **values, uint32_t *count, struct obx_error *error)
{
	uint32_t *whole = malloc(list->count * sizeof *whole);

	if (!whole)
		return obx_error_set(error, "out of memory");
	for (uint32_t i = 0; i < list->count; i++)
		whole[i] = (uint32_t)list->values[i];
	free(*values);
	*values = whole;
	*count = list->count;
	return true;
}

bool obx_grid_set(
	struct obx_grid *grid, const char *name, const char *text, struct obx_error *error)
{
	OB_CLEANUP(ob_freep) double *values = malloc(OBK_RQA_MAX_VALUES * sizeof *values);
	struct list list = { .values = values };

	if (strcmp(name, "radius") == 0)
		name = "eps";
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i]) == 0)
			list.name = names[i];
	if (!list.name)
		return obx_error_set(error,
			"a grid has the lists m, tau, eps and lmin, no '%.40s'; for "
			"example: " OBX_GRID_USAGE,
			name);
	if (!values)
		return obx_error_set(error, "out of memory");
	if (!*text)
		return obx_error_set(error, "%s: the list is empty; write for example %s=%s", name,
			name, strcmp(name, "eps") ? "1..10" : "0.05,0.1");
	for (const char *p = text;; p++) {
		size_t length = strcspn(p, ",");

		if (!take_item(&list, p, length, error))
			return false;
		p += length;
		if (!*p)
			break;
	}
	if (strcmp(name, "eps") == 0) {
		if (!check_values(&list, 0, false, error))
			return false;
		free(grid->eps);
		grid->eps = realloc(ob_steal(values), list.count * sizeof *values);
		grid->eps_count = list.count;
		return grid->eps ? true : obx_error_set(error, "out of memory");
	}
	if (strcmp(name, "m") == 0)
		return check_values(&list, OBK_RQA_MAX_M, true, error) &&
			to_whole(&list, &grid->m, &grid->m_count, error);
	if (strcmp(name, "tau") == 0)
		return check_values(&list, OBK_RQA_MAX_TAU, true, error) &&
			to_whole(&list, &grid->tau, &grid->tau_count, error);
	return check_values(&list, OBK_RQA_MAX_LENGTH, true, error) &&
		to_whole(&list, &grid->lmin, &grid->lmin_count, error);
}

bool obx_grid_parse(struct obx_grid *grid, const char *text, struct obx_error *error)
{
	OB_CLEANUP(ob_freep) char *copy = strdup(text);
	char *rest = copy, *word;

	if (!copy)
		return obx_error_set(error, "out of memory");
	while ((word = strtok_r(rest, " \t\n", &rest))) {
		char *equals = strchr(word, '=');

		if (!equals)
			return obx_error_set(error,
				"the grid's '%.40s' lacks an =; for example: " OBX_GRID_USAGE,
				word);
		*equals = 0;
		if (!obx_grid_set(grid, word, equals + 1, error))
			return false;
	}
	return true;
}

bool obx_grid_check(const struct obx_grid *grid, struct obx_error *error)
{
	const uint32_t counts[] = { grid->m_count, grid->tau_count, grid->eps_count,
		grid->lmin_count };
	char have[OBX_NUMBER_MAX], most[OBX_NUMBER_MAX];

	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		if (!counts[i])
			return obx_error_set(error,
				"the grid has no values for %s: it is empty; for "
				"example: " OBX_GRID_USAGE,
				names[i]);
	if (obx_grid_combinations(grid) > OBK_RQA_MAX_ROWS)
		return obx_error_set(error,
			"the grid has %s combinations, more than the %s rows allowed; take larger "
			"steps or shorter ranges",
			obx_number_group(obx_grid_combinations(grid), have),
			obx_number_group(OBK_RQA_MAX_ROWS, most));
	return true;
}

uint64_t obx_grid_combinations(const struct obx_grid *grid)
{
	/* At most (10^4)^4 = 10^16, which fits. */
	return (uint64_t)grid->m_count * grid->tau_count * grid->eps_count * grid->lmin_count;
}

void obx_signature_print(
	uint32_t m, uint32_t tau, double eps, uint32_t lmin, char ret_text[OBX_SIGNATURE_MAX])
{
	char number[OBX_NUMBER_MAX];

	obx_number_print(eps, OBX_NUMBER_DIGITS, number);
	snprintf(ret_text, OBX_SIGNATURE_MAX, "m%u_tau%u_eps%s_lmin%u", m, tau, number, lmin);
}

void obx_grid_fini(struct obx_grid *grid)
{
	free(grid->m);
	free(grid->tau);
	free(grid->lmin);
	free(grid->eps);
	memset(grid, 0, sizeof *grid);
}

void obx_grid_json(const struct obx_grid *grid, int digits, struct ob_json *json)
{
	const struct {
		const char *name;
		const uint32_t *list;
		uint32_t count;
	} wholes[] = {
		{ "m", grid->m, grid->m_count },
		{ "tau", grid->tau, grid->tau_count },
		{ "lmin", grid->lmin, grid->lmin_count },
	};

	for (size_t k = 0; k < ob_count(wholes); k++) {
		ob_json_array(json, wholes[k].name);
		for (uint32_t i = 0; i < wholes[k].count; i++)
			ob_json_uint(json, NULL, wholes[k].list[i]);
		ob_json_end(json);
	}
	ob_json_array(json, "eps");
	for (uint32_t i = 0; i < grid->eps_count; i++)
		ob_json_double(json, NULL, grid->eps[i], digits);
	ob_json_end(json);
}
