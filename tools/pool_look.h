/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The common part of the verbs that show a pool: finding it, asking for a document, --json, --watch.
 * Main thread.
 */
#ifndef OBX_POOL_LOOK_H
#define OBX_POOL_LOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/command_line.h"
#include "loadbalancer/pool.h"
#include "tools/pool_table.h"
#include "tools/way.h"

/* More commas, colons and brackets than this are not read: they would take too much memory. */
#define OBX_DOCUMENT_MARKS_MAX 4000000u

struct obx_look {
	const char *pool;
	bool json, watch;
	double interval_s;
};

/* The options of a look, whose settings structure begins with a struct obx_look. */
#define OBX_LOOK_OPTIONS                                                                 \
	OBX_POOL_OPTION(struct obx_look, pool),                                          \
		{ OB_OPTION("json", OB_FLAG, struct obx_look, json),                     \
			.help = "the pool's JSON document as it comes (docs/POOL.md)" }, \
		{ OB_OPTION("watch", OB_FLAG, struct obx_look, watch),                   \
			.help = "show it again and again; q ends that" },                \
	{                                                                                \
		OB_OPTION("interval", OB_REAL, struct obx_look, interval_s),             \
			.arg = "S", .low = 0.1, .high = 3600, .fallback = "2",           \
			.help = "with --watch: seconds in between"                       \
	}

#define OBX_LOOK_NOTHING (-1) /* of `check`: there is nothing new to print */

struct obx_question {
	const char *what, *target;
	uint64_t since;
	/*
	 * Looks at the document before it is printed in either form. Returns 0, OBX_LOOK_NOTHING,
	 * or the exit code after an error, which was printed; `since` of the next question may be
	 * changed. NULL: it is always printed.
	 */
	int (*check)(struct obx_question *question, const json_t *document);
	/* Prints the document. Returns 0 or the exit code. */
	int (*show)(struct obx_question *question, const json_t *document, struct obx_paper paper);
	bool append; /* --watch adds lines instead of drawing again */
	void *context;
};

/*
 * Finds the pool, asks, prints. Returns the exit code; every error has been printed. command: for
 * messages.
 */
int obx_look(const struct ob_command *command, const struct obx_look *look,
	struct obx_question *question);
/* The same for a pool that was found already. */
int obx_look_at(const struct ob_command *command, const char *pool, const struct obx_look *look,
	struct obx_question *question);
/*
 * Asks for one document. *ret: the caller's reference. Returns 0 or the exit code; the error has
 * been printed.
 */
int obx_document_get(const struct ob_command *command, const char *pool, const char *what,
	const char *target, json_t **ret);
/* Gives a command and prints what was done, or the error. Returns the exit code. */
int obx_pool_command(const struct ob_command *command, const char *pool, const char *verb,
	const char *target, const char *argument);
/* A document without what it must have. Returns the exit code. */
int obx_document_wrong(const char *what);

#endif
