/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The stream's contract over TLS: pieces of any size, both directions at once, non-blocking calls,
 * tickets.
 */
#include <errno.h>
#include <poll.h>

#include "base/check.h"
#include "protocol/format.h"
#include "tests/test.h"
#include "tests/unit/transport/tls_pair.h"
#include "transport/connect.h"

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

/* Pieces of 1 byte to 300 KiB, up to five per call, as frames are sent. */
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
			size = ob_min(random % most[random >> 60 & 3] + (random >> 50 & 1),
				BYTES - at - all);
			iov[i] = (struct iovec){ data + all, size };
			for (size_t k = 0; k < size; k++)
				data[all + k] = byte_at(at + all + k, flow->salt);
			all += size;
		}
		flow->ok = obt_stream_send_all(flow->stream, iov, n,
				   ob_clock_ns() + 20 * OB_SECOND) == OB_ERR_NONE;
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
		n = flow->stream->ops->recv(
			flow->stream, data, 1 + (random >> 33) % sizeof data, random >> 63);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd pfd = { .fd = flow->stream->fd, .events = POLLIN };

			/* As owners must do: read buffered bytes first, then poll the socket. */
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
		flows[i] =
			(struct flow){ i % 2 ? &server : &client, i == 0 || i == 3 ? 1 : 2, false };
		/* client sends 1, server sends 2; client receives 2, server receives 1 */
		CHECK_INT(
			pthread_create(&threads[i], NULL, i < 2 ? send_main : recv_main, &flows[i]),
			0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CHECK(flows[i].ok);
	}
	end();
}

/*
 * The server has not read the client's Finished message and does not read. Everything it sends, in
 * large and small pieces through a full socket, must arrive.
 */
