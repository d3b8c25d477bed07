/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "protocol/format.h"
#include "tools/command.h"

#define DEFAULT_SERVER "tcp://127.0.0.1:14800"

enum group { REMOTE, COMPUTE };

/* Titles of the groups of verbs in --help. */
static const char *const headings[] = {
	[REMOTE] = "Run CUDA programs on the GPUs of another machine",
	[COMPUTE] = "Compute library, works without a server: on this machine's CPU and GPUs, or "
		    "under 'outboard run'\non those of a server",
};

/* The verbs of a group must be adjacent. */
static const struct {
	enum group group;
	const char *name, *what;
	int (*main)(int argc, char **argv);
} verbs[] = {
	{ REMOTE, "run", "run a CUDA program with the GPUs of a server", obx_run_main },
	{ REMOTE, "check",
		"is the server there, what does it run, how far away is it, what is wrong",
		obx_check_main },
	{ REMOTE, "info", "the server's devices", obx_info_main },
	{ REMOTE, "top", "the sessions of a server, refreshed", obx_top_main },
	{ REMOTE, "config", "check a configuration of outboard-server", obx_config_main },
	{ REMOTE, "bench", "measure calls: launch, latency, bandwidth, startup", obx_bench_main },
	{ REMOTE, "token", "make, list and revoke tokens that let clients in", obx_token_main },
	{ REMOTE, "cert", "make a certificate for a tls:// address, show its pin", obx_cert_main },
	{ COMPUTE, "kzg", "KZG commitments, proofs and cells of blobs", obx_kzg_main },
	{ COMPUTE, "msm", "multi-scalar products of files", obx_msm_main },
	{ COMPUTE, "ntt", "number-theoretic transforms of files", obx_ntt_main },
	{ COMPUTE, "rqa",
		"recurrence quantification: one series, sweeps over grids of parameters, plots, a "
		"page",
		obx_rqa_main },
};

const char *obx_server_url(const char *given)
{
	const char *text = given ? given : getenv("OUTBOARD_SERVER");

	return text && *text ? text : DEFAULT_SERVER;
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

/* ---- suggestions ---- */

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

static int dispatch(int argc, char **argv);

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
	optind = 0;
	dispatch(argc, argv);
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

int obx_option_wrong(const char *verb, int c, char *const *argv)
{
	char letter[3] = { '-', (char)optopt, '\0' }, meant[OPTION_BYTES];
	const char *word = argv[optind - 1];

	if (c == ':')
		return obx_usage_error(verb, "%s needs a value", word);
	/*
	 * optopt is set for a long option that exists but takes no value and was given one by '='.
	 */
	if (optopt && word[0] == '-' && word[1] == '-' && strchr(word, '='))
		return obx_usage_error(verb, "%.*s takes no value",
			(int)ob_min(strcspn(word, "="), (size_t)OPTION_BYTES), word);
	if (optopt > ' ' && optopt < 0x7f && word[1] != '-')
		return option_refuse(verb, letter, "");
	/* The help may mention another program's option of the same name. */
	return option_refuse(verb, word, option_nearest(verb, word, meant) == 0 ? "" : meant);
}

static int usage(FILE *out)
{
	fprintf(out, "usage: outboard VERB ...\n");
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		if (i == 0 || verbs[i].group != verbs[i - 1].group)
			fprintf(out, "\n%s:\n\n", headings[verbs[i].group]);
		fprintf(out, "  %-7s %s\n", verbs[i].name, verbs[i].what);
	}
	fprintf(out,
		"\n'outboard VERB --help' says more. The server is --server URL, else "
		"OUTBOARD_SERVER, else %s;\n"
		"several with commas between them are asked for their load, and the least loaded "
		"is taken.\n",
		DEFAULT_SERVER);
	return out == stdout ? 0 : OBX_EXIT_USAGE;
}

/*
 * Verbs whose arguments may belong to another program, and verbs with verbs of their own, handle
 * --help themselves.
 */
static bool help_wanted(int argc, char **argv)
{
	if (strcmp(argv[1], "run") == 0 || strcmp(argv[1], "bench") == 0 ||
		strcmp(argv[1], "rqa") == 0)
		return false;
	for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

/* -1: there is no such verb. */
static int dispatch(int argc, char **argv)
{
	char *help[] = { argv[1], (char *)(uintptr_t) "--help", NULL };

	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return help_wanted(argc, argv) ? verbs[i].main(2, help)
						       : verbs[i].main(argc - 1, argv + 1);
	return -1;
}

static int run(int argc, char **argv)
{
	const char *names[sizeof verbs / sizeof verbs[0]];
	int code;

	if (argc < 2)
		return usage(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0)
		return usage(stdout);
	if (strcmp(argv[1], "--version") == 0) {
		printf("outboard %s, protocol %u\n", OB_VERSION, OBP_VERSION);
		return 0;
	}
	code = dispatch(argc, argv);
	if (code >= 0)
		return code;
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		names[i] = verbs[i].name;
	return obx_word_unknown("", "verb", argv[1], names, sizeof names / sizeof names[0]);
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
	return output_end(run(argc, argv));
}
