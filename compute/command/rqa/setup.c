/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/setup.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/setup_options.h"

#define WORDS_TEXT_MAX 96

enum type { WORD, WHOLE, REAL, THEILER, QUIRK, OWN };

/* The options of setup_options.h, for the command line, the page, the state file and the manual. */
static const struct option {
	const char *name;
	enum type type;
	size_t offset;     /* in struct obk_rqa_options, or for OWN in struct obx_setup */
	const char *words; /* WORD and OWN: "a|b|c", values counted from 0 */
	double min, max;
	const char *help;
} options[] = {
#define AT(field)   offsetof(struct obk_rqa_options, field)
#define MINE(field) offsetof(struct obx_setup, field)
#define WORDS_ENTRY(settings, field, name, type, target, words, help) \
	{ name, type, target, words, 0, 0, help },
#define NUMBER_ENTRY(settings, field, name, type, target, arg, min, max, help) \
	{ name, type, target, NULL, min, max, help },
	OBX_SETUP_GRID(, , WORDS_ENTRY, NUMBER_ENTRY) OBX_SETUP_RULES(, , WORDS_ENTRY, NUMBER_ENTRY)
#undef AT
#undef MINE
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

static const struct {
	const char *name, *value, *help;
} texts[] = {
#define TEXT_ENTRY(settings, field, name, arg, help) { name, arg, help },
	OBX_SETUP_TEXTS(, , TEXT_ENTRY)
};
#define TEXT_COUNT (sizeof texts / sizeof texts[0])

static int find_word(const char *words, const char *text)
{
	int index = 0;

	for (const char *p = words;; index++) {
		size_t n = strcspn(p, "|");

		if (strlen(text) == n && strncasecmp(p, text, n) == 0)
			return index;
		if (!p[n])
			return -1;
		p += n + 1;
	}
}

static void print_word(const char *words, int index, char *ret_text, size_t size)
{
	while (index-- > 0 && strchr(words, '|'))
		words = strchr(words, '|') + 1;
	snprintf(ret_text, size, "%.*s", (int)strcspn(words, "|"), words);
}

/*
 * Checks a value, and applies it to setup unless setup is NULL. false: ret_takes says what the value
 * must be.
 */
static bool apply(struct obx_setup *setup, const struct option *o, const char *value,
	struct obx_error *ret_takes)
{
	char *to = setup ? (o->type == OWN ? (char *)setup : (char *)&setup->options) + o->offset
			 : NULL;
	uint64_t whole = 0;
	double real = 0;
	char *end;

	if (o->words) {
		/* "cuda" is an older name for a GPU. */
		int index = find_word(o->words,
			strcmp(o->name, "device") == 0 && strcmp(value, "cuda") == 0 ? "gpu"
										     : value);

		if (index < 0)
			return obx_error_set(ret_takes, "one of %s", o->words);
		whole = (uint64_t)index;
	} else if (o->type == REAL) {
		real = strtod(value, &end);
		if (!*value || *end || !(real >= o->min && real <= o->max))
			return obx_error_set(ret_takes, "a number from %g to %g", o->min, o->max);
	} else if (!ob_text_parse_number(value, (uint64_t)o->min, (uint64_t)o->max, &whole)) {
		return obx_error_set(ret_takes, "a whole number from %.0f to %.0f", o->min, o->max);
	}
	if (!to)
		return true;
	if (o->type == REAL)
		memcpy(to, &real, sizeof real);
	else if (o->type == THEILER)
		setup->options.theiler_rr = setup->options.theiler_diag =
			setup->options.theiler_vert = (uint32_t)whole;
	else if (o->type == OWN && o->offset == offsetof(struct obx_setup, allow_constant))
		setup->allow_constant = whole;
	else if (o->type == QUIRK)
		setup->options.quirks = whole ? OBK_RQA_QUIRK_LAST_COLUMN : 0;
	else
		memcpy(to, &(int){ (int)whole }, sizeof(int)); /* works for enums and uint32_t */
	return true;
}

static const struct option *find_option(const char *name)
{
	if (strcmp(name, "radius") == 0)
		name = "eps";
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

static const char *find_text(const char *name)
{
	for (size_t i = 0; i < TEXT_COUNT; i++)
		if (strcmp(texts[i].name, name) == 0)
			return texts[i].name;
	return NULL;
}

/* Stores a value, to be applied by obx_setup_finish. false: ret_takes says what it must be. */
static bool keep(struct obx_setup *setup, const struct option *o, const char *name,
	const char *value, struct obx_error *ret_takes)
{
	if (o && !apply(NULL, o, value, ret_takes))
		return false;
	if (strlen(value) >= OBX_SETUP_VALUE_MAX)
		return obx_error_set(
			ret_takes, "a value of at most %d bytes", OBX_SETUP_VALUE_MAX - 1);
	if (setup->given_count == OBX_SETUP_GIVEN_MAX)
		return obx_error_set(
			ret_takes, "its place among the first %d options", OBX_SETUP_GIVEN_MAX);
	setup->given[setup->given_count].name = name;
	strcpy(setup->given[setup->given_count++].value, value);
	return true;
}

bool obx_setup_take(struct obx_setup *setup, const char *name, const char *value, bool *ret_known,
	struct obx_error *error)
{
	const struct option *o = find_option(name);
	const char *kept = o ? o->name : find_text(name);
	struct obx_error takes;

	*ret_known = kept;
	if (!kept)
		return obx_error_set(error, "there is no option '%.60s'", name);
	return keep(setup, o, kept, value, &takes) ||
		obx_error_set(error, "--%s takes %.200s, not '%.40s'", kept, takes.text, value);
}

enum ob_err obx_setup_take_option(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	const struct option *o = find_option(option->name);
	struct obx_error takes;

	if (keep(target, o, o ? o->name : option->name, text, &takes))
		return OB_ERR_NONE;
	return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%.200s", takes.text);
}

static const char *given(const struct obx_setup *setup, const char *name)
{
	for (unsigned i = setup->given_count; i-- > 0;)
		if (strcmp(setup->given[i].name, name) == 0)
			return setup->given[i].value;
	return NULL;
}

static bool unknown_preset(const char *name, struct obx_error *error)
{
	char have[400] = "";

	for (unsigned i = 0; i < OBK_RQA_PRESET_COUNT; i++) {
		size_t used = strlen(have);

		snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "",
			obk_rqa_preset_name(i));
	}
	return obx_error_set(error, "there is no preset '%.40s'; there are %s", name, have);
}

/* "RR,DET,ENT" or "all"; sets in options.want what must be counted for them. */
static bool take_measures(struct obx_setup *setup, const char *list, struct obx_error *error)
{
	char copy[OBX_SETUP_VALUE_MAX], *rest = copy, *name;

	setup->measure_count = 0;
	if (strcmp(list, "all") == 0) {
		for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++)
			setup->measures[setup->measure_count++] = i;
	}
	strcpy(copy, list);
	while (setup->measure_count < OBK_RQA_MEASURE_COUNT &&
		(name = strtok_r(rest, ",", &rest))) {
		int id = obk_rqa_measure_find(strcasecmp(name, "ENT") == 0 ? "ENTR" : name);

		if (id < 0)
			return obx_error_set(error,
				"there is no measure '%.40s'; 'outboard rqa measures' lists them, "
				"for example RR,DET,L,Lmax,ENTR,LAM,TT",
				name);
		for (unsigned i = 0; i < setup->measure_count; i++)
			if (setup->measures[i] == (unsigned)id)
				return obx_error_set(
					error, "the measure %s stands in the list twice", name);
		setup->measures[setup->measure_count++] = (unsigned)id;
	}
	if (!setup->measure_count)
		return obx_error_set(error, "--measures: the list is empty");
	return true;
}

