/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/command_line.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/option_help.h"
#include "base/option_shell.h"
#include "base/text.h"

#define NEAR       3u /* the most changes between a word and its suggestion */
#define WORD_BYTES 64u
#define HELP       1000 /* values of getopt_long above the indices of options */
#define VERSION    1001
#define FIRST      256 /* value of the first option; smaller ones are short options */

/* ---- errors ---- */

int ob_usage_error(const struct ob_command *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", command->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "%s '%s --help' shows the usage\n",
		format[strlen(format) - 1] == '?' ? "" : ";", command->name);
	return OB_OPTIONS_USAGE;
}

/* Whether `name` is nearer than *best to the word that was typed. */
static bool nearer(const char *word, const char *name, unsigned *best)
{
	unsigned distance = ob_text_distance(word, name);

	if (distance >= *best || distance >= strlen(name))
		return false;
	*best = distance;
	return true;
}

int ob_word_unknown(
	const struct ob_command *command, const char *what, const char *word, const char *words)
{
	char name[WORD_BYTES], meant[WORD_BYTES] = "";
	unsigned best = NEAR;

	for (size_t i = 0; ob_words_nth(words, i, name, sizeof name); i++)
		if (nearer(word, name, &best))
			memcpy(meant, name, sizeof meant);
	return meant[0] ? ob_usage_error(command, "there is no %s '%.60s'; did you mean '%s'?",
				  what, word, meant)
			: ob_usage_error(command, "there is no %s '%.60s'", what, word);
}

static int option_unknown(const struct ob_command *command, const char *word)
{
	char typed[WORD_BYTES];
	const char *meant = NULL;
	unsigned best = NEAR;

	snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (const struct ob_option *o = command->options; o && o->name; o++)
		if (o->kind != OB_HEADING && !o->hidden && nearer(typed, o->name, &best))
			meant = o->name;
	if (nearer(typed, "help", &best))
		meant = "help";
	return meant ? ob_usage_error(
			       command, "there is no option %.60s; did you mean --%s?", word, meant)
		     : ob_usage_error(command, "there is no option %.60s", word);
}

/* ---- the command line ---- */

/* One pass over a command line. */
struct line {
	const struct ob_command *command;
	void *settings;
	int argc;
	char **argv;
	struct option list[OB_OPTIONS_MAX + 4];
	const struct ob_option *option[OB_OPTIONS_MAX]; /* as in list */
	char letters[2 * OB_OPTIONS_MAX + 8];
	const struct ob_operand *operand; /* the next one */
	int operands;                     /* moved to the front of argv */
	bool rest;                        /* what follows belongs to another program */
	bool given[OB_OPTIONS_MAX];       /* as in option */
};

/* The names of the options of the last command line; NULL ends them. */
static const char *last_given[OB_OPTIONS_MAX + 1];

static bool has_value(const struct ob_option *o)
{
	return o->kind != OB_FLAG && !(o->kind == OB_PARSED && !o->arg);
}

static void letter_add(struct line *l, char letter, bool value)
{
	size_t n = strlen(l->letters);

	snprintf(l->letters + n, sizeof l->letters - n, "%c%s", letter, value ? ":" : "");
}

/* Makes getopt_long's table. */
static void line_init(struct line *l)
{
	size_t n = 0;

	strcpy(l->letters, "-:h");
	for (const struct ob_option *o = l->command->options; o && o->name; o++) {
		if (o->kind == OB_HEADING)
			continue;
		assert(n < OB_OPTIONS_MAX);
		l->option[n] = o;
		l->list[n] = (struct option){ o->name,
			has_value(o) ? required_argument : no_argument, NULL, FIRST + (int)n };
		n++;
		if (o->letter)
			letter_add(l, o->letter, has_value(o));
	}
	l->list[n++] = (struct option){ "help", no_argument, NULL, HELP };
	if (l->command->version)
		l->list[n++] = (struct option){ "version", no_argument, NULL, VERSION };
	l->list[n] = (struct option){ 0 };
	l->operand = l->command->operands;
	optind = 0; /* begin anew, also after another table */
	opterr = 0;
}

