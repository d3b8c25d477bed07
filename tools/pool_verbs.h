/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The verbs over a pool: their tables (tools/command.h), and what they share. Main thread. */
#ifndef OBX_POOL_VERBS_H
#define OBX_POOL_VERBS_H

#include <jansson.h>

#include "base/command_line.h"
#include "tools/pool_look.h"

/* --server of a verb that is for pools first. */
#define OBX_SERVER_LIST_OPTION(settings, field)                                              \
	{                                                                                    \
		OB_OPTION("server", OB_TEXT, settings, field),                               \
			.arg = "URL[,URL]",                                                  \
			.help = "servers to ask instead of a pool, with commas between them" \
	}

extern const struct ob_command obx_server_list_command, obx_server_info_command,
	obx_server_cordon_command, obx_server_uncordon_command, obx_server_drain_command,
	obx_server_forget_command, obx_gpu_list_command, obx_session_list_command,
	obx_session_info_command, obx_session_kill_command, obx_session_move_command;

/*
 * Finds the reservation whose id begins with `start` in a document "sessions"; *ret_n: how many
 * there are; the result is the last of them, or NULL.
 */
const json_t *obx_session_find(const json_t *document, const char *start, size_t *ret_n);
/*
 * `outboard check` of a pool: what a balancer says of it, and a verdict. 0: it has a server that
 * takes programs. `outboard info` of a pool: its GPUs. Both return the exit code.
 */
int obx_pool_check(const struct ob_command *command, const char *pool);
int obx_pool_gpus(const struct ob_command *command, const char *pool);
/* `outboard top` of a pool. Returns the exit code. */
int obx_pool_top(const struct ob_command *command, const char *pool, const struct obx_look *look);

#endif
