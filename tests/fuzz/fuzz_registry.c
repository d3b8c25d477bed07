/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A balancer's registry against an etcd that answers anything: the input chooses the answers, their
 * order and the failures of connections. The HTTP client is replaced; everything above it is real. Each
 * operation ends exactly once, and the watcher gets only keys and values that the registry could have
 * written, after a reset.
 */
#include <stdlib.h>
#include <string.h>

#include "loadbalancer/registry/entries.h"
#include "loadbalancer/registry/etcd_ops.h"
#include "loadbalancer/registry/leader.h"
#include "loadbalancer/registry/watch.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"

#define STEPS       200u
#define REQUESTS    64u
#define CHECK(that) (that) ? (void)0 : abort()

/* ---- the replaced HTTP client ---- */

struct obl_http_request {
	struct obl_http_call call;
	char path[64];
};

static struct obl_http_request *requests[REQUESTS];

struct obl_http_request *obl_http_start(struct obl_http *http, const struct obl_http_call *call)
{
	struct obl_http_request *request = calloc(1, sizeof *request);
	unsigned i = 0;

	(void)http;
	CHECK(request && strlen(call->url) > 10);
	request->call = *call;
	strncpy(request->path, call->url + 10, sizeof request->path - 1);
	while (i < REQUESTS && requests[i])
		i++;
	CHECK(i < REQUESTS);
	requests[i] = request;
	return request;
}

void obl_http_cancel(struct obl_http_request *request)
{
	for (unsigned i = 0; i < REQUESTS; i++) {
		if (requests[i] == request) {
			requests[i] = NULL;
			free(request);
			return;
		}
	}
	abort(); /* not a request */
}

/* ---- answers ---- */

static void put_value(struct ob_buf *out)
{
	static const char *const values[] = { "7", "\"7\"", "\"0\"", "\"-1\"", "\"x\"", "null",
		"[]", "{}", "true", "\"cC9h\"", "\"cC9i\"", "\"cS9h\"", "\"cC8=\"", "\"MQ==\"",
		"\"!\"", "\"cC9sZWFkZXI=\"", "\"9223372036854775807\"", "\"99999999999999999999\"",
		"1e99", "\"\"" };

	ob_buf_printf(out, "%s", values[fuzz_take(sizeof values / sizeof *values)]);
}

/* A number, mostly one that is possible. */
static void put_number(struct ob_buf *out, const char *name)
{
	if (fuzz_take(8) == 0) {
		ob_buf_printf(out, "\"%s\":", name);
		put_value(out);
		return;
	}
	ob_buf_printf(out, "\"%s\":\"%u\"", name, fuzz_take(32));
}

static void put_header(struct ob_buf *out)
{
	ob_buf_printf(out, "\"header\":{");
	put_number(out, "revision");
	ob_buf_printf(out, "}");
}

static void put_kv(struct ob_buf *out)
{
	static const char *const keys[] = { "cC9h", "cC9i", "cC9j", "cC9sZWFkZXI=", "cC8=", "cS9h",
		"cC//" };

	ob_buf_printf(out, "{\"key\":\"%s\",", keys[fuzz_take(sizeof keys / sizeof *keys)]);
	put_number(out, "mod_revision");
	if (fuzz_take(4) == 0) {
		ob_buf_printf(out, ",");
		put_number(out, "lease");
	}
	if (fuzz_take(2) == 0) {
		ob_buf_printf(out, ",\"value\":");
		put_value(out);
	}
	ob_buf_printf(out, "}");
}

static void put_list(struct ob_buf *out, const char *name, void (*put)(struct ob_buf *out))
{
	unsigned n = fuzz_take(4);

	ob_buf_printf(out, ",\"%s\":[", name);
	for (unsigned i = 0; i < n; i++) {
		ob_buf_printf(out, "%s", i ? "," : "");
		put(out);
	}
	ob_buf_printf(out, "]");
}

static void put_event(struct ob_buf *out)
{
	static const char *const types[] = { "", "\"type\":\"PUT\",", "\"type\":\"DELETE\",",
		"\"type\":7," };

	ob_buf_printf(out, "{%s\"kv\":", types[fuzz_take(4)]);
	put_kv(out);
	ob_buf_printf(out, "}");
}

