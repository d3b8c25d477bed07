/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/pool_look.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/terminal.h"
#include "loadbalancer/pool_query.h"
#include "tools/command.h"
#include "tools/reserve.h"
#include "tools/screen.h"

static int refused_print(const char *name, const struct obp_pool_refused *refused)
{
	fprintf(stderr, "%s: the pool refuses: %s\n", name,
		refused->text[0] ? refused->text : "no reason is given");
	return obp_pool_exit_code(refused->code);
}

int obx_document_wrong(const char *what)
{
	fprintf(stderr,
		"outboard: the balancer's answer has no list of %s; install the same release on "
		"both sides\n",
		what);
	return obp_pool_exit_code(OBP_POOL_FAULT);
}

/* ---- documents ---- */

static bool is_large(const char *text, size_t size)
{
	size_t marks = 0;

	for (size_t i = 0; i < size; i++)
		marks += text[i] == ',' || text[i] == ':' || text[i] == '[' || text[i] == '{';
	return marks > OBX_DOCUMENT_MARKS_MAX;
}

/* Gets and parses a document; ret_text is the caller's. */
static int document_ask(const char *name, const char *pool_text,
	const struct obx_question *question, char **ret_text, size_t *ret_size, json_t **ret)
{
	const struct obl_pool pool = { .balancers = pool_text,
		.timeout_ns = obl_pool_timeout_ns() };
	struct obp_pool_refused refused;
	struct ob_cause cause;
	json_error_t error;
	enum ob_err err = obl_pool_query(&pool, question->what, question->target, question->since,
		ret_text, ret_size, &refused, &cause);

	if (err == OB_ERR_REFUSED)
		return refused_print(name, &refused);
	if (err)
		return obx_pool_failed(name, err, &cause);
	*ret = is_large(*ret_text, *ret_size) ? NULL : json_loadb(*ret_text, *ret_size, 0, &error);
	if (json_is_object(*ret))
		return 0;
	fprintf(stderr, "%s: the balancer's answer is no JSON document, or too large\n", name);
	json_decref(*ret);
	free(ob_steal(*ret_text));
	return obp_pool_exit_code(OBP_POOL_FAULT);
}

int obx_document_get(const struct ob_command *command, const char *pool, const char *what,
	const char *target, json_t **ret)
{
	const struct obx_question question = { .what = what, .target = target };
	char *text = NULL;
	size_t size;
	int code = document_ask(command->name, pool, &question, &text, &size, ret);

	free(text);
	return code;
}

/* The text as it came; what a terminal would act on is replaced. */
static void raw_print(const char *text, size_t size)
{
	struct ob_screen screen = { .n = 0 };
	OB_CLEANUP(ob_freep) char *shown = NULL;

	if (isatty(STDOUT_FILENO))
		shown = malloc(size + OB_SCREEN_HELD);
	if (shown)
		fwrite(shown, 1, ob_screen_text(&screen, text, size, shown), stdout);
	else
		fwrite(text, 1, size, stdout);
	putchar('\n');
}

static int show_once(const char *name, const char *pool, const struct obx_look *look,
	struct obx_question *question, struct obx_screen *screen)
{
	struct obx_paper paper = obx_paper_of_stdout();
	char *text = NULL;
	json_t *document = NULL;
	size_t size = 0;
	int code = document_ask(name, pool, question, &text, &size, &document);

	if (code)
		return code;
	if (question->check)
		code = question->check(question, document);
	if (!code && screen && !question->append)
		obx_screen_clear(screen);
	if (!code && look->json)
		raw_print(text, size);
	else if (!code)
		code = question->show(question, document, paper);
	json_decref(document);
	free(text);
	return code == OBX_LOOK_NOTHING ? 0 : code;
}

int obx_look_at(const struct ob_command *command, const char *pool, const struct obx_look *look,
	struct obx_question *question)
{
	struct obx_screen screen = { .rows = UINT_MAX, .columns = UINT_MAX };
	double interval_s = look->interval_s > 0 ? look->interval_s : 2;
	bool drawn = look->watch && !look->json;
	int code;

	if (drawn)
		obx_screen_open(&screen);
	while (!(code = show_once(command->name, pool, look, question, drawn ? &screen : NULL)) &&
		look->watch) {
		if (fflush(stdout) != 0 || ferror(stdout)) {
			code = OBX_EXIT_UNWELL;
			break;
		}
		if (obx_screen_wait(&screen, interval_s))
			break;
		if (drawn && !screen.terminal && !question->append)
			putchar('\n');
	}
	if (drawn)
		obx_screen_close(&screen);
	return code;
}

int obx_look(const struct ob_command *command, const struct obx_look *look,
	struct obx_question *question)
{
	struct obx_way way;
	int code = obx_way_pool(command, look->pool, &way);

	return code == OB_OPTIONS_GO ? obx_look_at(command, way.pool, look, question) : code;
}

/* ---- commands ---- */

int obx_pool_command(const struct ob_command *command, const char *pool_text, const char *verb,
	const char *target, const char *argument)
{
	const struct obl_pool pool = { .balancers = pool_text,
		.timeout_ns = obl_pool_timeout_ns() };
	struct obp_pool_refused done;
	struct ob_cause cause;
	enum ob_err err = obl_pool_command(&pool, verb, target, argument, &done, &cause);

	if (err == OB_ERR_REFUSED)
		return refused_print(command->name, &done);
	if (err)
		return obx_pool_failed(command->name, err, &cause);
	printf("%s: %s\n", target, done.text[0] ? done.text : "done");
	return 0;
}
