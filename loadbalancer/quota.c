/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/quota.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "loadbalancer/queue.h"

static const char *const priority_names[] = { NULL, "low", "normal", "high" };

const char *obl_priority_name(uint32_t priority)
{
	return priority && priority < ob_count(priority_names) ? priority_names[priority] : "?";
}

bool obl_priority_parse(const char *text, uint32_t *ret)
{
	for (uint32_t i = OBL_LOW; i <= OBL_HIGH; i++)
		if (strcmp(text, priority_names[i]) == 0) {
			*ret = i;
			return true;
		}
	return false;
}

/* ---- usage ---- */

static uint64_t add64(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static uint32_t add32(uint32_t a, uint32_t b)
{
	return b > UINT32_MAX - a ? UINT32_MAX : a + b;
}

struct obl_usage obl_usage_of(const struct obl_request *request)
{
	uint32_t gpus = ob_max(request->gpus, 1u);
	uint64_t share = request->exclusive || request->share == 0 ? OBL_SHARE_ALL : request->share;
	struct obl_usage usage = { .gpus = gpus, .sessions = 1, .share = share * gpus };

	if (ob_mul_overflows(request->memory, gpus, &usage.memory))
		usage.memory = UINT64_MAX;
	return usage;
}

void obl_usage_add(struct obl_usage *usage, const struct obl_usage *more)
{
	usage->gpus = add32(usage->gpus, more->gpus);
	usage->sessions = add32(usage->sessions, more->sessions);
	usage->memory = add64(usage->memory, more->memory);
	usage->share = add64(usage->share, more->share);
}

void obl_usage_subtract(struct obl_usage *usage, const struct obl_usage *less)
{
	usage->gpus -= ob_min(usage->gpus, less->gpus);
	usage->sessions -= ob_min(usage->sessions, less->sessions);
	usage->memory -= ob_min(usage->memory, less->memory);
	usage->share -= ob_min(usage->share, less->share);
}

/* ---- the check ---- */

enum unit { COUNT, BYTES, SHARE };

static void amount_print(enum unit unit, uint64_t amount, char *ret_text, size_t size)
{
	if (unit == BYTES)
		ob_text_print_size(amount, ret_text, size);
	else if (unit == SHARE)
		snprintf(ret_text, size, "%.2f", (double)amount / OBL_SHARE_ALL);
	else
		snprintf(ret_text, size, "%" PRIu64, amount);
}

/* One limit. OK, or the sentence is written. */
static enum obl_quota_verdict limit_check(enum unit unit, const char *what, uint64_t limit,
	uint64_t used, uint64_t wanted, const char *tenant, char *ret_text, size_t size)
{
	char limit_text[32], used_text[32], wanted_text[32];

	if (limit == 0 || add64(used, wanted) <= limit)
		return OBL_QUOTA_OK;
	amount_print(unit, limit, limit_text, sizeof limit_text);
	amount_print(unit, used, used_text, sizeof used_text);
	amount_print(unit, wanted, wanted_text, sizeof wanted_text);
	if (wanted > limit) {
		snprintf(ret_text, size,
			"tenant %s may use %s %s; this request needs %s: ask for less, or ask an "
			"operator for a higher quota",
			tenant, limit_text, what, wanted_text);
		return OBL_QUOTA_NEVER;
	}
	snprintf(ret_text, size, "tenant %s uses %s of %s %s; this request needs %s more", tenant,
		used_text, limit_text, what, wanted_text);
	return OBL_QUOTA_LATER;
}

enum obl_quota_verdict obl_quota_check(const struct obl_quota *quota, const struct obl_usage *usage,
	const struct obl_request *request, uint32_t priority, const char *tenant, char *ret_text,
	size_t size)
{
	struct obl_usage wanted = obl_usage_of(request);
	const struct {
		enum unit unit;
		const char *what;
		uint64_t limit, used, wanted;
	} limits[] = {
		{ COUNT, "GPUs", quota->gpus, usage->gpus, wanted.gpus },
		{ BYTES, "of GPU memory", quota->memory, usage->memory, wanted.memory },
		{ SHARE, "GPUs' compute", quota->share, usage->share, wanted.share },
		{ COUNT, "reservations", quota->sessions, usage->sessions, wanted.sessions },
	};
	enum obl_quota_verdict worst = OBL_QUOTA_OK;
	char text[OBL_QUOTA_TEXT_MAX];

	if (size)
		ret_text[0] = '\0';
	if (quota->max_priority && priority > quota->max_priority) {
		snprintf(ret_text, size,
			"tenant %s may use priority %s at most; this request has %s", tenant,
			obl_priority_name(quota->max_priority), obl_priority_name(priority));
		return OBL_QUOTA_NEVER;
	}
	/* what can never be is reported before what has to wait */
	for (unsigned i = 0; i < ob_count(limits); i++) {
		enum obl_quota_verdict one =
			limit_check(limits[i].unit, limits[i].what, limits[i].limit, limits[i].used,
				limits[i].wanted, tenant, text, sizeof text);

		if (one <= worst)
			continue;
		worst = one;
		snprintf(ret_text, size, "%s", text);
	}
	return worst;
}

/* ---- text ---- */

/* "2.5" devices to millionths; at most six decimals. */
static bool share_parse(const char *text, uint64_t *ret)
{
	uint64_t whole, part = 0, scale = OBL_SHARE_ALL;
	char digits[16];
	size_t n = strcspn(text, ".");

	if (n >= sizeof digits)
		return false;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (!ob_text_parse_number(digits, 0, 1000000, &whole))
		return false;
	if (text[n]) {
		size_t decimals = strlen(text + n + 1);

		if (decimals > 6 ||
			!ob_text_parse_number(text + n + 1, 0, OBL_SHARE_ALL - 1, &part))
			return false;
		for (size_t i = 0; i < decimals; i++)
			scale /= 10;
		part *= scale;
	}
	*ret = whole * OBL_SHARE_ALL + part;
	return *ret > 0;
}

static bool setting_parse(const char *name, const char *value, struct obl_quota *quota)
{
	uint64_t number = 0;
	bool ok;

	if (strcmp(name, "memory") == 0)
		return ob_text_parse_size(value, &quota->memory) && quota->memory;
	if (strcmp(name, "share") == 0)
		return share_parse(value, &quota->share);
	if (strcmp(name, "priority") == 0)
		return obl_priority_parse(value, &quota->max_priority);
	ok = ob_text_parse_number(value, 1, UINT32_MAX, &number);
	if (strcmp(name, "gpus") == 0)
		quota->gpus = (uint32_t)number;
	else if (strcmp(name, "sessions") == 0)
		quota->sessions = (uint32_t)number;
	else if (strcmp(name, "weight") == 0 && number <= OBL_QUOTA_WEIGHT_MAX)
		quota->weight = (uint32_t)number;
	else
		return false;
	return ok;
}

enum ob_err obl_quota_parse(const char *text, struct obl_quota *ret, struct ob_cause *ret_cause)
{
	struct obl_quota quota = { .gpus = 0 };
	char copy[OBL_QUOTA_TEXT_MAX], *rest = copy, *word;

	if (strlen(text) >= sizeof copy)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "a quota has %u characters at most",
			OBL_QUOTA_TEXT_MAX - 1);
	memcpy(copy, text, strlen(text) + 1);
	while (*copy && (word = strsep(&rest, ","))) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (!value || !setting_parse(word, value, &quota))
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"'%s%s%s' in a quota: write gpus=4, memory=320GiB, share=2.5, "
				"sessions=10, weight=1 to 1000, or priority=low, normal or high",
				word, value ? "=" : "", value ? value : "");
	}
	*ret = quota;
	return OB_ERR_NONE;
}

