/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "protocol/stripe.h"

const struct obs_limits obs_limits_default = OBS_LIMITS_DEFAULT;

const char obs_limits_help[] =
	"Limits of one session:\n"
	"  --max-memory SIZE    on each device, for example 4GiB; also what the program is told there is\n"
	"  --max-host-memory SIZE  page-locked memory of the server\n"
	"  --max-handles N      streams, events and functions at a time\n"
	"  --max-modules N      loaded modules at a time\n"
	"  --max-lanes N        threads of the program that use CUDA (default 1024)\n"
	"  --max-stripes N      further connections for large copies (default 8, 0 to 16)\n"
	"  --idle-timeout S     seconds without a call after which a session ends (default: never)\n"
	"  --share F            part of the device's time, 0.01 to 1, by holding launches back (default 1)\n"
	"  --max-priority WHICH low, normal (default) or high: the highest that a client may ask for\n"
	"  --on-excess WHICH    the hardest reaction to a session that keeps running into limits: warn, limit (default),\n"
	"                       suspend, terminate\n"
	"  --measure yes        measure the device time of launches, for 'outboard top' (a share is always measured)\n";

static int wants(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -1;
}

static int one_of(const char *const *words, uint32_t first, const char *text, uint32_t *ret)
{
	for (uint32_t i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*ret = first + i;
			return 1;
		}
	return -1;
}

static int take_count(const char *text, uint64_t min, uint64_t max, uint32_t *ret, const char **ret_why, const char *why)
{
	uint64_t value;

	if (!ob_text_parse_number(text, min, max, &value))
		return wants(ret_why, why);
	*ret = (uint32_t)value;
	return 1;
}

static int take_size(const char *text, uint64_t *ret, const char **ret_why)
{
	uint64_t value;

	if (!ob_text_parse_size(text, &value) || value < 4ull << 20)
		return wants(ret_why, "a size of at least 4 MiB, for example 512MiB or 4GiB");
	*ret = value;
	return 1;
}

static int take_share(const char *text, uint32_t *ret, const char **ret_why)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0.01 && value <= 1))
		return wants(ret_why, "a number from 0.01 to 1, for example 0.25");
	*ret = (uint32_t)(value * OBP_SHARE_ALL + 0.5);
	return 1;
}

int obs_limits_option(struct obs_limits *l, const char *name, const char *text, const char **ret_why)
{
	static const char *const priorities[] = { "low", "normal", "high", NULL }, *const reactions[] = { "warn", "limit", "suspend", "terminate", NULL };
	static const char *const answers[] = { "no", "yes", NULL };
	uint32_t flag = l->measure;

	if (strcmp(name, "max-memory") == 0)
		return take_size(text, &l->memory, ret_why);
	if (strcmp(name, "max-host-memory") == 0)
		return take_size(text, &l->host_memory, ret_why);
	if (strcmp(name, "max-handles") == 0)
		return take_count(text, 1, OBS_HANDLES_MAX, &l->handles, ret_why, "a number from 1 to 1048576");
	if (strcmp(name, "max-modules") == 0)
		return take_count(text, 1, OBS_HANDLES_MAX, &l->modules, ret_why, "a number from 1 to 1048576");
	if (strcmp(name, "max-lanes") == 0)
		return take_count(text, 1, OBP_LANE_MAX, &l->lanes, ret_why, "a number from 1 to 1024");
	if (strcmp(name, "max-stripes") == 0)
		return take_count(text, 0, OBP_STRIPES_MAX, &l->stripes, ret_why, "a number from 0 to 16");
	if (strcmp(name, "idle-timeout") == 0)
		return take_count(text, 0, OBS_IDLE_MAX_S, &l->idle_s, ret_why, "a number of seconds, 0 for never");
	if (strcmp(name, "share") == 0)
		return take_share(text, &l->share, ret_why);
	if (strcmp(name, "max-priority") == 0)
		return one_of(priorities, 0, text, &l->priority) > 0 ? 1 : wants(ret_why, "low, normal or high");
	if (strcmp(name, "on-excess") == 0)
		return one_of(reactions, OBP_CONDUCT_WARNED, text, &l->strictest) > 0 ? 1 : wants(ret_why, "warn, limit, suspend or terminate");
	if (strcmp(name, "measure") == 0) {
		if (one_of(answers, 0, text, &flag) < 0)
			return wants(ret_why, "yes or no");
		l->measure = flag != 0;
		return 1;
	}
	return 0;
}

void obs_limits_print(const struct obs_limits *l, char ret_text[OBS_LIMITS_TEXT_MAX])
{
	snprintf(ret_text, OBS_LIMITS_TEXT_MAX, "%llu:%llu:%u:%u:%u:%u:%u:%u:%u:%u:%u", (unsigned long long)l->memory, (unsigned long long)l->host_memory,
		 l->handles, l->modules, l->lanes, l->idle_s, l->share, l->priority, l->strictest, l->measure, l->stripes);
}

bool obs_limits_parse(const char *text, struct obs_limits *ret)
{
	unsigned long long memory, host;
	unsigned measure;

	if (sscanf(text, "%llu:%llu:%u:%u:%u:%u:%u:%u:%u:%u:%u", &memory, &host, &ret->handles, &ret->modules, &ret->lanes, &ret->idle_s, &ret->share,
		   &ret->priority, &ret->strictest, &measure, &ret->stripes) != 11)
		return false;
	ret->memory = memory;
	ret->host_memory = host;
	ret->measure = measure != 0;
	return true;
}

void obs_limits_lower(struct obs_limits *limits, const struct obp_hello *hello)
{
	if (hello->want_memory)
		limits->memory = limits->memory ? ob_min(limits->memory, hello->want_memory) : hello->want_memory;
	if (hello->want_share)
		limits->share = ob_min(limits->share, hello->want_share);
	limits->priority = hello->want_priority ? ob_min(limits->priority, hello->want_priority - 1) : ob_min(limits->priority, 1u);
}