static void put_response(struct ob_buf *out)
{
	ob_buf_printf(out, "{\"response_range\":{\"x\":0");
	put_list(out, "kvs", put_kv);
	ob_buf_printf(out, "}}");
}

static void put_error(struct ob_buf *out)
{
	static const char *const texts[] = { "etcdserver: no leader",
		"etcdserver: request timed out", "etcdserver: requested lease not found",
		"etcdserver: user name is empty", "" };

	const char *text = texts[fuzz_take(5)];

	ob_buf_printf(out, "{\"error\":\"%s\",\"code\":%u}", text, fuzz_take(20));
}

/* One answer, or one message of the watch. */
static void put_answer(struct ob_buf *out)
{
	static const char *const flags[] = { "", ",\"created\":true", ",\"canceled\":true",
		",\"fragment\":true", ",\"more\":true", ",\"succeeded\":true",
		",\"compact_revision\":\"5\"", ",\"TTL\":\"9\",\"ID\":\"7\"", ",\"token\":\"t\"" };
	unsigned kind = fuzz_take(10);
	size_t size;

	if (kind == 0) {
		const uint8_t *raw = fuzz_take_span(64, &size);

		ob_buf_append(out, raw, size);
		return;
	}
	if (kind == 1) {
		put_error(out);
		return;
	}
	ob_buf_printf(out, kind < 6 ? "{\"result\":{" : "{");
	put_header(out);
	ob_buf_printf(out, "%s", flags[fuzz_take(sizeof flags / sizeof *flags)]);
	if (fuzz_take(2))
		put_list(out, "kvs", put_kv);
	if (fuzz_take(2))
		put_list(out, "events", put_event);
	if (fuzz_take(2))
		put_list(out, "responses", put_response);
	ob_buf_printf(out, kind < 6 ? "}}" : "}");
}

/* ---- the user ---- */

struct stand {
	struct obl_calls calls;
	struct obl_watch watch;
	struct obl_lease lease;
	struct obl_leader leader;
	struct obl_etcd_ops ops;
	unsigned pending;
	bool reset;
};

static void on_reset(void *user)
{
	struct stand *stand = user;

	stand->reset = true;
	obl_leader_reset(&stand->leader);
}

static void on_changed(void *user, const char *key, const struct obl_kv *kv)
{
	struct stand *stand = user;

	CHECK(stand->reset && *key && obl_text_fits(key, OBL_KEY_MAX));
	CHECK(!kv || (kv->revision && obl_text_fits(kv->value, OBL_VALUE_MAX)));
	if (strcmp(key, OBL_LEADER_KEY) == 0)
		obl_leader_seen(&stand->leader, kv);
}

static void on_synced(void *user, uint64_t revision)
{
	struct stand *stand = user;

	CHECK(stand->reset && revision);
	obl_leader_synced(&stand->leader);
}

static void on_txn(void *user, enum ob_err err, const struct ob_cause *cause, bool succeeded,
	uint64_t revision, const struct obl_entry *current, uint32_t n)
{
	struct stand *stand = user;

	CHECK(stand->pending-- > 0);
	CHECK((err == OB_ERR_NONE) == (cause == NULL) && (err == OB_ERR_NONE) == (revision != 0));
	CHECK(err || succeeded || (n == 1 && strcmp(current[0].key, "a") == 0));
}

static void on_range(void *user, enum ob_err err, const struct ob_cause *cause,
	const struct obl_entry *entries, uint32_t n, uint64_t revision)
{
	struct stand *stand = user;

	CHECK(stand->pending-- > 0);
	CHECK((err == OB_ERR_NONE) == (cause == NULL));
	for (uint32_t i = 0; i < n; i++)
		CHECK(entries[i].revision && entries[i].revision <= revision && entries[i].value &&
			(i == 0 || strcmp(entries[i - 1].key, entries[i].key) < 0));
}

static void on_quorum(void *user, uint64_t started_ns, uint64_t revision)
{
	struct stand *stand = user;

	obl_watch_heard(&stand->watch, revision, started_ns, ob_clock_ns());
}

static void on_renewed(void *user)
{
	(void)user;
}

static void on_revision(void *user, uint64_t revision)
{
	on_quorum(user, 0, revision);
}

