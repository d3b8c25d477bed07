/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The stream's contract over TLS: pieces of any sizes, both directions at once, no blocking where none is asked for, tickets. */
#include <errno.h>
#include <poll.h>

#include "base/check.h"
#include "tests/unit/test.h"
#include "tests/unit/transport/tls_pair.h"

#define BYTES (24u << 20)

static struct tls_pair pair;
static struct obt_stream client, server;

static void begin(void)
{
	uint64_t ns;

	CHECK(tls_pair_init(&pair));
	CHECK(tls_pair_connect(&pair, &client, &server, &ns));
}

static void end(void)
{
	obt_stream_close(&client);
	obt_stream_close(&server);
	tls_pair_fini(&pair);
}

static uint8_t byte_at(uint64_t at, unsigned salt)
{
	return (uint8_t)((at * 2654435761u >> 13) + salt);
}

struct flow {
	struct obt_stream *stream;
	unsigned salt;
	bool ok;
};

/* Pieces of 1 byte to 300 KiB, up to five a call, as frames are sent. */
static void *send_main(void *user)
{
	struct flow *flow = user;
	uint8_t *data = malloc(2u << 20);
	uint64_t at = 0, random = 88172645463325252u + flow->salt;

	flow->ok = data != NULL;
	while (flow->ok && at < BYTES) {
		struct iovec iov[5];
		size_t all = 0;
		int n = 1 + (int)(random % 5);

		for (int i = 0; i < n; i++) {
			static const size_t most[] = { 48, 8, 300, 300u << 10, 7 };
			size_t size;

			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			size = ob_min(random % most[random >> 60 & 3] + (random >> 50 & 1), BYTES - at - all);
			iov[i] = (struct iovec){ data + all, size };
			for (size_t k = 0; k < size; k++)
				data[all + k] = byte_at(at + all + k, flow->salt);
			all += size;
		}
		flow->ok = obt_stream_send_all(flow->stream, iov, n, ob_clock_ns() + 20 * OB_SECOND) == OB_ERR_NONE;
		at += all;
	}
	free(data);
	return NULL;
}

static void *recv_main(void *user)
{
	struct flow *flow = user;
	static _Thread_local uint8_t data[100000];
	uint64_t at = 0, random = 1234567;

	flow->ok = true;
	while (flow->ok && at < BYTES) {
		ssize_t n;

		random = random * 6364136223846793005u + 1442695040888963407u;
		n = flow->stream->ops->recv(flow->stream, data, 1 + (random >> 33) % sizeof data, random >> 63);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd pfd = { .fd = flow->stream->fd, .events = POLLIN };

			/* The rule that owners follow: what is inside first, then the socket. */
			if (!obt_stream_pending(flow->stream))
				flow->ok = poll(&pfd, 1, 20000) > 0;
			continue;
		}
		flow->ok = n > 0;
		for (ssize_t i = 0; i < n && flow->ok; i++)
			flow->ok = data[i] == byte_at(at + (uint64_t)i, flow->salt);
		at += n > 0 ? (uint64_t)n : 0;
	}
	return NULL;
}

