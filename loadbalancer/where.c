/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/where.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/text.h"
#include "loadbalancer/device.h"
#include "protocol/load.h"

#define PLACE_MAX 24 /* bytes of the selector that a message shows */

static const char *const key_names[] = { [OBL_WHERE_MODEL] = "model",
	[OBL_WHERE_KIND] = "kind",
	[OBL_WHERE_MEMORY] = "memory",
	[OBL_WHERE_CAPABILITY] = "capability",
	[OBL_WHERE_UNITS] = "units",
	[OBL_WHERE_SHARE_BY] = "share-by",
	[OBL_WHERE_CUDA] = "cuda",
	[OBL_WHERE_SERVER] = "server" };

/* Longest first, so that ">=" is not read as ">". */
static const struct {
	const char *text;
	enum obl_where_operator compare;
} operators[] = { { "!=", OBL_WHERE_UNEQUAL }, { ">=", OBL_WHERE_AT_LEAST },
	{ "<=", OBL_WHERE_AT_MOST }, { "=", OBL_WHERE_EQUAL }, { ">", OBL_WHERE_MORE },
	{ "<", OBL_WHERE_LESS } };

_Static_assert(OBL_WHERE_MAX >= 2 * OBL_WHERE_WORD_MAX, "a term fits");

/* ---- reading ---- */

struct reader {
	const char *at;
	struct ob_cause *cause;
	char *text; /* OBL_WHERE_MAX bytes for words */
	uint16_t used;
};

static enum ob_err wrong(const struct reader *r, const char *at, const char *expected)
{
	size_t n = strnlen(at, PLACE_MAX + 1);
	char shown[PLACE_MAX + 1];

	for (size_t i = 0; i < ob_min(n, PLACE_MAX); i++)
		shown[i] = at[i] >= ' ' && at[i] <= '~' ? at[i] : '?';
	shown[ob_min(n, PLACE_MAX)] = '\0';
	if (n == 0)
		return ob_cause_set(r->cause, OB_ERR_ARGUMENT, "at the end: %s", expected);
	return ob_cause_set(r->cause, OB_ERR_ARGUMENT, "at '%s%s': %s", shown,
		n > PLACE_MAX ? "..." : "", expected);
}

static bool is_key(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		(c && strchr("_-./", c));
}

static bool is_value(char c)
{
	return c >= ' ' && c <= '~' && !strchr(",|=!<>\"'\\", c);
}

static void blanks(struct reader *r)
{
	while (*r->at == ' ' || *r->at == '\t')
		r->at++;
}

/* Copies a word and its NUL to r->text, without blanks around it; *ret is its offset. */
static enum ob_err word(struct reader *r, bool (*is)(char c), const char *what, uint16_t *ret)
{
	size_t n = 0;

	blanks(r);
	while (is(r->at[n]))
		n++;
	if (n >= OBL_WHERE_WORD_MAX)
		return wrong(r, r->at, "a word has 63 characters at most");
	while (n && r->at[n - 1] == ' ')
		n--;
	if (n == 0)
		return wrong(r, r->at, what);
	if (r->used + n + 1 > OBL_WHERE_MAX)
		return wrong(r, r->at, "it is too long: 255 characters at most");
	memcpy(r->text + r->used, r->at, n);
	r->text[r->used + n] = '\0';
	*ret = r->used;
	r->used = (uint16_t)(r->used + n + 1);
	r->at += n;
	blanks(r);
	return OB_ERR_NONE;
}

static bool whole_number(const char *text, uint64_t *ret)
{
	return ob_text_parse_number(text, 0, UINT64_MAX, ret);
}

/* "12.4" to 12 * high + 4 * low; "12" is "12.0". */
static bool version(const char *text, uint64_t high, uint64_t low, uint64_t *ret)
{
	char major[OBL_WHERE_WORD_MAX];
	uint64_t a, b = 0;
	size_t n = strcspn(text, ".");

	memcpy(major, text, n);
	major[n] = '\0';
	if (!ob_text_parse_number(major, 0, 999, &a) ||
		(text[n] && !ob_text_parse_number(text + n + 1, 0, high / low - 1, &b)))
		return false;
	*ret = a * high + b * low;
	return true;
}

