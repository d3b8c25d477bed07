/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The parts of the registry without I/O: base64, endpoints, texts, etcd's messages and errors. */
#include "loadbalancer/registry/base64.h"
#include "loadbalancer/registry/endpoints.h"
#include "loadbalancer/registry/entries.h"
#include "loadbalancer/registry/etcd_error.h"
#include "loadbalancer/registry/wire.h"
#include "tests/test.h"

/* ---- base64 ---- */

static const char *encoded(const void *data, size_t size)
{
	static char text[512];
	struct ob_buf buf;

	ob_buf_init(&buf, sizeof text - 1);
	obl_base64_encode(&buf, data, size);
	CHECK(!buf.failed);
	if (buf.size)
		memcpy(text, buf.data, buf.size);
	text[buf.size] = 0;
	ob_buf_fini(&buf);
	return text;
}

TEST(base64_examples) /* RFC 4648, section 10 */
{
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" } };
	uint8_t data[16];
	size_t size;

	for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		CHECK_STR(encoded(pairs[i][0], strlen(pairs[i][0])), pairs[i][1]);
		CHECK(obl_base64_decode(pairs[i][1], strlen(pairs[i][1]), data, &size));
		CHECK_INT(size, strlen(pairs[i][0]));
		CHECK_MEM(data, pairs[i][0], size);
	}
}

TEST(base64_all_bytes)
{
	uint8_t bytes[256], back[256 + 3];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 37);
	for (size_t n = 0; n <= sizeof bytes; n++) {
		const char *text = encoded(bytes, n);
		size_t size;

		CHECK(obl_base64_decode(text, strlen(text), back, &size));
		CHECK_INT(size, n);
		CHECK_MEM(back, bytes, n);
	}
}

TEST(base64_refused)
{
	static const char *const texts[] = { "A", "AA", "AAA",
		"A===", "====", "AB==", "AAB=", "AA=A", "=AAA", "AA==AAAA", "AAA AAA=", "AA-_",
		"AAAA\n", "\xc3\xa4==" };
	uint8_t data[16];
	size_t size;

	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
		if (obl_base64_decode(texts[i], strlen(texts[i]), data, &size))
			TEST_FAIL("\"%s\" was decoded", texts[i]);
}

/* ---- endpoints ---- */

static struct obl_endpoints three(void)
{
	struct obl_endpoints endpoints;

	CHECK_INT(obl_endpoints_parse("http://a:1,http://b:2/,http://[::1]:3", 3, &endpoints, NULL),
		OB_ERR_NONE);
	CHECK_INT(endpoints.n, 3);
	CHECK_STR(endpoints.list[1].url, "http://b:2");
	CHECK_INT(endpoints.current, 0);
	return endpoints;
}

TEST(endpoints_rotate)
{
	struct obl_endpoints endpoints = three();
	uint64_t now = 1000 * OB_SECOND, when;

	CHECK(obl_endpoints_when(&endpoints, now) == now);
	obl_endpoints_failed(&endpoints, 0, now);
	CHECK_INT(endpoints.current, 1);
	obl_endpoints_failed(&endpoints, 0, now); /* no longer the current one */
	CHECK_INT(endpoints.current, 1);
	obl_endpoints_failed(&endpoints, 1, now);
	CHECK_INT(endpoints.current, 2);
	CHECK(obl_endpoints_when(&endpoints, now) == now);
	/* All have failed: the one that may be used first, after a while. */
	obl_endpoints_failed(&endpoints, 2, now);
	when = obl_endpoints_when(&endpoints, now);
	CHECK(when > now && when <= now + OBL_BACKOFF_FIRST_NS);
	for (unsigned i = 0; i < 3; i++)
		CHECK(endpoints.list[i].avoid_until >= when);
	obl_endpoints_ok(&endpoints, endpoints.current);
	CHECK(obl_endpoints_when(&endpoints, now) == now);
}

