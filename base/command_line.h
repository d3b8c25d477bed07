/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Parses command lines by the tables of options.h, and prints --help, --version and errors.
 * getopt_long splits the line; it has global state, so one thread parses at a time. Texts in the
 * settings belong to argv.
 */
#ifndef OB_COMMAND_LINE_H
#define OB_COMMAND_LINE_H

#include "base/options.h"

#define OB_OPTIONS_USAGE 2  /* exit code after wrong usage */
#define OB_OPTIONS_GO    -1 /* the command line is valid: go on */

/*
 * Parses argv[1..] into settings. Returns OB_OPTIONS_GO, or an exit code: 0 after --help or
 * --version, OB_OPTIONS_USAGE after an error, which was printed. Operands are moved to the front of
 * argv.
 */
int ob_options_parse(const struct ob_command *command, void *settings, int argc, char **argv);
/*
 * Whether the command line that ob_options_parse has parsed last had this option. A variable in its
 * place does not count.
 */
bool ob_options_given(const char *name);
/*
 * Goes down from `top` along argv[1], argv[2]... and calls the main of the command found. Answers
 * --help, --version and unknown commands itself. Returns the exit code.
 */
int ob_command_run(const struct ob_command *top, int argc, char **argv);
/*
 * Prints "NAME: error; 'NAME --help' shows the usage" on stderr. Returns OB_OPTIONS_USAGE.
 */
int ob_usage_error(const struct ob_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Prints that there is no WHAT of that name, and the nearest of the words. Returns
 * OB_OPTIONS_USAGE.
 */
int ob_word_unknown(
	const struct ob_command *command, const char *what, const char *word, const char *words);

#endif
