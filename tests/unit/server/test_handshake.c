/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The server's answers to unauthenticated peers and to clients that violate the protocol in the
 * handshake. Other clients must not be affected.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/opt.h"
#include "tests/unit/server/peer.h"

/*
 * Sends bytes instead of a hello; the server must refuse with this code, close, and serve the next
 * client.
 */
static void refused(const void *bytes, size_t size, enum ob_err code)
{
	struct server server;
	struct peer peer, other;

	server_start(&server, NULL);
	peer_connect(&peer, &server);
	peer_send(&peer, bytes, size);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_REFUSED);
	CHECK_INT(peer.got.code, code);
	CHECK(peer.got.text[0]);
	shutdown(peer.fd, SHUT_WR);
	CHECK(peer_ended(&peer));
	peer_session(&other, &server);
	CHECK_INT(peer_ping(&other, 0), 0);
	peer_close(&other);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

TEST(garbage_is_refused)
{
	refused("GET / HTTP/1.1\r\nHost: here\r\n\r\n", 30, OB_ERR_MAGIC);
}

TEST(one_wrong_byte_is_enough)
{
	refused("X", 1, OB_ERR_MAGIC);
}

TEST(another_version_is_refused)
{
	struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION + 1, .intent = OBP_INTENT_NEW
	};

	refused(&preface, sizeof preface, OB_ERR_VERSION);
}

TEST(unknown_intent_is_refused)
{
	struct obp_preface preface = { .magic = OBP_MAGIC, .version = OBP_VERSION, .intent = 9 };

	refused(&preface, sizeof preface, OB_ERR_PROTOCOL);
}

TEST(unknown_route_is_refused)
{
	struct obp_preface preface = { .magic = OBP_MAGIC,
		.version = OBP_VERSION,
		.intent = OBP_INTENT_JOIN,
		.route = 12345 };

	refused(&preface, sizeof preface, OB_ERR_NOT_FOUND);
}

struct hello_bytes {
	struct obp_preface preface;
	struct obp_frame frame;
	uint8_t map[64];
};

static struct hello_bytes hello_bytes(void)
{
	struct hello_bytes b = {
		.preface = { .magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_NEW }
	};

	obp_frame_fill(&b.frame, OBP_FRAME_CONTROL, sizeof b.map, 1, 0, 0);
	return b;
}

TEST(garbage_instead_of_the_map)
{
	struct hello_bytes b = hello_bytes();

	memset(b.map, 0xc1, sizeof b.map);
	refused(&b, sizeof b, OB_ERR_PROTOCOL);
}

TEST(garbage_instead_of_the_frame)
{
	struct hello_bytes b = hello_bytes();

	memset(&b.frame, 0x55, sizeof b.frame);
	refused(&b, sizeof b, OB_ERR_MAGIC);
}

TEST(frame_of_another_version)
{
	struct hello_bytes b = hello_bytes();

	b.frame.version++;
	refused(&b, sizeof b, OB_ERR_VERSION);
}

TEST(frame_too_large)
{
	struct hello_bytes b = hello_bytes();

	b.frame.size = b.frame.raw_size = OBP_CONTROL_MAX + 8;
	refused(&b, sizeof b, OB_ERR_PROTOCOL);
}

TEST(frame_at_the_maximum_that_never_ends)
{
	struct hello_bytes b = hello_bytes();
	struct server server;
	struct peer peer;
	char zeros[4096] = { 0 };

	b.frame.size = b.frame.raw_size = OBP_CONTROL_MAX;
	server_start(&server, (const char *const[]){ "--hello-timeout", "1", NULL });
	peer_connect(&peer, &server);
	peer_send(&peer, &b, sizeof b);
	for (int i = 0; i < 60; i++)
		peer_send(&peer, zeros, sizeof zeros);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_REFUSED);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

TEST(calls_before_the_hello)
{
	struct hello_bytes b = hello_bytes();

	b.frame.type = OBP_FRAME_CALLS;
	b.frame.sequence = 1;
	refused(&b, sizeof b, OB_ERR_PROTOCOL);
}