/* In the largest unit that loses nothing. */
static void memory_print(uint64_t bytes, char *ret_text, size_t size)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	unsigned unit = 0;

	for (; bytes % 1024 == 0 && unit + 1 < ob_count(units); unit++)
		bytes /= 1024;
	snprintf(ret_text, size, "memory=%" PRIu64 "%s", bytes, units[unit]);
}

void obl_quota_print(const struct obl_quota *quota, char *ret_text, size_t size)
{
	char parts[6][64];
	size_t at = 0;

	memset(parts, 0, sizeof parts);
	if (quota->gpus)
		snprintf(parts[0], sizeof parts[0], "gpus=%u", quota->gpus);
	if (quota->memory)
		memory_print(quota->memory, parts[1], sizeof parts[1]);
	if (quota->share)
		snprintf(parts[2], sizeof parts[2], "share=%" PRIu64 ".%06" PRIu64,
			quota->share / OBL_SHARE_ALL, quota->share % OBL_SHARE_ALL);
	if (quota->sessions)
		snprintf(parts[3], sizeof parts[3], "sessions=%u", quota->sessions);
	if (quota->weight)
		snprintf(parts[4], sizeof parts[4], "weight=%u", quota->weight);
	if (quota->max_priority)
		snprintf(parts[5], sizeof parts[5], "priority=%s",
			obl_priority_name(quota->max_priority));
	if (size)
		ret_text[0] = '\0';
	for (unsigned i = 0; i < ob_count(parts) && at < size; i++)
		if (parts[i][0])
			at += (size_t)snprintf(
				ret_text + at, size - at, "%s%s", at ? "," : "", parts[i]);
}