TEST(both_directions_at_once)
{
	struct flow flows[4];
	pthread_t threads[4];

	begin();
	for (unsigned i = 0; i < 4; i++) {
		flows[i] = (struct flow){ i % 2 ? &server : &client, i == 0 || i == 3 ? 1 : 2, false };
		/* client sends 1, server sends 2; client takes 2, server takes 1 */
		CHECK_INT(pthread_create(&threads[i], NULL, i < 2 ? send_main : recv_main, &flows[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CHECK(flows[i].ok);
	}
	end();
}

TEST(nothing_blocks_that_was_not_asked_to)
{
	static uint8_t data[64 << 10];
	struct iovec iov = { data, sizeof data };
	uint64_t sent = 0, got = 0;
	ssize_t n;

	begin();
	errno = 0;
	CHECK_INT(client.ops->recv(&client, data, sizeof data, false), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK(!obt_stream_pending(&client));
	/* Nobody reads: the sender is told so, and every byte it was told is sent comes out in the end. */
	for (unsigned i = 0; i < 100000; i++) {
		for (size_t k = 0; k < sizeof data; k++)
			data[k] = byte_at(sent + k, 0);
		n = client.ops->send(&client, &iov, 1, false);
		if (n < 0)
			break;
		sent += (uint64_t)n;
	}
	CHECK(n < 0 && errno == EAGAIN && sent > 0);
	obt_stream_set_recv_timeout(&server, 200);
	while ((n = server.ops->recv(&server, data, sizeof data, true)) > 0) {
		for (ssize_t k = 0; k < n; k++)
			CHECK_INT(data[k], byte_at(got + (uint64_t)k, 0));
		got += (uint64_t)n;
	}
	CHECK(n < 0 && errno == EAGAIN); /* the time-out */
	CHECK(got >= sent - sizeof data && got <= sent + sizeof data);
	end();
}

TEST(the_end_is_seen)
{
	char byte;

	begin();
	obt_stream_close(&client);
	CHECK_INT(server.ops->recv(&server, &byte, 1, true), 0);
	end();
}

TEST(a_connection_cut_without_a_farewell)
{
	char byte;

	begin();
	shutdown(client.fd, SHUT_RDWR);
	CHECK_INT(server.ops->recv(&server, &byte, 1, true), 0);
	end();
}

TEST(the_second_connection_resumes)
{
	struct obt_stream second, other;
	char byte;
	uint64_t ns;

	begin();
	CHECK(!obt_tls_resumed(&client));
	/* The ticket comes after the handshake, with the first bytes or before them. */
	CHECK_INT(client.ops->recv(&client, &byte, 1, false), -1);
	CHECK(tls_pair_connect(&pair, &second, &other, &ns));
	CHECK(obt_tls_resumed(&second) && obt_tls_resumed(&other));
	obt_stream_close(&second);
	obt_stream_close(&other);
	end();
}

/* A connection to `to`, whose ticket is taken: did an earlier one's shorten it? -1: failed. */
static int visit(struct obt_tls_server *to)
{
	struct obt_tls_server *was = pair.server;
	struct obt_stream near, far;
	char byte;
	uint64_t ns;
	int resumed = -1;

	pair.server = to;
	if (tls_pair_connect(&pair, &near, &far, &ns)) {
		near.ops->recv(&near, &byte, 1, false);
		resumed = obt_tls_resumed(&near);
		obt_stream_close(&near);
		obt_stream_close(&far);
	}
	pair.server = was;
	return resumed;
}

TEST(tickets_of_shared_keys_are_good_elsewhere)
{
	struct obt_tls_tickets tickets = { 0 };
	struct obt_tls_server *other;
	char why[512];

	begin();
	other = obt_tls_server_new(pair.cert, pair.key, NULL, why, sizeof why);
	CHECK(other != NULL);
	visit(pair.server);
	CHECK_INT(visit(pair.server), 1);
	CHECK_INT(visit(other), 0); /* each has its own key */
	CHECK(obt_tls_tickets_rotate(&tickets));
	CHECK_INT(tickets.count, 1);
	obt_tls_server_tickets(pair.server, &tickets);
	obt_tls_server_tickets(other, &tickets);
	visit(pair.server);
	CHECK_INT(visit(other), 1);
	/* One is told of a new key before the other, which cannot read its tickets yet. */
	CHECK(obt_tls_tickets_rotate(&tickets));
	obt_tls_server_tickets(pair.server, &tickets);
	CHECK_INT(visit(pair.server), 1); /* by the older key, and gets a ticket of the newer */
	CHECK_INT(visit(other), 0);
	obt_tls_server_tickets(other, &tickets);
	CHECK_INT(visit(other), 1);
	CHECK_INT(visit(pair.server), 1);
	/* Two new keys later a ticket is of no use any more. */
	CHECK(obt_tls_tickets_rotate(&tickets) && obt_tls_tickets_rotate(&tickets));
	CHECK_INT(tickets.count, OBT_TLS_TICKET_KEYS);
	obt_tls_server_tickets(other, &tickets);
	CHECK_INT(visit(other), 0);
	CHECK_INT(visit(other), 1);
	obt_tls_server_free(other);
	end();
}

/* A process that has the shared keys could write anybody's certificate into a ticket. */
TEST(tickets_with_a_certificate_stay_with_their_maker)
{
	struct obt_tls_tickets tickets = { 0 };
	struct obt_tls_server *one, *other;
	char why[512];

	CHECK(tls_pair_init(&pair));
	setenv("OUTBOARD_TLS_CERT", pair.cert, 1);
	setenv("OUTBOARD_TLS_KEY", pair.key, 1);
	one = obt_tls_server_new(pair.cert, pair.key, pair.cert, why, sizeof why);
	other = obt_tls_server_new(pair.cert, pair.key, pair.cert, why, sizeof why);
	CHECK(one && other && obt_tls_tickets_rotate(&tickets));
	obt_tls_server_tickets(one, &tickets);
	obt_tls_server_tickets(other, &tickets);
	CHECK_INT(visit(one), 0);
	CHECK_INT(visit(one), 1);
	CHECK_INT(visit(other), 0);
	CHECK_INT(visit(other), 1);
	obt_tls_server_free(one);
	obt_tls_server_free(other);
	tls_pair_fini(&pair);
}

TEST(damaged_bytes_end_the_stream)
{
	char byte;

	begin();
	CHECK_INT(send(client.fd, "\x17\x03\x03\x00\x20 this was never encrypted by it.", 37, 0), 37);
	CHECK_INT(server.ops->recv(&server, &byte, 1, true), -1);
	CHECK(errno != EAGAIN && obt_stream_why(&server));
	end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