/* Checks and converts a value of a key; NULL, or what was expected. */
static const char *value_convert(
	enum obl_where_key key, const char *text, struct obl_where_value *value)
{
	switch (key) {
	case OBL_WHERE_KIND:
		for (unsigned kind = 0; kind < OBL_KINDS; kind++)
			if (strcmp(text, obl_kind_name(kind)) == 0) {
				value->number = kind;
				return NULL;
			}
		return "expected gpu, mig or software";
	case OBL_WHERE_SHARE_BY:
		for (unsigned by = OBP_SHARE_BY_THROTTLE; by < OBP_SHARE_BY_COUNT; by++)
			if (strcmp(text, obp_share_by_name(by)) == 0) {
				value->number = by;
				return NULL;
			}
		return "expected throttle, green or mps";
	case OBL_WHERE_MEMORY:
		return ob_text_parse_size(text, &value->number) ? NULL
								: "expected a size such as 40GiB";
	case OBL_WHERE_CAPABILITY:
		return version(text, 10, 1, &value->number)
			? NULL
			: "expected a compute capability such as 9.0";
	case OBL_WHERE_UNITS:
		return whole_number(text, &value->number) ? NULL : "expected a whole number";
	case OBL_WHERE_CUDA:
		return version(text, 1000, 10, &value->number)
			? NULL
			: "expected a CUDA version such as 12.4";
	default:
		value->is_number = whole_number(text, &value->number);
		return NULL;
	}
}

static enum obl_where_key key_find(const char *name)
{
	for (unsigned key = 0; key < ob_count(key_names); key++)
		if (strcmp(name, key_names[key]) == 0)
			return (enum obl_where_key)key;
	return OBL_WHERE_LABEL;
}

static bool has_order(enum obl_where_key key)
{
	return key != OBL_WHERE_MODEL && key != OBL_WHERE_KIND && key != OBL_WHERE_SHARE_BY &&
		key != OBL_WHERE_SERVER;
}

static enum ob_err operator_read(struct reader *r, struct obl_where_term *term)
{
	for (unsigned i = 0; i < ob_count(operators); i++) {
		size_t n = strlen(operators[i].text);

		if (strncmp(r->at, operators[i].text, n) != 0)
			continue;
		if (operators[i].compare > OBL_WHERE_UNEQUAL &&
			!has_order((enum obl_where_key)term->key))
			return wrong(r, r->at, "this name can be used with = and != only");
		term->compare = (uint8_t)operators[i].compare;
		r->at += n;
		return OB_ERR_NONE;
	}
	return wrong(r, r->at, "expected one of = != >= <= > <");
}

static enum ob_err value_read(
	struct reader *r, struct obl_where *where, struct obl_where_term *term)
{
	struct obl_where_value *value;
	const char *start, *expected;
	enum ob_err err;

	if (term->first + term->n == OBL_WHERE_VALUES_MAX)
		return wrong(r, r->at, "too many values: 32 at most");
	value = &where->values[term->first + term->n++];
	blanks(r);
	start = r->at;
	err = word(r, is_value, "expected a value", &value->at);
	if (err)
		return err;
	expected = value_convert((enum obl_where_key)term->key, r->text + value->at, value);
	if (!expected && term->key == OBL_WHERE_LABEL && term->compare > OBL_WHERE_UNEQUAL &&
		!value->is_number)
		expected = "labels can be compared by order with whole numbers only";
	return expected ? wrong(r, start, expected) : OB_ERR_NONE;
}

static enum ob_err term_read(struct reader *r, struct obl_where *where, uint8_t n_values)
{
	struct obl_where_term *term = &where->terms[where->n_terms];
	enum ob_err err;

