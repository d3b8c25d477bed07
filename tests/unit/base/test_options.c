/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/command_line.h"
#include "base/option_help.h"
#include "base/option_shell.h"
#include "base/text.h"
#include "tests/test.h"

#define TEXT_BYTES 16384

struct settings {
	bool json;
	uint32_t rounds, priority;
	uint64_t seed, memory;
	double share;
	const char *server, *out, *level;
	struct ob_texts listen;
	int even;
	const char *file;
	struct ob_words more;
};

static enum ob_err take_even(
	void *target, const struct ob_option *option, const char *words, struct ob_cause *ret_cause)
{
	uint64_t value;

	(void)option;
	if (strcmp(words, "7") == 0)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "anything but seven");
	if (!ob_text_parse_number(words, 0, 100, &value) || value % 2)
		return OB_ERR_ARGUMENT;
	*(int *)target = (int)value;
	return OB_ERR_NONE;
}

static const struct ob_option options[] = {
	{ OB_OPTION("json", OB_FLAG, struct settings, json), .help = "print JSON" },
	{ OB_OPTION("rounds", OB_NUMBER, struct settings, rounds), .arg = "N", .letter = 'n',
		.min = 1, .max = 64, .fallback = "7", .help = "medians of N rounds" },
	{ OB_OPTION("seed", OB_NUMBER, struct settings, seed), .arg = "N", .max = UINT64_MAX },
	{ OB_OPTION("memory", OB_SIZE, struct settings, memory), .arg = "SIZE", .min = 1 << 20,
		.max = 1ull << 40 },
	{ OB_OPTION("share", OB_REAL, struct settings, share), .arg = "F", .low = 0.01, .high = 1 },
	{ .name = "Where", .kind = OB_HEADING },
	{ OB_OPTION("server", OB_TEXT, struct settings, server), .arg = "URL",
		.environment = "OUTBOARD_TEST_SERVER", .fallback = "tcp://x",
		.help = "the server's address, which is explained here in a sentence that is "
			"longer than one line of the terminal" },
	{ OB_OPTION("out", OB_FILE, struct settings, out), .arg = "FILE", .letter = 'o',
		.takes = "a file" },
	{ OB_OPTION("level", OB_WORD, struct settings, level), .arg = "WHICH",
		.words = "warn|limit" },
	{ OB_OPTION("priority", OB_CHOICE, struct settings, priority), .arg = "P",
		.words = "low|normal|high" },
	{ OB_OPTION("listen", OB_TEXTS, struct settings, listen), .arg = "URL" },
	{ OB_OPTION("even", OB_PARSED, struct settings, even), .arg = "N",
		.takes = "an even number", .take = take_even },
	{ OB_OPTION("secret", OB_FLAG, struct settings, json), .hidden = true },
	{ 0 },
};

static const struct ob_operand file_operand[] = {
	{ .name = "FILE", .offset = offsetof(struct settings, file) }, { 0 }
};
static const struct ob_operand many_operands[] = {
	{ .name = "ACTION", .words = "create|list", .offset = offsetof(struct settings, file) },
	{ .name = "ID", .kind = OB_OPERAND_MANY, .offset = offsetof(struct settings, more) }, { 0 }
};
static const struct ob_operand rest_operand[] = {
	{ .name = "COMMAND", .kind = OB_OPERAND_REST, .offset = offsetof(struct settings, more) },
	{ 0 }
};

static struct settings got;
static char text[TEXT_BYTES];

