/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/option_shell.h"
#include "base/text.h"
#include "protocol/format.h"
#include "tools/command.h"

const char *obx_server_url(const char *given)
{
	return given && *given ? given : OBX_DEFAULT_SERVER;
}

/* The folder of the running program; false: not known. */
static bool own_folder(char ret_folder[4096])
{
	ssize_t n = readlink("/proc/self/exe", ret_folder, 4095);
	char *slash;

	if (n <= 0)
		return false;
	ret_folder[n] = 0;
	slash = strrchr(ret_folder, '/');
	if (slash)
		*slash = 0;
	return true;
}

bool obx_look_for_file(const char *name, char *ret_path, size_t size)
{
	static const char *const places[] = { "../lib/outboard", "../libexec/outboard",
		"../client-shim", "../softdevice", "../server", "../compute/command/rqa", "." };
	char self[4096];

	if (!own_folder(self))
		return false;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		char joined[4608];

		snprintf(joined, sizeof joined, "%s/%s/%s", self, places[i], name);
		if (access(joined, R_OK) == 0) {
			/* resolve "..": the path goes into LD_LIBRARY_PATH */
			char *real = realpath(joined, NULL);
			bool fits = real && strlen(real) < size;

			/*
			 * The link's own name must stay (libcuda.so.1): only its directory is
			 * resolved.
			 */
			if (fits)
				strcpy(ret_path, real);
			free(real);
			return fits;
		}
	}
	return false;
}

bool obx_find_file(const char *name, char *ret_path, size_t size)
{
	char self[4096] = "";

	if (obx_look_for_file(name, ret_path, size))
		return true;
	own_folder(self);
	fprintf(stderr,
		"outboard: %s is neither in %s/../lib/outboard nor in a build tree around it; "
		"install Outboard (the software device comes with the server) or build it with "
		"'ninja'\n",
		name, self);
	return false;
}

int obx_usage_error(const char *verb, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "outboard%s%s: ", *verb ? " " : "", verb);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "%s 'outboard%s%s --help' shows the usage\n",
		format[strlen(format) - 1] == '?' ? "" : ";", *verb ? " " : "", verb);
	return OBX_EXIT_USAGE;
}

/* ---- the tree of commands ---- */

static int completions_main(int argc, char **argv);

static const struct ob_operand shell_operand[] = {
	{ .name = "SHELL",
		.words = OB_SHELLS,
		.what = "completion for the shell",
		.missing = "say for which shell: bash, zsh or fish" },
	{ 0 },
};

static const struct ob_command completions = {
	.name = "outboard completion",
	.group = OBX_GROUP_REMOTE,
	.summary = "print the completion script for bash, zsh or fish",
	.about = "Prints a script that completes the verbs and options of 'outboard'. "
		 "'meson install' installs it. For one bash session: "
		 "source <(outboard completion bash)",
	.operands = shell_operand,
	.main = completions_main,
};

static char version[64];

/* The verbs of a group are adjacent. */
static const struct ob_command outboard = {
	.name = "outboard",
	.summary = "run CUDA programs on the GPUs of another machine",
	.notes =
		"The GPUs are those of --pool or --server, else of OUTBOARD_POOL or "
		"OUTBOARD_SERVER, else of the pool of 'outboard login', else of " OBX_DEFAULT_SERVER
		". Several servers with commas between them are asked for their load, and the "
		"least loaded is taken.",
	.version = version,
	.commands = (const struct ob_command *const[]){ &obx_run_command, &obx_check_command,
		&obx_info_command, &obx_smi_command, &obx_top_command, &obx_config_command,
		&obx_bench_command, &obx_token_command, &obx_cert_command, &completions,
		&obx_login_command, &obx_logout_command, &obx_server_command, &obx_gpu_command,
		&obx_session_command, &obx_queue_command, &obx_quota_command, &obx_events_command,
		&obx_kzg_command, &obx_msm_command, &obx_ntt_command, &obx_rqa_command, NULL },
};

static int completions_main(int argc, char **argv)
{
	const char *shell = NULL;
	int code = ob_options_parse(&completions, &shell, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	ob_completions_print(&outboard, shell, stdout);
	return 0;
}

/* A command whose output could not be written has failed. */
static int output_end(int code)
{
	bool lost = ferror(stdout) != 0;

	errno = 0;
	if (fflush(stdout) == 0 && !lost)
		return code;
	fprintf(stderr, "outboard: the output could not be written%s%s\n", errno ? ": " : "",
		errno ? strerror(errno) : "");
	return code ? code : OBX_EXIT_UNWELL;
}

int main(int argc, char **argv)
{
	ob_log_set_name("outboard");
	snprintf(version, sizeof version, "%s, protocol %u", OB_VERSION, OBP_VERSION);
	return output_end(ob_command_run(&outboard, argc, argv));
}
