/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The client of balancers as far as it needs none: lists of balancers, what a grant gives to a
 * program, tickets of the environment, explanations. Grants are also changed at random: whatever a
 * balancer sends, the result is an error or texts that the readers accept.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include "base/text.h"
#include "loadbalancer/access.h"
#include "loadbalancer/pool.h"
#include "loadbalancer/pool_link.h"
#include "loadbalancer/ticket_text.h"
#include "tests/test.h"
#include "transport/pin.h"
#include "transport/sign.h"

#define PIN "0123456789abcdef0123456789abcdef0123456789ABCDEF0123456789ABCDEF"

static struct obl_balancers list;
static struct ob_cause cause;

TEST(lists_of_balancers)
{
	CHECK_INT(obl_balancers_parse("tls://a,tcp://[::1]:5,unix:/p,tcp://b:7", &list, &cause),
		OB_ERR_NONE);
	CHECK_INT(list.n, 4);
	CHECK(strcmp(list.list[0].url.port, "14900") == 0);
	CHECK(strcmp(list.list[1].url.port, "5") == 0 && strcmp(list.list[1].url.host, "::1") == 0);
	CHECK(list.list[2].url.scheme == OBT_UNIX && strcmp(list.list[3].url.port, "7") == 0);
	CHECK_INT(obl_balancers_parse("tcp://[::1]", &list, &cause), OB_ERR_NONE);
	CHECK(strcmp(list.list[0].url.port, "14900") == 0);
}

TEST(wrong_lists)
{
	static const char *const wrong[] = { "", ",", "shm:/x", "http://a", "tcp://", "tcp://a:b",
		"tcp://a,,tcp://b" };
	char many[512] = "tcp://h0", text[OBT_URL_MAX + 20];

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK_INT(obl_balancers_parse(wrong[i], &list, &cause), OB_ERR_URL);
	for (unsigned i = 1; i < OBL_BALANCERS_MAX; i++)
		snprintf(many + strlen(many), sizeof many - strlen(many), ",tcp://h%u", i);
	CHECK_INT(obl_balancers_parse(many, &list, &cause), OB_ERR_NONE);
	CHECK_INT(list.n, OBL_BALANCERS_MAX);
	snprintf(many + strlen(many), sizeof many - strlen(many), ",tcp://x");
	CHECK_INT(obl_balancers_parse(many, &list, &cause), OB_ERR_URL);
	memset(text, 'a', sizeof text - 1);
	memcpy(text, "tcp://", 6);
	text[sizeof text - 1] = '\0';
	CHECK_INT(obl_balancers_parse(text, &list, &cause), OB_ERR_URL);
	CHECK_INT(obl_pool_check("tcp://a", &cause), OB_ERR_NONE);
	CHECK_INT(obl_pool_check("x", &cause), OB_ERR_URL);
}

