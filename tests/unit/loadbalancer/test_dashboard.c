/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the dashboard's HTTP server sends, without a socket: history, documents, metrics. */
#include "base/clock.h"
#include "loadbalancer/dashboard/documents.h"
#include "loadbalancer/dashboard/exposition.h"
#include "loadbalancer/dashboard/history.h"
#include "tests/test.h"
#include "tests/unit/loadbalancer/peer_key.h"

/* ---- a source of one or more GPUs ---- */

static struct {
	struct obl_seen_gpu gpu[3];
	unsigned n;
	unsigned documents; /* made */
	uint64_t last_event;
} pool;

static void gpus(void *user, void (*each)(void *to, const struct obl_seen_gpu *gpu), void *to)
{
	(void)user;
	for (unsigned i = 0; i < pool.n; i++)
		each(to, &pool.gpu[i]);
}

static void servers(
	void *user, void (*each)(void *to, const struct obl_seen_server *server), void *to)
{
	(void)user;
	each(to,
		&(struct obl_seen_server){
			.name = "a\"b", .beat_ns = 1500 * OB_MS, .sessions = 4 });
	each(to,
		&(struct obl_seen_server){
			.name = "gone", .state = OBL_SEEN_SILENT, .beat_ns = UINT64_MAX });
}

static void tenants(
	void *user, void (*each)(void *to, const struct obl_seen_tenant *tenant), void *to)
{
	(void)user;
	each(to,
		&(struct obl_seen_tenant){
			.name = "t", .reservations = 3, .claimed = 2, .gpus = 5, .waiting = 1 });
}

static void seen(void *user, struct obl_seen *ret)
{
	static struct obl_counts counts = { .placed[OBL_PLACED_REFUSED][OBL_BECAUSE_DENIED] = 7 };

	(void)user;
	*ret = (struct obl_seen){ .balancer = "b", .usable = true, .counts = &counts };
}

static void refresh(void *user)
{
	(void)user;
}

static bool document(void *user, const struct obl_caller *caller, const char *what, uint64_t since,
	char **ret_text, size_t *ret_size)
{
	(void)user;
	pool.documents++;
	*ret_text = malloc(128);
	CHECK(*ret_text);
	*ret_size = (size_t)snprintf(*ret_text, 128,
		"{\"schema\":1,\"time_ms\":%u,\"what\":\"%s %s %d %u\"}", pool.documents, what,
		caller->tenant, caller->all, (unsigned)since);
	return true;
}

static uint64_t last_event(void *user)
{
	(void)user;
	return pool.last_event;
}

static const struct obl_source source = { .document = document,
	.last_event = last_event,
	.seen = seen,
	.refresh = refresh,
	.servers = servers,
	.gpus = gpus,
	.tenants = tenants };

static void pool_fill(void)
{
	pool.n = 1;
	pool.gpu[0] = (struct obl_seen_gpu){ .server = "node-1",
		.model = "NVIDIA H100",
		.index = 3,
		.uuid = { 0xab, [15] = 1 },
		.total = 1000,
		.reserved = 400,
		.used = 250,
		.sharers = 2,
		.busy = 500,
		.celsius = 60,
		.milliwatts = 300000,
		.known = 1u << OBL_READ_USED | 1u << OBL_READ_BUSY | 1u << OBL_READ_CELSIUS |
			1u << OBL_READ_POWER };
}

/* ---- history ---- */

static bool history_has(const struct obl_history *history, unsigned n, const char *words)
{
	size_t size;
	char *text;
	bool has;

	CHECK(obl_history_document(
		history, (const uint8_t(*)[16])pool.gpu[0].uuid, n, &text, &size));
	CHECK(strlen(text) == size);
	has = strstr(text, words) != NULL;
	free(text);
	return has;
}