TEST(endpoints_back_off)
{
	struct obl_endpoints endpoints = three();
	uint64_t now = OB_SECOND, wait = 0;

	for (unsigned i = 0; i < 100; i++) {
		obl_endpoints_failed(&endpoints, 2, now);
		wait = endpoints.list[2].avoid_until - now;
		CHECK(wait >= OBL_BACKOFF_FIRST_NS / 2 && wait <= OBL_BACKOFF_MAX_NS);
		/* Another failure in this time is one of the same kind. */
		obl_endpoints_failed(&endpoints, 2, now + wait - 1);
		CHECK_INT(endpoints.list[2].avoid_until, now + wait);
		now += wait;
	}
	CHECK(wait >= OBL_BACKOFF_MAX_NS / 2);
}

TEST(endpoints_budget)
{
	struct obl_endpoints endpoints = three();
	uint64_t now = 1000 * OB_SECOND;
	unsigned n = 0;

	while (obl_endpoints_retry(&endpoints, now))
		n++;
	CHECK_RANGE(n, 10, OBL_RETRY_SAVED_MAX);
	CHECK(!obl_endpoints_retry(&endpoints, now));
	for (unsigned i = 0; i < 5; i++)
		obl_endpoints_called(&endpoints);
	CHECK(obl_endpoints_retry(&endpoints, now)); /* a fifth of the calls */
	CHECK(!obl_endpoints_retry(&endpoints, now));
	for (n = 0, now += OB_SECOND; obl_endpoints_retry(&endpoints, now); n++)
		;
	CHECK_RANGE(n, 9, 11); /* ten in a second */
}

/* ---- texts ---- */

