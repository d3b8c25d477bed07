/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard config check FILE`: runs the server program, which knows its settings. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"

int obx_config_main(int argc, char **argv)
{
	char path[4096];

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		puts("usage: outboard config check FILE\n\n"
		     "Says what is wrong with a configuration of outboard-server, with file and "
		     "line. Exit code 0: nothing.");
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "check") != 0)
		return obx_word_unknown(
			"config", "verb", argv[1], (const char *const[]){ "check" }, 1);
	if (argc != 3 || strcmp(argv[1], "check") != 0)
		return obx_usage_error("config", "write 'outboard config check FILE'");
	if (!obx_find_file("outboard-server", path, sizeof path))
		return OBX_EXIT_UNWELL;
	execl(path, "outboard-server", "--check-config", argv[2], (char *)NULL);
	fprintf(stderr, "outboard config: %s: %s\n", path, strerror(errno));
	return OBX_EXIT_UNWELL;
}