TEST(a_point_is_a_mean_and_the_highest_temperature)
{
	struct obl_history history;

	pool_fill();
	obl_history_init(&history, 0);
	CHECK(history_has(&history, 1, "\"gpus\":{}"));
	for (unsigned i = 0; i < OBL_HISTORY_LOOKS; i++) {
		pool.gpu[0].busy = i % 2 ? 1000 : 0;
		pool.gpu[0].celsius = 60 + i;
		obl_history_look(&history, &source);
	}
	CHECK(history_has(&history, 1,
		"\"step_s\":30,\"gpus\":{\"GPU-ab000000-0000-0000-0000-000000000001\":{"
		"\"utilization\":[0.500],\"memory\":[0.250],\"power\":[300],\"temperature\":[65]}"
		"}"));
	CHECK(history_has(&history, 0,
		"\"pool\":{\"utilization\":[0.500],\"memory\":[0.250],\"power\":[300],"
		"\"temperature\":[65]}"));
	obl_history_fini(&history);
}

TEST(what_is_not_reported_is_null)
{
	struct obl_history history;

	pool_fill();
	pool.gpu[0].known = 0;
	obl_history_init(&history, 0);
	for (unsigned i = 0; i < OBL_HISTORY_LOOKS; i++)
		obl_history_look(&history, &source);
	CHECK(history_has(&history, 1,
		"{\"utilization\":[null],\"memory\":[null],\"power\":[null],\"temperature\":[null]"
		"}"));
	obl_history_fini(&history);
}

TEST(the_ring_keeps_an_hour_and_forgets_gpus_that_are_gone)
{
	struct obl_history history;

	pool_fill();
	pool.n = 3; /* in another order than that of their UUIDs */
	pool.gpu[1] = pool.gpu[2] = pool.gpu[0];
	pool.gpu[1].uuid[0] = 0x01;
	pool.gpu[2].uuid[0] = 0xff;
	obl_history_init(&history, 0);
	for (unsigned i = 0; i < OBL_HISTORY_LOOKS * (OBL_HISTORY_POINTS + 2); i++) {
		pool.gpu[0].busy = i < OBL_HISTORY_LOOKS * 2 ? 900 : 100;
		obl_history_look(&history, &source);
	}
	CHECK_INT(history.n, 3);
	CHECK(!history_has(&history, 1, "0.900"));
	CHECK(history_has(&history, 1, "0.100]"));
	pool.n = 0;
	for (unsigned i = 0; i < OBL_HISTORY_LOOKS * (OBL_HISTORY_POINTS - 1); i++)
		obl_history_look(&history, &source);
	CHECK_INT(history.n, 3);
	for (unsigned i = 0; i < OBL_HISTORY_LOOKS; i++)
		obl_history_look(&history, &source);
	CHECK_INT(history.n, 0);
	obl_history_fini(&history);
}

/* ---- documents ---- */

static const struct obl_caller all = { .all = true, .tenant = "x" };
static const struct obl_caller one = { .tenant = "one" }, two = { .tenant = "two" };

static struct obl_blob *get(struct obl_documents *documents, const struct obl_caller *caller,
	const char *what, uint64_t since, uint64_t now)
{
	struct obl_blob *blob =
		obl_documents_get(documents, caller, obl_document_kind(what), since, now);

	CHECK(blob);
	return blob;
}

TEST(documents_are_shared_by_those_who_see_the_same)
{
	const uint64_t later = 2 * OB_SECOND;
	struct obl_documents documents;
	struct obl_blob *a, *b, *c;

	pool.documents = 0;
	obl_documents_init(&documents, &source);
	a = get(&documents, &one, "sessions", 0, 1);
	b = get(&documents, &one, "sessions", 0, 2);
	CHECK(a == b);
	c = get(&documents, &two, "sessions", 0, 2);
	CHECK(c != a && pool.documents == 2);
	obl_blob_unref(c);
	c = get(&documents, &all, "sessions", 0, 2);
	CHECK(c != a && pool.documents == 3);
	obl_blob_unref(c);
	c = get(&documents, &one, "sessions", 0, later);
	/* another document, with the same hash although its time is another */
	CHECK(c != a && c->hash == a->hash && strcmp(c->data, a->data) != 0 && pool.documents == 4);
	obl_blob_unref(c);
	pool.last_event = 7;
	c = get(&documents, &one, "events", 5, later);
	CHECK(c->last_event == 7 && a->last_event == 0);
	CHECK(strstr(c->data, "\"events one 0 5\""));
	obl_blob_unref(c);
	/* the same for all tenants */
	obl_blob_unref(b);
	b = get(&documents, &one, "gpus", 0, later);
	c = get(&documents, &two, "gpus", 0, later);
	CHECK(b == c);
	obl_blob_unref(c);
	obl_documents_forget(&documents);
	/* still the readers' */
	CHECK(strstr(a->data, "\"sessions one 0 0\""));
	obl_blob_unref(a);
	obl_blob_unref(b);
	obl_documents_fini(&documents);
}