TEST(texts)
{
	static const char *const valid[] = { "", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
		"\xed\x9f\xbf", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf" };
	static const char *const invalid[] = { "\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2 ",
		"\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80", "\xff", "\xf0\x9f\x98" };

	for (unsigned i = 0; i < sizeof valid / sizeof *valid; i++)
		CHECK(obl_text_fits(valid[i], 4));
	for (unsigned i = 0; i < sizeof invalid / sizeof *invalid; i++)
		CHECK(!obl_text_fits(invalid[i], 8));
	CHECK(obl_text_fits("abcd", 4) && !obl_text_fits("abcde", 4));
}

/* ---- messages ---- */

static const char *text_of(struct ob_buf *body)
{
	CHECK(ob_buf_append(body, "", 1));
	return (const char *)body->data;
}

TEST(wire_txn)
{
	struct obl_compare compare = { .key = "a", .revision = UINT64_C(1) << 60 };
	struct obl_change changes[3] = { { .key = "a", .value = "1", .leased = true },
		{ .key = "b", .value = NULL, .leased = true }, { .key = "c", .value = "" } };
	struct obl_txn txn = { 1, 3, &compare, changes };
	struct ob_buf body;

	ob_buf_init(&body, OBL_BODY_MAX);
	obl_wire_txn(&body, "p/", &txn, 7);
	CHECK_STR(text_of(&body),
		"{\"compare\":[{\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":"
		"\"1152921504606846976\",\"key\":\"cC9h\"}],\"success\":[{\"request_put\":{\"key\":"
		"\"cC9h\",\"value\":\"MQ==\",\"lease\":\"7\"}},{\"request_delete_range\":{\"key\":"
		"\"cC9i\"}},{\"request_put\":{\"key\":\"cC9j\",\"value\":\"\"}}],\"failure\":[{"
		"\"request_range\":{\"key\":\"cC9h\"}}]}");
	ob_buf_fini(&body);
}

/* The largest transaction fits into a request, and into the limit of etcd: 1.5 MiB before base64. */
TEST(wire_largest)
{
	static char keys[OBL_TXN_OPS_MAX][OBL_KEY_MAX + 1], value[OBL_VALUE_MAX + 1];
	static char prefix[OBL_PREFIX_MAX + 1];
	struct obl_compare compares[OBL_TXN_OPS_MAX];
	struct obl_change changes[OBL_TXN_OPS_MAX];
	struct obl_txn txn = { OBL_TXN_OPS_MAX, OBL_TXN_OPS_MAX, compares, changes };
	struct ob_buf body;

	memset(value, 'v', OBL_VALUE_MAX);
	memset(prefix, 'p', OBL_PREFIX_MAX);
	for (unsigned i = 0; i < OBL_TXN_OPS_MAX; i++) {
		memset(keys[i], 'k', OBL_KEY_MAX);
		keys[i][0] = (char)('0' + i);
		compares[i] = (struct obl_compare){ keys[i], INT64_MAX };
		changes[i] = (struct obl_change){ keys[i], value, true };
	}
	CHECK_INT(obl_txn_check(&txn, NULL), OB_ERR_NONE);
	ob_buf_init(&body, OBL_BODY_MAX);
	obl_wire_txn(&body, prefix, &txn, INT64_MAX);
	CHECK(!body.failed);
	CHECK(body.size / 4 * 3 < 3u << 19);
	ob_buf_fini(&body);
}

TEST(wire_range)
{
	struct ob_buf body;

	ob_buf_init(&body, OBL_BODY_MAX);
	obl_wire_range(&body, "p/", "p/k", 9, 500, false);
	CHECK_STR(text_of(&body),
		"{\"key\":\"cC9rAA==\",\"range_end\":\"cDA=\",\"limit\":\"500\","
		"\"revision\":\"9\"}");
	ob_buf_fini(&body);
}

TEST(wire_numbers)
{
	json_t *object =
		json_loads("{\"a\": \"9223372036854775807\", \"b\": 7, \"c\": "
			   "\"9223372036854775808\", \"d\": -1, \"e\": \"-1\", \"f\": \"\", "
			   "\"g\": null, \"h\": 1.0, \"i\": \"1 \", \"j\": true}",
			0, NULL);
	uint64_t value;

	CHECK(obl_wire_number(object, "a", &value) && value == INT64_MAX);
	CHECK(obl_wire_number(object, "b", &value) && value == 7);
	CHECK(obl_wire_number(object, "absent", &value) && value == 0);
	for (char name[] = "c"; *name <= 'j'; ++*name)
		if (obl_wire_number(object, name, &value))
			TEST_FAIL("member %s was taken for a number", name);
	CHECK(!obl_wire_revision(object, &value));
	json_decref(object);
}

TEST(errors)
{
	static const struct {
		const char *body;
		int code;
		const char *text;
	} cases[] = {
		/* etcd 3.4: one answer, and a stream; etcd 3.5 */
		{ "{\"error\": \"a\", \"message\": \"b\", \"code\": 14}", 14, "b" },
		{ "{\"error\": {\"grpc_code\": 14, \"http_code\": 503, \"message\": \"c\"}}", 14,
			"c" },
		{ "{\"error\": {\"code\": 5, \"message\": \"d\", \"details\": []}}", 5, "d" },
		{ "{\"error\": \"e\"}", -1, "e" },
		{ "{\"error\": 7, \"code\": \"x\"}", -1, "an error without a text" },
		{ "{\"error\": \"f\", \"code\": 1000}", -1, "f" },
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *root = json_loads(cases[i].body, 0, NULL);
		const char *text;
		int code;

		CHECK(obl_etcd_error(root, &code, &text));
		CHECK_INT(code, cases[i].code);
		CHECK_STR(text, cases[i].text);
		json_decref(root);
	}
	CHECK(obl_etcd_not_executed(OBL_GRPC_UNAVAILABLE, "etcdserver: no leader"));
	CHECK(!obl_etcd_not_executed(OBL_GRPC_UNAVAILABLE, "etcdserver: request timed out"));
	CHECK(!obl_etcd_not_executed(OBL_GRPC_UNAVAILABLE, "etcdserver: leader changed"));
	CHECK(!obl_etcd_not_executed(-1, "etcdserver: no leader"));
	CHECK(obl_etcd_not_executed(OBL_GRPC_EXHAUSTED, "etcdserver: too many requests"));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
