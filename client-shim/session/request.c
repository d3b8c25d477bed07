/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/text.h"
#include "client-shim/session/server.h"
#include "front/visible.h"
#include "loadbalancer/ask.h"

static uint64_t wanted_memory(void)
{
	const char *text = getenv("OUTBOARD_VRAM");
	uint64_t bytes = 0;

	if (text && *text && !ob_text_parse_size(text, &bytes))
		ob_warn("OUTBOARD_VRAM: '%.64s' is not a size such as 4GiB; the setting is ignored",
			text);
	return bytes;
}

static uint32_t wanted_share(void)
{
	const char *text = getenv("OUTBOARD_SHARE");
	double value;
	char *end;

	if (!text || !*text)
		return 0;
	value = strtod(text, &end);
	if (!*end && value >= 0.01 && value <= 1)
		return (uint32_t)(value * OBP_SHARE_ALL + 0.5);
	ob_warn("OUTBOARD_SHARE: '%.64s' is not a number from 0.01 to 1; the setting is ignored",
		text);
	return 0;
}

static uint32_t wanted_priority(void)
{
	static const char *const words[] = { "", "low", "normal", "high" };
	const char *text = getenv("OUTBOARD_PRIORITY");

	for (uint32_t i = 0; text && i < 4; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	if (text)
		ob_warn("OUTBOARD_PRIORITY: '%.64s' is not one of low, normal, high; the setting "
			"is ignored",
			text);
	return 0;
}

void obc_request_fill(struct obp_hello *hello)
{
	hello->want_memory = wanted_memory();
	hello->want_share = wanted_share();
	hello->want_priority = wanted_priority();
	hello->slabs = ob_opt_on(OB_OPT_GRANT);
	/* The grant is for the program's first device. */
	hello->no_grant = obc_server_number() > 0 ||
		!obf_visible_first(getenv("CUDA_DEVICE_ORDER"), getenv("CUDA_VISIBLE_DEVICES"));
}

/* A number from 0 to max; 0: the variable is not set, or is wrong. */
static uint32_t wanted_number(const char *name, uint32_t max)
{
	const char *text = getenv(name);
	uint64_t value = 0;

	if (text && *text && !ob_text_parse_number(text, 0, max, &value))
		ob_warn("%s: '%.64s' is not a number from 0 to %u; the setting is ignored", name,
			text, max);
	return (uint32_t)value;
}

static void wanted_text(const char *name, char *ret, size_t size)
{
	const char *text = getenv(name);

	if (text && strlen(text) < size)
		strcpy(ret, text);
	else if (text)
		ob_warn("%s is longer than %zu characters; the setting is ignored", name, size - 1);
}

/* False: none is named, or an unknown one. */
static bool wanted_policy(enum obl_policy *ret)
{
	const char *name = getenv("OUTBOARD_POLICY");

	if (!name || !*name)
		return false;
	if (obl_policy_parse(name, ret))
		return true;
	ob_warn("OUTBOARD_POLICY: '%.64s' is no policy; the setting is ignored", name);
	return false;
}

void obc_request_ask(struct obp_pool_ask *ask)
{
	uint32_t gpus = wanted_number("OUTBOARD_GPUS", OBP_POOL_GPUS_MAX);
	enum obl_policy policy;

	ask->gpus = gpus ? gpus : 1;
	ask->wait_s = wanted_number("OUTBOARD_WAIT", OBP_POOL_LINGER_MAX_S);
	ask->linger_s = wanted_number("OUTBOARD_HOLD", OBP_POOL_LINGER_MAX_S);
	ask->exclusive = wanted_number("OUTBOARD_EXCLUSIVE", 1);
	ask->one_server = wanted_number("OUTBOARD_ONE_SERVER", 1);
	ask->memory = wanted_memory();
	ask->share = wanted_share();
	ask->priority = wanted_priority();
	if (wanted_policy(&policy))
		ask->policy = 1 + (uint32_t)policy;
	wanted_text("OUTBOARD_WHERE", ask->where, sizeof ask->where);
	wanted_text("OUTBOARD_APART", ask->apart, sizeof ask->apart);
}

enum ob_err obc_request_server(const char *list, uint64_t timeout_ns, char ret_url[OBT_URL_MAX + 1])
{
	struct obl_request request = { .memory = wanted_memory() };
	enum obl_policy policy;
	struct ob_cause cause;
	enum ob_err err;

	if (!wanted_policy(&policy))
		policy = OBL_LEAST_LOAD;
	err = obl_pick(list, &request, policy, timeout_ns, ret_url, &cause);
	if (err)
		ob_error("%s", cause.text);
	else if (strchr(list, ','))
		ob_info("chose server %s from OUTBOARD_SERVER by policy %s", ret_url,
			obl_policy_name(policy));
	return err;
}