	if (where->n_terms == OBL_WHERE_TERMS_MAX)
		return wrong(r, r->at, "too many conditions: 16 at most");
	where->n_terms++;
	term->first = n_values;
	err = word(r, is_key, "expected a name such as model or zone", &term->name);
	if (err)
		return err;
	term->key = (uint8_t)key_find(r->text + term->name);
	err = operator_read(r, term);
	if (!err)
		err = value_read(r, where, term);
	while (!err && *r->at == '|') {
		if (term->compare > OBL_WHERE_UNEQUAL)
			return wrong(r, r->at, "several values can be used with = and != only");
		r->at++;
		err = value_read(r, where, term);
	}
	return err;
}

enum ob_err obl_where_parse(const char *text, struct obl_where *ret, struct ob_cause *ret_cause)
{
	struct obl_where where = { .n_terms = 0 };
	struct reader r = { .at = text, .cause = ret_cause, .text = where.text };
	uint8_t n_values = 0;
	enum ob_err err;

	blanks(&r);
	while (*r.at) {
		err = term_read(&r, &where, n_values);
		if (err)
			return err;
		n_values = (uint8_t)(n_values + where.terms[where.n_terms - 1].n);
		if (*r.at == '\0')
			break;
		if (*r.at != ',')
			return wrong(&r, r.at, "expected a comma, | or the end");
		r.at++;
		blanks(&r);
		if (*r.at == '\0')
			return wrong(&r, r.at, "expected a condition after the comma");
	}
	*ret = where;
	return OB_ERR_NONE;
}

enum ob_err obl_labels_parse(const char *text, struct obl_labels *ret, struct ob_cause *ret_cause)
{
	struct obl_labels labels = { .n = 0 };
	struct reader r = { .at = text, .cause = ret_cause, .text = labels.text };
	enum ob_err err;

	blanks(&r);
	while (*r.at) {
		const char *start = r.at;

		if (labels.n == OBL_LABELS_MAX)
			return wrong(&r, r.at, "too many labels: 16 at most");
		err = word(&r, is_key, "expected the name of a label", &labels.list[labels.n].key);
		if (err)
			return err;
		if (key_find(labels.text + labels.list[labels.n].key) != OBL_WHERE_LABEL)
			return wrong(&r, start, "selectors use this name for something else");
		if (obl_label_text(&labels, labels.text + labels.list[labels.n].key))
			return wrong(&r, start, "this label is given twice");
		if (*r.at != '=')
			return wrong(&r, r.at, "expected =");
		r.at++;
		err = word(&r, is_value, "expected a value", &labels.list[labels.n].value);
		if (err)
			return err;
		labels.list[labels.n].is_number = whole_number(
			labels.text + labels.list[labels.n].value, &labels.list[labels.n].number);
		labels.n++;
		if (*r.at == '\0')
			break;
		if (*r.at != ',')
			return wrong(&r, r.at, "expected a comma or the end");
		r.at++;
		blanks(&r);
		if (*r.at == '\0')
			return wrong(&r, r.at, "expected a label after the comma");
	}
	*ret = labels;
	return OB_ERR_NONE;
}

/* ---- matching ---- */

static int label_find(const struct obl_labels *labels, const char *key)
{
	for (uint32_t i = 0; labels && i < labels->n; i++)
		if (strcmp(labels->text + labels->list[i].key, key) == 0)
			return (int)i;
	return -1;
}

const char *obl_label_text(const struct obl_labels *labels, const char *key)
{
	int i = label_find(labels, key);

	return i < 0 ? NULL : labels->text + labels->list[i].value;
}