static uint32_t wanted(const struct obx_setup *setup)
{
	uint32_t want = 0;

	for (unsigned i = 0; i < setup->measure_count; i++) {
		unsigned id = setup->measures[i];

		want |= id >= OBK_RQA_LAM && id <= OBK_RQA_VENTR ? OBK_RQA_WANT_VERTICAL : 0;
		want |= id >= OBK_RQA_W && id <= OBK_RQA_WENTR ? OBK_RQA_WANT_WHITE : 0;
		want |= id >= OBK_RQA_T1 && id <= OBK_RQA_NMPRT ? OBK_RQA_WANT_TIMES : 0;
		want |= id == OBK_RQA_TREND || id == OBK_RQA_CORM ? OBK_RQA_WANT_TREND : 0;
		want |= id == OBK_RQA_TRANSITIVITY || id == OBK_RQA_CLUSTERING
			? OBK_RQA_WANT_NETWORK
			: 0;
	}
	return want;
}

bool obx_setup_finish(struct obx_setup *setup, struct obx_error *error)
{
	const char *preset = given(setup, "preset"), *measures = given(setup, "measures");
	struct obk_rqa_error wrong = { 0 };
	int id = preset ? obk_rqa_preset_find(preset) : OBK_RQA_PRESET_GAZE;

	if (id < 0)
		return unknown_preset(preset, error);
	setup->preset = (enum obk_rqa_preset)id;
	obk_rqa_options_preset(setup->preset, &setup->options);
	for (unsigned i = 0; i < setup->given_count; i++) {
		const struct option *o = find_option(setup->given[i].name);

		if (o && !apply(setup, o, setup->given[i].value, error))
			return false;
	}
	setup->norm_given = given(setup, "norm");
	setup->table.columns = given(setup, "columns");
	setup->options.missing = setup->table.missing == OBX_MISSING_GAP;
	setup->measures_given = measures;
	if (!take_measures(setup,
		    measures                          ? measures
			    : setup->default_measures ? setup->default_measures
						      : "RR,DET,L,Lmax,ENTR",
		    error))
		return false;
	setup->options.want = wanted(setup);
	if (obk_rqa_options_check(&setup->options, &wrong) != OBK_RQA_OK)
		return obx_error_set(error, "%s", wrong.text);
	return true;
}

