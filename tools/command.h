/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The users' command: one table per verb, with its options and its main (base/options.h). A main
 * returns the exit code: 0: success; 1: the operation failed or the check found a fault; 2: wrong
 * usage. `run` ends with the program's own exit code.
 */
#ifndef OBX_COMMAND_H
#define OBX_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/command_line.h"

#define OBX_EXIT_UNWELL    1
#define OBX_EXIT_USAGE     OB_OPTIONS_USAGE
#define OBX_DEFAULT_SERVER "tcp://127.0.0.1:14800"

/* Titles of the groups of verbs in --help. */
#define OBX_GROUP_REMOTE "Run CUDA programs on the GPUs of another machine"
#define OBX_GROUP_POOL   "A pool of servers"
#define OBX_GROUP_COMPUTE                                                                    \
	"Compute library, works without a server: on this machine's CPU and GPUs, or under " \
	"'outboard run' on those of a server"

/* --server, with its address in a field of the settings. */
#define OBX_SERVER_OPTION(settings, field)                                                      \
	{                                                                                       \
		OB_OPTION("server", OB_TEXT, settings, field),                                  \
			.arg = "URL", .environment = "OUTBOARD_SERVER",                         \
			.fallback = OBX_DEFAULT_SERVER,                                         \
			.help = "the server: tls://host:port, tcp://host:port, unix:/path, or " \
				"shm:/path (on this host, through shared memory)"               \
	}

extern const struct ob_command obx_run_command, obx_check_command, obx_info_command,
	obx_bench_command, obx_top_command, obx_smi_command, obx_config_command, obx_token_command,
	obx_cert_command, obx_login_command, obx_logout_command, obx_server_command,
	obx_gpu_command, obx_session_command, obx_queue_command, obx_quota_command,
	obx_events_command, obx_kzg_command, obx_msm_command, obx_ntt_command, obx_rqa_command;

/* Returns the value of OBX_SERVER_OPTION, or the default if it is NULL or empty. Never NULL. */
const char *obx_server_url(const char *given);
/*
 * Finds a file of this installation. Searches relative to the running program: the installed path
 * (../lib/outboard/NAME), then the build tree (../client-shim/NAME, ../softdevice/NAME,
 * ../server/NAME). On failure prints where it looked and returns false.
 */
bool obx_find_file(const char *name, char *ret_path, size_t size);
/* The same, but prints nothing on failure. */
bool obx_look_for_file(const char *name, char *ret_path, size_t size);
/*
 * Reports wrong usage, such as a missing value: prints "outboard VERB: ..." and returns
 * OBX_EXIT_USAGE.
 */
int obx_usage_error(const char *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
