/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadbalancer/pool.h"
#include "tools/command.h"
#include "transport/pin.h"

/* What a login gives lives here, for pointers in obx_way. */
static struct obx_logins logins;
static char balancers[OBX_LOGIN_LIST_MAX];

static const char *set_variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* An option's value that is the variable's own text was not given on the command line. */
static enum obx_from origin(const char *value, const char *variable)
{
	const char *text = set_variable(variable);

	return text && strcmp(text, value) == 0 ? OBX_FROM_ENVIRONMENT : OBX_FROM_OPTION;
}

static bool is_name(const char *pool)
{
	return obx_login_name_valid(pool);
}

/* The login with exactly these balancers. */
static struct obx_login *login_of_address(const char *pool)
{
	struct obx_login given;

	if (obx_login_parse(pool, &given, NULL))
		return NULL;
	for (uint32_t i = 0; i < logins.n; i++) {
		struct obx_login *known = &logins.list[i];
		bool same = known->n == given.n;

		for (uint32_t b = 0; same && b < given.n; b++)
			same = strcmp(known->balancers[b].url, given.balancers[b].url) == 0;
		if (same)
			return known;
	}
	return NULL;
}

/* Adds pins for addresses that the user's own variable has none for. */
static int pins_use(const struct ob_command *command, const struct obx_login *login)
{
	const char *own = set_variable("OUTBOARD_TLS_PIN");
	char pins[OBX_LOGIN_PINS_MAX];
	struct ob_cause cause;
	char *joined = NULL;

	obx_login_pins(login, pins);
	if (!pins[0])
		return OB_OPTIONS_GO;
	/* a pin for every address that the user has set is meant for this one too */
	if (own) {
		struct obt_pins list = { .n = 0 };

		if (obt_pins_add(&list, own, false, &cause))
			return ob_usage_error(command, "OUTBOARD_TLS_PIN: %s", cause.text);
		if (obt_pins_apply(&list, ""))
			return OB_OPTIONS_GO;
	}
	if (obt_pins_join(own, pins, &joined, &cause))
		return ob_usage_error(command, "OUTBOARD_TLS_PIN: %s", cause.text);
	setenv("OUTBOARD_TLS_PIN", joined, 1);
	free(joined);
	return OB_OPTIONS_GO;
}

/* Uses what a login has stored; what is in the environment already stays. */
static int login_use(
	const struct ob_command *command, const struct obx_login *login, struct obx_way *way)
{
	way->name = login->name;
	if (way->token_from == OBX_FROM_DEFAULT && login->token[0]) {
		setenv("OUTBOARD_TOKEN", login->token, 1);
		way->token_from = OBX_FROM_LOGIN;
	}
	if (way->pin_from == OBX_FROM_DEFAULT && login->balancers[0].pin[0])
		way->pin_from = OBX_FROM_LOGIN;
	return pins_use(command, login);
}

/* Reads the file; one that does not exist is empty. */
static int logins_load(const struct ob_command *command)
{
	struct ob_cause cause;
	enum ob_err err = obx_logins_read(&logins, &cause);

	if (!err || err == OB_ERR_NOT_FOUND)
		return OB_OPTIONS_GO;
	fprintf(stderr, "%s: %s\n", command->name, cause.text);
	return OBX_EXIT_UNWELL;
}

/* The pool is given: by its balancers, or by the name of a login. */
static int pool_given(const struct ob_command *command, const char *pool, struct obx_way *ret)
{
	struct obx_login *login;
	struct ob_cause cause;
	int code = OB_OPTIONS_GO;

	ret->from = origin(pool, "OUTBOARD_POOL");
	/* with a token in the environment the file is not needed */
	if (is_name(pool) || ret->token_from == OBX_FROM_DEFAULT)
		code = logins_load(command);
	if (code != OB_OPTIONS_GO)
		return code;
	if (is_name(pool)) {
		login = obx_login_find(&logins, pool);
		if (!login)
			return ob_usage_error(command,
				"there is no login '%s': write the pool's address, such as "
				"tls://host:%u, or log in with 'outboard login --name %s'",
				pool, OBP_POOL_PORT, pool);
		obx_login_list(login, balancers);
		ret->pool = balancers;
		return login_use(command, login, ret);
	}
	if (obl_pool_check(pool, &cause))
		return ob_usage_error(command, "the pool's address: %s", cause.text);
	ret->pool = pool;
	login = login_of_address(pool);
	return login ? login_use(command, login, ret) : OB_OPTIONS_GO;
}

static int login_or_default(const struct ob_command *command, struct obx_way *ret)
{
	struct obx_login *login;
	int code = logins_load(command);

	if (code != OB_OPTIONS_GO)
		return code;
	login = obx_login_find(&logins, NULL);
	if (!login) {
		ret->from = OBX_FROM_DEFAULT;
		ret->server = OBX_DEFAULT_SERVER;
		return OB_OPTIONS_GO;
	}
	ret->from = OBX_FROM_LOGIN;
	obx_login_list(login, balancers);
	ret->pool = balancers;
	return login_use(command, login, ret);
}

static void way_begin(struct obx_way *ret)
{
	*ret = (struct obx_way){ .token_from = set_variable("OUTBOARD_TOKEN") ? OBX_FROM_ENVIRONMENT
									      : OBX_FROM_DEFAULT,
		.pin_from = set_variable("OUTBOARD_TLS_PIN") ? OBX_FROM_ENVIRONMENT
							     : OBX_FROM_DEFAULT };
}

int obx_way_find(
	const struct ob_command *command, const char *pool, const char *server, struct obx_way *ret)
{
	enum obx_from pool_from, server_from;

	way_begin(ret);
	pool = pool && *pool ? pool : NULL;
	server = server && *server ? server : NULL;
	pool_from = pool ? origin(pool, "OUTBOARD_POOL") : OBX_FROM_DEFAULT;
	server_from = server ? origin(server, "OUTBOARD_SERVER") : OBX_FROM_DEFAULT;
	if (pool && server && pool_from == OBX_FROM_OPTION && server_from == OBX_FROM_OPTION)
		return ob_usage_error(command,
			"--server names a server and --pool a pool: leave one of the two out");
	/* a program of a reservation starts another one: that uses the same reservation */
	ret->reserved = server && server_from == OBX_FROM_ENVIRONMENT &&
		pool_from != OBX_FROM_OPTION && set_variable("OUTBOARD_TICKET");
	if (pool && !ret->reserved && pool_from <= server_from)
		return pool_given(command, pool, ret);
	if (server) {
		ret->from = server_from;
		ret->server = server;
		return OB_OPTIONS_GO;
	}
	return login_or_default(command, ret);
}

int obx_way_pool(const struct ob_command *command, const char *pool, struct obx_way *ret)
{
	int code;

	way_begin(ret);
	code = pool && *pool ? pool_given(command, pool, ret) : login_or_default(command, ret);
	if (code != OB_OPTIONS_GO || ret->pool)
		return code;
	return ob_usage_error(command,
		"it needs a pool: name its balancers with --pool or OUTBOARD_POOL, or log in with "
		"'outboard login'");
}

const char *obx_from_name(enum obx_from from)
{
	static const char *const names[] = { [OBX_FROM_OPTION] = "option",
		[OBX_FROM_ENVIRONMENT] = "environment",
		[OBX_FROM_LOGIN] = "login",
		[OBX_FROM_DEFAULT] = "default" };

	return names[from];
}
