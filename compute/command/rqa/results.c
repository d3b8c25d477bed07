/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/results.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/heat.h"

#define LISTED_FILES_MAX 2000

/* The dimensions in the order of the table; the last one changes fastest. */
enum dimension {
	BY_FILE = OBX_OVER_FILE,
	BY_MODE = OBX_OVER_MODE,
	BY_M = OBX_OVER_M,
	BY_TAU = OBX_OVER_TAU,
	BY_EPS = OBX_OVER_EPS,
	BY_LMIN = OBX_OVER_LMIN,
	DIMENSIONS = OBX_OVER_DIMENSIONS
};

struct place {
	uint64_t count[DIMENSIONS], first[DIMENSIONS], at[DIMENSIONS];
};

static bool place_init(struct place *p, const struct obx_sweep *s,
	const struct obx_results_filter *f, struct obx_error *error)
{
	const uint64_t counts[DIMENSIONS] = { s->files.count, s->setup.mode_count, s->grid.m_count,
		s->grid.tau_count, s->grid.eps_count, s->grid.lmin_count };
	const int64_t wanted[DIMENSIONS] = { f->file, f->mode, f->m, f->tau, f->eps, f->lmin };

	for (int d = 0; d < DIMENSIONS; d++) {
		if (wanted[d] >= 0 && (uint64_t)wanted[d] >= counts[d])
			return obx_error_set(
				error, "there is no such file, mode or value in this sweep");
		p->first[d] = wanted[d] >= 0 ? (uint64_t)wanted[d] : 0;
		p->count[d] = wanted[d] >= 0 ? 1 : counts[d];
	}
	return true;
}

/* Moves to row number `index` of those that match. */
static void place_go(struct place *p, uint64_t index)
{
	for (int d = DIMENSIONS - 1; d >= 0; d--) {
		p->at[d] = p->first[d] + index % p->count[d];
		index /= p->count[d];
	}
}

static uint64_t place_total(const struct place *p)
{
	uint64_t total = 1;

	for (int d = 0; d < DIMENSIONS; d++)
		total *= p->count[d];
	return total;
}

static uint64_t place_slot(const struct place *p, const struct obx_sweep *s)
{
	return obx_store_slot(s->store, (uint32_t)p->at[BY_M], (uint32_t)p->at[BY_TAU],
		p->at[BY_FILE], (uint32_t)p->at[BY_MODE]);
}

static void print_row(const struct obx_sweep *s, const struct place *p,
	const struct obx_group *group, bool there, struct ob_json *json)
{
	uint32_t row = (uint32_t)(p->at[BY_EPS] * s->grid.lmin_count + p->at[BY_LMIN]);
	bool done = there && group->status[row] == OBK_RQA_OK;

	ob_json_object(json, NULL);
	ob_json_text(json, "file", s->files.list[p->at[BY_FILE]].name);
	ob_json_text(json, "mode", s->setup.modes[p->at[BY_MODE]].name);
	ob_json_uint(json, "m", s->grid.m[p->at[BY_M]]);
	ob_json_uint(json, "tau", s->grid.tau[p->at[BY_TAU]]);
	ob_json_double(json, "eps", s->grid.eps[p->at[BY_EPS]], OBX_NUMBER_DIGITS);
	ob_json_uint(json, "lmin", s->grid.lmin[p->at[BY_LMIN]]);
	ob_json_text(json, "status", !there ? "waiting" : done ? "done" : "failed");
	if (done) {
		ob_json_array(json, "values");
		for (unsigned k = 0; k < s->setup.measure_count; k++)
			ob_json_double(json, NULL,
				group->values[(size_t)row * s->setup.measure_count + k], 0);
		ob_json_end(json);
	} else if (there) {
		ob_json_text(json, "reason", group->reason);
	}
	ob_json_end(json);
}

