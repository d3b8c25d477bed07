/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define WORD_BYTES 64u

/* ---- words ---- */

bool ob_words_nth(const char *words, size_t n, char *ret_word, size_t size)
{
	for (; n; n--) {
		words = strchr(words, '|');
		if (!words)
			return false;
		words++;
	}
	snprintf(ret_word, size, "%.*s", (int)strcspn(words, "|"), words);
	return true;
}

int ob_words_find(const char *words, const char *text)
{
	char word[WORD_BYTES];

	for (int i = 0; ob_words_nth(words, (size_t)i, word, sizeof word); i++)
		if (strcmp(word, text) == 0)
			return i;
	return -1;
}

void ob_words_print(const char *words, char *ret_text, size_t size)
{
	char word[WORD_BYTES], next[WORD_BYTES];
	size_t used = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; used < size && ob_words_nth(words, i, word, sizeof word); i++) {
		bool last = !ob_words_nth(words, i + 1, next, sizeof next);

		used += (size_t)snprintf(ret_text + used, size - used, "%s%s",
			i == 0         ? ""
				: last ? " or "
				       : ", ",
			word);
	}
}

const char *ob_command_short_name(const struct ob_command *command)
{
	const char *blank = strrchr(command->name, ' ');

	return blank ? blank + 1 : command->name;
}

/* ---- values ---- */

const struct ob_option *ob_option_find(const struct ob_option *options, const char *name)
{
	for (const struct ob_option *o = options; o && o->name; o++)
		if (o->kind != OB_HEADING && strcmp(o->name, name) == 0)
			return o;
	return NULL;
}

static void takes_size(const struct ob_option *o, char *ret_text, size_t size)
{
	char least[32], most[32];

	ob_text_print_size(o->min, least, sizeof least);
	ob_text_print_size(o->max, most, sizeof most);
	if (o->min > 1 && o->max)
		snprintf(ret_text, size, "a size from %s to %s", least, most);
	else if (o->max)
		snprintf(ret_text, size, "a size of at most %s", most);
	else if (o->min > 1)
		snprintf(ret_text, size, "a size of at least %s", least);
	else
		snprintf(ret_text, size, "a size such as 4GiB");
}

void ob_option_takes(const struct ob_option *o, char *ret_text, size_t size)
{
	if (o->takes) {
		snprintf(ret_text, size, "%s", o->takes);
		return;
	}
	switch (o->kind) {
	case OB_FLAG:
		snprintf(ret_text, size, "yes or no");
		break;
	case OB_NUMBER:
		snprintf(ret_text, size, "a number from %llu to %llu", (unsigned long long)o->min,
			(unsigned long long)o->max);
		break;
	case OB_SIZE:
		takes_size(o, ret_text, size);
		break;
	case OB_REAL:
		snprintf(ret_text, size, "a number from %g to %g", o->low, o->high);
		break;
	default:
		if (o->words)
			ob_words_print(o->words, ret_text, size);
		else
			snprintf(ret_text, size, "a value");
	}
}

static bool take_flag(bool *ret, const char *text)
{
	*ret = !text || strcmp(text, "yes") == 0;
	return *ret || strcmp(text, "no") == 0;
}

static bool take_number(const struct ob_option *o, void *target, const char *text)
{
	uint64_t value;

	if (o->kind == OB_NUMBER && !ob_text_parse_number(text, o->min, o->max, &value))
		return false;
	if (o->kind == OB_SIZE &&
		(!ob_text_parse_size(text, &value) || value < o->min || (o->max && value > o->max)))
		return false;
	if (o->size == sizeof(uint64_t))
		memcpy(target, &value, sizeof value);
	else
		memcpy(target, &(uint32_t){ (uint32_t)value }, sizeof(uint32_t));
	return true;
}

static bool take_real(const struct ob_option *o, void *target, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= o->low && value <= o->high))
		return false;
	memcpy(target, &value, sizeof value);
	return true;
}

static bool take_choice(const struct ob_option *o, void *target, const char *text)
{
	int index = ob_words_find(o->words, text);

	if (index >= 0)
		memcpy(target, &index, sizeof index);
	return index >= 0;
}

static bool take_text(const struct ob_option *o, void *target, const char *text)
{
	if ((o->takes && !*text) || (o->kind == OB_WORD && ob_words_find(o->words, text) < 0))
		return false;
	memcpy(target, &text, sizeof text);
	return true;
}

static bool take_another(const struct ob_option *o, struct ob_texts *target, const char *text,
	struct ob_cause *ret_cause)
{
	if (target->n == OB_OPTIONS_TEXTS_MAX) {
		ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%d values at most", OB_OPTIONS_TEXTS_MAX);
		return false;
	}
	if (o->takes && !*text)
		return false;
	target->list[target->n++] = text;
	return true;
}

enum ob_err ob_option_set(
	const struct ob_option *o, void *settings, const char *text, struct ob_cause *ret_cause)
{
	void *target = (char *)settings + o->offset;
	bool taken = false;

	*ret_cause = (struct ob_cause){ 0 };
	switch (o->kind) {
	case OB_FLAG:
		taken = take_flag(target, text);
		break;
	case OB_NUMBER:
	case OB_SIZE:
		taken = take_number(o, target, text);
		break;
	case OB_REAL:
		taken = take_real(o, target, text);
		break;
	case OB_TEXT:
	case OB_FILE:
	case OB_FOLDER:
	case OB_WORD:
		taken = take_text(o, target, text);
		break;
	case OB_CHOICE:
		taken = take_choice(o, target, text);
		break;
	case OB_TEXTS:
		taken = take_another(o, target, text, ret_cause);
		break;
	case OB_PARSED:
		taken = o->take(target, o, text, ret_cause) == OB_ERR_NONE;
		break;
	case OB_HEADING:
		break;
	}
	if (!taken && !ret_cause->text[0])
		ob_option_takes(o, ret_cause->text, sizeof ret_cause->text);
	ret_cause->code = taken ? OB_ERR_NONE : OB_ERR_ARGUMENT;
	return ret_cause->code;
}
