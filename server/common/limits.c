/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/limits.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "protocol/stripe.h"

const struct obs_limits obs_limits_default = OBS_LIMITS_DEFAULT;
struct obs_limits obs_limits_now = OBS_LIMITS_DEFAULT;

/* True if the text is one of the words; *ret: `first` for the first word. */
static bool one_of(const char *const *words, uint32_t first, const char *text, uint32_t *ret)
{
	for (uint32_t i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*ret = first + i;
			return true;
		}
	return false;
}

/* Applies the limits that a token can set. */
static void take_allowed(struct obs_limits *l, const struct obt_allow *allow)
{
	const uint64_t *value = allow->value;

	l->memory = value[OBT_ALLOW_MEMORY] ? value[OBT_ALLOW_MEMORY] : l->memory;
	l->host_memory =
		value[OBT_ALLOW_HOST_MEMORY] ? value[OBT_ALLOW_HOST_MEMORY] : l->host_memory;
	l->outstanding =
		value[OBT_ALLOW_OUTSTANDING] ? value[OBT_ALLOW_OUTSTANDING] : l->outstanding;
	l->handles = value[OBT_ALLOW_HANDLES] ? (uint32_t)value[OBT_ALLOW_HANDLES] : l->handles;
	l->modules = value[OBT_ALLOW_MODULES] ? (uint32_t)value[OBT_ALLOW_MODULES] : l->modules;
	l->lanes = value[OBT_ALLOW_LANES] ? (uint32_t)value[OBT_ALLOW_LANES] : l->lanes;
	l->idle_s = value[OBT_ALLOW_IDLE] ? (uint32_t)value[OBT_ALLOW_IDLE] : l->idle_s;
	l->share = value[OBT_ALLOW_SHARE] ? (uint32_t)value[OBT_ALLOW_SHARE] : l->share;
	l->priority =
		value[OBT_ALLOW_PRIORITY] ? (uint32_t)value[OBT_ALLOW_PRIORITY] - 1 : l->priority;
}

enum obp_share_by obs_limits_share_by(const struct obs_limits *limits, unsigned i)
{
	uint32_t choice = i < OBS_SHARE_BY_CHOICES ? limits->share_by >> 4 * i & 15 : 0;

	return choice < OBP_SHARE_BY_COUNT ? (enum obp_share_by)choice : OBP_SHARE_BY_NONE;
}

/*
 * "green,throttle". False: an unknown word, a word twice, none, or one after throttle, which is
 * always possible.
 */
static bool share_by_read(const char *text, uint32_t *ret)
{
	uint32_t choices = 0, seen = 0;

	for (unsigned n = 0; n < OBS_SHARE_BY_CHOICES; n++) {
		size_t size = strcspn(text, ",");
		uint32_t by = OBP_SHARE_BY_THROTTLE;

		while (by < OBP_SHARE_BY_COUNT &&
			(strlen(obp_share_by_name(by)) != size ||
				strncmp(obp_share_by_name(by), text, size) != 0))
			by++;
		if (by == OBP_SHARE_BY_COUNT || (seen & 1u << by) ||
			(seen & 1u << OBP_SHARE_BY_THROTTLE))
			return false;
		seen |= 1u << by;
		choices |= by << 4 * n;
		if (!text[size]) {
			*ret = choices;
			return true;
		}
		text += size + 1;
	}
	return false;
}

enum ob_err obs_limits_option(
	struct obs_limits *l, const char *name, const char *text, struct ob_cause *ret_cause)
{
	static const char *const reactions[] = { "warn", "limit", "suspend", "terminate", NULL },
				 *const answers[] = { "no", "yes", NULL };
	const char *wants = NULL;
	struct obt_allow allow = { { 0 } };
	uint32_t flag = l->measure;
	uint64_t stripes = l->stripes;
	enum ob_err err;

