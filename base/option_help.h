/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* --help of a command, made from its tables (options.h): 80 columns. No state; any thread. */
#ifndef OB_OPTION_HELP_H
#define OB_OPTION_HELP_H

#include <stdio.h>

#include "base/options.h"

#define OB_HELP_COLUMNS 80
#define OB_HELP_TEXT    1024 /* bytes of an option's explanation */

void ob_help_print(const struct ob_command *command, FILE *out);
/* The option's help, followed by its range, its default and its variable in parentheses. */
void ob_help_explain(const struct ob_option *option, char ret_text[OB_HELP_TEXT]);
/*
 * Line n of the usage, without the command's name, from the table or made from the tables. False:
 * there are no more lines.
 */
bool ob_help_usage(const struct ob_command *command, size_t n, char *ret_text, size_t size);

#endif
