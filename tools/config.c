/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard config check FILE`: runs the server program, which knows its settings. `outboard config
 * show`: what a program would use, and where that comes from.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "tools/command.h"
#include "tools/way.h"

static const struct ob_operand operands[] = {
	{ .name = "FILE", .file = true, .missing = "write 'outboard config check FILE'" },
	{ 0 },
};
static const struct ob_command check_command;

static int check_main(int argc, char **argv)
{
	char path[4096];
	const char *file = NULL;
	int code = ob_options_parse(&check_command, &file, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (!obx_find_file("outboard-server", path, sizeof path))
		return OBX_EXIT_UNWELL;
	execl(path, "outboard-server", "--check-config", file, (char *)NULL);
	fprintf(stderr, "outboard config: %s: %s\n", path, strerror(errno));
	return OBX_EXIT_UNWELL;
}

static const struct ob_command check_command = {
	.name = "outboard config check",
	.summary = "check a configuration of outboard-server",
	.about = "Reports every error in a configuration of outboard-server, with file and line. "
		 "Exit code 0: there is none.",
	.operands = operands,
	.main = check_main,
};

/* ---- show ---- */

struct showing {
	const char *pool, *server;
	bool json;
};

static const struct ob_option show_options[] = {
	OBX_SERVER_OPTION(struct showing, server),
	OBX_POOL_OPTION(struct showing, pool),
	{ OB_OPTION("json", OB_FLAG, struct showing, json), .help = "one JSON object" },
	{ 0 },
};
static const struct ob_command show_command;

/* One setting with its origin; secrets have no value. */
static void setting_print(
	struct ob_json *json, const char *key, const char *value, const char *from)
{
	if (json) {
		ob_json_object(json, key);
		ob_json_text(json, "value", value);
		ob_json_text(json, "from", from);
		ob_json_end(json);
	} else {
		printf("%-8s %-40s (%s)\n", key, value ? value : "-", from);
	}
}

static int show_main(int argc, char **argv)
{
	struct showing s = { .pool = NULL };
	char path[OBX_LOGIN_PATH_MAX] = "", from[64];
	struct ob_json json;
	struct obx_way way;
	int code = ob_options_parse(&show_command, &s, argc, argv);

	if (code == OB_OPTIONS_GO)
		code = obx_way_find(&show_command, s.pool, s.server, &way);
	if (code != OB_OPTIONS_GO)
		return code;
	obx_logins_path(path);
	if (s.json) {
		ob_json_begin(&json, stdout, OB_JSON_PRETTY);
		ob_json_object(&json, NULL);
		ob_json_uint(&json, "schema", 1);
	}
	snprintf(from, sizeof from, "%s%s%s", obx_from_name(way.from),
		way.from == OBX_FROM_LOGIN ? " " : "", way.from == OBX_FROM_LOGIN ? way.name : "");
	setting_print(s.json ? &json : NULL, way.pool ? "pool" : "server",
		way.pool ? way.pool : way.server, from);
	setting_print(s.json ? &json : NULL, "token",
		way.token_from == OBX_FROM_DEFAULT ? NULL : "set",
		way.token_from == OBX_FROM_DEFAULT ? "none" : obx_from_name(way.token_from));
	setting_print(s.json ? &json : NULL, "pin",
		way.pin_from == OBX_FROM_DEFAULT ? NULL : getenv("OUTBOARD_TLS_PIN"),
		way.pin_from == OBX_FROM_DEFAULT ? "none" : obx_from_name(way.pin_from));
	if (way.reserved)
		setting_print(s.json ? &json : NULL, "ticket", "set", "environment");
	setting_print(s.json ? &json : NULL, "logins", path, "file");
	if (s.json) {
		ob_json_end(&json);
		putchar('\n');
	}
	return 0;
}

static const struct ob_command show_command = {
	.name = "outboard config show",
	.summary = "where the GPUs come from",
	.about = "Shows the pool or server that 'outboard run' would use now, and whether an "
		 "option, the environment, a login or the default says so. Tokens are not shown.",
	.options = show_options,
	.main = show_main,
};

const struct ob_command obx_config_command = {
	.name = "outboard config",
	.group = OBX_GROUP_REMOTE,
	.summary = "show the settings in use, check a server's configuration",
	.commands = (const struct ob_command *const[]){ &show_command, &check_command, NULL },
};
