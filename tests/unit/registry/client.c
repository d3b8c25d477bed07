/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client.h"

uv_loop_t *client_loop;
static uv_loop_t loop;
static uv_timer_t tick;

static void ticked(uv_timer_t *timer)
{
	(void)timer;
}

void client_begin(void)
{
	CHECK_INT(uv_loop_init(&loop), 0);
	uv_timer_init(&loop, &tick);
	client_loop = &loop;
}

void client_turn(void)
{
	uv_timer_start(&tick, ticked, 10, 0);
	uv_run(&loop, UV_RUN_ONCE);
}

void client_end(void)
{
	uv_close((uv_handle_t *)&tick, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&loop), 0);
}

static void on_reset(void *user)
{
	struct client *client = user;

	CHECK(!client->closed);
	obl_table_fini(&client->mirror);
	client->resets++;
	client->in_sync = false;
	client->revision = 0;
}

static void on_changed(void *user, const struct obl_entry *entry, bool deleted)
{
	struct client *client = user;

	CHECK(client->resets && !client->closed);
	client->changes++;
	if (deleted) {
		CHECK(client->in_sync && !entry->value && entry->revision == 0);
		obl_table_remove(&client->mirror, entry->key);
		return;
	}
	CHECK(entry->value && entry->revision);
	if (client->in_sync) {
		CHECK(entry->revision >= client->revision); /* in order */
		client->revision = entry->revision;
	}
	obl_table_put(&client->mirror, entry->key, entry->value, entry->revision, NULL);
}

static void on_synced(void *user, uint64_t revision)
{
	struct client *client = user;

	CHECK(client->resets && !client->in_sync);
	client->synced++;
	client->in_sync = true;
	client->revision = revision;
}

static void on_usable(void *user, bool usable, const struct ob_cause *why)
{
	struct client *client = user;

	CHECK(usable != client->usable || client->usable_calls == 0); /* changes only */
	CHECK(usable || why);
	client->usable_calls++;
	client->usable = usable;
	if (why)
		client->why = *why;
}

static void on_lease(void *user)
{
	((struct client *)user)->leases++;
}

void client_open(struct client *client, const struct obl_registry_options *options)
{
	struct obl_watcher watcher = { .user = client,
		.reset = on_reset,
		.changed = on_changed,
		.synced = on_synced,
		.usable = on_usable,
		.lease_renewed = on_lease };
	struct ob_cause cause = { 0 };

	*client = (struct client){ 0 };
	if (obl_registry_open(client_loop, options, &watcher, &client->registry, &cause))
		TEST_FAIL("cannot open %s: %s", options->url, cause.text);
	CHECK_INT(client->resets + client->usable_calls, 0); /* nothing from inside the function */
}

void client_wait_usable(struct client *client)
{
	RUN_UNTIL(client->usable && client->in_sync);
}

static void on_closed(void *user)
{
	((struct client *)user)->closed = true;
}

void client_close(struct client *client)
{
	client->registry->ops->close(client->registry, on_closed, client);
	CHECK(!client->closed);
	RUN_UNTIL(client->closed);
	obl_table_fini(&client->mirror);
}

static void take_entries(struct answer *answer, const struct obl_entry *entries, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (entries[i].revision)
			obl_table_put(&answer->found, entries[i].key, entries[i].value,
				entries[i].revision, NULL);
	answer->n = n;
}

static void take_error(struct answer *answer, enum ob_err err, const struct ob_cause *cause)
{
	CHECK(!answer->done); /* exactly once */
	CHECK((err != OB_ERR_NONE) == (cause != NULL));
	answer->done = true;
	answer->err = err;
	if (cause) {
		CHECK_INT(cause->code, err);
		CHECK(cause->text[0]);
		answer->cause = *cause;
	}
}

static void on_txn(void *user, enum ob_err err, const struct ob_cause *cause, bool succeeded,
	uint64_t revision, const struct obl_entry *current, uint32_t n_current)
{
	struct answer *answer = user;

	take_error(answer, err, cause);
	CHECK(!succeeded || (err == OB_ERR_NONE && n_current == 0));
	answer->succeeded = succeeded;
	answer->revision = revision;
	take_entries(answer, current, n_current);
}

static void on_range(void *user, enum ob_err err, const struct ob_cause *cause,
	const struct obl_entry *entries, uint32_t n, uint64_t revision)
{
	struct answer *answer = user;

	take_error(answer, err, cause);
	for (uint32_t i = 0; i < n; i++) {
		CHECK(entries[i].revision && entries[i].revision <= revision);
		CHECK(i == 0 || strcmp(entries[i - 1].key, entries[i].key) < 0);
	}
	answer->revision = revision;
	take_entries(answer, entries, n);
}

void client_start(struct client *client, const struct obl_txn *txn, struct answer *answer)
{
	*answer = (struct answer){ 0 };
	client->registry->ops->txn(client->registry, txn, on_txn, answer);
	CHECK(!answer->done); /* not from inside the function */
}

void client_txn(struct client *client, const struct obl_txn *txn, struct answer *answer)
{
	client_start(client, txn, answer);
	RUN_UNTIL(answer->done);
}

void client_range(struct client *client, const char *prefix, struct answer *answer)
{
	*answer = (struct answer){ 0 };
	client->registry->ops->range(client->registry, prefix, on_range, answer);
	CHECK(!answer->done);
	RUN_UNTIL(answer->done);
}

void answer_fini(struct answer *answer)
{
	obl_table_fini(&answer->found);
}

uint64_t client_put(struct client *client, const char *key, const char *value)
{
	struct obl_change change = { .key = key, .value = value };
	struct obl_txn txn = { .n_changes = 1, .changes = &change };
	struct answer answer;

	client_txn(client, &txn, &answer);
	if (answer.err)
		TEST_FAIL("cannot put %s: %s", key, answer.cause.text);
	CHECK(answer.succeeded);
	return answer.revision;
}

const char *client_value(const struct client *client, const char *key)
{
	const struct obl_row *row = obl_table_find(&client->mirror, key);

	return row ? row->value : "";
}

uint64_t client_revision(const struct client *client, const char *key)
{
	const struct obl_row *row = obl_table_find(&client->mirror, key);

	return row ? row->revision : 0;
}