TEST(the_server_sends_before_the_clients_finished)
{
	struct flow to_client = { &server, 3, false }, from_server = { &client, 3, false };
	pthread_t sender, receiver;
	char byte = 0;

	begin();
	CHECK_INT(pthread_create(&sender, NULL, send_main, &to_client), 0);
	CHECK_INT(pthread_create(&receiver, NULL, recv_main, &from_server), 0);
	pthread_join(sender, NULL);
	pthread_join(receiver, NULL);
	CHECK(to_client.ok && from_server.ok);
	/* Then the other direction. */
	CHECK_INT(client.ops->send(&client, &(struct iovec){ (void *)(uintptr_t) "y", 1 }, 1, true),
		1);
	CHECK_INT(server.ops->recv(&server, &byte, 1, true), 1);
	CHECK_INT(byte, 'y');
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
	/*
	 * The peer does not read: send must report that it would block, and every byte reported as
	 * sent must arrive.
	 */
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

/* Makes a connection. Returns whether its first TLS layer was resumed by a ticket; -1: failed. */
static int visit(void)
{
	struct obt_stream near, far;
	uint64_t ns;
	int resumed;

	if (!tls_pair_connect(&pair, &near, &far, &ns))
		return -1;
	resumed = obt_tls_resumed(&near);
	obt_stream_close(&near);
	obt_stream_close(&far);
	return resumed;
}

TEST(the_second_connection_resumes)
{
	begin();
	CHECK(!obt_tls_resumed(&client));
	CHECK_INT(visit(), 1);
	CHECK_INT(visit(), 1);
	end();
}

TEST(keys_of_tickets_grow_old)
{
	begin();
	obt_tls_server_expire(pair.server);
	CHECK_INT(visit(), 1); /* with the older key, and gets a ticket of the newer one */
	CHECK_INT(visit(), 1);
	obt_tls_server_expire(pair.server);
	obt_tls_server_expire(pair.server);
	CHECK_INT(visit(), 0); /* after two new keys a ticket is not valid */
	CHECK_INT(visit(), 1);
	end();
}

/* Waits until the server's side is done or has failed. */
static enum ob_err answer(struct obt_stream *stream)
{
	bool ready = false;
	enum ob_err err;

	while ((err = obt_tls_answer(stream, &ready)) == OB_ERR_NONE && !ready)
		CHECK(obt_stream_wait(stream, POLLIN, ob_clock_ns() + 5 * OB_SECOND) > 0);
	return err;
}

struct joiner {
	struct obt_stream stream;
	const char *secret;
	enum ob_err err;
};

static void *join_main(void *user)
{
	struct joiner *joiner = user;

	joiner->err = obt_tls_use_secret(&joiner->stream, joiner->secret, strlen(joiner->secret));
	if (!joiner->err)
		joiner->err = obt_tls_start(
			&joiner->stream, PREFACE, sizeof PREFACE, ob_clock_ns() + 5 * OB_SECOND);
	return NULL;
}

/*
 * Runs the first TLS layer of a join with the secrets of both sides. Returns the client's result.
 */
static enum ob_err join(const char *ours, const char *theirs)
{
	struct joiner joiner = { .secret = theirs };
	uint8_t psk[OBT_TLS_PSK_BYTES];
	char preface[sizeof PREFACE], byte;
	struct obt_stream first;
	pthread_t thread;
	int fd;

	CHECK(obt_stream_connect(&pair.url, ob_clock_ns() + 5 * OB_SECOND, &joiner.stream, NULL) ==
		OB_ERR_NONE);
	fcntl(pair.listener, F_SETFL, 0);
	fd = accept(pair.listener, NULL, NULL);
	CHECK(fd >= 0);
	CHECK_INT(pthread_create(&thread, NULL, join_main, &joiner), 0);
	CHECK_INT(recv(fd, preface, sizeof preface, MSG_WAITALL), sizeof preface);
	CHECK(obt_tls_join_key(ours, strlen(ours), psk) &&
		obt_tls_accept_join(fd, psk, &first) == OB_ERR_NONE);
	while (!obt_tls_started(&first) &&
		(first.ops->recv(&first, &byte, 1, false) >= 0 || errno == EAGAIN))
		if (obt_stream_wait(&first, POLLIN, ob_clock_ns() + 5 * OB_SECOND) <= 0)
			break;
	obt_stream_close(&first);
	pthread_join(thread, NULL);
	obt_stream_close(&joiner.stream);
	return joiner.err;
}

TEST(a_join_needs_the_secret_to_finish_its_handshake)
{
	CHECK(tls_pair_init(&pair));
	CHECK_INT(join("sixteen bytes ok", "sixteen bytes ok"), OB_ERR_NONE);
	CHECK(join("sixteen bytes ok", "sixteen bytes no") != OB_ERR_NONE);
	CHECK(join("sixteen bytes ok", "") != OB_ERR_NONE);
	tls_pair_fini(&pair);
}

/*
 * A plaintext frame where the second layer must begin ends the connection and must not cause a busy
 * loop.
 */
TEST(the_second_layer_is_not_in_clear)
{
	struct obp_frame frame = {
		.magic = OBP_MAGIC, .version = OBP_FRAME_VERSION, .type = OBP_FRAME_CONTROL
	};
	uint8_t psk[OBT_TLS_PSK_BYTES] = { 1 };
	struct obt_stream second;
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	CHECK(obt_tls_accept_data(ends[0], psk, &second) == OB_ERR_NONE);
	CHECK_INT(write(ends[1], &frame, sizeof frame), sizeof frame);
	CHECK_INT(answer(&second), OB_ERR_TLS);
	CHECK(strstr(obt_stream_cause(&second)->text, "in clear"));
	obt_stream_close(&second);
	close(ends[1]);
}

/* The second layer refuses a client without the key of the first: another key, or none. */
TEST(the_second_layer_needs_the_first)
{
	uint8_t psk[OBT_TLS_PSK_BYTES] = { 1 };
	struct joiner joiner = { .secret = "another key" };
	char preface[sizeof PREFACE];
	struct obt_stream second;
	pthread_t thread;
	int fd;

	CHECK(tls_pair_init(&pair));
	for (int offers = 0; offers < 2; offers++) {
		CHECK(obt_stream_connect(&pair.url, ob_clock_ns() + 5 * OB_SECOND, &joiner.stream,
			      NULL) == OB_ERR_NONE);
		fcntl(pair.listener, F_SETFL, 0);
		fd = accept(pair.listener, NULL, NULL);
		CHECK(fd >= 0);
		if (offers) {
			CHECK_INT(pthread_create(&thread, NULL, join_main, &joiner), 0);
		} else {
			struct iovec iov = { (void *)(uintptr_t) "\x16\x03\x01\x00\x05hello", 10 };
			struct obt_stream clear = { .ops = &obt_socket_ops,
				.fd = joiner.stream.fd };

			CHECK(obt_stream_send_all(&clear,
				      &(struct iovec){ (void *)(uintptr_t)PREFACE, sizeof PREFACE },
				      1, OB_NEVER) == OB_ERR_NONE);
			CHECK(obt_stream_send_all(&clear, &iov, 1, OB_NEVER) == OB_ERR_NONE);
		}
		CHECK_INT(recv(fd, preface, sizeof preface, MSG_WAITALL), sizeof preface);
		CHECK(obt_tls_accept_data(fd, psk, &second) == OB_ERR_NONE);
		CHECK_INT(answer(&second), OB_ERR_TLS);
		CHECK(obt_stream_cause(&second) && !obt_tls_started(&second));
		obt_stream_close(&second);
		if (offers)
			pthread_join(thread, NULL);
		CHECK(!offers || joiner.err != OB_ERR_NONE);
		obt_stream_close(&joiner.stream);
	}
	tls_pair_fini(&pair);
}

TEST(damaged_bytes_end_the_stream)
{
	char byte;

	begin();
	CHECK_INT(
		send(client.fd, "\x17\x03\x03\x00\x20 this was never encrypted by it.", 37, 0), 37);
	CHECK_INT(server.ops->recv(&server, &byte, 1, true), -1);
	CHECK(errno != EAGAIN && obt_stream_cause(&server));
	end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