/* Calls a function with one of the standard streams in `text`. */
static int captured(int fd, int (*call)(void *user), void *user)
{
	int memory = memfd_create("text", 0), kept = dup(fd), code;
	ssize_t n;

	fflush(stdout);
	dup2(memory, fd);
	code = call(user);
	fflush(stdout);
	dup2(kept, fd);
	n = pread(memory, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(memory);
	close(kept);
	return code;
}

struct given {
	struct ob_command command;
	int argc;
	char *argv[16];
};

static int parse_given(void *user)
{
	struct given *g = user;

	return ob_options_parse(&g->command, &got, g->argc, g->argv);
}

/* Parses words separated by blanks; the stream's text is in `text`. */
static int parse_with(const struct ob_operand *operands, int fd, const char *words)
{
	static struct given g;
	static char copy[256];
	char *rest = NULL;

	g = (struct given){ .command = { .name = "prog verb",
				    .summary = "do it",
				    .options = options,
				    .operands = operands,
				    .version = "1.2" } };
	got = (struct settings){ 0 };
	g.argv[g.argc++] = (char *)(uintptr_t) "verb";
	snprintf(copy, sizeof copy, "%s", words);
	for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
		g.argv[g.argc++] = w;
	return captured(fd, parse_given, &g);
}

static int parse(const char *words)
{
	return parse_with(file_operand, STDERR_FILENO, words);
}

#define WRONG(words, error)                                                                   \
	do {                                                                                  \
		CHECK_INT(parse(words), OB_OPTIONS_USAGE);                                    \
		CHECK_STR(text, "prog verb: " error " 'prog verb --help' shows the usage\n"); \
	} while (0)

TEST(every_kind_reaches_its_target)
{
	CHECK_INT(parse("--json -n 64 --seed 18446744073709551615 --memory=2MiB --share 0.5 "
			"--level limit --priority high"),
		OB_OPTIONS_USAGE); /* FILE */
	CHECK(got.json && got.rounds == 64 && got.seed == UINT64_MAX && got.memory == 2u << 20);
	CHECK(got.share == 0.5 && strcmp(got.level, "limit") == 0 && got.priority == 2);
	CHECK_INT(parse("-o a --listen b --listen c --even 4 --out=d f --secret"), OB_OPTIONS_GO);
	CHECK_STR(got.out, "d");
	CHECK_STR(got.file, "f");
	CHECK_STR(got.listen.list[1], "c");
	CHECK(got.listen.n == 2 && got.even == 4 && got.json);
	CHECK_INT(parse("--rou 3 f"), OB_OPTIONS_GO); /* an unambiguous beginning */
	CHECK_INT(got.rounds, 3);
}

TEST(wrong_values_are_refused_with_what_is_allowed)
{
	WRONG("--rounds 0 f", "--rounds takes a number from 1 to 64, not '0';");
	WRONG("--rounds 65 f", "--rounds takes a number from 1 to 64, not '65';");
	WRONG("-n 1x f", "--rounds takes a number from 1 to 64, not '1x';");
	WRONG("--memory 1K f", "--memory takes a size from 1.0 MiB to 1.0 TiB, not '1K';");
	WRONG("--memory 2T f", "--memory takes a size from 1.0 MiB to 1.0 TiB, not '2T';");
	WRONG("--share 1.5 f", "--share takes a number from 0.01 to 1, not '1.5';");
	WRONG("--share nan f", "--share takes a number from 0.01 to 1, not 'nan';");
	WRONG("--level stop f", "--level takes warn or limit, not 'stop';");
	WRONG("--priority urgent f", "--priority takes low, normal or high, not 'urgent';");
	WRONG("--out= f", "--out takes a file, not '';");
	WRONG("--even 3 f", "--even takes an even number, not '3';");
	WRONG("--even 7 f", "--even takes anything but seven, not '7';");
}

TEST(wrong_lines_are_refused_in_one_form)
{
	WRONG("--nonsense f", "there is no option --nonsense;");
	WRONG("--rouds 3 f", "there is no option --rouds; did you mean --rounds?");
	WRONG("--rouds=3 f", "there is no option --rouds=3; did you mean --rounds?");
	WRONG("--secre1 f", "there is no option --secre1;");
	WRONG("--se 3 f", "--se is ambiguous: it may be --seed, --server;");
	WRONG("-x f", "there is no option -x;");
	WRONG("f --rounds", "--rounds needs a value;");
	WRONG("f -n", "-n needs a value;");
	WRONG("--json=1 f", "--json takes no value;");
	WRONG("", "FILE is missing;");
	WRONG("f g", "unexpected 'g';");
	CHECK_INT(parse_with(many_operands, STDERR_FILENO, "lst"), OB_OPTIONS_USAGE);
	CHECK(strstr(text, "there is no verb 'lst'; did you mean 'list'?"));
}

TEST(repeated_values_have_a_maximum)
{
	const struct ob_option *listen = ob_option_find(options, "listen");
	struct ob_cause cause;

	CHECK_INT(parse("f --listen a --listen=b"), OB_OPTIONS_GO);
	CHECK_INT(got.listen.n, 2);
	got.listen.n = OB_OPTIONS_TEXTS_MAX - 1;
	CHECK_INT(ob_option_set(listen, &got, "a", &cause), OB_ERR_NONE);
	CHECK_INT(ob_option_set(listen, &got, "a", &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "16 values at most");
}

TEST(operands_stand_anywhere_or_end_the_options)
{
	CHECK_INT(parse_with(many_operands, STDERR_FILENO, "--json list a --rounds 2 b -- --c"),
		OB_OPTIONS_GO);
	CHECK_STR(got.file, "list");
	CHECK_INT(got.more.n, 3);
	CHECK_STR(got.more.list[0], "a");
	CHECK_STR(got.more.list[2], "--c");
	CHECK_INT(parse_with(rest_operand, STDERR_FILENO, "--json ls --rounds x"), OB_OPTIONS_GO);
	CHECK_INT(got.more.n, 3);
	CHECK_STR(got.more.list[1], "--rounds");
	CHECK_INT(parse_with(rest_operand, STDERR_FILENO, "-- --json"), OB_OPTIONS_GO);
	CHECK(!got.json && got.more.n == 1);
}

TEST(environment_counts_where_no_option_is_given)
{
	setenv("OUTBOARD_TEST_SERVER", "here", 1);
	CHECK_INT(parse("f"), OB_OPTIONS_GO);
	CHECK_STR(got.server, "here");
	CHECK_INT(parse("f --server there"), OB_OPTIONS_GO);
	CHECK_STR(got.server, "there");
	setenv("OUTBOARD_TEST_SERVER", "", 1);
	CHECK_INT(parse("f"), OB_OPTIONS_GO);
	CHECK(!got.server);
}

TEST(files_set_options_by_name)
{
	const struct ob_option *json;
	struct ob_cause cause;

	CHECK_INT(parse("f"), OB_OPTIONS_GO);
	json = ob_option_find(options, "json");
	CHECK(ob_option_set(json, &got, "yes", &cause) == OB_ERR_NONE && got.json);
	CHECK(ob_option_set(json, &got, "no", &cause) == OB_ERR_NONE && !got.json);
	CHECK_INT(ob_option_set(json, &got, "1", &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "yes or no");
	CHECK(!ob_option_find(options, "Where"));
}

TEST(help_has_80_columns)
{
	CHECK_INT(parse_with(file_operand, STDOUT_FILENO, "--json -h"), 0);
	CHECK_STR(text,
		"usage: prog verb [OPTION]... FILE\n"
		"\n"
		"Do it.\n"
		"\n"
		"Options:\n"
		"  --json          print JSON\n"
		"  -n, --rounds N  medians of N rounds (1 to 64; default 7)\n"
		"  --seed N\n"
		"  --memory SIZE\n"
		"  --share F       (0.01 to 1)\n"
		"\n"
		"Where:\n"
		"  --server URL    the server's address, which is explained here in a sentence\n"
		"                  that is longer than one line of the terminal (default\n"
		"                  $OUTBOARD_TEST_SERVER, else tcp://x)\n"
		"  -o, --out FILE\n"
		"  --level WHICH\n"
		"  --priority P\n"
		"  --listen URL\n"
		"  --even N\n"
		"\n"
		"  -h, --help      print this text\n"
		"  --version       print the version\n");
	CHECK_INT(parse_with(file_operand, STDOUT_FILENO, "--version"), 0);
	CHECK_STR(text, "prog verb 1.2\n");
}

static const char *ran;

static int leaf_main(int argc, char **argv)
{
	ran = argv[argc - 1];
	return 7;
}

static const struct ob_command
	leaf = { .name = "prog group leaf", .summary = "run", .main = leaf_main },
	other = { .name = "prog group other", .summary = "rest", .options = options },
	group = { .name = "prog group",
		.summary = "several",
		.commands = (const struct ob_command *const[]){ &leaf, &other, NULL } },
	top = { .name = "prog",
		.version = "1.2",
		.commands = (const struct ob_command *const[]){ &group, NULL } };

static int run_given(void *user)
{
	char **argv = user;
	int argc = 0;

	while (argv[argc])
		argc++;
	return ob_command_run(&top, argc, argv);
}

static int run(int fd, const char *a, const char *b, const char *c)
{
	char *argv[] = { (char *)(uintptr_t) "prog", (char *)(uintptr_t)a, (char *)(uintptr_t)b,
		(char *)(uintptr_t)c, NULL };

	return captured(fd, run_given, argv);
}

TEST(commands_are_found_in_the_tree)
{
	CHECK_INT(run(STDERR_FILENO, "group", "leaf", "x"), 7);
	CHECK_STR(ran, "x");
	CHECK_INT(run(STDERR_FILENO, "group", "laef", NULL), OB_OPTIONS_USAGE);
	CHECK_STR(text,
		"prog group: there is no verb 'laef'; did you mean 'leaf'? 'prog group --help' "
		"shows "
		"the usage\n");
	CHECK_INT(run(STDERR_FILENO, "group", NULL, NULL), OB_OPTIONS_USAGE);
	CHECK(strstr(text, "usage: prog group VERB ...\n\nVerbs:\n\n  leaf   run\n"));
	CHECK_INT(run(STDOUT_FILENO, "group", "help", NULL), 0);
	CHECK(strstr(text, "usage: prog group VERB"));
	CHECK_INT(run(STDOUT_FILENO, "--version", NULL, NULL), 0);
	CHECK_STR(text, "prog 1.2\n");
	CHECK_INT(run(STDERR_FILENO, "group", "--hlep", NULL), OB_OPTIONS_USAGE);
	CHECK(strstr(text, "there is no option --hlep; did you mean --help?"));
}

TEST(description_has_every_option)
{
	CHECK_INT(run(STDOUT_FILENO, "--describe-options", NULL, NULL), 0);
	CHECK(strstr(text, "command\tprog group other\trest\t\t\t\n"));
	CHECK(strstr(text, "option\trounds\tn\tN\tmedians of N rounds (1 to 64; default 7)\t\n"));
	CHECK(strstr(text, "heading\tWhere\n"));
	CHECK(!strstr(text, "secret"));
}

static int complete(void *user)
{
	return ob_completions_print(&top, user, stdout);
}

TEST(completions_name_every_command_and_option)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };

	for (size_t i = 0; i < ob_count(shells); i++) {
		CHECK_INT(captured(STDOUT_FILENO, complete, (char *)(uintptr_t)shells[i]), 1);
		CHECK(strstr(text, "prog group leaf") && strstr(text, "rounds") &&
			strstr(text, "low normal high") && !strstr(text, "secret"));
	}
	CHECK_INT(captured(STDOUT_FILENO, complete, (char *)(uintptr_t) "csh"), 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