TEST(more_documents_than_are_kept)
{
	struct obl_documents documents;
	struct obl_caller caller = { 0 };

	obl_documents_init(&documents, &source);
	for (unsigned i = 0; i < 3 * OBL_DOCUMENTS_KEPT; i++) {
		snprintf(caller.tenant, sizeof caller.tenant, "t%u", i);
		obl_blob_unref(get(&documents, &caller, "sessions", 0, 1 + i));
	}
	pool.documents = 0;
	obl_blob_unref(get(&documents, &caller, "sessions", 0, 100));
	CHECK_INT(pool.documents, 0);
	obl_documents_fini(&documents);
	CHECK_INT(obl_document_kind("nothing"), OBL_DOCUMENT_KINDS);
}

/* A blob of this size, which its reader alone refers to. */
static void read_begin(struct obl_documents *documents, struct obl_reader *reading,
	const char *address, size_t size)
{
	struct obl_peer_key key = key_of(address);
	struct obl_blob *blob = obl_documents_blob(documents, calloc(1, size), size);

	CHECK(blob && obl_reader_enter(&documents->readers, reading, &key, blob));
}

TEST(documents_that_are_not_read_are_bounded)
{
	const uint64_t later = 2 * OB_SECOND;
	struct obl_peer_key slow = key_of("::ffff:10.0.0.1");
	struct obl_documents documents;
	struct obl_reader reading;
	struct obl_blob *a, *b;

	obl_documents_init(&documents, &source);
	a = get(&documents, &one, "sessions", 0, 1);
	CHECK(documents.bytes == a->size);
	documents.bytes_max = a->size;
	/* nothing more can be taken away: the reference has no reading */
	CHECK(!obl_documents_get(&documents, &two, obl_document_kind("sessions"), 0, 2));
	CHECK(!obl_documents_metrics(&documents, later));
	/* a reader does not keep others from their documents */
	CHECK(obl_reader_enter(&documents.readers, &reading, &slow, a));
	b = get(&documents, &two, "sessions", 0, later);
	CHECK(!reading.blob && documents.bytes == b->size);
	obl_reader_leave(&reading);
	obl_blob_unref(b);
	/* nor does what is kept */
	b = obl_documents_metrics(&documents, later);
	CHECK(b && documents.bytes == b->size);
	obl_blob_unref(b);
	obl_documents_fini(&documents);
	CHECK_INT(documents.bytes, 0);
	CHECK(!documents.readers.first);
}

TEST(the_address_that_holds_most_loses_its_oldest_document)
{
	struct obl_documents documents;
	struct obl_reader slow, greedy[4], more, last;

	obl_documents_init(&documents, &source);
	documents.bytes_max = 1000;
	read_begin(&documents, &slow, "::ffff:10.0.0.1", 300);
	for (unsigned i = 0; i < 4; i++)
		read_begin(&documents, &greedy[i], i % 2 ? "2001:db8::1" : "2001:db8::2", 100);
	read_begin(&documents, &more, "::ffff:10.0.0.1", 300);
	CHECK(documents.bytes == 1000 && slow.blob && greedy[0].blob);
	/* the address that holds 600, not the one /64 that holds 400 by four documents */
	read_begin(&documents, &last, "::ffff:10.0.0.3", 700);
	CHECK(!slow.blob && more.blob && greedy[0].blob && greedy[3].blob);
	/* beyond the limit by the last one; that is the largest now, then the four */
	read_begin(&documents, &slow, "::ffff:10.0.0.4", 300);
	CHECK(!last.blob && more.blob && greedy[0].blob && documents.bytes == 1000);
	read_begin(&documents, &last, "::ffff:10.0.0.3", 1);
	CHECK(!greedy[0].blob && greedy[1].blob && more.blob && slow.blob);
	for (unsigned i = 0; i < 4; i++)
		obl_reader_leave(&greedy[i]);
	obl_reader_leave(&slow);
	obl_reader_leave(&more);
	obl_reader_leave(&last);
	CHECK(!documents.bytes && !documents.readers.first);
	obl_documents_fini(&documents);
}

