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
	static const char *const places[] = { "../lib/outboard", "../client-shim", "../softdevice",
		"../server", "../compute/command/rqa", "." };
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
		"install Outboard or build it with 'ninja'\n",
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

/* ---- suggestions, for the verbs that read their options themselves ---- */

#define NEAR         3u /* the most changes between a word and its suggestion */
#define OPTION_BYTES 64u

/* Whether `name` is nearer than `*best` to the word that was typed. */
static bool nearer(const char *word, const char *name, unsigned *best)
{
	unsigned distance = ob_text_distance(word, name);

	if (distance >= *best || distance >= strlen(name))
		return false;
	*best = distance;
	return true;
}

int obx_word_unknown(
	const char *verb, const char *what, const char *word, const char *const *names, size_t n)
{
	const char *meant = NULL;
	unsigned best = NEAR;

	for (size_t i = 0; i < n; i++)
		if (nearer(word, names[i], &best))
			meant = names[i];
	return meant ? obx_usage_error(verb, "there is no %s '%.60s'; did you mean '%s'?", what,
			       word, meant)
		     : obx_usage_error(verb, "there is no %s '%.60s'", what, word);
}

static const struct ob_command outboard;

/* Returns what `outboard VERB --help` prints; the caller frees it. NULL: out of memory. */
static char *help_of(const char *verb)
{
	char words[OPTION_BYTES], *text = NULL, *argv[5] = { (char *)(uintptr_t) "outboard" },
				  *rest = NULL;
	FILE *kept = stdout, *memory;
	size_t size;
	int argc = 1;

	snprintf(words, sizeof words, "%s", verb);
	for (char *word = strtok_r(words, " ", &rest); word && argc < 3;
		word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	argv[argc++] = (char *)(uintptr_t) "--help";
	memory = open_memstream(&text, &size);
	if (!memory)
		return NULL;
	stdout = memory;
	ob_command_run(&outboard, argc, argv);
	stdout = kept;
	fclose(memory);
	return text;
}

/*
 * Finds the option in the verb's --help that is nearest to the typed word; "" when none is near.
 * Returns the number of changes between them.
 */
static unsigned option_nearest(const char *verb, const char *word, char ret_meant[OPTION_BYTES])
{
	OB_CLEANUP(ob_freep) char *help = help_of(verb);
	char name[OPTION_BYTES], asked[OPTION_BYTES];
	unsigned best = NEAR;

	ret_meant[0] = '\0';
	snprintf(asked, sizeof asked, "%.*s", (int)strcspn(word, "="), word);
	for (const char *at = help; at && (at = strstr(at, "--")) != NULL; at += 2) {
		size_t n = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");

		if (n > 2 && n < sizeof name &&
			snprintf(name, sizeof name, "%.*s", (int)n, at) > 0 &&
			nearer(asked, name, &best))
			memcpy(ret_meant, name, sizeof name);
	}
	return best;
}

static int option_refuse(const char *verb, const char *word, const char *meant)
{
	if (word[0] != '-')
		return obx_usage_error(verb, "unexpected '%.60s'", word);
	return meant[0]
		? obx_usage_error(verb, "there is no option %.60s; did you mean %s?", word, meant)
		: obx_usage_error(verb, "there is no option %.60s", word);
}

int obx_option_unknown(const char *verb, const char *word)
{
	char meant[OPTION_BYTES];

	if (option_nearest(verb, word, meant) == 0) /* the option exists, so its value is missing */
		return obx_usage_error(verb, "%.60s needs a value", word);
	return option_refuse(verb, word, meant);
}

/* ---- the tree of commands ---- */

static int completions_main(int argc, char **argv);

static const struct ob_command kzg = { .name = "outboard kzg",
	.group = OBX_GROUP_COMPUTE,
	.summary = "KZG commitments, proofs and cells of blobs",
	.main = obx_kzg_main },
			       msm = { .name = "outboard msm",
				       .group = OBX_GROUP_COMPUTE,
				       .summary = "multi-scalar products of files",
				       .main = obx_msm_main },
			       ntt = { .name = "outboard ntt",
				       .group = OBX_GROUP_COMPUTE,
				       .summary = "number-theoretic transforms of files",
				       .main = obx_ntt_main };

static const struct ob_operand shell_operand[] = {
	{ .name = "SHELL",
		.words = OB_SHELLS,
		.what = "completion for the shell",
		.missing = "say for which shell: bash, zsh or fish" },
	{ 0 },
};

static const struct ob_command completions = {
	.name = "outboard completions",
	.group = OBX_GROUP_REMOTE,
	.summary = "print the completion script for bash, zsh or fish",
	.about = "Prints a script that completes the verbs and options of 'outboard'. "
		 "'meson install' installs it. For one bash session: "
		 "source <(outboard completions bash)",
	.operands = shell_operand,
	.main = completions_main,
};

static char version[64];

/* The verbs of a group are adjacent. */
static const struct ob_command outboard = {
	.name = "outboard",
	.summary = "run CUDA programs on the GPUs of another machine",
	.notes = "The server is --server URL, else OUTBOARD_SERVER, else " OBX_DEFAULT_SERVER
		 "; several with commas between them are asked for their load, and the least "
		 "loaded is taken.",
	.version = version,
	.commands = (const struct ob_command *const[]){ &obx_run_command, &obx_check_command,
		&obx_info_command, &obx_top_command, &obx_config_command, &obx_bench_command,
		&obx_token_command, &obx_cert_command, &completions, &kzg, &msm, &ntt,
		&obx_rqa_command, NULL },
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

/* Whether --help is among the arguments of a verb that only looks for it in the first place. */
static bool help_wanted(int argc, char **argv)
{
	bool wanted = false;

	if (argc < 3 || ob_words_find("kzg|msm|ntt", argv[1]) < 0)
		return false;
	for (int i = 2; i < argc; i++)
		wanted |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
	return wanted;
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
	if (help_wanted(argc, argv)) {
		argv[2] = (char *)(uintptr_t) "--help";
		argc = 3;
	}
	return output_end(ob_command_run(&outboard, argc, argv));
}