/* Parses one item of --modes. */
static bool take_mode(
	struct obx_setup *setup, char *item, uint32_t channels, struct obx_error *error)
{
	struct obk_rqa_mode *mode = &setup->modes[setup->mode_count];
	char *name = setup->mode_names[setup->mode_count], *colon = strchr(item, ':'), *equals,
	     *letters;

	if (setup->mode_count == OBX_SETUP_MODES_MAX)
		return obx_error_set(error, "--modes: more than %d modes", OBX_SETUP_MODES_MAX);
	*mode = (struct obk_rqa_mode){ .name = name, .norm = -1 };
	if (colon) {
		*colon = 0;
		mode->norm = find_word("l1|l2|max", colon + 1);
		if (mode->norm < 0)
			return obx_error_set(error,
				"--modes: the norm is l1, l2 or max, not '%.40s'", colon + 1);
	}
	equals = strchr(item, '=');
	if (equals)
		*equals = 0;
	if (!*item || strlen(item) >= OBX_TABLE_NAME_MAX || strpbrk(item, ", \"\t\n"))
		return obx_error_set(error, "--modes: '%.40s' is no name for a mode", item);
	strcpy(name, item);
	for (unsigned i = 0; i < setup->mode_count; i++)
		if (strcmp(setup->mode_names[i], name) == 0)
			return obx_error_set(error, "--modes: %s stands in the list twice", name);
	letters = strstr(item, "D-");
	for (char *p = equals ? equals + 1 : letters ? letters + 2 : item + strlen(item); *p;) {
		unsigned long number = 0;

		if (equals) {
			number = strtoul(p, &p, 10);
			p += *p == '+';
		} else {
			const char *at = strchr("xyzw", tolower((unsigned char)*p++));

			number = at ? (unsigned long)(at - "xyzw") + 1 : 0;
		}
		if (number < 1 || number > OBX_TABLE_CHANNELS_MAX ||
			mode->channel_count == OBK_RQA_MAX_CHANNELS)
			goto wrong;
		if (channels && number > channels)
			return obx_error_set(error,
				"the mode %s needs column %lu, but only %u column%s are read; name "
				"them with --columns",
				name, number, channels, channels == 1 ? "" : "s");
		mode->channels[mode->channel_count++] = (uint32_t)number - 1;
	}
	if (mode->channel_count && (equals || strtoul(name, NULL, 10) == mode->channel_count)) {
		setup->mode_count++;
		return true;
	}
wrong:
	return obx_error_set(error,
		"--modes: '%.40s' is no mode; write 1D-x, 1D-y, 2D-xy or NAME=1+2 (columns by "
		"number), with :l1, :l2 or :max after it",
		name);
}

