/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Sets recurrence options by the names that the `outboard rqa` command uses. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "compute/engine/fail.h"
#include "compute/engine/rqa.h"

enum type { WORD, WHOLE, REAL };

static const struct option {
	const char *name;
	enum type type;
	size_t offset;     /* in struct obk_rqa_options */
	const char *words; /* WORD: "a|b|c", values counted from 0 */
	double min, max;
} table[] = {
#define AT(field) offsetof(struct obk_rqa_options, field)
	{ "kind", WORD, AT(kind), "auto|cross|joint", 0, 0 },
	{ "m", WHOLE, AT(m), NULL, 1, OBK_RQA_MAX_M },
	{ "tau", WHOLE, AT(tau), NULL, 1, OBK_RQA_MAX_TAU },
	{ "eps", REAL, AT(radius), NULL, 0, 1e300 },
	{ "eps-y", REAL, AT(radius_y), NULL, 0, 1e300 },
	{ "eps-unit", WORD, AT(radius_kind), "absolute|sd|max|mean|rate", 0, 0 },
	{ "lmin", WHOLE, AT(lmin), NULL, 1, OBK_RQA_MAX_LENGTH },
	{ "vmin", WHOLE, AT(vmin), NULL, 1, OBK_RQA_MAX_LENGTH },
	{ "wmin", WHOLE, AT(wmin), NULL, 1, OBK_RQA_MAX_LENGTH },
	{ "norm", WORD, AT(norm), "l1|l2|max|gaze", 0, 0 },
	{ "norm-y", WORD, AT(norm_y), "l1|l2|max|gaze", 0, 0 },
	{ "test", WORD, AT(test), "le|lt", 0, 0 },
	{ "precision", WORD, AT(precision), "auto|f64|f32", 0, 0 },
	{ "scale", WORD, AT(scale), "none|zscore|unit", 0, 0 },
	{ "categorical", WORD, AT(categorical), "no|yes", 0, 0 },
	{ "missing", WORD, AT(missing), "error|gap", 0, 0 },
	{ "theiler-rr", WHOLE, AT(theiler_rr), NULL, 0, OBK_RQA_MAX_LENGTH },
	{ "theiler-diag", WHOLE, AT(theiler_diag), NULL, 0, OBK_RQA_MAX_LENGTH },
	{ "theiler-vert", WHOLE, AT(theiler_vert), NULL, 0, OBK_RQA_MAX_LENGTH },
	{ "theiler-white", WHOLE, AT(theiler_white), NULL, 0, OBK_RQA_MAX_LENGTH },
	{ "triangle", WORD, AT(triangle), "both|upper|lower", 0, 0 },
	{ "rr-denominator", WORD, AT(rr_denominator), "full|valid", 0, 0 },
	{ "det-denominator", WORD, AT(det_denominator), "lines|points", 0, 0 },
	{ "lam-denominator", WORD, AT(lam_denominator), "lines|points", 0, 0 },
	{ "lmax-excludes-loi", WORD, AT(lmax_excludes_loi), "no|yes", 0, 0 },
	{ "log", WORD, AT(log_base), "ln|log2", 0, 0 },
	{ "entropy-norm", WORD, AT(entropy_norm), "plain|log-n|log-bins", 0, 0 },
	{ "entropy-all", WORD, AT(entropy_all), "no|yes", 0, 0 },
	{ "white", WORD, AT(white), "all|inner", 0, 0 },
	{ "border", WORD, AT(border), "none|dibo|censi|kelo", 0, 0 },
	{ "border-semi", WORD, AT(border_semi), "no|yes", 0, 0 },
	{ "times", WORD, AT(times), "white|start|midpoint", 0, 0 },
	{ "trend", WORD, AT(trend), "fit|weighted", 0, 0 },
	{ "trend-margin", WHOLE, AT(trend_margin), NULL, 0, OBK_RQA_MAX_LENGTH },
	{ "transitivity", WORD, AT(transitivity), "triples|paths", 0, 0 },
	{ "percent", REAL, AT(percent), NULL, 1, 100 },
	{ "quirk-last-column", WORD, AT(quirks), "no|yes", 0, 0 },
#undef AT
};
#define OPTION_COUNT (sizeof(table) / sizeof(table[0]))

static const struct {
	const char *name;
	uint32_t bits;
} wants[] = {
	{ "vertical", OBK_RQA_WANT_VERTICAL },
	{ "white", OBK_RQA_WANT_WHITE },
	{ "times", OBK_RQA_WANT_TIMES },
	{ "trend", OBK_RQA_WANT_TREND },
	{ "network", OBK_RQA_WANT_NETWORK },
	{ "all", OBK_RQA_WANT_ALL },
	{ "none", 0 },
};

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

int obv_rqa_norm(const char *name)
{
	return find_word("l1|l2|max|gaze", name);
}

