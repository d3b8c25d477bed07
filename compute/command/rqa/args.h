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
	int argc, at;     /* argv[at] is looked at next */
	char **argv;
	const char *name; /* of the option at hand, without dashes; NULL: a file */
	const char *word; /* the file */
	const char *inlined;
	bool wrong; /* an error was printed */
};

/* Steps on; false at the end, or after something wrong was printed. */
bool obx_args_next(struct obx_args *args);
/*
 * Is the option at hand this one? One with a value and a flag; the value is NULL (and wrong set)
 * when it is missing.
 */
bool obx_args_is(struct obx_args *args, const char *name, const char **ret_value);
bool obx_args_flag(struct obx_args *args, const char *name);
/* Takes it as one of the options of setup, or prints that there is none. */
void obx_args_setup(struct obx_args *args, struct obx_setup *setup);
/*
 * Prints that there is no such option as the one at hand, and which was probably meant; sets wrong.
 */
void obx_args_unknown(struct obx_args *args);
/* Prints "outboard VERB: text" and the hint to --help; sets wrong. */
void obx_args_refuse(struct obx_args *args, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
