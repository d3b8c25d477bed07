/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/together.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static bool scheme_at(const char *text)
{
	static const char *const schemes[] = { "tcp:", "tls:", "unix:", "shm:" };

	for (size_t i = 0; i < ob_count(schemes); i++)
		if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
			return true;
	return false;
}

/* Every address of a list with commas. */
static enum ob_err list_check(const char *list, struct ob_cause *ret_cause)
{
	struct obl_answer *answers;
	enum ob_err err;
	uint32_t n;

	if (!strchr(list, ',')) {
		struct obt_url url;

		return obt_url_parse(list, &url, ret_cause);
	}
	answers = calloc(OBL_LIST_MAX, sizeof *answers);
	if (!answers)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "out of memory");
	err = obl_list_parse(list, answers, &n, ret_cause);
	free(answers);
	return err;
}

static enum ob_err add(struct obl_together *ret, const char *list, struct ob_cause *ret_cause)
{
	if (ret->n == OBL_TOGETHER_MAX)
		return ob_cause_set(ret_cause, OB_ERR_URL,
			"more than %u servers are to be used together (+): name fewer",
			OBL_TOGETHER_MAX);
	for (uint32_t i = 0; i < ret->n; i++)
		if (strcmp(ret->list[i], list) == 0)
			return ob_cause_set(ret_cause, OB_ERR_URL,
				"'%.200s' is named twice: a program has one session with a server",
				list);
	ret->list[ret->n++] = list;
	return OB_ERR_NONE;
}

enum ob_err obl_together_parse(
	const char *text, struct obl_together *ret, struct ob_cause *ret_cause)
{
	struct obl_together made = { .text = strdup(text) };
	enum ob_err err = OB_ERR_NONE;
	char *begin = made.text;

	if (!made.text)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "out of memory");
	for (char *at = begin; !err && *at; at++) {
		if (*at != '+' || !scheme_at(at + 1))
			continue;
		*at = '\0';
		err = add(&made, begin, ret_cause);
		begin = at + 1;
	}
	if (!err)
		err = add(&made, begin, ret_cause);
	/* The client itself reports what is wrong with one address, or one list. */
	for (uint32_t i = 0; !err && made.n > 1 && i < made.n; i++)
		err = list_check(made.list[i], ret_cause);
	if (err)
		free(made.text);
	else
		*ret = made;
	return err;
}

bool obl_together_several(const char *text)
{
	for (const char *at = text; *at; at++)
		if (*at == '+' && scheme_at(at + 1))
			return true;
	return false;
}

enum ob_err obl_together_addresses(
	const char *text, struct obl_answer *ret, uint32_t *ret_n, struct ob_cause *ret_cause)
{
	struct obl_together together;
	enum ob_err err = obl_together_parse(text, &together, ret_cause);
	struct obl_answer *answers;
	uint32_t n, all = 0;

	if (err)
		return err;
	answers = calloc(OBL_LIST_MAX, sizeof *answers);
	if (!answers)
		err = ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "out of memory");
	for (uint32_t i = 0; !err && i < together.n; i++) {
		err = obl_list_parse(together.list[i], answers, &n, ret_cause);
		if (!err && all + n > OBL_LIST_MAX)
			err = ob_cause_set(ret_cause, OB_ERR_URL,
				"more than %u addresses: name fewer", OBL_LIST_MAX);
		if (!err)
			memcpy(ret + all, answers, n * sizeof *ret);
		all += err ? 0 : n;
	}
	free(answers);
	obl_together_fini(&together);
	if (!err)
		*ret_n = all;
	return err;
}

void obl_together_fini(struct obl_together *together)
{
	free(together->text);
	*together = (struct obl_together){ 0 };
}
