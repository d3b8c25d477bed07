/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Peers that read slowly, or not at all, beside one that reads. */
#include "loadbalancer/balancer/link.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/test.h"

#define GREEDY 10u /* more than the room for all has for each */

static uv_loop_t loop;
static unsigned ended;

static void on_message(void *user, struct obl_link *link, struct obp_pool_message *message)
{
	(void)user;
	(void)link;
	(void)message;
}

static void on_ended(void *user, struct obl_link *link)
{
	(void)user;
	(void)link;
	ended++;
}

static struct obl_links links = { .loop = &loop, .message = on_message, .ended = on_ended };

static void turn(void)
{
	uv_run(&loop, UV_RUN_NOWAIT);
}

/* A link whose peer has sent its preface. *ret_peer is the peer's end. */
static struct obl_link *peer_new(int *ret_peer)
{
	const struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_POOL
	};
	struct obl_link *link;
	int fds[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	link = obl_link_new(&links, fds[0], false);
	CHECK(link);
	CHECK_INT(write(fds[1], &preface, sizeof preface), sizeof preface);
	turn();
	CHECK_INT(link->state, OBL_LINK_MESSAGES);
	obl_link_trust(link);
	*ret_peer = fds[1];
	return link;
}

static void begin(void)
{
	uv_loop_init(&loop);
}

static void end(void)
{
	obl_links_sweep(&links, ob_clock_ns() + 1000 * OB_SECOND);
	turn();
	CHECK_INT(links.n, 0);
	CHECK_INT(links.out, 0);
	obl_addresses_sweep(&links.addresses, OB_NEVER);
	CHECK_INT(uv_loop_close(&loop), 0);
	uv_library_shutdown(); /* closes its descriptors */
}

/* Sends until so many bytes wait, or no more are taken. */
static void fill(struct obl_link *link, size_t bytes)
{
	static char text[OBP_POOL_TEXT_MAX];

	memset(text, 'x', sizeof text - 1);
	while (link->out.size < bytes && !link->broken)
		obl_link_refuse(link, OBP_POOL_LATER, 0, text);
}

TEST(a_peer_that_does_not_read_is_cut_at_its_limit)
{
	struct obl_link *link;
	int peer;

	begin();
	link = peer_new(&peer);
	fill(link, OBL_LINK_OUT_MAX);
	CHECK(link->broken);
	CHECK_INT(links.out, 0);
	obl_links_sweep(&links, ob_clock_ns());
	CHECK_INT(ended, 1);
	end();
	close(peer);
}

TEST(one_that_reads_is_not_cut_for_others)
{
	int peers[GREEDY], reader;
	struct obl_link *good = NULL, *greedy[GREEDY];
	unsigned cut = 0;
	char byte;

	begin();
	for (unsigned i = 0; i < GREEDY; i++) {
		if (i == GREEDY / 2)
			good = peer_new(&reader);
		greedy[i] = peer_new(&peers[i]);
		fill(greedy[i], OBL_LINK_OUT_MAX - (1u << 20));
		CHECK(links.out <= OBL_LINKS_OUT_MAX);
	}
	for (unsigned i = 0; i < GREEDY; i++)
		cut += greedy[i]->broken;
	CHECK(cut >= 1 && cut <= 3);
	obl_link_refuse(good, OBP_POOL_LATER, 0, "later");
	CHECK(!good->broken);
	CHECK_INT(good->out.size, 0);
	CHECK_INT(read(reader, &byte, 1), 1);
	obl_links_sweep(&links, ob_clock_ns());
	CHECK_INT(links.n, 1 + GREEDY - cut);
	end();
	close(reader);
	for (unsigned i = 0; i < GREEDY; i++)
		close(peers[i]);
}

TEST(one_that_reads_a_little_now_and_then_is_cut)
{
	char some[4096];
	struct obl_link *link;
	uint64_t now;
	int peer;

	begin();
	link = peer_new(&peer);
	fill(link, 1u << 20);
	now = ob_clock_ns();
	link->deadline = OB_NEVER; /* that of messages */
	obl_links_sweep(&links, now + (OBL_LINK_SEND_MS - 1000) * OB_MS);
	CHECK_INT(links.n, 1);
	for (unsigned i = 0; i < 200; i++)
		CHECK(read(peer, some, sizeof some) > 0);
	turn();
	CHECK(link->out.size > 0);
	/* As if it had read at the last moment, again and again. */
	link->send_deadline = OB_NEVER;
	obl_links_sweep(&links, now + (OBL_LINK_DRAIN_MS - 1000) * OB_MS);
	CHECK_INT(links.n, 1);
	obl_links_sweep(&links, now + (OBL_LINK_DRAIN_MS + 1000) * OB_MS);
	CHECK_INT(links.n, 0);
	end();
	close(peer);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
