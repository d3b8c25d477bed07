/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The text of OUTBOARD_TICKET: which pair is a server's, and what is no pair. */
#include "loadbalancer/ticket_text.h"

#include "tests/test.h"
#include "transport/sign.h"

static uint8_t ticket[OBP_TICKET_MAX];
static uint32_t size;
static struct ob_cause cause;

static enum ob_err find(const char *list, const char *address)
{
	struct obt_url url;

	CHECK_INT(obt_url_parse(address, &url, NULL), OB_ERR_NONE);
	size = 0;
	cause = (struct ob_cause){ .code = OB_ERR_NONE };
	return obl_ticket_find(list, &url, ticket, &size, &cause);
}

TEST(the_pair_of_the_server_is_found)
{
	const char *list = "tcp://a:1 00ff,tls://b:14800 0A0b0C,unix:/c 11,tls://[::1]:5 22,x 00";

	CHECK_INT(find(list, "tcp://a:1"), OB_ERR_NONE);
	CHECK(size == 2 && ticket[0] == 0 && ticket[1] == 0xff);
	CHECK_INT(find(list, "tls://b:14800"), OB_ERR_NONE);
	CHECK(size == 3 && ticket[0] == 10 && ticket[1] == 11 && ticket[2] == 12);
	size = 0;
	CHECK_INT(find(list, "tls://b"), OB_ERR_NONE); /* the same port */
	CHECK_INT(size, 3);
	CHECK_INT(find(list, "unix:/c"), OB_ERR_NONE);
	CHECK_INT(size, 1);
	CHECK_INT(find(list, "shm:/c"), OB_ERR_NONE); /* the same server */
	CHECK_INT(find(list, "tls://[::1]:5"), OB_ERR_NONE);
	CHECK_INT(find(list, "tcp://a:11"), OB_ERR_NOT_FOUND);
	CHECK_INT(find(list, "tcp://a"), OB_ERR_NOT_FOUND);
	CHECK_INT(find(list, "tls://a:1"), OB_ERR_NOT_FOUND);
	CHECK_INT(find(list, "unix:/cc"), OB_ERR_NOT_FOUND);
	CHECK_INT(find("", "tcp://a:1"), OB_ERR_NOT_FOUND);
	CHECK_INT(find(NULL, "tcp://a:1"), OB_ERR_NOT_FOUND);
}

TEST(what_is_no_pair_is_reported)
{
	CHECK_INT(find("00ff", "tcp://a:1"), OB_ERR_ARGUMENT);
	CHECK(strstr(cause.text, "behind its server's address"));
	CHECK_INT(find("tcp://b:1", "tcp://a:1"), OB_ERR_ARGUMENT);
	CHECK_INT(find("tcp://b:1 00,,", "tcp://a:1"), OB_ERR_ARGUMENT);
	CHECK_INT(find("tcp://a:1 ", "tcp://a:1"), OB_ERR_ARGUMENT);
	CHECK_INT(find("tcp://a:1 0", "tcp://a:1"), OB_ERR_ARGUMENT);
	CHECK_INT(find("tcp://a:1 0g", "tcp://a:1"), OB_ERR_ARGUMENT);
	CHECK(strstr(cause.text, "hexadecimal"));
	CHECK_INT(find("tcp://a:1 00 00", "tcp://a:1"), OB_ERR_ARGUMENT);
}

TEST(an_address_of_any_length)
{
	static char list[OBT_URL_MAX + 64];
	int head = snprintf(list, sizeof list, "tcp://");

	memset(list + head, 'a', OBT_URL_MAX);
	strcpy(list + head + OBT_URL_MAX, " 00");
	CHECK_INT(find(list, "tcp://a:1"), OB_ERR_NOT_FOUND);
	list[OBT_URL_MAX] = ' ';
	CHECK_INT(find(list, "tcp://a:1"), OB_ERR_NOT_FOUND);
}

TEST(the_longest_ticket_fits)
{
	static char list[2 * OBP_TICKET_MAX + 32];
	int head = snprintf(list, sizeof list, "tcp://a:1 ");

	memset(list + head, '7', 2 * OBP_TICKET_MAX);
	CHECK_INT(find(list, "tcp://a:1"), OB_ERR_NONE);
	CHECK_INT(size, OBP_TICKET_MAX);
	CHECK_INT(ticket[OBP_TICKET_MAX - 1], 0x77);
	memset(list + head, '7', 2 * OBP_TICKET_MAX + 2);
	CHECK_INT(find(list, "tcp://a:1"), OB_ERR_ARGUMENT);
}

TEST(what_is_no_ticket_says_nothing)
{
	static struct obp_ticket read;

	memset(ticket, 0, sizeof ticket);
	for (size_t n = 0; n <= OBP_TICKET_MAX; n += n < OBT_SIGN_OVERHEAD + 2 ? 1 : 64)
		CHECK(!obl_ticket_read(ticket, n, &read));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