static void on_failed(void *user, uint32_t endpoint)
{
	obl_watch_endpoint_failed(&((struct stand *)user)->watch, endpoint);
}

static void begin(struct stand *stand)
{
	CHECK(obl_endpoints_parse("http://a:1,http://b:2", 2, &stand->calls.endpoints, NULL) == 0);
	stand->calls.timeout_ms = 800;
	stand->calls.failed = on_failed;
	stand->calls.user = stand;
	obl_calls_init(&stand->calls, NULL, NULL);
	stand->watch = (struct obl_watch){ .calls = &stand->calls,
		.prefix = "p/",
		.reset = on_reset,
		.changed = on_changed,
		.done = on_synced,
		.user = stand };
	obl_watch_init(&stand->watch);
	stand->lease = (struct obl_lease){ .calls = &stand->calls,
		.ttl_s = 10,
		.renewed = on_renewed,
		.revision = on_revision,
		.user = stand };
	stand->leader = (struct obl_leader){
		.calls = &stand->calls, .lease = &stand->lease, .prefix = "p/", .name = "b"
	};
	stand->ops = (struct obl_etcd_ops){ .calls = &stand->calls,
		.lease = &stand->lease,
		.prefix = "p/",
		.quorum = on_quorum,
		.user = stand };
}

/* ---- steps ---- */

static void start_operation(struct stand *stand)
{
	struct obl_compare compare = { .key = "a", .revision = fuzz_take(8) };
	struct obl_change change = { .key = "a", .value = "1", .leased = true };
	struct obl_txn txn = { 1, 1, &compare, &change };

	if (stand->pending >= REQUESTS / 4)
		return;
	stand->pending++;
	if (fuzz_take(2))
		obl_etcd_txn(&stand->ops, &txn, on_txn, stand);
	else
		obl_etcd_range(&stand->ops, "", on_range, stand);
}

static void answer(struct obl_http_request *request)
{
	static const enum ob_err errs[] = { OB_ERR_CONNECT, OB_ERR_TLS, OB_ERR_TIMEOUT,
		OB_ERR_CLOSED, OB_ERR_LIMIT };
	struct obl_http_call call = request->call;
	struct obl_http_answer got = { .why = "why", .body = "", .status = 200 };
	struct ob_buf body;
	unsigned kind = fuzz_take(16);

	ob_buf_init(&body, 1u << 20);
	if (kind > 2 || call.data)
		put_answer(&body);
	if (call.data && kind > 1) {
		ob_buf_append(&body, "\n", 1);
		call.data(call.user, (const char *)body.data, body.size - (kind == 2));
	} else {
		if (kind == 0)
			got.err = errs[fuzz_take(5)];
		if (kind == 1)
			got.status = 503;
		CHECK(ob_buf_append(&body, "", 1));
		if (!call.data) {
			got.body = (const char *)body.data;
			got.size = body.size - 1;
		}
		obl_http_cancel(request); /* as the real one does before the last call */
		call.done(call.user, &got);
	}
	ob_buf_fini(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stand stand = { 0 };
	uint64_t skew = 0;

	fuzz_input_start(data, size);
	begin(&stand);
	for (unsigned step = 0; step < STEPS && !fuzz_used_up(); step++) {
		unsigned kind = fuzz_take(8);
		unsigned which = fuzz_take(8);
		uint64_t now = ob_clock_ns() + skew;

		if (kind == 0) {
			start_operation(&stand);
		} else if (kind < 3) {
			skew += which * 150 * OB_MS;
			obl_calls_tick(&stand.calls, now);
			obl_lease_tick(&stand.lease, now);
			obl_watch_tick(&stand.watch, now);
			obl_leader_tick(&stand.leader, now);
			(void)obl_leader_leads(&stand.leader, now);
		} else if (requests[which]) {
			answer(requests[which]);
		}
	}
	obl_watch_fini(&stand.watch);
	obl_calls_close(&stand.calls);
	obl_calls_close(&stand.calls);
	CHECK(stand.pending == 0);
	obl_calls_fini(&stand.calls);
	for (unsigned i = 0; i < REQUESTS; i++)
		CHECK(!requests[i]);
	return 0;
}