/* An error that only the worker can detect: the memory announced by the hello was not sent. */
TEST(a_refusal_by_the_worker_is_in_the_audit_log)
{
	static const char reason[] = "no shared memory came with the hello";
	struct obp_message *hello = calloc(1, sizeof *hello);
	char path[] = "/tmp/outboard-audit-XXXXXX", line[1024];
	bool opened = false, closed = false;
	struct server server;
	struct peer peer;
	FILE *file;
	int fd;

	if (!ob_opt_on(OB_OPT_SHM))
		TEST_SKIP("shared memory is off");
	fd = mkstemp(path);
	CHECK(fd >= 0 && hello);
	close(fd);
	server_start(&server, (const char *const[]){ "--audit", path, NULL });
	peer_connect(&peer, &server);
	peer_preface(&peer, OBP_INTENT_NEW, 0);
	hello->type = OBP_MSG_HELLO;
	hello->shm = 1;
	peer_message(&peer, hello);
	free(hello);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_REFUSED);
	CHECK(strstr(peer.got.text, reason));
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
	file = fopen(path, "r");
	CHECK(file);
	while (fgets(line, sizeof line, file)) {
		opened |= strstr(line, "\"event\":\"open\"") != NULL;
		closed |= strstr(line, "\"event\":\"close\"") && strstr(line, reason);
	}
	CHECK(opened && closed);
	fclose(file);
	unlink(path);
}

TEST(silence_is_refused_in_time)
{
	struct server server;
	struct peer peer;
	uint64_t start = ob_clock_ns();

	server_start(&server, (const char *const[]){ "--hello-timeout", "1", NULL });
	peer_connect(&peer, &server);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.code, OB_ERR_TIMEOUT);
	CHECK(ob_clock_ns() - start > OB_SECOND / 2 && ob_clock_ns() - start < 30 * OB_SECOND);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

TEST(silence_after_the_preface_is_refused_in_time)
{
	struct server server;
	struct peer peer;

	server_start(&server, (const char *const[]){ "--hello-timeout", "1", NULL });
	peer_connect(&peer, &server);
	peer_preface(&peer, OBP_INTENT_NEW, 0);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.code, OB_ERR_TIMEOUT);
	CHECK(peer_ended(&peer));
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

TEST(a_slow_preface_does_not_hold_up_others)
{
	struct server server;
	struct peer slow, quick;
	struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_NEW
	};

	server_start(&server, NULL);
	peer_connect(&slow, &server);
	peer_send(&slow, &preface, 7);
	peer_session(&quick, &server);
	CHECK_INT(peer_ping(&quick, 0), 0);
	peer_close(&quick);
	peer_send(&slow, (char *)&preface + 7, sizeof preface - 7);
	peer_close(&slow);
	CHECK_INT(server_stop(&server), 0);
}

