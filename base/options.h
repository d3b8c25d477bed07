/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tables of a program's commands, their options and operands. The parser (command_line.h), --help
 * (option_help.h), shell completions and manual pages (option_shell.h) are made from them.
 *
 *     static const struct ob_option options[] = {
 *             { OB_OPTION("rounds", OB_NUMBER, struct bench, rounds), .arg = "N", .min = 1,
 *                     .max = 64, .fallback = "7", .help = "medians of N rounds" },
 *             { OB_OPTION("json", OB_FLAG, struct bench, json), .help = "print JSON" },
 *             { 0 } };
 *
 * The tables are constant. The caller owns the settings and sets their defaults before parsing.
 * Texts in the settings are not copied. No state; any thread.
 */
#ifndef OB_OPTIONS_H
#define OB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"

#define OB_OPTIONS_MAX       96 /* of one command */
#define OB_OPTIONS_TEXTS_MAX 16 /* values of a repeated option */

enum ob_option_kind {
	OB_FLAG,    /* bool; no value. In a file: yes or no */
	OB_NUMBER,  /* uint32_t or uint64_t in [min, max] */
	OB_SIZE,    /* uint64_t, bytes in [min, max] with a unit such as KiB; max 0: no maximum */
	OB_REAL,    /* double in [low, high] */
	OB_TEXT,    /* const char *; if `takes` is set, an empty value is refused */
	OB_FILE,    /* the same, and completed as a path */
	OB_FOLDER,  /* the same, and completed as the path of a folder */
	OB_WORD,    /* const char *, one of `words` */
	OB_CHOICE,  /* uint32_t or an enum: index in `words` */
	OB_TEXTS,   /* struct ob_texts: may be repeated */
	OB_PARSED,  /* `take` decides */
	OB_HEADING, /* no option: the name is a heading of --help for the options that follow */
};

struct ob_texts {
	const char *list[OB_OPTIONS_TEXTS_MAX];
	size_t n;
};

/* Arguments that belong together, in argv. */
struct ob_words {
	char **list;
	size_t n;
};

struct ob_option {
	const char *name; /* without dashes; NULL: the end of the table */
	enum ob_option_kind kind;
	size_t offset, size; /* of the target in the settings */
	char letter;         /* short form; 0: none */
	bool hidden;         /* not in --help, completions and manual */
	bool not_in_file;    /* not a key of a configuration file */
	const char *arg;     /* the value's name in --help, such as "FILE" */
	const char *help;    /* what it does; no full stop */
	uint64_t min, max;   /* OB_NUMBER, OB_SIZE */
	double low, high;    /* OB_REAL */
	const char *words;   /* "a|b|c": all values, or for OB_TEXT and OB_PARSED suggestions */
	/* the value that is used when neither option nor environment gives one, as text */
	const char *fallback;
	/* variable whose value is used if the option is not given; empty is not set */
	const char *environment;
	const char *takes; /* what the value must be, for errors; NULL: made from the kind */
	/*
	 * OB_PARSED: reads text into the target. On OB_ERR_ARGUMENT the cause's text may say what
	 * the value must be; empty leaves that to `takes`.
	 */
	enum ob_err (*take)(void *target, const struct ob_option *option, const char *text,
		struct ob_cause *ret_cause);
};

/* The value of a macro as text, for `fallback`. */
#define OB_VALUE_TEXT(macro)  OB_VALUE_QUOTED(macro)
#define OB_VALUE_QUOTED(text) #text

/* The first fields of an option whose target is settings_type.field. */
#define OB_OPTION(option_name, option_kind, settings_type, field)                               \
	.name = (option_name), .kind = (option_kind), .offset = offsetof(settings_type, field), \
	.size = sizeof(((settings_type *)0)->field)

enum ob_operand_kind {
	OB_OPERAND_ONE,      /* const char *; an empty one is missing */
	OB_OPERAND_OPTIONAL, /* const char *; NULL: not given */
	OB_OPERAND_MANY,     /* struct ob_words: none or several */
	/* struct ob_words: everything from here on, options too, is another program's */
	OB_OPERAND_REST,
};

struct ob_operand {
	const char *name; /* "FILE"; NULL: the end of the table */
	enum ob_operand_kind kind;
	size_t offset; /* of the target in the settings */
	/* "create|list": all values; NULL: any */
	const char *words;
	const char *what; /* noun for "there is no WHAT 'x'"; NULL: verb */
	const char *help; /* NULL: not explained in --help */
	const char
		*missing; /* error if OB_OPERAND_ONE is missing or empty; NULL: "NAME is missing" */
	bool file, folder; /* completed as a path */
};

struct ob_command {
	const char *name;    /* all its words: "outboard rqa sweep" */
	const char *group;   /* heading over it in the --help of the command above */
	const char *summary; /* one line, no full stop */
	/* lines of usage without "usage: NAME", separated by \n; NULL: made from the tables */
	const char *usage;
	const char *about; /* paragraphs after the usage, separated by \n\n; NULL: the summary */
	/* paragraphs after the options; lines such as "  name  text" are items of a list */
	const char *notes;
	const char *version; /* what --version prints after the name; NULL: no --version */
	const struct ob_option *options;          /* NULL: none */
	const struct ob_operand *operands;        /* NULL: none */
	const struct ob_command *const *commands; /* commands below it, ends with NULL; or NULL */
	/* argv[0] is the command's last word. NULL: it only has commands below it */
	int (*main)(int argc, char **argv);
};

/* Finds an option by its long name; NULL: there is none. */
const struct ob_option *ob_option_find(const struct ob_option *options, const char *name);
/*
 * Sets an option from a configuration file or from code. text: NULL for a flag that is set.
 * OB_ERR_ARGUMENT: the value is wrong, and *ret_cause says what it must be, such as "a number from
 * 1 to 64".
 */
enum ob_err ob_option_set(const struct ob_option *option, void *settings, const char *text,
	struct ob_cause *ret_cause);
/* What a value of the option must be: "a number from 1 to 64". */
void ob_option_takes(const struct ob_option *option, char *ret_text, size_t size);
/*
 * Returns the index of text in "a|b|c"; -1: it is not there. ob_words_nth copies the n-th word and
 * returns false at the end; ob_words_print writes "a, b or c".
 */
int ob_words_find(const char *words, const char *text);
bool ob_words_nth(const char *words, size_t n, char *ret_word, size_t size);
void ob_words_print(const char *words, char *ret_text, size_t size);
/* The last word of the command's name: "sweep". */
const char *ob_command_short_name(const struct ob_command *command);

#endif