	if (strcmp(name, "max-stripes") == 0) {
		if (!ob_text_parse_number(text, 0, OBP_STRIPES_MAX, &stripes))
			wants = "a number from 0 to 16";
		l->stripes = (uint32_t)stripes;
	} else if (strcmp(name, "idle-timeout") == 0 && strcmp(text, "0") == 0) {
		l->idle_s = 0;
	} else if (strcmp(name, "on-excess") == 0) {
		if (!one_of(reactions, OBP_THROTTLE_WARNED, text, &l->strictest))
			wants = "warn, limit, suspend or terminate";
	} else if (strcmp(name, "share-by") == 0) {
		if (!share_by_read(text, &l->share_by))
			wants = "throttle, green or mps, or several of them with commas, throttle "
				"last, since it "
				"is always possible";
	} else if (strcmp(name, "measure") == 0) {
		if (!one_of(answers, 0, text, &flag))
			wants = "yes or no";
		l->measure = flag != 0;
	} else {
		err = obt_allow_set(&allow, name, text, ret_cause);
		if (!err)
			take_allowed(l, &allow);
		return err;
	}
	return wants ? ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%s", wants) : OB_ERR_NONE;
}

void obs_limits_print(const struct obs_limits *l, char ret_text[OBS_LIMITS_TEXT_MAX])
{
	snprintf(ret_text, OBS_LIMITS_TEXT_MAX, "%llu:%llu:%llu:%u:%u:%u:%u:%u:%u:%u:%u:%u:%u",
		(unsigned long long)l->memory, (unsigned long long)l->host_memory,
		(unsigned long long)l->outstanding, l->handles, l->modules, l->lanes, l->idle_s,
		l->share, l->priority, l->strictest, l->measure, l->stripes, l->share_by);
}

enum ob_err obs_limits_parse(const char *text, struct obs_limits *ret)
{
	unsigned long long memory, host, outstanding;
	struct obs_limits limits = *ret;
	unsigned measure;

	if (sscanf(text, "%llu:%llu:%llu:%u:%u:%u:%u:%u:%u:%u:%u:%u:%u", &memory, &host,
		    &outstanding, &limits.handles, &limits.modules, &limits.lanes, &limits.idle_s,
		    &limits.share, &limits.priority, &limits.strictest, &measure, &limits.stripes,
		    &limits.share_by) != 13)
		return OB_ERR_ARGUMENT;
	limits.memory = memory;
	limits.host_memory = host;
	limits.outstanding = outstanding;
	limits.measure = measure != 0;
	*ret = limits;
	return OB_ERR_NONE;
}

void obs_limits_allow(struct obs_limits *limits, const struct obt_allow *allow)
{
	struct obs_limits bearer = *limits;

	take_allowed(&bearer, allow);
	/* 0 means no limit here, so it is the larger one. */
	limits->memory = limits->memory ? ob_min(limits->memory, bearer.memory) : bearer.memory;
	limits->host_memory = limits->host_memory ? ob_min(limits->host_memory, bearer.host_memory)
						  : bearer.host_memory;
	limits->outstanding = ob_min(limits->outstanding, bearer.outstanding);
	limits->handles = ob_min(limits->handles, bearer.handles);
	limits->modules = ob_min(limits->modules, bearer.modules);
	limits->lanes = ob_min(limits->lanes, bearer.lanes);
	limits->idle_s = limits->idle_s ? ob_min(limits->idle_s, bearer.idle_s) : bearer.idle_s;
	limits->share = ob_min(limits->share, bearer.share);
	limits->priority = ob_min(limits->priority, bearer.priority);
}

void obs_limits_lower(struct obs_limits *limits, const struct obp_hello *hello)
{
	if (hello->want_memory)
		limits->memory = limits->memory ? ob_min(limits->memory, hello->want_memory)
						: hello->want_memory;
	if (hello->want_share)
		limits->share = ob_min(limits->share, hello->want_share);
	limits->priority = hello->want_priority ? ob_min(limits->priority, hello->want_priority - 1)
						: ob_min(limits->priority, 1u);
}
