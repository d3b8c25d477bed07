/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the dashboard's HTTP server checks of connections and requests, without a socket. */
#include "base/clock.h"
#include "loadbalancer/dashboard/headers.h"
#include "loadbalancer/dashboard/peers.h"
#include "tests/test.h"
#include "tests/unit/loadbalancer/peer_key.h"

/* ---- requests ---- */

TEST(a_token_is_taken_from_a_bearer_header_only)
{
	CHECK_STR(obl_web_token_text("Bearer abc"), "abc");
	CHECK_STR(obl_web_token_text("bearer  abc"), "abc");
	CHECK(!obl_web_token_text(NULL));
	CHECK(!obl_web_token_text(""));
	CHECK(!obl_web_token_text("Bearer"));
	CHECK(!obl_web_token_text("Bearer "));
	CHECK(!obl_web_token_text("Basic abc"));
}

/* headers: "name: value" each, NULL at the end */
static bool framed(const char *version, const char *const *headers)
{
	struct obl_web_framing framing = { 0 };
	char name[64];

	for (; *headers; headers++) {
		size_t n = strcspn(*headers, ":");

		snprintf(name, sizeof name, "%.*s", (int)n, *headers);
		obl_web_framing_add(&framing, name, *headers + n + 1);
	}
	return !obl_web_framing_check(&framing, version, NULL);
}

#define FRAMED(version, ...) framed(version, (const char *const[]){ __VA_ARGS__, NULL })

