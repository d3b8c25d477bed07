/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/test.h"
#include "transport/url.h"

TEST(good_addresses)
{
	struct obt_url url;

	CHECK_INT(obt_url_parse("tcp://host:1", &url, NULL), OB_ERR_NONE);
	CHECK_STR(url.host, "host");
	CHECK_STR(url.port, "1");
	CHECK_INT(obt_url_parse("tcp://10.0.0.1", &url, NULL), OB_ERR_NONE);
	CHECK_STR(url.port, "14800");
	CHECK_INT(obt_url_parse("tcp://[::1]:7", &url, NULL), OB_ERR_NONE);
	CHECK_STR(url.host, "::1");
	CHECK_INT(obt_url_parse("tls://host:9", &url, NULL), OB_ERR_NONE);
	CHECK_INT(url.scheme, OBT_TLS);
	CHECK_STR(url.host, "host");
	CHECK_INT(obt_url_parse("shm:/run/y", &url, NULL), OB_ERR_NONE);
	CHECK(url.scheme == OBT_UNIX && url.shm && strcmp(url.path, "/run/y") == 0);
	CHECK_INT(obt_url_parse("unix:/run/x", &url, NULL), OB_ERR_NONE);
	CHECK(!url.shm);
	CHECK_STR(url.path, "/run/x");
}

TEST(addresses_of_every_machine_itself)
{
	static const char *const here[] = { "unix:/x", "shm:/x", "tcp://localhost:1",
		"tls://LOCALHOST", "tcp://127.0.0.1:1", "tcp://127.255.0.9", "tls://[::1]:2",
		"tcp://[::ffff:127.0.0.1]:3" };
	static const char *const elsewhere[] = { "tcp://localhost.example:1", "tcp://128.0.0.1:1",
		"tcp://0.0.0.0:1", "tls://gpu-7", "tcp://[::2]:1", "tcp://[::ffff:10.0.0.1]:1",
		"tcp://127.example:1" };
	struct obt_url url;

	for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
		CHECK(!obt_url_parse(here[i], &url, NULL) && obt_url_loopback(&url));
	for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
		CHECK(!obt_url_parse(elsewhere[i], &url, NULL) && !obt_url_loopback(&url));
}

TEST(bad_addresses_say_what_a_right_one_is)
{
	static const char *const bad[] = { "", "host:1", "http://x", "tcp://", "tcp://:1",
		"tcp://h:65536", "tcp://h:x", "tls://", "tls://h:x", "tcp://[::1", "tcp://[::1]x",
		"unix:", NULL };
	char path[200] = "unix:/";
	struct obt_url url;

	for (int i = 0; bad[i]; i++) {
		struct ob_cause cause = { .code = OB_ERR_NONE };

		CHECK_INT(obt_url_parse(bad[i], &url, &cause), OB_ERR_URL);
		CHECK_INT(cause.code, OB_ERR_URL);
		CHECK(strstr(cause.text, "tcp://") || strstr(cause.text, "unix:"));
	}
	CHECK_INT(obt_url_parse(NULL, &url, NULL), OB_ERR_URL);
	memset(path + 6, 'a', 106); /* a path of 107 bytes, the longest */
	CHECK_INT(obt_url_parse(path, &url, NULL), OB_ERR_NONE);
	path[112] = 'a';
	CHECK_INT(obt_url_parse(path, &url, NULL), OB_ERR_URL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