TEST(shuffling_loses_none)
{
	unsigned first[4] = { 0 };

	for (int round = 0; round < 200; round++) {
		unsigned seen = 0;

		CHECK(!obl_balancers_parse(
			"tcp://a:0,tcp://a:1,tcp://a:2,tcp://a:3", &list, &cause));
		obl_balancers_shuffle(&list);
		for (unsigned i = 0; i < 4; i++)
			seen |= 1u << (list.list[i].url.port[0] - '0');
		CHECK_INT(seen, 15);
		first[list.list[0].url.port[0] - '0']++;
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK(first[i] > 0);
}

TEST(every_request_has_an_id)
{
	struct obp_pool_ask a, b;

	CHECK_INT(obl_pool_ask_init(&a, "/usr/bin/train"), OB_ERR_NONE);
	CHECK_INT(obl_pool_ask_init(&b, NULL), OB_ERR_NONE);
	CHECK(memcmp(a.id, b.id, sizeof a.id) != 0);
	CHECK(strcmp(a.program, "train") == 0 && b.program[0] == '\0' && a.host[0] && a.user[0]);
	CHECK_INT(a.gpus, 1);
	CHECK_INT(a.pid, (uint64_t)getpid());
}

/* ---- grants ---- */

/* Fills a part with a ticket for `n` devices. */
static void part_fill(struct obp_pool_part *part, const char *urls, const char *pin, uint32_t n)
{
	struct obp_ticket ticket = { .server = "s", .tenant = "t", .n_devices = n };
	struct ob_buf body;

	memset(part, 0, sizeof *part);
	snprintf(part->server, sizeof part->server, "s");
	snprintf(part->urls, sizeof part->urls, "%s", urls);
	snprintf(part->pin, sizeof part->pin, "%s", pin);
	for (uint32_t i = 0; i < n; i++)
		ticket.devices[i][0] = (uint8_t)(i + 1);
	ob_buf_init(&body, OBP_TICKET_BODY_MAX);
	CHECK(obp_ticket_encode(&ticket, &body));
	memcpy(part->ticket + OBT_SIGN_OVERHEAD, body.data, body.size);
	part->ticket_size = (uint32_t)body.size + OBT_SIGN_OVERHEAD;
	ob_buf_fini(&body);
}

static enum ob_err make(const char *urls, const char *pin, struct obl_access *ret)
{
	struct obp_pool_part part;
	struct obp_pool_grant grant = { .n_parts = 1, .parts = &part };

	part_fill(&part, urls, pin, 2);
	return obl_access_make(&grant, ret, &cause);
}

static enum ob_err ticket_of(
	const char *tickets, const char *address, uint8_t ret[OBP_TICKET_MAX], uint32_t *ret_size)
{
	struct obt_url url;

	CHECK_INT(obt_url_parse(address, &url, NULL), OB_ERR_NONE);
	return obl_ticket_find(tickets, &url, ret, ret_size, &cause);
}

TEST(what_a_grant_gives)
{
	struct obp_pool_part parts[OBP_POOL_PARTS_MAX];
	struct obp_pool_grant grant = { .n_parts = OBP_POOL_PARTS_MAX, .parts = parts };
	struct obt_pins pins = { .n = 0 };
	struct obl_access access;
	struct obp_ticket read;
	uint8_t ticket[OBP_TICKET_MAX];
	char url[64];
	uint32_t n;

	for (uint32_t i = 0; i < OBP_POOL_PARTS_MAX; i++) {
		snprintf(url, sizeof url, i == 2 ? "tls://[::1]:9" : "tls://host%u:14800", i);
		part_fill(&parts[i], url, i == 1 ? "" : PIN, i + 1);
	}
	CHECK_INT(obl_access_make(&grant, &access, &cause), OB_ERR_NONE);
	CHECK_INT(access.n_devices, OBP_POOL_PARTS_MAX * (OBP_POOL_PARTS_MAX + 1) / 2);
	CHECK(strncmp(access.servers, "tls://host0:14800+tls://host1:14800+tls://[::1]:9+", 50) ==
		0);
	CHECK_INT(obt_pins_add(&pins, access.pins, false, &cause), OB_ERR_NONE);
	CHECK_INT(pins.n, OBP_POOL_PARTS_MAX - 1);
	CHECK(obt_pins_apply(&pins, "::1:9") && !obt_pins_apply(&pins, "host1:14800"));
	CHECK_INT(ticket_of(access.tickets, "tls://host4:14800", ticket, &n), OB_ERR_NONE);
	CHECK_INT(n, parts[4].ticket_size);
	CHECK(memcmp(ticket, parts[4].ticket, n) == 0);
	CHECK(obl_ticket_read(ticket, n, &read));
	CHECK_INT(read.n_devices, 5);
	CHECK_INT(read.devices[4][0], 5);
	CHECK_INT(ticket_of(access.tickets, "tls://host9", ticket, &n), OB_ERR_NOT_FOUND);
	obl_access_fini(&access);
}

TEST(wrong_grants)
{
	static const char *const urls[] = { "", " ", "http://x", "tcp://a:1,b", "unix:/a+b",
		"unix:/a=b", "tcp://a:x", "unix:/\x01", "unix:/\xc3\xa4" };
	struct obp_pool_grant none = { .n_parts = 0 };
	struct obl_access access = { .servers = NULL };

	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
		CHECK_INT(make(urls[i], "", &access), OB_ERR_PROTOCOL);
	CHECK_INT(make("tls://a", "12", &access), OB_ERR_PROTOCOL);
	CHECK_INT(obl_access_make(&none, &access, &cause), OB_ERR_PROTOCOL);
	CHECK(!access.servers);
	/* what is wrong is skipped where another address is right */
	CHECK_INT(make("http://x unix:/no/such/socket  tcp://a:1,b", "", &access), OB_ERR_NONE);
	CHECK(strcmp(access.servers, "unix:/no/such/socket") == 0 && access.pins[0] == '\0');
	obl_access_fini(&access);
}

TEST(changed_grants)
{
	unsigned seed = 1;
	unsigned good = 0;

	for (int round = 0; round < 20000; round++) {
		struct obp_pool_part part;
		struct obp_pool_grant grant = { .n_parts = 1, .parts = &part };
		struct obl_access access;
		uint8_t ticket[OBP_TICKET_MAX];
		struct obp_ticket read;
		uint32_t n;

		part_fill(&part, "tls://host:1", PIN, 3);
		for (int i = 0; i < 3; i++) {
			size_t at = (size_t)rand_r(&seed) % (OBT_SIGN_OVERHEAD + 200);
			uint8_t *where = i == 0 ? (uint8_t *)part.urls + at % 14
				: i == 1        ? (uint8_t *)part.pin + at % 64
						: part.ticket + at;

			if (rand_r(&seed) % 3 == 0)
				*where = (uint8_t)rand_r(&seed);
		}
		if (obl_access_make(&grant, &access, &cause))
			continue;
		good++;
		CHECK(!strpbrk(access.servers, ",+ \n"));
		CHECK_INT(ticket_of(access.tickets, access.servers, ticket, &n), OB_ERR_NONE);
		CHECK(obl_ticket_read(ticket, n, &read));
		CHECK_INT(read.n_devices, access.n_devices);
		if (access.pins[0]) {
			struct obt_pins pins = { .n = 0 };

			CHECK_INT(obt_pins_add(&pins, access.pins, true, &cause), OB_ERR_NONE);
		}
		obl_access_fini(&access);
	}
	CHECK(good > 1000);
}

TEST(explanations)
{
	struct obp_pool_refused refused = { .text = "because" };
	char text[OBL_POOL_EXPLAIN_MAX];

	for (uint32_t code = 0; code < 8; code++) {
		refused.code = code;
		for (uint32_t wait_s = 0; wait_s < 2; wait_s++) {
			obl_pool_explain(&refused, wait_s, text);
			CHECK(strstr(text, "because"));
		}
	}
	memset(refused.text, 'x', sizeof refused.text - 1);
	obl_pool_explain(&refused, 1, text);
	CHECK(strlen(text) < sizeof text);
}

/* ---- a message that may come at any time ---- */

static unsigned looks; /* that are left */

static bool looked_enough(void *context)
{
	(void)context;
	return looks == 0 || --looks == 0;
}

static enum ob_err await(struct obl_pool_link *link, uint64_t timeout_ns, unsigned most)
{
	looks = most;
	return obl_pool_link_await(link, timeout_ns, looked_enough, NULL, &cause);
}

/* However little a peer has sent, the wait for the rest can be ended. */
TEST(messages_that_are_waited_for)
{
	static struct obl_pool_link link;
	struct obp_pool_message moved = { .type = OBP_POOL_MOVED, .u.moved.left_s = 17 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), peer;
	struct ob_buf frame;
	char preface[64];

	snprintf(address.sun_path, sizeof address.sun_path, "/tmp/test_pool-%d", (int)getpid());
	CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
	CHECK(listen(listener, 1) == 0);
	snprintf(preface, sizeof preface, "unix:%s", address.sun_path);
	CHECK(!obl_balancers_parse(preface, &list, &cause));
	CHECK(!obl_pool_link_open(&link, &list.list[0], UINT64_MAX, &cause));
	peer = accept(listener, NULL, NULL);
	CHECK(peer >= 0 && unlink(address.sun_path) == 0);
	CHECK(read(peer, preface, sizeof preface) == sizeof(struct obp_preface));
	ob_buf_init(&frame, OBP_CONTROL_MAX);
	CHECK(obp_pool_encode(&moved, &frame));

	CHECK_INT(await(&link, 1, 3), OB_ERR_CANCELLED); /* nothing: no time-out begins */
	CHECK(write(peer, frame.data, 1) == 1);
	CHECK_INT(await(&link, UINT64_MAX / 2, 3), OB_ERR_CANCELLED);
	CHECK(write(peer, frame.data, 1) == 1);
	CHECK_INT(await(&link, 1, UINT32_MAX), OB_ERR_TIMEOUT);
	CHECK(write(peer, frame.data, frame.size) == (ssize_t)frame.size);
	CHECK_INT(await(&link, UINT64_MAX / 2, UINT32_MAX), OB_ERR_NONE);
	CHECK(link.message.type == OBP_POOL_MOVED && link.message.u.moved.left_s == 17);
	close(peer);
	CHECK_INT(await(&link, 1, UINT32_MAX), OB_ERR_CLOSED);
	obl_pool_link_close(&link);
	ob_buf_fini(&frame);
	close(listener);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