TEST(a_document_that_an_address_reads_often_is_held_once)
{
	struct obl_peer_key proxy = key_of("::ffff:127.0.0.1");
	struct obl_documents documents;
	struct obl_reader many[8], other;
	struct obl_blob *blob;

	obl_documents_init(&documents, &source);
	documents.bytes_max = 250;
	blob = obl_documents_blob(&documents, calloc(1, 100), 100);
	for (unsigned i = 0; i < 8; i++)
		CHECK(obl_reader_enter(&documents.readers, &many[i], &proxy, obl_blob_ref(blob)));
	obl_blob_unref(blob);
	CHECK(documents.readers.first->bytes == 100);
	obl_reader_leave(&many[0]);
	CHECK(documents.readers.first->bytes == 100);
	read_begin(&documents, &other, "::ffff:10.0.0.2", 150);
	blob = obl_documents_blob(&documents, calloc(1, 10), 10);
	CHECK(blob && !other.blob && many[1].blob);
	/* and is taken away from all of them at once */
	documents.bytes_max = 1;
	obl_blob_unref(blob);
	blob = obl_documents_blob(&documents, calloc(1, 10), 10);
	for (unsigned i = 0; i < 8; i++)
		CHECK(!many[i].blob);
	CHECK(documents.bytes == 10);
	obl_blob_unref(blob);
	obl_documents_fini(&documents);
}

TEST(metrics_are_shared_for_a_second)
{
	struct obl_documents documents;
	struct obl_blob *a, *b;

	pool_fill();
	obl_documents_init(&documents, &source);
	a = obl_documents_metrics(&documents, OB_SECOND);
	b = obl_documents_metrics(&documents, OB_SECOND + 800 * OB_MS);
	CHECK(a && a == b);
	obl_blob_unref(b);
	pool.gpu[0].celsius++;
	b = obl_documents_metrics(&documents, 2 * OB_SECOND);
	CHECK(b && a != b && a->hash != b->hash);
	obl_blob_unref(a);
	obl_blob_unref(b);
	obl_documents_fini(&documents);
}

/* ---- metrics ---- */

TEST(metrics_of_a_pool)
{
	static const char gpu_memory[] =
		"outboard_pool_gpu_memory_bytes{gpu=\"3\","
		"UUID=\"GPU-ab000000-0000-0000-0000-000000000001\",modelName=\"NVIDIA H100\","
		"hostname=\"node-1\"} 1000\n";
	static const char *const lines[] = {
		"outboard_pool_servers{state=\"ready\"} 1\n",
		"outboard_pool_servers{state=\"silent\"} 1\n",
		"outboard_pool_server_heartbeat_age_seconds{server=\"a\\\"b\"} 1.5\n",
		"outboard_pool_server_up{server=\"gone\"} 0\n",
		gpu_memory,
		"hostname=\"node-1\"} 0.5\n",
		"outboard_pool_sessions{tenant=\"t\",state=\"starting\"} 1\n",
		"outboard_pool_queue_length{tenant=\"t\"} 1\n",
		"outboard_pool_placement_total{result=\"refused\",reason=\"denied\"} 7\n",
		"outboard_pool_placement_total{result=\"failed\",reason=\"none\"} 0\n",
		"outboard_pool_registry_usable 1\n",
	};
	struct ob_buf out;

	pool_fill();
	ob_buf_init(&out, OBL_EXPOSITION_MAX);
	obl_exposition_write(&source, &out);
	CHECK(ob_buf_append(&out, "", 1));
	for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
		CHECK_STR(
			strstr((char *)out.data, lines[i]) ? lines[i] : (char *)out.data, lines[i]);
	/* a server that was never heard has no age */
	CHECK(!strstr((char *)out.data, "age_seconds{server=\"gone\""));
	ob_buf_fini(&out);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
