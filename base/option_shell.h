/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shell completions and a machine-readable description of a program's commands, made from their
 * tables (options.h). No state; any thread.
 */
#ifndef OB_OPTION_SHELL_H
#define OB_OPTION_SHELL_H

#include <stdio.h>

#include "base/options.h"

#define OB_SHELLS "bash|zsh|fish"

/* Prints the completion script of a program for a shell of OB_SHELLS. False: no such shell. */
bool ob_completions_print(const struct ob_command *top, const char *shell, FILE *out);
/*
 * Prints the command and all commands below it, one item a line, fields separated by tabs; within
 * a field "\n" is a new line and "\\" a backslash:
 *
 *     command  NAME  SUMMARY  GROUP  ABOUT  NOTES
 *     usage    LINE
 *     heading  NAME
 *     option   NAME  LETTER  ARG  EXPLANATION  WORDS
 *     operand  NAME  HELP  WORDS
 *
 * tools/dev/make-manual makes the manual pages from this. `PROGRAM --describe-options` prints
 * it, and `PROGRAM --describe-options SHELL` the completion script.
 */
void ob_describe_print(const struct ob_command *command, FILE *out);

#endif
