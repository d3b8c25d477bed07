/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/command.h"

void obx_args_refuse(struct obx_args *args, const char *format, ...)
{
	char text[OBX_ERROR_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	if (!args->wrong)
		obx_usage_error(args->verb, "%s", text);
	args->wrong = true;
}

void obx_args_unknown(struct obx_args *args)
{
	char option[80];

	snprintf(option, sizeof option, "--%.60s", args->name);
	if (!args->wrong)
		obx_option_unknown(args->verb, option);
	args->wrong = true;
}

bool obx_args_next(struct obx_args *args)
{
	char *word;

	if (args->wrong || args->at >= args->argc)
		return false;
	word = args->argv[args->at++];
	args->name = args->word = args->inlined = NULL;
	if (strcmp(word, "-h") == 0)
		args->name = "help";
	else if (strcmp(word, "-o") == 0)
		args->name = "out";
	else if (strncmp(word, "--", 2) == 0 && word[2]) {
		char *equals = strchr(word, '=');

		args->name = word + 2;
		if (equals) {
			*equals = 0;
			args->inlined = equals + 1;
		}
	} else if (word[0] == '-' && word[1]) {
		obx_args_refuse(args, "there is no option '%.60s'", word);
		return false;
	} else {
		args->word = word;
	}
	return true;
}

static const char *take_value(struct obx_args *args)
{
	if (args->inlined)
		return args->inlined;
	if (args->at < args->argc)
		return args->argv[args->at++];
	obx_args_refuse(args, "--%.60s needs a value", args->name);
	return NULL;
}

bool obx_args_is(struct obx_args *args, const char *name, const char **ret_value)
{
	const char *value;

	if (!args->name || strcmp(args->name, name) != 0)
		return false;
	value = take_value(args);
	if (value)
		*ret_value = value;
	return true;
}

bool obx_args_flag(struct obx_args *args, const char *name)
{
	return args->name && strcmp(args->name, name) == 0 && !args->inlined;
}

void obx_args_setup(struct obx_args *args, struct obx_setup *setup)
{
	struct obx_error error;
	bool known = false;
	const char *value;

	if (!args->name) {
		obx_args_refuse(args, "unexpected '%.200s'", args->word);
		return;
	}
	if (!obx_setup_known(args->name)) { /* check this before a missing value */
		obx_args_unknown(args);
		return;
	}
	value = take_value(args);
	if (value && !obx_setup_take(setup, args->name, value, &known, &error))
		obx_args_refuse(args, "%s", error.text);
}
