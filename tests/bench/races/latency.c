/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Transactions one after another, of a placement's size: two ledgers and a reservation, compared and
 * put. Every second one goes through the registry, the others are the same bytes sent by libcurl's easy
 * interface over a kept connection to the same member, which is the least that etcd takes.
 */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "loadbalancer/registry/wire.h"
#include "races.h"

#define WARM_UP 50u

struct latency {
	const struct races_settings *settings;
	uv_loop_t loop;
	struct obl_registry *registry;
	CURL *curl;
	struct curl_slist *headers;
	uint64_t revisions[2]; /* of the ledgers: registry, bare */
	uint64_t *times[2];
	uint32_t n, failed;
	uint64_t began_ns;
	char answer[4096];
	size_t answer_size;
	bool begun, synced, usable;
};

static char ledger[RACES_VALUE + 1];

/* The transaction number n; kind 0: by the registry, 1: bare. */
static struct obl_txn make_txn(const struct latency *latency, unsigned kind)
{
	static char keys[3][48];
	static struct obl_compare compares[3];
	static struct obl_change changes[3];

	races_ledger(ledger, latency->n % RACES_CAPACITY);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(keys[i], sizeof keys[i], "ledger/%c-%u", kind ? 'b' : 'a', i);
		compares[i] = (struct obl_compare){ keys[i], latency->revisions[kind] };
		changes[i] = (struct obl_change){ .key = keys[i], .value = ledger };
	}
	snprintf(keys[2], sizeof keys[2], "reservations/%c-%08u", kind ? 'b' : 'a', latency->n);
	compares[2] = (struct obl_compare){ keys[2], 0 };
	changes[2] = (struct obl_change){ .key = keys[2], .value = "0:10 1:10" };
	return (struct obl_txn){ 3, 3, compares, changes };
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *user)
{
	struct latency *latency = user;

	if (latency->answer_size + size * n < sizeof latency->answer) {
		memcpy(latency->answer + latency->answer_size, bytes, size * n);
		latency->answer_size += size * n;
		latency->answer[latency->answer_size] = 0;
	}
	return size * n;
}

/* One bare transaction. */
static void send_bare(struct latency *latency)
{
	struct obl_txn txn = make_txn(latency, 1);
	struct ob_buf body;
	uint64_t began;
	const char *revision;

	ob_buf_init(&body, OBL_BODY_MAX);
	obl_wire_txn(&body, latency->settings->prefix, &txn, 0);
	latency->answer_size = 0;
	curl_easy_setopt(latency->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size);
	curl_easy_setopt(latency->curl, CURLOPT_POSTFIELDS, body.data);
	began = ob_clock_ns();
	if (curl_easy_perform(latency->curl) != CURLE_OK ||
		!strstr(latency->answer, "\"succeeded\":true"))
		latency->failed++;
	if (latency->n >= WARM_UP)
		latency->times[1][latency->n - WARM_UP] = ob_clock_ns() - began;
	revision = strstr(latency->answer, "\"revision\":\"");
	if (revision)
		latency->revisions[1] = strtoull(revision + 12, NULL, 10);
	ob_buf_fini(&body);
}

static void on_closed(void *user)
{
	(void)user;
}

static void send_next(struct latency *latency);

static void on_done(void *user, enum ob_err err, const struct ob_cause *cause, bool succeeded,
	uint64_t revision, const struct obl_entry *current, uint32_t n_current)
{
	struct latency *latency = user;

	(void)current;
	(void)n_current;
	if (latency->n >= WARM_UP)
		latency->times[0][latency->n - WARM_UP] = ob_clock_ns() - latency->began_ns;
	if (err != OB_ERR_NONE)
		fprintf(stderr, "obl-races: %s\n", cause->text);
	latency->failed += err != OB_ERR_NONE || !succeeded;
	latency->revisions[0] = revision;
	send_bare(latency);
	if (++latency->n < latency->settings->count + WARM_UP)
		send_next(latency);
	else
		latency->registry->ops->close(latency->registry, on_closed, NULL);
}

static void send_next(struct latency *latency)
{
	struct obl_txn txn = make_txn(latency, 0);

	latency->began_ns = ob_clock_ns();
	latency->registry->ops->txn(latency->registry, &txn, on_done, latency);
}

static void begin_if_ready(struct latency *latency)
{
	if (latency->begun || !latency->synced || !latency->usable)
		return;
	latency->begun = true;
	send_next(latency);
}

static void on_reset(void *user)
{
	(void)user;
}

static void on_changed(void *user, const struct obl_entry *entry, bool deleted)
{
	(void)user;
	(void)entry;
	(void)deleted;
}

static void on_synced(void *user, uint64_t revision)
{
	(void)revision;
	((struct latency *)user)->synced = true;
	begin_if_ready(user);
}

static void on_usable(void *user, bool usable, const struct ob_cause *why)
{
	(void)why;
	((struct latency *)user)->usable = usable;
	begin_if_ready(user);
}

int races_latency(const struct races_settings *settings)
{
	static struct latency latency;
	struct obl_watcher watcher = { &latency, on_reset, on_changed, on_synced, on_usable,
		on_reset };
	char url[300];
	uint32_t n = settings->count;

	latency.settings = settings;
	for (unsigned i = 0; i < 2; i++) {
		latency.times[i] = calloc(n, sizeof *latency.times[i]);
		if (!latency.times[i])
			return 1;
	}
	snprintf(url, sizeof url, "%s/v3/kv/txn", settings->url + strlen("etcd:"));
	latency.curl = curl_easy_init();
	latency.headers = curl_slist_append(NULL, "Content-Type: application/json");
	curl_easy_setopt(latency.curl, CURLOPT_URL, url);
	curl_easy_setopt(latency.curl, CURLOPT_PROXY, "");
	curl_easy_setopt(latency.curl, CURLOPT_HTTPHEADER, latency.headers);
	curl_easy_setopt(latency.curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(latency.curl, CURLOPT_WRITEDATA, &latency);
	uv_loop_init(&latency.loop);
	latency.registry = races_open(&latency.loop, settings, &watcher);
	uv_run(&latency.loop, UV_RUN_DEFAULT);
	printf("{\"transactions\": %u, \"failed\": %u", n, latency.failed);
	races_quantiles("registry", latency.times[0], n);
	races_quantiles("bare", latency.times[1], n);
	printf("}\n");
	curl_easy_cleanup(latency.curl);
	curl_slist_free_all(latency.headers);
	free(latency.times[0]);
	free(latency.times[1]);
	return uv_loop_close(&latency.loop) == 0 ? 0 : 1;
}