bool obx_results_print(const struct obx_sweep *s, const struct obx_results_filter *filter,
	uint64_t offset, uint32_t limit, FILE *out, struct obx_error *error)
{
	OB_CLEANUP(obx_group_fini) struct obx_group group = { 0 };
	uint64_t total, slot = UINT64_MAX;
	struct ob_json json;
	struct place p;
	bool there = false;

	if (!place_init(&p, s, filter, error))
		return false;
	if (!obx_group_init(&group, s->store))
		return obx_error_set(error, "out of memory");
	total = place_total(&p);
	ob_json_begin(&json, out, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_uint(&json, "total", total);
	ob_json_uint(&json, "offset", offset);
	obx_setup_measures_json(&s->setup, &json);
	ob_json_array(&json, "rows");
	for (uint64_t i = offset; i < total && i < offset + limit; i++) {
		place_go(&p, i);
		if (place_slot(&p, s) != slot) {
			slot = place_slot(&p, s);
			there = obx_store_get(s->store, slot, &group, error);
		}
		ob_json_break(&json);
		print_row(s, &p, &group, there, &json);
	}
	ob_json_end(&json);
	ob_json_end(&json);
	putc('\n', out);
	return true;
}

static int find_dimension(const char *name)
{
	static const char *const names[] = { "", "", "m", "tau", "eps", "lmin" };

	for (int d = BY_M; d < DIMENSIONS; d++)
		if (strcmp(names[d], name) == 0)
			return d;
	return -1;
}

static double value_of(const struct obx_sweep *s, int dimension, uint64_t index)
{
	return dimension == BY_M      ? s->grid.m[index]
		: dimension == BY_TAU ? s->grid.tau[index]
		: dimension == BY_EPS ? s->grid.eps[index]
				      : s->grid.lmin[index];
}

/* A row of the sweep in the form that the heat map needs. */
struct heat_place {
	const struct obx_sweep *sweep;
	const struct place *place;
};

static uint64_t heat_key(const void *arg, enum obx_over_dimension d)
{
	const struct heat_place *h = arg;

	return h->place->at[d];
}

static void heat_name(const void *arg, enum obx_over_dimension d, char ret_text[OBX_OVER_NAME_MAX])
{
	const struct heat_place *h = arg;
	uint64_t at = h->place->at[d];
	char number[OBX_NUMBER_MAX];

	if (d == OBX_OVER_FILE)
		snprintf(ret_text, OBX_OVER_NAME_MAX, "%s", h->sweep->files.list[at].name);
	else if (d == OBX_OVER_MODE)
		snprintf(ret_text, OBX_OVER_NAME_MAX, "%s", h->sweep->setup.modes[at].name);
	else {
		obx_number_print(value_of(h->sweep, (int)d, at), OBX_NUMBER_DIGITS, number);
		snprintf(ret_text, OBX_OVER_NAME_MAX, "%s", number);
	}
}

/* Adds all matching rows of one slot. */
static bool add_slot(const struct obx_sweep *s, struct place *p, const struct obx_group *group,
	bool there, unsigned measure, int x, int y, struct obx_heat *heat, struct obx_error *error)
{
	struct heat_place at = { s, p };

	for (uint64_t e = 0; e < p->count[BY_EPS]; e++)
		for (uint64_t l = 0; l < p->count[BY_LMIN]; l++) {
			uint64_t row;

			p->at[BY_EPS] = p->first[BY_EPS] + e;
			p->at[BY_LMIN] = p->first[BY_LMIN] + l;
			row = p->at[BY_EPS] * s->grid.lmin_count + p->at[BY_LMIN];
			if (!obx_heat_add(heat,
				    &(struct obx_heat_row){ .x = value_of(s, x, p->at[x]),
					    .y = value_of(s, y, p->at[y]),
					    .value = there && group->status[row] == OBK_RQA_OK
						    ? group->values[row * s->setup.measure_count +
							      measure]
						    : NAN,
					    .arg = &at,
					    .key = heat_key,
					    .name = heat_name,
					    .dimensions = (1u << OBX_OVER_DIMENSIONS) - 1 },
				    error))
				return false;
		}
	return true;
}

bool obx_results_heat(const struct obx_sweep *s, const struct obx_results_filter *filter,
	unsigned measure, const char *x, const char *y, uint32_t width, uint8_t **ret_png,
	size_t *ret_size, char ret_over[OBX_OVER_TEXT_MAX], struct obx_error *error)
{
	OB_CLEANUP(obx_group_fini) struct obx_group group = { 0 };
	OB_CLEANUP(obx_heat_fini) struct obx_heat heat = { 0 };
	OB_CLEANUP(ob_freep) uint32_t *colours = NULL;
	struct obx_figure figure;
	int dx = find_dimension(x), dy = find_dimension(y);
	uint64_t slots;
	struct place p;

	if (dx < 0 || dy < 0 || dx == dy)
		return obx_error_set(
			error, "x and y are two different ones of m, tau, eps and lmin");
	if (measure >= s->setup.measure_count)
		return obx_error_set(error, "there is no such measure in this sweep");
	if (!place_init(&p, s, filter, error) || !obx_heat_init(&heat, error))
		return false;
	if (!obx_group_init(&group, s->store))
		return obx_error_set(error, "out of memory");
	snprintf(heat.x_name, sizeof heat.x_name, "%s", x);
	snprintf(heat.y_name, sizeof heat.y_name, "%s", y);
	snprintf(heat.measure, sizeof heat.measure, "%s",
		obk_rqa_measure_name(s->setup.measures[measure]));
	slots = p.count[BY_FILE] * p.count[BY_MODE] * p.count[BY_M] * p.count[BY_TAU];
	for (uint64_t i = 0; i < slots; i++) {
		place_go(&p, i * p.count[BY_EPS] * p.count[BY_LMIN]);
		if (!add_slot(s, &p, &group,
			    obx_store_get(s->store, place_slot(&p, s), &group, error), measure, dx,
			    dy, &heat, error))
			return false;
	}
	obx_over_text(&heat.over, x, y, ret_over);
	return obx_heat_figure(&heat, width, &figure, &colours, error) &&
		obx_figure_encode(&figure, OBX_FIGURE_PNG, ret_png, ret_size, error);
}

void obx_results_lists(const struct obx_sweep *s, FILE *out)
{
	struct ob_json json;

	ob_json_begin(&json, out, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_array(&json, "files");
	for (uint64_t i = 0; i < s->files.count && i < LISTED_FILES_MAX; i++)
		ob_json_text(&json, NULL, s->files.list[i].name);
	ob_json_end(&json);
	ob_json_array(&json, "modes");
	for (unsigned i = 0; i < s->setup.mode_count; i++)
		ob_json_text(&json, NULL, s->setup.modes[i].name);
	ob_json_end(&json);
	obx_grid_json(&s->grid, OBX_NUMBER_DIGITS, &json);
	obx_setup_measures_json(&s->setup, &json);
	ob_json_uint(&json, "writes", s->writes);
	ob_json_end(&json);
}
