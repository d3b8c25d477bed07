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

static struct ob_cause cause;

static enum ob_err show(
	const struct obt_stream *stream, const char *address, struct obp_hello *hello)
{
	struct obt_url url;

	CHECK_INT(obt_url_parse(address, &url, NULL), OB_ERR_NONE);
	return obc_pass_show(stream, &url, hello, &cause);
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
	CHECK_INT(show(&far, "tcp://a:1", &hello), OB_ERR_DENIED);
	CHECK(hello.ticket_size == 0 && strstr(cause.text, "in clear"));
	far.tls = (struct obt_tls *)&hello;
	CHECK_INT(show(&far, "tcp://a:1", &hello), OB_ERR_NONE);
	CHECK_INT(hello.ticket_size, 2);
	hello.ticket_size = 0;
	CHECK_INT(show(&far, "tcp://b:1", &hello), OB_ERR_NONE);
	CHECK_INT(hello.ticket_size, 0);
	unsetenv("OUTBOARD_TICKET");
	CHECK_INT(show(&far, "tcp://a:1", &hello), OB_ERR_NONE);
	close(far.fd);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
