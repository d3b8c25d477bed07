/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/allow.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "protocol/format.h"
#include "protocol/load.h"

enum form { SIZE, COUNT, SHARE, PRIORITY };

static const struct {
	const char *name;
	enum form form;
	uint64_t bound; /* COUNT: the largest; SIZE: the smallest */
	const char *wants;
} table[OBT_ALLOW_COUNT] = {
	[OBT_ALLOW_MEMORY] = { "max-memory", SIZE, 4u << 20,
		"a size of at least 4 MiB, for example 512MiB or 4GiB" },
	[OBT_ALLOW_HOST_MEMORY] = { "max-host-memory", SIZE, 128u << 20,
		"a size of at least 128 MiB, for example 512MiB or 4GiB" },
	[OBT_ALLOW_OUTSTANDING] = { "max-outstanding", SIZE, 8u << 20, "a size of at least 8 MiB" },
	[OBT_ALLOW_HANDLES] = { "max-handles", COUNT, OBT_ALLOW_HANDLES_MAX,
		"a number from 1 to 1048576" },
	[OBT_ALLOW_MODULES] = { "max-modules", COUNT, OBT_ALLOW_HANDLES_MAX,
		"a number from 1 to 1048576" },
	[OBT_ALLOW_LANES] = { "max-lanes", COUNT, OBP_LANE_MAX, "a number from 1 to 1024" },
	[OBT_ALLOW_IDLE] = { "idle-timeout", COUNT, OBT_ALLOW_IDLE_MAX_S,
		"a number of seconds, 0 for never" },
	[OBT_ALLOW_SHARE] = { "share", SHARE, 0, "a number from 0.01 to 1, for example 0.25" },
	[OBT_ALLOW_PRIORITY] = { "max-priority", PRIORITY, 0, "low, normal or high" },
	[OBT_ALLOW_SESSIONS] = { "sessions", COUNT, 4096, "a number from 1 to 4096" },
};
static const char *const priorities[] = { "low", "normal", "high" };

const char *obt_allow_name(enum obt_allowed what)
{
	return table[what].name;
}

static bool take_share(const char *text, uint64_t *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0.01 && value <= 1))
		return false;
	*ret = (uint64_t)(value * OBP_SHARE_ALL + 0.5);
	return true;
}

static bool take(enum obt_allowed what, const char *text, uint64_t *ret)
{
	uint64_t value;

	switch (table[what].form) {
	case SIZE:
		if (!ob_text_parse_size(text, &value) || value < table[what].bound)
			return false;
		*ret = value;
		return true;
	case SHARE:
		return take_share(text, ret);
	case PRIORITY:
		for (uint64_t i = 0; i < 3; i++)
			if (strcmp(text, priorities[i]) == 0) {
				*ret = i + 1;
				return true;
			}
		return false;
	case COUNT:
		break;
	}
	return ob_text_parse_number(text, 1, table[what].bound, ret);
}

enum ob_err obt_allow_set(
	struct obt_allow *allow, const char *name, const char *text, struct ob_cause *ret_cause)
{
	for (enum obt_allowed i = 0; i < OBT_ALLOW_COUNT; i++)
		if (strcmp(table[i].name, name) == 0)
			return take(i, text, &allow->value[i])
				? OB_ERR_NONE
				: ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%s", table[i].wants);
	return OB_ERR_NOT_FOUND;
}

void obt_allow_print(const struct obt_allow *allow, char ret_text[OBT_ALLOW_TEXT])
{
	size_t n = 0;

	ret_text[0] = '\0';
	for (enum obt_allowed i = 0; i < OBT_ALLOW_COUNT; i++) {
		uint64_t value = allow->value[i];

		if (!value)
			continue;
		n += (size_t)snprintf(
			ret_text + n, OBT_ALLOW_TEXT - n, "%s%s=", n ? "," : "", table[i].name);
		if (table[i].form == SHARE)
			n += (size_t)snprintf(ret_text + n, OBT_ALLOW_TEXT - n, "%.7g",
				(double)value / OBP_SHARE_ALL);
		else if (table[i].form == PRIORITY)
			n += (size_t)snprintf(ret_text + n, OBT_ALLOW_TEXT - n, "%s",
				priorities[(value - 1) % 3]);
		else
			n += (size_t)snprintf(ret_text + n, OBT_ALLOW_TEXT - n, "%llu",
				(unsigned long long)value);
	}
}

enum ob_err obt_allow_parse(const char *text, struct obt_allow *ret)
{
	char copy[OBT_ALLOW_TEXT], *rest = copy, *pair, *value;
	struct obt_allow allow = { { 0 } };

	if (strlen(text) >= sizeof copy)
		return OB_ERR_ARGUMENT;
	snprintf(copy, sizeof copy, "%s", text);
	while ((pair = strsep(&rest, ",")) != NULL) {
		value = strchr(pair, '=');
		if (!value)
			return OB_ERR_ARGUMENT;
		*value++ = '\0';
		if (obt_allow_set(&allow, pair, value, NULL) != OB_ERR_NONE)
			return OB_ERR_ARGUMENT;
	}
	*ret = allow;
	return OB_ERR_NONE;
}