bool obx_setup_modes(struct obx_setup *setup, uint32_t channels, struct obx_error *error)
{
	const char *list = given(setup, "modes");
	char copy[OBX_SETUP_VALUE_MAX], *rest = copy, *item;

	setup->mode_count = 0;
	if (list && *list) {
		strcpy(copy, list);
	} else if (setup->preset == OBK_RQA_PRESET_GAZE && channels == 2) {
		strcpy(copy, "2D-xy,1D-x");
	} else if (channels <= 4) {
		snprintf(copy, sizeof copy, "%uD-%.*s", channels, (int)channels, "xyzw");
	} else {
		size_t used = (size_t)snprintf(copy, sizeof copy, "%uD=1", channels);

		for (uint32_t i = 2; i <= channels; i++)
			used += (size_t)snprintf(copy + used, sizeof copy - used, "+%u", i);
	}
	while ((item = strtok_r(rest, ",", &rest)))
		if (!take_mode(setup, item, channels, error))
			return false;
	if (!setup->mode_count)
		return obx_error_set(error, "--modes: the list is empty");
	for (unsigned i = 0; i < setup->mode_count; i++) {
		struct obk_rqa_mode *mode = &setup->modes[i];

		/*
		 * The gaze pipelines use L1 for one coordinate and the Euclidean distance for two.
		 */
		if (mode->norm < 0 && setup->preset == OBK_RQA_PRESET_GAZE && !setup->norm_given)
			mode->norm = mode->channel_count == 1 ? OBK_RQA_NORM_L1 : OBK_RQA_NORM_L2;
	}
	return true;
}

bool obx_setup_series(const struct obx_setup *setup, const struct obk_rqa_mode *mode,
	const char *path, const struct obx_table *table, struct obk_rqa_series *ret_series,
	double **ret_copy, int *ret_status, struct obx_error *error)
{
	uint32_t channels = table->channels, count = mode->channel_count;
	uint64_t need = (uint64_t)(setup->options.m - 1) * setup->options.tau + 2;
	bool constant = !setup->allow_constant, whole = count == channels;

	*ret_copy = NULL;
	*ret_status = OBK_RQA_ARGUMENT;
	for (uint32_t c = 0; c < count; c++) {
		if (mode->channels[c] >= channels)
			return obx_error_set(error,
				"%s has %u column%s, but the mode %s needs column %u; choose with "
				"--columns and --modes",
				path, channels, channels == 1 ? "" : "s", mode->name,
				mode->channels[c] + 1);
		constant &= table->constant[mode->channels[c]];
		whole &= mode->channels[c] == c;
	}
	*ret_status = OBK_RQA_CONSTANT;
	if (constant)
		return obx_error_set(error,
			"%s, lines %llu to %llu: the series never changes, every point would "
			"recur; check the recording, or "
			"compute it all the "
			"same with --constant allow",
			path, (unsigned long long)table->first_line,
			(unsigned long long)table->last_line);
	*ret_status = OBK_RQA_TOO_SHORT;
	if (table->rows < need)
		return obx_error_set(error,
			"%s ends at line %llu with %llu samples, but m=%u and tau=%u need at least "
			"%llu, (m-1)*tau+2; use a "
			"smaller m or tau",
			path, (unsigned long long)table->last_line, (unsigned long long)table->rows,
			setup->options.m, setup->options.tau, (unsigned long long)need);
	*ret_status = OBK_RQA_OK;
	*ret_series = (struct obk_rqa_series){ .name = path,
		.data = table->data,
		.length = table->rows,
		.channels = count,
		.step = channels,
		.channel_step = 1 };
	if (whole)
		return true;
	if (count == 1) {
		ret_series->data += mode->channels[0];
		return true;
	}
	*ret_copy = malloc(table->rows * count * sizeof **ret_copy);
	*ret_status = OBK_RQA_NO_MEMORY;
	if (!*ret_copy)
		return obx_error_set(error, "%s: out of memory", path);
	for (uint64_t i = 0; i < table->rows; i++)
		for (uint32_t c = 0; c < count; c++)
			(*ret_copy)[i * count + c] = table->data[i * channels + mode->channels[c]];
	ret_series->data = *ret_copy;
	ret_series->step = count;
	*ret_status = OBK_RQA_OK;
	return true;
}

