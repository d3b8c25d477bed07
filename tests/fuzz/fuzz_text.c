/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Text from users and files: addresses and lists of them, sizes and numbers, rules about the
 * addresses that may connect, selectors, labels and quotas of a pool, and lines for a terminal. The
 * parts of a parsed address must fit their fields; cleaned text must have no control character.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/terminal.h"
#include "base/text.h"
#include "loadbalancer/ask.h"
#include "loadbalancer/quota.h"
#include "tests/fuzz/fuzz.h"
#include "transport/allow.h"
#include "transport/url.h"

static void url(const char *text)
{
	struct obt_url u;
	struct ob_cause cause = { .code = OB_ERR_NONE };

	memset(&u, 0x5a, sizeof u);
	if (obt_url_parse(text, &u, &cause) != OB_ERR_NONE) {
		if (!cause.text[0])
			abort(); /* a refusal must have a reason */
		return;
	}
	if (u.scheme == OBT_UNIX
			? !memchr(u.path, 0, sizeof u.path)
			: !memchr(u.host, 0, sizeof u.host) || !memchr(u.port, 0, sizeof u.port))
		abort();
}

static void list(const char *text)
{
	static struct obl_answer answers[OBL_LIST_MAX];
	char *copy = strdup(text);
	struct ob_cause cause;
	uint32_t n = 0;

	if (obl_list_parse(text, answers, &n, &cause) == OB_ERR_NONE) {
		if (n == 0 || n > OBL_LIST_MAX)
			abort();
		for (uint32_t i = 0; copy && i < n; i++)
			obl_list_drop(copy, answers[i].url);
	}
	free(copy);
}

/* What was parsed can be used, and what was refused has a reason. */
static void pool(const char *text)
{
	static const struct obl_device device = { .total = 1ull << 36, .model = "NVIDIA H100" };
	struct obl_labels labels = { .n = 0 };
	struct ob_cause cause = { .code = OB_ERR_NONE };
	struct obl_quota quota, again;
	struct obl_where where;
	char printed[OBL_QUOTA_TEXT_MAX];

	if (obl_labels_parse(text, &labels, &cause) && !cause.text[0])
		abort();
	cause.text[0] = '\0';
	if (obl_where_parse(text, &where, &cause) == OB_ERR_NONE) {
		if (where.n_terms > OBL_WHERE_TERMS_MAX)
			abort();
		obl_where_server(&where, "rack1", 12040, &labels);
		obl_where_device(&where, &device);
	} else if (!cause.text[0]) {
		abort();
	}
	cause.text[0] = '\0';
	if (obl_quota_parse(text, &quota, &cause) != OB_ERR_NONE) {
		if (!cause.text[0])
			abort();
		return;
	}
	obl_quota_print(&quota, printed, sizeof printed);
	if (obl_quota_parse(printed, &again, &cause) || memcmp(&quota, &again, sizeof quota) != 0)
		abort();
}

static void cleaned(const uint8_t *data, size_t size)
{
	struct ob_screen screen = { .n = 0 };
	char *line = malloc(size + 1), *shown = malloc(size + OB_SCREEN_HELD);
	size_t n;

	if (line && shown) {
		memcpy(line, data, size);
		n = ob_text_clean(line, size);
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
				abort();
		if (n > size || ob_text_clean(line, n) != n)
			abort();
		if (ob_screen_text(&screen, (const char *)data, size, shown) >
			size + OB_SCREEN_HELD)
			abort();
	}
	free(line);
	free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct obt_allow allow;
	uint64_t number;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	cleaned(data, size);
	url(text);
	list(text);
	pool(text);
	obt_allow_parse(text, &allow);
	ob_text_parse_size(text, &number);
	ob_text_parse_number(text, 0, UINT64_MAX, &number);
	free(text);
	return 0;
}