TEST(the_end_of_a_request_is_not_in_doubt)
{
	CHECK(FRAMED("HTTP/1.1", "Host:a", "Accept:*/*"));
	CHECK(FRAMED("HTTP/1.1", "Host:a", "Content-Length:5"));
	CHECK(FRAMED("HTTP/1.1", "Host:a", "transfer-encoding:Chunked"));
	CHECK(FRAMED("HTTP/1.0", "Accept:*/*"));
	CHECK(!FRAMED("HTTP/1.1", "Accept:*/*"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", "host:a"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", "Content-Length:5", "Content-Length:5"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", "Content-Length:5", "Transfer-Encoding:chunked"));
	CHECK(!FRAMED(
		"HTTP/1.1", "Host:a", "Transfer-Encoding:chunked", "Transfer-Encoding:chunked"));
	CHECK(!FRAMED("HTTP/1.0", "Host:a", "Transfer-Encoding:chunked"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", "Transfer-Encoding:gzip, chunked"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", "Transfer-Encoding:"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", "Transfer-Encodingchunked:"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", "Content-Length :5"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", " X:b"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", "X:b\rContent-Length: 5"));
	CHECK(!FRAMED("HTTP/1.1", "Host:a", ":b"));
}

TEST(hosts_of_this_machine)
{
	char own[256] = "", long_name[400];

	gethostname(own, sizeof own - 1);
	CHECK(obl_web_host_own("localhost"));
	CHECK(obl_web_host_own("LOCALHOST:14980"));
	CHECK(obl_web_host_own("127.0.0.1:14980"));
	CHECK(obl_web_host_own("[::1]:14980"));
	CHECK(obl_web_host_own(own));
	CHECK(!obl_web_host_own(NULL));
	CHECK(!obl_web_host_own(""));
	CHECK(!obl_web_host_own("evil.example"));
	CHECK(!obl_web_host_own("127.0.0.1.evil.example"));
	CHECK(!obl_web_host_own("[::1"
				".evil]"));
	memset(long_name, 'a', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = 0;
	CHECK(!obl_web_host_own(long_name));
}

TEST(origins)
{
	CHECK(obl_web_origin_own(NULL, "a:1"));
	CHECK(obl_web_origin_own("http://a:1", "a:1"));
	CHECK(obl_web_origin_own("https://A:1", "a:1"));
	CHECK(!obl_web_origin_own("http://b:1", "a:1"));
	CHECK(!obl_web_origin_own("http://a:12", "a:1"));
	CHECK(!obl_web_origin_own("null", "a:1"));
	CHECK(!obl_web_origin_own("http://a:1", NULL));
}

TEST(commands_of_paths)
{
	struct obl_web_order order;
	char path[128] = "/api/v1/servers/";

	CHECK(obl_web_order_find("/api/v1/servers/node-1.b_2/cordon", &order));
	CHECK_STR(order.verb, "cordon");
	CHECK_STR(order.target, "node-1.b_2");
	CHECK(obl_web_order_find("/api/v1/servers/a/uncordon", &order));
	CHECK_STR(order.verb, "uncordon");
	CHECK(obl_web_order_find("/api/v1/sessions/0a1b/kill", &order));
	CHECK_STR(order.verb, "kill");
	CHECK(obl_web_order_find("/api/v1/sessions/0a1b/move", &order));
	CHECK_STR(order.verb, "move");
	CHECK(!obl_web_order_find("/api/v1/servers/a/move", &order));
	CHECK(!obl_web_order_find("/api/v1/servers//cordon", &order));
	CHECK(!obl_web_order_find("/api/v1/servers/cordon", &order));
	CHECK(!obl_web_order_find("/api/v1/servers/a/kill", &order));
	CHECK(!obl_web_order_find("/api/v1/sessions/a/drain", &order));
	CHECK(!obl_web_order_find("/api/v1/servers/a/cordon/", &order));
	CHECK(!obl_web_order_find("/api/v1/servers/../cordon", &order));
	CHECK(!obl_web_order_find("/api/v1/servers/a b/cordon", &order));
	CHECK(!obl_web_order_find("/api/v1/servers/a\n/cordon", &order));
	CHECK(!obl_web_order_find("/api/v2/servers/a/cordon", &order));
	/* the longest name, and one more */
	memset(path + 16, 'n', OBP_POOL_NAME_MAX - 1);
	strcpy(path + 16 + OBP_POOL_NAME_MAX - 1, "/cordon");
	CHECK(obl_web_order_find(path, &order));
	memset(path + 16, 'n', OBP_POOL_NAME_MAX);
	strcpy(path + 16 + OBP_POOL_NAME_MAX, "/cordon");
	CHECK(!obl_web_order_find(path, &order));
}

static bool body(const char *verb, const char *text, struct obl_web_order *order)
{
	struct ob_cause cause = { 0 };

	*order = (struct obl_web_order){ .verb = verb };
	if (!obl_web_body_read(text, strlen(text), order, &cause))
		return true;
	CHECK(cause.text[0]);
	return false;
}

TEST(bodies_of_commands)
{
	struct obl_web_order order;

	CHECK(body("cordon", "", &order));
	CHECK(body("cordon", "{}", &order));
	CHECK(body("drain", "{\"grace_s\": 300}", &order));
	CHECK_STR(order.argument, "300");
	CHECK(body("drain", "{\"grace_s\": 86400}", &order));
	CHECK(!body("drain", "{\"grace_s\": 86401}", &order));
	CHECK(!body("drain", "{\"grace_s\": -1}", &order));
	CHECK(!body("drain", "{\"grace_s\": 1.5}", &order));
	CHECK(!body("drain", "{\"grace_s\": \"1\"}", &order));
	CHECK(!body("drain", "{\"grace_s\": 1, \"grace_s\": 2}", &order));
	CHECK(body("move", "", &order));
	CHECK_STR(order.argument, "");
	CHECK(body("move", "{\"server\": \"node-1.b_2\"}", &order));
	CHECK_STR(order.argument, "node-1.b_2");
	CHECK(!body("move", "{\"server\": \"\"}", &order));
	CHECK(!body("move", "{\"server\": \"a b\"}", &order));
	CHECK(!body("move", "{\"server\": \"a\\u0000b\"}", &order));
	CHECK(!body("move", "{\"server\": 1}", &order));
	CHECK(!body("move", "{\"server\": null}", &order));
	CHECK(!body("kill", "{\"server\": \"a\"}", &order));
	CHECK(!body("cordon", "{\"grace_s\": 1}", &order));
	CHECK(!body("cordon", "{\"x\": 1}", &order));
	CHECK(!body("cordon", "[]", &order));
	CHECK(!body("cordon", "{", &order));
	CHECK(!body("cordon", "\xff\xfe", &order));
}

TEST(lists_of_gpus)
{
	static const char one[] = "GPU-01234567-89ab-cdef-0123-456789abcdef";
	char list[4 * sizeof one];
	uint8_t uuids[2][16];

	CHECK_INT(obl_web_gpus_read(NULL, uuids, 2), 0);
	CHECK_INT(obl_web_gpus_read("", uuids, 2), 0);
	CHECK_INT(obl_web_gpus_read(one, uuids, 2), 1);
	CHECK_INT(uuids[0][7], 0xef);
	snprintf(list, sizeof list, "%s,%s", one, one);
	CHECK_INT(obl_web_gpus_read(list, uuids, 2), 2);
	snprintf(list, sizeof list, "%s,%s,%s", one, one, one);
	CHECK_INT(obl_web_gpus_read(list, uuids, 2), 3);
	CHECK_INT(obl_web_gpus_read("GPU-0", uuids, 2), 3);
	CHECK_INT(obl_web_gpus_read(",", uuids, 2), 3);
}

/* ---- connections ---- */

static unsigned taken(struct obl_peers *peers, const char *address, uint64_t now, unsigned tries)
{
	struct obl_peer_key key = key_of(address);
	unsigned n = 0;

	while (tries--)
		n += obl_peers_take(peers, &key, now);
	return n;
}

TEST(an_address_begins_so_many_connections)
{
	static struct obl_peers peers;
	uint64_t now = 1000 * OB_SECOND;

	obl_peers_init(&peers);
	CHECK_INT(taken(&peers, "2001:db8::1", now, OBL_WEB_BURST), OBL_WEB_BURST);
	CHECK_INT(taken(&peers, "2001:db8::1", now, 1), 0);
	CHECK_INT(taken(&peers, "2001:db8::2", now, 1), 0); /* the same /64 */
	CHECK_INT(taken(&peers, "2001:db8::1", now + OB_SECOND, 100), OBL_WEB_RATE);
	CHECK_INT(taken(&peers, "2001:db8::1", now + 3000 * OB_SECOND, 1000), OBL_WEB_BURST);
	/* this machine's have no limit */
	CHECK_INT(taken(&peers, "::1", now, 1000), 1000);
	CHECK_INT(taken(&peers, "::ffff:127.0.0.1", now, 1000), 1000);
	obl_peers_init(&peers);
	CHECK_INT(taken(&peers, "::ffff:10.0.0.1", now, 1000), OBL_WEB_BURST);
	peers.limits_local = true;
	CHECK_INT(taken(&peers, "::1", now, 1000), OBL_WEB_BURST);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