static bool number_holds(
	const struct obl_where *where, const struct obl_where_term *term, uint64_t number)
{
	bool equal = false;

	for (uint32_t i = 0; i < term->n; i++)
		equal |= where->values[term->first + i].number == number;
	switch (term->compare) {
	case OBL_WHERE_EQUAL:
		return equal;
	case OBL_WHERE_UNEQUAL:
		return !equal;
	case OBL_WHERE_AT_LEAST:
		return number >= where->values[term->first].number;
	case OBL_WHERE_AT_MOST:
		return number <= where->values[term->first].number;
	case OBL_WHERE_MORE:
		return number > where->values[term->first].number;
	default:
		return number < where->values[term->first].number;
	}
}

static bool same(const char *pattern, const char *text)
{
	return strcmp(pattern, text) == 0;
}

static bool contains(const char *part, const char *text)
{
	return strcasestr(text, part) != NULL;
}

/* A pattern with at most one "*" that counts; further ones are plain characters. */
static bool like(const char *pattern, const char *text)
{
	size_t head = strcspn(pattern, "*"), n = strlen(text), tail;

	if (!pattern[head])
		return same(pattern, text);
	tail = strlen(pattern + head + 1);
	return n >= head + tail && memcmp(pattern, text, head) == 0 &&
		memcmp(pattern + head + 1, text + n - tail, tail) == 0;
}

static bool text_holds(const struct obl_where *where, const struct obl_where_term *term,
	bool (*fits)(const char *value, const char *text), const char *text)
{
	bool equal = false;

	for (uint32_t i = 0; i < term->n; i++)
		equal |= fits(where->text + where->values[term->first + i].at, text);
	return equal == (term->compare == OBL_WHERE_EQUAL);
}

static bool label_holds(const struct obl_where *where, const struct obl_where_term *term,
	const struct obl_labels *labels)
{
	int i = label_find(labels, where->text + term->name);

	if (i < 0)
		return term->compare == OBL_WHERE_UNEQUAL;
	if (term->compare <= OBL_WHERE_UNEQUAL)
		return text_holds(where, term, same, labels->text + labels->list[i].value);
	return labels->list[i].is_number && number_holds(where, term, labels->list[i].number);
}

bool obl_where_server(const struct obl_where *where, const char *name, uint32_t cuda,
	const struct obl_labels *labels)
{
	for (uint32_t i = 0; i < where->n_terms; i++) {
		const struct obl_where_term *term = &where->terms[i];
		bool holds = true;

		if (term->key == OBL_WHERE_SERVER)
			holds = text_holds(where, term, like, name);
		else if (term->key == OBL_WHERE_CUDA)
			holds = cuda && number_holds(where, term, cuda);
		else if (term->key == OBL_WHERE_LABEL)
			holds = label_holds(where, term, labels);
		if (!holds)
			return false;
	}
	return true;
}

/* Whether the device offers one of the values, or with != none. */
static bool share_by_holds(
	const struct obl_where *where, const struct obl_where_term *term, uint32_t offered)
{
	bool offers = false;

	for (uint32_t i = 0; i < term->n; i++)
		offers |= offered >> where->values[term->first + i].number & 1;
	return offers == (term->compare == OBL_WHERE_EQUAL);
}

static bool device_holds(const struct obl_where *where, const struct obl_where_term *term,
	const struct obl_device *device)
{
	switch (term->key) {
	case OBL_WHERE_MODEL:
		return text_holds(where, term, contains, device->model ? device->model : "");
	case OBL_WHERE_KIND:
		return number_holds(where, term, device->kind);
	case OBL_WHERE_MEMORY:
		return number_holds(where, term, device->total);
	case OBL_WHERE_CAPABILITY:
		return number_holds(where, term, device->capability);
	case OBL_WHERE_UNITS:
		return number_holds(where, term, device->units);
	case OBL_WHERE_SHARE_BY:
		return share_by_holds(where, term, device->share_by);
	default:
		return true;
	}
}

bool obl_where_device(const struct obl_where *where, const struct obl_device *device)
{
	for (uint32_t i = 0; i < where->n_terms; i++)
		if (!device_holds(where, &where->terms[i], device))
			return false;
	return true;
}