int outboard_rqa_options_new(
	const char *preset, struct outboard_rqa_options **ret_options, struct outboard_error *error)
{
	int id = obk_rqa_preset_find(preset ? preset : "gaze");
	struct outboard_rqa_options *o;
	char list[320] = "";

	if (!ret_options)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"outboard_rqa_options_new has nowhere to put the options");
	if (id < 0) {
		for (int i = 0; i < OBK_RQA_PRESET_COUNT; i++) {
			size_t n = strlen(list);

			snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				obk_rqa_preset_name((enum obk_rqa_preset)i));
		}
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"there is no preset \"%.40s\": there are %s", preset, list);
	}
	o = calloc(1, sizeof(*o));
	if (!o)
		return obv_fail(
			error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for options");
	obk_rqa_options_preset((enum obk_rqa_preset)id, &o->o);
	*ret_options = o;
	return OUTBOARD_OK;
}

void outboard_rqa_options_free(struct outboard_rqa_options *options)
{
	free(options);
}

static int set_want(struct obk_rqa_options *o, const char *value, struct outboard_error *error)
{
	char copy[128], *rest = copy, *word;
	uint32_t bits = 0;

	if (strlen(value) >= sizeof(copy))
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"the value of \"want\" is too long");
	strcpy(copy, value);
	while ((word = strsep(&rest, ",")) != NULL) {
		size_t i = 0;

		while (i < sizeof(wants) / sizeof(wants[0]) && strcmp(wants[i].name, word) != 0)
			i++;
		if (i == sizeof(wants) / sizeof(wants[0]))
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"\"want\" is any of vertical, white, times, trend, network with "
				"commas between, or all, or none; not \"%.40s\"",
				word);
		bits |= wants[i].bits;
	}
	o->want = bits;
	return OUTBOARD_OK;
}

static int unknown(const char *name, struct outboard_error *error)
{
	char list[430] = "";

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		size_t n = strlen(list);

		snprintf(list + n, sizeof(list) - n, " %s", table[i].name);
	}
	return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
		"no option \"%.20s\"; there are want theiler%s", name, list);
}

static int set_one(struct obk_rqa_options *to, const struct option *o, const char *value,
	struct outboard_error *error)
{
	uint64_t whole;
	double real;
	char *end;
	int index;

	if (o->type == WORD) {
		index = find_word(o->words, value);
		if (index < 0)
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"%s is one of %s, not \"%.40s\"", o->name, o->words, value);
		memcpy((char *)to + o->offset, &index, sizeof(index));
	} else if (o->type == REAL) {
		real = strtod(value, &end);
		if (!*value || *end || !(real >= o->min && real <= o->max))
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"%s takes a number from %g to %g, not \"%.40s\"", o->name, o->min,
				o->max, value);
		memcpy((char *)to + o->offset, &real, sizeof(real));
	} else {
		if (!ob_text_parse_number(value, (uint64_t)o->min, (uint64_t)o->max, &whole))
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"%s takes a whole number from %.0f to %.0f, not \"%.40s\"", o->name,
				o->min, o->max, value);
		memcpy((char *)to + o->offset, &(uint32_t){ (uint32_t)whole }, sizeof(uint32_t));
	}
	return OUTBOARD_OK;
}

int outboard_rqa_options_set(struct outboard_rqa_options *to, const char *name, const char *value,
	struct outboard_error *error)
{
	static const struct option theiler = { "theiler", WHOLE,
		offsetof(struct obk_rqa_options, theiler_rr), NULL, 0, OBK_RQA_MAX_LENGTH };
	int status;

	if (!to || !name || !value)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"options, a name and a value are needed");
	if (strcmp(name, "want") == 0)
		return set_want(&to->o, value, error);
	if (strcmp(name, "theiler") == 0) {
		status = set_one(&to->o, &theiler, value, error);
		to->o.theiler_diag = to->o.theiler_vert = to->o.theiler_rr;
		return status;
	}
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (strcmp(table[i].name, name) == 0)
			return set_one(&to->o, &table[i], value, error);
	return unknown(name, error);
}

uint32_t outboard_rqa_measure_count(void)
{
	return OBK_RQA_MEASURE_COUNT;
}

const char *outboard_rqa_measure_name(uint32_t measure)
{
	return obk_rqa_measure_name(measure);
}

int outboard_rqa_measure_find(const char *name)
{
	return name ? obk_rqa_measure_find(name) : -1;
}

int obv_rqa_status(int status)
{
	switch (status) {
	case OBK_RQA_OK:
		return OUTBOARD_OK;
	case OBK_RQA_LIMIT:
		return OUTBOARD_LIMIT;
	case OBK_RQA_NO_MEMORY:
		return OUTBOARD_NO_MEMORY;
	case OBK_RQA_CANCELLED:
	case OBK_RQA_SKIPPED:
		return OUTBOARD_CANCELLED;
	case OBK_RQA_UNSUPPORTED:
		return OUTBOARD_UNSUPPORTED;
	case OBK_RQA_DEVICE:
		return OUTBOARD_DEVICE;
	case OBK_RQA_IO:
	case OBK_RQA_STATE:
		return OUTBOARD_IO;
	default:
		return OUTBOARD_ARGUMENT;
	}
}

int obv_rqa_fail(struct outboard_error *error, const struct obk_rqa_error *e, uint64_t series)
{
	return obv_fail(error, obv_rqa_status(e->status), series, "%s", e->text);
}
