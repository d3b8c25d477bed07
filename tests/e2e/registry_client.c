/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A user of the registry for tests in Python: takes commands from standard input, one on a line, and
 * prints what happens, one event on a line, which begins with the time in milliseconds.
 *
 *     registry_client URL [OPTION=VALUE]...    prefix, user, password_file, ca, cert, key, balancer,
 *                                              lease_s, timeout_ms
 *
 *     put N KEY VALUE       lease N KEY VALUE       cas N KEY REVISION VALUE      delete N KEY
 *     range N PREFIX        leads                   close (also the end of the input)
 *
 * N: a number that the answer repeats: "done N ERROR succeeded|failed REVISION CURRENT... cause".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "loadbalancer/registry/registry.h"

#define PARTS 5

static struct obl_registry *registry;
static uv_loop_t loop;
static uv_pipe_t input;
static char line[OBL_VALUE_MAX + OBL_KEY_MAX + 64];
static size_t line_size;

static void say(const char *event)
{
	printf("%llu %s", (unsigned long long)(ob_clock_ns() / OB_MS), event);
}

static void say_end(void)
{
	putchar('\n');
	fflush(stdout);
}

/* ---- the watcher ---- */

static void on_reset(void *user)
{
	(void)user;
	say("reset");
	say_end();
}

static void on_changed(void *user, const struct obl_entry *entry, bool deleted)
{
	(void)user;
	say(deleted ? "deleted" : "changed");
	printf(" %s", entry->key);
	if (!deleted)
		printf(" %s %llu", entry->value, (unsigned long long)entry->revision);
	say_end();
}

static void on_synced(void *user, uint64_t revision)
{
	(void)user;
	say("synced");
	printf(" %llu", (unsigned long long)revision);
	say_end();
}

static void on_usable(void *user, bool usable, const struct ob_cause *why)
{
	(void)user;
	say(usable ? "usable" : "unusable");
	printf(" %s", why ? why->text : "");
	say_end();
}

static void on_lease(void *user)
{
	(void)user;
	say("lease");
	say_end();
}

/* ---- commands ---- */

static void on_txn(void *user, enum ob_err err, const struct ob_cause *cause, bool succeeded,
	uint64_t revision, const struct obl_entry *current, uint32_t n)
{
	say("done");
	printf(" %s %s %s %llu", (char *)user, ob_err_name(err), succeeded ? "succeeded" : "failed",
		(unsigned long long)revision);
	for (uint32_t i = 0; i < n; i++)
		printf(" %s=%s@%llu", current[i].key, current[i].value ? current[i].value : "",
			(unsigned long long)current[i].revision);
	printf(" %s", cause ? cause->text : "");
	say_end();
	free(user);
}

static void on_range(void *user, enum ob_err err, const struct ob_cause *cause,
	const struct obl_entry *entries, uint32_t n, uint64_t revision)
{
	on_txn(user, err, cause, err == OB_ERR_NONE, revision, entries, n);
}

static void on_closed(void *user)
{
	(void)user;
	say("closed");
	say_end();
}

static void close_all(void)
{
	if (uv_is_closing((uv_handle_t *)&input))
		return;
	uv_close((uv_handle_t *)&input, NULL);
	registry->ops->close(registry, on_closed, NULL);
}

static void change(char **part, bool leased, uint64_t *revision, char *value)
{
	struct obl_compare compare = { .key = part[2], .revision = revision ? *revision : 0 };
	struct obl_change one = { .key = part[2], .value = value, .leased = leased };
	struct obl_txn txn = { revision ? 1 : 0, 1, &compare, &one };

	registry->ops->txn(registry, &txn, on_txn, strdup(part[1]));
}

static void command(char *text)
{
	char *part[PARTS] = { "", "", "", "", "" }, *rest = NULL;
	unsigned n = 0;

	for (char *word = strtok_r(text, " ", &rest); word && n < PARTS;
		word = strtok_r(NULL, " ", &rest))
		part[n++] = word;
	if (strcmp(part[0], "put") == 0) {
		change(part, false, NULL, part[3]);
	} else if (strcmp(part[0], "lease") == 0) {
		change(part, true, NULL, part[3]);
	} else if (strcmp(part[0], "delete") == 0) {
		change(part, false, NULL, NULL);
	} else if (strcmp(part[0], "cas") == 0) {
		uint64_t revision = strtoull(part[3], NULL, 10);

		change(part, false, &revision, part[4]);
	} else if (strcmp(part[0], "range") == 0) {
		registry->ops->range(registry, part[2], on_range, strdup(part[1]));
	} else if (strcmp(part[0], "leads") == 0) {
		say(registry->ops->leads(registry) ? "leads" : "follows");
		say_end();
	} else if (strcmp(part[0], "close") == 0) {
		close_all();
	}
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	(void)handle;
	(void)size;
	*buf = uv_buf_init(line + line_size, (unsigned)(sizeof line - 1 - line_size));
}

static void on_input(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	char *end;

	(void)stream;
	(void)buf;
	if (n < 0) {
		close_all();
		return;
	}
	line_size += (size_t)n;
	line[line_size] = 0;
	while ((end = strchr(line, '\n'))) {
		*end = 0;
		command(line);
		line_size -= (size_t)(end + 1 - line);
		memmove(line, end + 1, line_size + 1);
	}
}

static bool option(struct obl_registry_options *options, char *text)
{
	char *value = strchr(text, '=');
	const struct {
		const char *name, **to;
	} texts[] = { { "prefix", &options->prefix }, { "user", &options->user },
		{ "password_file", &options->password_file }, { "ca", &options->ca },
		{ "cert", &options->cert }, { "key", &options->key },
		{ "balancer", &options->balancer } };

	if (!value)
		return false;
	*value++ = 0;
	if (strcmp(text, "lease_s") == 0) {
		options->lease_s = (uint32_t)strtoul(value, NULL, 10);
		return true;
	}
	if (strcmp(text, "timeout_ms") == 0) {
		options->timeout_ms = (uint32_t)strtoul(value, NULL, 10);
		return true;
	}
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (strcmp(text, texts[i].name) == 0) {
			*texts[i].to = value;
			return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	struct obl_registry_options options = { .url = argc > 1 ? argv[1] : "" };
	struct obl_watcher watcher = { .reset = on_reset,
		.changed = on_changed,
		.synced = on_synced,
		.usable = on_usable,
		.lease_renewed = on_lease };
	struct ob_cause cause;

	for (int i = 2; i < argc; i++)
		if (!option(&options, argv[i]))
			return 2;
	uv_loop_init(&loop);
	if (obl_registry_open(&loop, &options, &watcher, &registry, &cause) != OB_ERR_NONE) {
		say("refused");
		printf(" %s %s", ob_err_name(cause.code), cause.text);
		say_end();
		return 1;
	}
	uv_pipe_init(&loop, &input, 0);
	uv_pipe_open(&input, 0);
	uv_read_start((uv_stream_t *)&input, on_alloc, on_input);
	uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop) == 0 ? 0 : 3;
}