TEST(every_truncated_hello)
{
	struct hello_bytes b = hello_bytes();
	struct server server;
	struct peer peer;

	server_start(&server, NULL);
	for (size_t n = 0; n < sizeof b; n += 9) {
		peer_connect(&peer, &server);
		peer_send(&peer, &b, n);
		peer_close(&peer);
	}
	peer_session(&peer, &server);
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

TEST(welcome_describes_the_device)
{
	struct server server;
	struct peer peer;
	const struct obp_welcome *w = &peer.got.welcome;

	server_start(&server, NULL);
	peer_session(&peer, &server);
	CHECK_INT(w->n_devices, 1);
	CHECK_STR(w->driver, "null");
	CHECK(w->route != 0 && w->vmm && w->range_ok);
	CHECK_INT(w->range.base, 0x200000000000ll);
	CHECK_INT(w->devices[0].range.base, w->range.base);
	CHECK_INT(w->devices[0].grant, ob_opt_on(OB_OPT_GRANT) ? 256 << 20 : 0);
	CHECK(w->devices[0].attr_known[CU_DEVICE_ATTRIBUTE_WARP_SIZE]);
	CHECK_INT(w->devices[0].attr[CU_DEVICE_ATTRIBUTE_WARP_SIZE], 32);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

/* Opens a second connection with the given secret. Returns the type of the answer. */
static int join(
	struct peer *peer, const struct server *server, uint64_t route, const uint8_t *secret)
{
	struct obp_message *message = calloc(1, sizeof *message);

	peer_connect(peer, server);
	peer_preface(peer, OBP_INTENT_JOIN, route);
	message->type = OBP_MSG_JOIN;
	memcpy(message->secret, secret, sizeof message->secret);
	peer_message(peer, message);
	free(message);
	CHECK(peer_control(peer));
	return (int)peer->got.type;
}

TEST(control_connection_needs_the_secret)
{
	struct server server;
	struct peer data, wrong, control, second;
	struct obp_message ping = { .type = OBP_MSG_PING, .value = 4711 };
	uint8_t secret[OBP_SECRET_BYTES];
	uint64_t route;

	server_start(&server, NULL);
	peer_session(&data, &server);
	route = data.got.welcome.route;
	memcpy(secret, data.got.welcome.secret, sizeof secret);
	secret[3] ^= 1;
	CHECK_INT(join(&wrong, &server, route, secret), OBP_MSG_REFUSED);
	secret[3] ^= 1;
	CHECK_INT(join(&control, &server, route, secret), OBP_MSG_JOINED);
	CHECK_INT(join(&second, &server, route, secret), OBP_MSG_REFUSED);
	peer_message(&control, &ping);
	CHECK(peer_control(&control));
	CHECK_INT(control.got.type, OBP_MSG_PONG);
	CHECK_INT(control.got.value, 4711);
	CHECK_INT(peer_ping(&data, 0), 0);
	/* The end of the control connection ends the session. */
	peer_close(&control);
	CHECK(peer_ended(&data));
	peer_close(&second);
	peer_close(&wrong);
	peer_close(&data);
	CHECK_INT(server_stop(&server), 0);
}

/* A peer that knows a route but not the secret must not affect the owner of the session. */
TEST(joins_of_others_do_not_keep_the_owner_out)
{
	enum { OTHERS = 60 };
	struct server server;
	struct peer data, others[OTHERS], wrong, again;
	uint8_t secret[OBP_SECRET_BYTES], guess[OBP_SECRET_BYTES] = { 1 };
	uint64_t route;

	/* The owner resumes: the option must be on when a run switches all off. */
	server_start_env(
		&server, NULL, "OUTBOARD_OPT", ob_opt_on(OB_OPT_RESUME) ? "" : "-all,resume");
	peer_session_grace(&data, &server, 30);
	route = data.got.welcome.route;
	memcpy(secret, data.got.welcome.secret, sizeof secret);
	for (int i = 0; i < OTHERS; i++) {
		peer_connect(&others[i], &server);
		peer_preface(&others[i], OBP_INTENT_JOIN, route);
		CHECK(!peer_join(&wrong, &server, route, guess, OBP_JOIN_DATA, 0,
			      1000 + (uint64_t)i) ||
			wrong.got.type == OBP_MSG_REFUSED);
		peer_close(&wrong);
	}
	close(data.fd);
	CHECK(peer_join(&again, &server, route, secret, OBP_JOIN_DATA, 0, 1));
	CHECK_INT(again.got.type, OBP_MSG_JOINED);
	data.fd = open("/dev/null", O_RDONLY);
	again.next = 1;
	CHECK_INT(peer_ping(&again, 0), 0);
	for (int i = 0; i < OTHERS; i++)
		peer_close(&others[i]);
	peer_close(&again);
	peer_close(&data);
	/* the session waits for its client: a second signal is needed to end it */
	kill(server.pid, SIGTERM);
	server_await_log(&server, "shutting down");
	CHECK_INT(server_stop(&server), 0);
}

/*
 * At the limit of connections, the server evicts one of the address that has most of them: the
 * oldest that has sent least.
 */
TEST(who_says_nothing_makes_room)
{
	enum { SILENT = 40 };
	struct server server;
	struct peer silent[SILENT], peer;

	server_start(&server, (const char *const[]){ "--connections", "16", NULL });
	for (int i = 0; i < SILENT; i++)
		peer_connect(&silent[i], &server);
	peer_session(&peer, &server);
	CHECK_INT(peer_ping(&peer, 0), 0);
	CHECK(peer_control(&silent[0]));
	CHECK_INT(silent[0].got.code, OB_ERR_LIMIT);
	/* The newest connection is still open. */
	peer_hello(&silent[SILENT - 1], 0);
	CHECK(peer_control(&silent[SILENT - 1]));
	CHECK_INT(silent[SILENT - 1].got.type, OBP_MSG_WELCOME);
	for (int i = 0; i < SILENT; i++)
		peer_close(&silent[i]);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
