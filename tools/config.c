/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard config check FILE`: runs the server program, which knows its settings. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"

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

const struct ob_command obx_config_command = {
	.name = "outboard config",
	.group = OBX_GROUP_REMOTE,
	.summary = "check a configuration of outboard-server",
	.commands = (const struct ob_command *const[]){ &check_command, NULL },
};