/* ---- output ---- */

const char *obx_setup_norm(const struct obx_setup *setup, const struct obk_rqa_mode *mode)
{
	static const char *const norms[] = { "l1", "l2", "max" };

	return norms[mode->norm >= 0 ? mode->norm : setup->options.norm];
}

static void print_value(
	const struct obx_setup *setup, const struct option *o, char *ret_text, size_t size)
{
	const char *at =
		(o->type == OWN ? (const char *)setup : (const char *)&setup->options) + o->offset;
	char text[OBX_NUMBER_MAX];
	uint32_t whole;
	double real;

	memcpy(&whole, at, sizeof whole);
	if (o->type == OWN && o->offset == offsetof(struct obx_setup, allow_constant))
		whole = setup->allow_constant;
	if (o->type == REAL) {
		memcpy(&real, at, sizeof real);
		obx_number_exact(real, text);
		snprintf(ret_text, size, "%s", text);
	} else if (o->words) {
		print_word(o->words, (int)whole, ret_text, size);
	} else {
		snprintf(ret_text, size, "%u", whole);
	}
}

void obx_setup_text(const struct obx_setup *setup, bool grid, char *ret_text, size_t size)
{
	size_t used =
		(size_t)snprintf(ret_text, size, "preset=%s", obk_rqa_preset_name(setup->preset));

	for (size_t i = 0; i < OPTION_COUNT && used < size; i++) {
		const char *name = options[i].name;
		char value[WORDS_TEXT_MAX];

		/* The device does not affect results. */
		if (options[i].type == THEILER || strcmp(name, "device") == 0 ||
			strcmp(name, "isa") == 0 || strcmp(name, "threads") == 0)
			continue;
		if (grid &&
			(strcmp(name, "m") == 0 || strcmp(name, "tau") == 0 ||
				strcmp(name, "eps") == 0 || strcmp(name, "lmin") == 0))
			continue;
		if (strcmp(name, "norm") == 0 && setup->preset == OBK_RQA_PRESET_GAZE &&
			!setup->norm_given)
			strcpy(value, "by-mode");
		else
			print_value(setup, &options[i], value, sizeof value);
		used += (size_t)snprintf(ret_text + used, size - used, ";%s=%s", name, value);
	}
	if (used < size)
		snprintf(ret_text + used, size - used, ";columns=%s",
			setup->table.columns ? setup->table.columns : "");
}

void obx_setup_markdown(FILE *file)
{
	fprintf(file, "| option | values | what it does |\n|---|---|---|\n");
	for (size_t i = 0; i < TEXT_COUNT; i++)
		fprintf(file, "| `--%s` | %s | %s |\n", texts[i].name, texts[i].value,
			texts[i].help);
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		fprintf(file, "| `--%s` | ", options[i].name);
		for (const char *p = options[i].words     ? options[i].words
				: options[i].type == REAL ? "a number"
							  : "a whole number";
			*p; p++)
			if (*p == '|')
				fputs(", ", file);
			else
				putc(*p, file);
		fprintf(file, " | %s |\n", options[i].help);
	}
}

void obx_setup_json(struct ob_json *json)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const char *name = options[i].name;

		if (strcmp(name, "m") == 0 || strcmp(name, "tau") == 0 ||
			strcmp(name, "eps") == 0 || strcmp(name, "lmin") == 0)
			continue;
		ob_json_object(json, NULL);
		ob_json_text(json, "name", name);
		ob_json_text(json, "help", options[i].help);
		ob_json_text(json, "words", options[i].words ? options[i].words : "");
		ob_json_end(json);
	}
}

void obx_setup_measures_json(const struct obx_setup *setup, struct ob_json *json)
{
	ob_json_array(json, "measures");
	for (uint32_t i = 0; i < setup->measure_count; i++)
		ob_json_text(json, NULL, obk_rqa_measure_name(setup->measures[i]));
	ob_json_end(json);
}