/* The index of the option for which getopt_long returned c; OB_OPTIONS_MAX: none. */
static size_t option_of(const struct line *l, int c)
{
	size_t i = 0;

	if (c >= FIRST && c < HELP)
		return (size_t)(c - FIRST);
	while (i < OB_OPTIONS_MAX && !(l->option[i] && l->option[i]->letter == c))
		i++;
	return i;
}

static int option_take(struct line *l, size_t i)
{
	const struct ob_option *o = l->option[i];
	const char *text = has_value(o) ? optarg : NULL;
	struct ob_cause cause;

	l->given[i] = true;
	if (ob_option_set(o, l->settings, text, &cause) == OB_ERR_NONE)
		return OB_OPTIONS_GO;
	return text ? ob_usage_error(
			      l->command, "--%s takes %s, not '%.200s'", o->name, cause.text, text)
		    : ob_usage_error(l->command, "--%s: %s", o->name, cause.text);
}

/* How many options begin like the word; more than one is an error of its own. */
static unsigned beginnings(const struct line *l, const char *word, char *ret_names, size_t size)
{
	size_t n = strcspn(word + 2, "="), used = 0;
	unsigned found = 0;

	ret_names[0] = '\0';
	for (const struct option *o = l->list; n && o->name; o++) {
		size_t i = (size_t)(o->val - FIRST);

		if (strncmp(o->name, word + 2, n) != 0 || (o->val < HELP && l->option[i]->hidden))
			continue;
		if (used < size)
			used += (size_t)snprintf(ret_names + used, size - used, "%s--%s",
				found ? ", " : "", o->name);
		found++;
	}
	return found;
}

/* Prints the error for which getopt_long returned ':' or '?'. */
static int option_wrong(const struct line *l, int c)
{
	const char *word = l->argv[optind - 1];
	char names[256];

	if (c == ':')
		return ob_usage_error(l->command, "%s needs a value", word);
	/* optopt is set for a long option that takes no value and was given one. */
	if (optopt && strncmp(word, "--", 2) == 0 && strchr(word, '='))
		return ob_usage_error(l->command, "%.*s takes no value",
			(int)ob_min(strcspn(word, "="), (size_t)WORD_BYTES), word);
	if (strncmp(word, "--", 2) != 0)
		return ob_usage_error(l->command, "there is no option -%c", optopt);
	if (beginnings(l, word, names, sizeof names) > 1)
		return ob_usage_error(l->command, "%.60s is ambiguous: it may be %s", word, names);
	return option_unknown(l->command, word);
}

/* Moves argv[at] behind the operands that came before it. */
static void operand_keep(struct line *l, int at)
{
	l->argv[++l->operands] = l->argv[at];
}

static int operand_missing(const struct line *l, const struct ob_operand *p)
{
	return p->missing ? ob_usage_error(l->command, "%s", p->missing)
			  : ob_usage_error(l->command, "%s is missing", p->name);
}

static int operand_take(struct line *l, int at)
{
	const struct ob_operand *p = l->operand;
	char *text = l->argv[at], *target;
	struct ob_words *words;

	if (!p || !p->name)
		return ob_usage_error(l->command, "unexpected '%.200s'", text);
	/* a variable of a script that is not set */
	if (p->kind == OB_OPERAND_ONE && !*text)
		return operand_missing(l, p);
	target = (char *)l->settings + p->offset;
	if (p->words && ob_words_find(p->words, text) < 0)
		return ob_word_unknown(l->command, p->what ? p->what : "verb", text, p->words);
	if (p->kind == OB_OPERAND_REST) {
		*(struct ob_words *)(void *)target =
			(struct ob_words){ l->argv + at, (size_t)(l->argc - at) };
		l->rest = true;
		return OB_OPTIONS_GO;
	}
	operand_keep(l, at);
	if (p->kind == OB_OPERAND_MANY) {
		words = (void *)target;
		if (!words->n)
			words->list = l->argv + l->operands;
		words->n++;
		return OB_OPTIONS_GO;
	}
	memcpy(target, &text, sizeof text);
	l->operand++;
	return OB_OPTIONS_GO;
}

