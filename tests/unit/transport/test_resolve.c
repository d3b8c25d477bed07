/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Which connections query the resolver: the first one to a name, and one whose cached addresses do
 * not answer; never one to a numeric address.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/test.h"
#include "transport/connect.h"
#include "transport/resolve.h"
#include "transport/stream.h"

static unsigned asked;

/* Replaces the C library's function. */
int getaddrinfo(
	const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

	asked++;
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(host, port, hints, ret);
}

static int listener(const char *host, uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, host, &address.sin_addr);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
		listen(fd, 8) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static enum ob_err connect_to(const char *host, uint16_t port)
{
	struct obt_stream stream;
	struct obt_url url;
	char text[128];
	enum ob_err err;

	snprintf(text, sizeof text, "tcp://%s:%u", host, port);
	CHECK(obt_url_parse(text, &url, NULL) == OB_ERR_NONE);
	err = obt_stream_connect(&url, ob_clock_ns() + 60 * OB_SECOND, &stream, NULL);
	if (err == OB_ERR_NONE)
		obt_stream_close(&stream);
	return err;
}

TEST(numbers_need_no_resolver)
{
	struct obt_addresses found;
	uint16_t port;
	int fd = listener("127.0.0.1", &port);

	CHECK(connect_to("127.0.0.1", port) == OB_ERR_NONE);
	CHECK(obt_resolve("::1", "14800", false, &found, NULL) == OB_ERR_NONE && found.n == 1 &&
		found.list[0].address.ss_family == AF_INET6 && !found.kept);
	CHECK(obt_resolve("::1", "14800", true, &found, NULL) == OB_ERR_NONE);
	CHECK(asked == 0);
	close(fd);
}

TEST(a_name_is_asked_for_once)
{
	uint16_t port;
	int fd = listener("127.0.0.1", &port);

	CHECK(connect_to("localhost", port) == OB_ERR_NONE);
	CHECK(asked == 1);
	for (int i = 0; i < 3; i++)
		CHECK(connect_to("localhost", port) == OB_ERR_NONE);
	CHECK(asked == 1);
	close(fd);
	CHECK(connect_to("localhost", port) == OB_ERR_CONNECT);
	CHECK(asked == 2);
}

/* More names than the cache holds. */
TEST(old_names_are_forgotten)
{
	struct obt_addresses found;
	char port[8];

	asked = 0;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 12; i++) {
			snprintf(port, sizeof port, "%d", 20000 + i);
			CHECK(obt_resolve("localhost", port, false, &found, NULL) == OB_ERR_NONE &&
				found.n >= 1);
		}
	CHECK(asked == 24);
	CHECK(obt_resolve("localhost", "20011", false, &found, NULL) == OB_ERR_NONE && found.kept);
	CHECK(obt_resolve("localhost", "20011", true, &found, NULL) == OB_ERR_NONE && !found.kept);
	CHECK(asked == 25);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
