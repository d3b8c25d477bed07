/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/pass.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <stdlib.h>

#include "client-shim/session/pool.h"
#include "tests/test.h"

/* A program that asked no pool itself. */
const char *obc_pool_tickets(void)
{
	return getenv("OUTBOARD_TICKET");
}

static uint8_t ticket[OBP_HELLO_TICKET];
static uint32_t size;
static struct ob_cause cause;

static enum ob_err find(const char *list, const char *url)
{
	size = 0;
	cause = (struct ob_cause){ .code = OB_ERR_NONE };
	return obc_pass_find(list, url, ticket, &size, &cause);
}

TEST(the_pair_of_the_address_is_found)
{
	const char *list = "tcp://a:1 00ff,tls://b:2 0A0b0C,unix:/c 11";

	CHECK_INT(find(list, "tcp://a:1"), OB_ERR_NONE);
	CHECK(size == 2 && ticket[0] == 0 && ticket[1] == 0xff);
	CHECK_INT(find(list, "tls://b:2"), OB_ERR_NONE);
	CHECK(size == 3 && ticket[0] == 10 && ticket[1] == 11 && ticket[2] == 12);
	CHECK_INT(find(list, "unix:/c"), OB_ERR_NONE);
	CHECK_INT(size, 1);
	CHECK_INT(find(list, "tcp://a:11"), OB_ERR_NOT_FOUND);
	CHECK_INT(find(list, "tcp://a:"), OB_ERR_NOT_FOUND);
	CHECK_INT(find(list, ""), OB_ERR_NOT_FOUND);
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

TEST(the_longest_ticket_fits)
{
	static char list[2 * OBP_HELLO_TICKET + 32];
	int head = snprintf(list, sizeof list, "tcp://a:1 ");

	memset(list + head, '7', 2 * OBP_HELLO_TICKET);
	CHECK_INT(find(list, "tcp://a:1"), OB_ERR_NONE);
	CHECK_INT(size, OBP_HELLO_TICKET);
	CHECK_INT(ticket[OBP_HELLO_TICKET - 1], 0x77);
	memset(list + head, '7', 2 * OBP_HELLO_TICKET + 2);
	CHECK_INT(find(list, "tcp://a:1"), OB_ERR_ARGUMENT);
}

TEST(it_is_not_sent_to_another_machine_in_clear)
{
	/* An address for documentation (RFC 5737). Connecting a datagram socket sends nothing. */
	const struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = { htonl(0xc0000201) }
	};
	struct obt_stream far = { .ops = &obt_socket_ops, .fd = socket(AF_INET, SOCK_DGRAM, 0) };
	static struct obp_hello hello;

	if (connect(far.fd, (const struct sockaddr *)&address, sizeof address) != 0) {
		close(far.fd);
		exit(TEST_SKIP_EXIT); /* this machine has no route to anywhere */
	}
	setenv("OUTBOARD_TICKET", "tcp://a:1 00ff", 1);
	CHECK_INT(obc_pass_show(&far, "tcp://a:1", &hello, &cause), OB_ERR_DENIED);
	CHECK(hello.ticket_size == 0 && strstr(cause.text, "in clear"));
	far.tls = (struct obt_tls *)&hello;
	CHECK_INT(obc_pass_show(&far, "tcp://a:1", &hello, &cause), OB_ERR_NONE);
	CHECK_INT(hello.ticket_size, 2);
	hello.ticket_size = 0;
	CHECK_INT(obc_pass_show(&far, "tcp://b:1", &hello, &cause), OB_ERR_NONE);
	CHECK_INT(hello.ticket_size, 0);
	unsetenv("OUTBOARD_TICKET");
	CHECK_INT(obc_pass_show(&far, "tcp://a:1", &hello, &cause), OB_ERR_NONE);
	close(far.fd);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
