/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Lists of servers that are used together. */
#include "loadbalancer/together.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static void good(const char *text, uint32_t n, const char *first, const char *last)
{
	struct obl_together together;
	struct ob_cause cause;

	CHECK_INT(obl_together_parse(text, &together, &cause), OB_ERR_NONE);
	CHECK_INT(together.n, n);
	CHECK_STR(together.list[0], first);
	CHECK_STR(together.list[n - 1], last);
	obl_together_fini(&together);
}

static void bad(const char *text, const char *why)
{
	struct obl_together together;
	struct ob_cause cause;

	CHECK_INT(obl_together_parse(text, &together, &cause), OB_ERR_URL);
	if (!strstr(cause.text, why))
		TEST_FAIL("'%s' is not in '%s'", why, cause.text);
}

TEST(split)
{
	good("tcp://a", 1, "tcp://a", "tcp://a");
	good("tcp://a+tls://b:1", 2, "tcp://a", "tls://b:1");
	good("unix:/x+y+shm:/z", 2, "unix:/x+y", "shm:/z");
	good("tcp://a,tcp://b+unix:/c,tcp://d", 2, "tcp://a,tcp://b", "unix:/c,tcp://d");
	/* One address: the session says what is wrong with it. */
	good("nonsense", 1, "nonsense", "nonsense");
}

TEST(refused)
{
	bad("tcp://a+tcp://a", "named twice");
	bad("tcp://a+tcp://", "");
	bad("+tcp://a", "");
	bad("tcp://a+tcp://b,nonsense", "");
	bad("tcp://a:x+tcp://b", "port");
}

TEST(addresses)
{
	static struct obl_answer answers[OBL_LIST_MAX];
	struct ob_cause cause;
	uint32_t n = 0;

	CHECK(!obl_together_several("tcp://a,tcp://b"));
	CHECK(!obl_together_several("unix:/a+b"));
	CHECK(obl_together_several("tcp://a+unix:/b"));
	CHECK_INT(obl_together_addresses("tcp://a,tcp://b+unix:/c", answers, &n, &cause), 0);
	CHECK_INT(n, 3);
	CHECK_STR(answers[1].url, "tcp://b");
	CHECK_STR(answers[2].url, "unix:/c");
}

TEST(most)
{
	char text[256] = "";

	for (unsigned i = 0; i < OBL_TOGETHER_MAX; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%stcp://s%u",
			i ? "+" : "", i);
	good(text, OBL_TOGETHER_MAX, "tcp://s0", "tcp://s7");
	snprintf(text + strlen(text), sizeof text - strlen(text), "+unix:/one-more");
	bad(text, "more than 8 servers");
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
