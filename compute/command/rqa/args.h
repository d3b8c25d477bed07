/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The arguments of `outboard rqa VERB`: --name value, --name=value, flags, and files between them.
 * Owned by one thread.
 */
#ifndef OBX_RQA_ARGS_H
#define OBX_RQA_ARGS_H

#include <stdbool.h>

#include "compute/command/rqa/setup.h"

struct obx_args {
	const char *verb; /* "rqa sweep", for messages */
	int argc, at;     /* argv[at] is the next argument */
	char **argv;
	const char *name; /* name of the current option without dashes; NULL: a file */
	const char *word; /* path of the file */
	const char *inlined;
	bool wrong; /* an error was printed */
};

/* Moves to the next argument; false at the end, or after an error was printed. */
bool obx_args_next(struct obx_args *args);
/*
 * Whether the current option is this one: an option with a value, or a flag. *ret_value is NULL,
 * and wrong is set, if the value is missing.
 */
bool obx_args_is(struct obx_args *args, const char *name, const char **ret_value);
bool obx_args_flag(struct obx_args *args, const char *name);
/* Handles it as one of the options of setup, or prints that the option is unknown. */
void obx_args_setup(struct obx_args *args, struct obx_setup *setup);
/* Prints that the current option is unknown, and the option that was probably meant; sets wrong. */
void obx_args_unknown(struct obx_args *args);
/* Prints "outboard VERB: text" and the hint to --help; sets wrong. */
void obx_args_refuse(struct obx_args *args, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