static int operands_check(const struct line *l)
{
	const struct ob_operand *p = l->operand;

	if (!p || !p->name || p->kind != OB_OPERAND_ONE)
		return OB_OPTIONS_GO;
	return operand_missing(l, p);
}

static void given_note(const struct line *l)
{
	size_t n = 0;

	for (size_t i = 0; i < OB_OPTIONS_MAX && l->option[i]; i++)
		if (l->given[i])
			last_given[n++] = l->option[i]->name;
	last_given[n] = NULL;
}

bool ob_options_given(const char *name)
{
	for (size_t i = 0; last_given[i]; i++)
		if (strcmp(last_given[i], name) == 0)
			return true;
	return false;
}

/* Sets the options that were not given from their variables. */
static int environment_take(const struct line *l)
{
	struct ob_cause cause;

	for (size_t i = 0; i < OB_OPTIONS_MAX && l->option[i]; i++) {
		const struct ob_option *o = l->option[i];
		const char *text = o->environment ? getenv(o->environment) : NULL;

		if (text && *text && !l->given[i] && ob_option_set(o, l->settings, text, &cause))
			return ob_usage_error(l->command,
				"%s in the environment takes %s, not '%.200s'", o->environment,
				cause.text, text);
	}
	return OB_OPTIONS_GO;
}

static int line_take(struct line *l, int c)
{
	size_t i;

	switch (c) {
	case 1:
		return operand_take(l, optind - 1);
	case 'h':
	case HELP:
		ob_help_print(l->command, stdout);
		return 0;
	case VERSION:
		printf("%s %s\n", l->command->name, l->command->version);
		return 0;
	default:
		i = option_of(l, c);
		return i < OB_OPTIONS_MAX ? option_take(l, i) : option_wrong(l, c);
	}
}

int ob_options_parse(const struct ob_command *command, void *settings, int argc, char **argv)
{
	struct line l = { .command = command, .settings = settings, .argc = argc, .argv = argv };
	int code = OB_OPTIONS_GO, c;

	if (argc == 2 && strcmp(argv[1], "--describe-options") == 0) {
		ob_describe_print(command, stdout);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "--describe-options") == 0 &&
		ob_completions_print(command, argv[2], stdout))
		return 0;
	line_init(&l);
	while (code == OB_OPTIONS_GO && !l.rest &&
		(c = getopt_long(argc, argv, l.letters, l.list, NULL)) != -1)
		code = line_take(&l, c);
	while (code == OB_OPTIONS_GO && !l.rest && optind < argc) /* behind "--" */
		code = operand_take(&l, optind++);
	given_note(&l);
	if (code == OB_OPTIONS_GO)
		code = environment_take(&l);
	return code == OB_OPTIONS_GO ? operands_check(&l) : code;
}

/* ---- the tree of commands ---- */

static const struct ob_command *below(const struct ob_command *command, const char *word)
{
	for (size_t i = 0; command->commands && command->commands[i]; i++)
		if (strcmp(ob_command_short_name(command->commands[i]), word) == 0)
			return command->commands[i];
	return NULL;
}

static int command_unknown(const struct ob_command *command, const char *word)
{
	char words[1024] = "";
	size_t used = 0;

	for (size_t i = 0; command->commands[i] && used < sizeof words; i++)
		used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i ? "|" : "",
			ob_command_short_name(command->commands[i]));
	return ob_word_unknown(command, "verb", word, words);
}

int ob_command_run(const struct ob_command *top, int argc, char **argv)
{
	const struct ob_command *command = top;
	int code;

	while (command->commands && argc > 1 && argv[1][0] != '-') {
		const struct ob_command *next = below(command, argv[1]);

		if (!next && strcmp(argv[1], "help") == 0) {
			ob_help_print(command, stdout);
			return 0;
		}
		if (!next)
			return command_unknown(command, argv[1]);
		command = next;
		argc--;
		argv++;
	}
	if (command->main)
		return command->main(argc, argv);
	code = ob_options_parse(command, NULL, argc, argv);
	if (code == OB_OPTIONS_GO)
		ob_help_print(command, stderr);
	return code == OB_OPTIONS_GO ? OB_OPTIONS_USAGE : code;
}
